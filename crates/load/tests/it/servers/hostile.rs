//! Runs against hostile servers, with every protocol: every request is recorded once, and none waits forever.
//!
//! The servers are in `hostile_streams` and `hostile_datagrams`. The kind of failure depends on each protocol's
//! library; where it is ours, its own tests cover it.

use std::net::SocketAddr;
use std::thread;

use load::record::{FailureReason, Record};
use load::tls::Trust;
use load::{Config, Protocol};
use wire::Duration;

use super::hostile_datagrams::{self, DatagramHandler};
use super::hostile_streams::{self, ConnectionHandler};
use super::site::{config, plan_for, run, target};

/// Requests of a run, and its duration.
const REQUESTS: u64 = 30;
const LASTS: Duration = Duration::from_millis(300);
/// Timeout of a request.
const REQUEST_TIMEOUT: Duration = Duration::from_millis(300);
/// Time limit of a run: nothing waits for a server forever. Not more exact, since the generator shares its host's CPUs.
const LIMIT: Duration = Duration::from_secs(30);

/// Runs against this address, and checks that every request is recorded, before the limit.
fn account(case: &str, protocol: Protocol, address: SocketAddr, trust: Option<Trust>) -> Record {
    let plan = plan_for(REQUESTS as f64 * 1e9 / LASTS.as_nanos() as f64, LASTS);
    let short_timeout = Config { timeout: REQUEST_TIMEOUT, users: 3, ..config(protocol) };
    let clock = linux::clock::Clock::start();
    let record = run(&plan, &target(address, trust), &short_timeout);
    let took = clock.now().since(wire::Time::ZERO);
    let case = format!("{case} by {}", protocol.name());
    assert_eq!(record.responses() + record.failures(), REQUESTS, "{case}: {record:?}");
    let due = record.seconds.iter().map(|second| second.due).sum::<u64>();
    let over = record.seconds.iter().map(|second| second.responses + second.failed).sum::<u64>();
    assert_eq!((due, over), (REQUESTS, REQUESTS), "{case}: {record:?}");
    assert!(took < LIMIT, "{case} took {took}: {record:?}");
    record
}

/// Runs the cases concurrently: most of their time is idle.
fn run_concurrently<T: Sync>(cases: &[(&'static str, T)], run: impl Fn(&'static str, &T) + Sync) {
    let run = &run;
    thread::scope(|scope| {
        for (case, behaviour) in cases {
            scope.spawn(move || run(case, behaviour));
        }
    });
}

fn of_streams(protocol: Protocol) {
    run_concurrently(hostile_streams::ALL, |case, behaviour: &ConnectionHandler| {
        let server = hostile_streams::serve(*behaviour);
        account(case, protocol, server, None);
    });
}

#[test]
fn waiting_for_a_missing_response_uses_no_cpu_time() {
    let protocols = Protocol::ALL.map(|protocol| (protocol.name(), protocol));
    run_concurrently(&protocols, |name, protocol| {
        let server = hostile_datagrams::serve(|_, _, _| Ok(()), hostile_streams::silent);
        let trust = (*protocol == Protocol::Http3).then_some(Trust::Unverified);
        let record = account("silence", *protocol, server, trust);
        let busiest = record.seconds.iter().map(|second| second.cpu_share).fold(0.0, f64::max);
        assert!(busiest < 0.5, "{name}: {busiest} of a CPU");
        assert_eq!(record.failure_counts.keys().collect::<Vec<_>>(), [&FailureReason::Timeout], "{name}");
    });
}

#[test]
fn every_request_is_recorded_over_http10() {
    of_streams(Protocol::Http10);
}

#[test]
fn every_request_is_recorded_with_keep_alive() {
    of_streams(Protocol::KeepAlive);
}

#[test]
fn every_request_is_recorded_with_pipelining() {
    of_streams(Protocol::Pipelined);
}

#[test]
fn every_request_is_recorded_over_http2() {
    of_streams(Protocol::Http2);
}

#[test]
fn every_request_is_recorded_over_http2_with_tls() {
    run_concurrently(hostile_streams::ALL, |case, behaviour: &ConnectionHandler| {
        let server = hostile_streams::serve(*behaviour);
        account(case, Protocol::Http2, server, Some(Trust::Unverified));
    });
}

#[test]
fn every_request_is_recorded_over_http3() {
    run_concurrently(hostile_datagrams::ALL, |case, handler: &DatagramHandler| {
        let server = hostile_datagrams::serve(*handler, hostile_streams::silent);
        account(case, Protocol::Http3, server, Some(Trust::Unverified));
    });
}

#[test]
fn every_request_is_recorded_over_dhttp() {
    run_concurrently(hostile_datagrams::ALL, |case, handler: &DatagramHandler| {
        let server = hostile_datagrams::serve(*handler, hostile_streams::silent);
        account(case, Protocol::Dhttp, server, None);
    });
}

#[test]
fn every_request_is_recorded_when_dhttp_falls_back_to_plain_http() {
    run_concurrently(hostile_streams::ALL, |case, behaviour: &ConnectionHandler| {
        let server = hostile_datagrams::serve(hostile_datagrams::refers, *behaviour);
        account(case, Protocol::Dhttp, server, None);
    });
}
