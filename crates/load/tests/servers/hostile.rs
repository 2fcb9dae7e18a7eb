//! What is asked of servers that do their worst, whatever the protocol: every request is in the account once, in time.
//!
//! What they do is in `hostile_streams` and `hostile_datagrams`. Not which kind of failure it is: that is a matter of
//! each protocol's library, and where it is ours the tests there say it.

use std::net::SocketAddr;
use std::thread;

use load::record::{Record, Trouble};
use load::secure::Trust;
use load::{Config, Protocol};
use wire::Duration;

use crate::hostile_datagrams::{self, Doing};
use crate::hostile_streams::{self, Does};
use crate::site::{config, plan_for, run, target};

/// Requests of a run, and how long it is.
const REQUESTS: u64 = 30;
const LASTS: Duration = Duration::from_millis(300);
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_millis(300);
/// After a run is over: for busy machines, and for farewells.
const GRACE: Duration = Duration::from_millis(2_500);

/// A run against what listens there, and whether all of it is told in time.
fn account(what: &str, protocol: Protocol, address: SocketAddr, trust: Option<Trust>) -> Record {
    let plan = plan_for(REQUESTS as f64 * 1e9 / LASTS.as_nanos() as f64, LASTS);
    let hasty = Config { patience: PATIENCE, users: 3, ..config(protocol) };
    let clock = dhttp::clock::Clock::start();
    let record = run(&plan, &target(address, trust), &hasty);
    let took = clock.now().since(wire::Time::ZERO);
    let what = format!("{what} by {}", protocol.name());
    assert_eq!(record.answers() + record.failures(), REQUESTS, "{what}: {record:?}");
    let due = record.seconds.iter().map(|second| second.due).sum::<u64>();
    let over = record.seconds.iter().map(|second| second.answered + second.failed).sum::<u64>();
    assert_eq!((due, over), (REQUESTS, REQUESTS), "{what}: {record:?}");
    assert!(took < LASTS + PATIENCE + GRACE, "{what} took {took}: {record:?}");
    record
}

/// Each of these beside the others: most of the time nobody does anything.
fn beside<T: Sync>(cases: &[(&'static str, T)], run: impl Fn(&'static str, &T) + Sync) {
    let run = &run;
    thread::scope(|scope| {
        for (what, does) in cases {
            scope.spawn(move || run(what, does));
        }
    });
}

fn of_streams(protocol: Protocol) {
    beside(hostile_streams::ALL, |what, does: &Does| {
        let served = hostile_streams::serve(*does);
        account(what, protocol, served, None);
    });
}

#[test]
fn who_waits_for_an_answer_that_does_not_come_does_nothing_else() {
    let protocols = Protocol::ALL.map(|protocol| (protocol.name(), protocol));
    beside(&protocols, |name, protocol| {
        let served = hostile_datagrams::serve(|_, _, _| Ok(()), hostile_streams::silent);
        let trust = (*protocol == Protocol::Http3).then_some(Trust::Anybody);
        let record = account("silence", *protocol, served, trust);
        let busiest = record.seconds.iter().map(|second| second.processor).fold(0.0, f64::max);
        assert!(busiest < 0.5, "{name}: {busiest} of a processor");
        assert_eq!(record.troubles.keys().collect::<Vec<_>>(), [&Trouble::Timeout], "{name}");
    });
}

#[test]
fn nothing_is_lost_by_http10() {
    of_streams(Protocol::Http10);
}

#[test]
fn nothing_is_lost_by_connections_that_are_kept() {
    of_streams(Protocol::KeepAlive);
}

#[test]
fn nothing_is_lost_in_a_pipeline() {
    of_streams(Protocol::Pipelined);
}

#[test]
fn nothing_is_lost_by_http2() {
    of_streams(Protocol::Http2);
}

#[test]
fn nothing_is_lost_by_http2_over_tls() {
    beside(hostile_streams::ALL, |what, does: &Does| {
        let served = hostile_streams::serve(*does);
        account(what, Protocol::Http2, served, Some(Trust::Anybody));
    });
}

#[test]
fn nothing_is_lost_by_http3() {
    beside(hostile_datagrams::ALL, |what, doing: &Doing| {
        let served = hostile_datagrams::serve(*doing, hostile_streams::silent);
        account(what, Protocol::Http3, served, Some(Trust::Anybody));
    });
}

#[test]
fn nothing_is_lost_by_dhttp() {
    beside(hostile_datagrams::ALL, |what, doing: &Doing| {
        let served = hostile_datagrams::serve(*doing, hostile_streams::silent);
        account(what, Protocol::Dhttp, served, None);
    });
}

#[test]
fn nothing_is_lost_where_dhttp_ends_in_plain_http() {
    beside(hostile_streams::ALL, |what, does: &Does| {
        let served = hostile_datagrams::serve(hostile_datagrams::refers, *does);
        account(what, Protocol::Dhttp, served, None);
    });
}
