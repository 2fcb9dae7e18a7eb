//! Interrupted runs, with every protocol: requests in flight are not failures, and are not waited for.
//!
//! The output of such runs is covered by the tests of the command line.

use std::thread;

use load::progress::{GRACE, Stop};
use load::run::run_until;
use load::tls::Trust;
use load::{Config, Protocol};
use wire::{Duration, Time};

use super::site::{config, plan_for, target};
use super::{hostile_datagrams, hostile_streams};

/// Time limit after the end of a run: for busy hosts, and for graceful closes.
const LATE: Duration = Duration::from_millis(2_500);

#[test]
fn an_interrupted_run_does_not_wait_for_a_silent_server() {
    thread::scope(|scope| {
        for protocol in Protocol::ALL {
            scope.spawn(move || ends(protocol));
        }
    });
}

fn ends(protocol: Protocol) {
    let name = protocol.name();
    let server = hostile_datagrams::serve(|_, _, _| Ok(()), hostile_streams::silent);
    let trust = (protocol == Protocol::Http3).then_some(Trust::Unverified);
    let (plan, stop) = (plan_for(100.0, Duration::from_secs(60)), Stop::default());
    let long_timeout = Config { timeout: Duration::from_secs(30), users: 3, ..config(protocol) };
    let clock = linux::clock::Clock::start();
    let record = run_until(&plan, &target(server, trust), &long_timeout, &stop, &mut |progress| {
        // On a busy host the first second may be reported late.
        if progress.seconds.iter().any(|second| second.due > 0) {
            stop.stop();
        }
    });
    let (took, record) = (clock.now().since(Time::ZERO), record.unwrap());
    assert!(took < Duration::from_secs(1) + GRACE + LATE, "{name} took {took}");
    assert_eq!((record.responses(), record.failures()), (0, 0), "{name}: {:?}", record.failure_counts);
    let cut = record.cut.unwrap();
    assert!((Duration::from_secs(1)..Duration::from_secs(1) + LATE).contains(&cut), "{name}: {cut}");
}
