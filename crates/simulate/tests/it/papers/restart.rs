//! Congestion window during the user's think time (`papers/p-http`, section 2.4).

use scenario::{Client, Connection, Network, Page, Protocol, Scenario, Stack};
use simulate::world::{HostId, ObservationPoint};
use simulate::{Experiment, Hosts, PageResult};
use tcp::stack::Idle;
use tcp::stack::packets::Restart;
use wire::Duration;

/// Fetches a page of 25 kB, after a similar one and ten seconds of think time.
fn second_page(idle: Idle, restart: Restart) -> PageResult {
    let mut stack = Stack::named("period").unwrap();
    stack.idle = idle;
    stack.packets.restart = restart;
    let scenario = Scenario {
        client: Client { connection: Connection::Warm, ..Client::default() },
        ..Scenario::new(
            Network::named("adsl").unwrap(),
            Page::named("medium-page").unwrap(),
            Protocol::Http11,
            stack,
        )
    };
    let hosts = Hosts { think: Duration::from_secs(10), ..Hosts::default() };
    Experiment::new(&scenario, hosts).unwrap().run(0, true).unwrap()
}

/// Maximum number of segments that left the server at one time.
fn burst(fetched: &PageResult) -> usize {
    let sent = fetched.records.iter().filter(|record| {
        record.seen == ObservationPoint::Sent
            && record.from.host == HostId(1)
            && !record.segment.payload.is_empty()
    });
    let times: Vec<_> = sent.map(|record| record.at).collect();
    times.chunk_by(|a, b| a == b).map(<[_]>::len).max().unwrap_or(0)
}

#[test]
fn restarted_window_costs_round_trips_and_unchanged_window_bursts() {
    let retained = second_page(Idle::Unchanged, Restart::AfterSending);
    let restarted = second_page(Idle::Restarted, Restart::AfterSending);
    let decayed = second_page(Idle::Restarted, Restart::Decaying);
    let paced = second_page(Idle::Paced, Restart::AfterSending);
    let millis = |fetched: &PageResult| fetched.elapsed.unwrap().as_millis_f64();

    assert!(millis(&restarted) > millis(&retained) + 60.0, "{} {}", millis(&restarted), millis(&retained));
    // Ten timeouts reduce any window of that time to its initial size.
    assert!(millis(&decayed) <= millis(&restarted), "{} {}", millis(&decayed), millis(&restarted));
    assert!(burst(&retained) >= 3 * burst(&restarted), "{} {}", burst(&retained), burst(&restarted));
    // Nearly as fast as an unchanged window: at most one round trip more. As smooth as slow start: the first
    // acknowledgement limits the window to the segments that were paced.
    assert!(millis(&paced) < millis(&retained) + 31.0, "{} {}", millis(&paced), millis(&retained));
    assert_eq!(burst(&paced), burst(&restarted));
}

#[test]
fn bsd_does_not_restart_after_idle_because_the_request_resets_its_timer() {
    let retained = second_page(Idle::Unchanged, Restart::AfterSending);
    let bsd = second_page(Idle::Restarted, Restart::AfterReceiving);
    assert_eq!(bsd.elapsed, retained.elapsed);
}

#[test]
fn an_open_connection_saves_the_handshake() {
    let fetched = second_page(Idle::Unchanged, Restart::AfterSending);
    assert_eq!(fetched.up.connections, 0);
    assert!(fetched.records.iter().all(|record| !record.segment.flags.syn));
}
