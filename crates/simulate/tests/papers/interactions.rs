//! The two interactions of `papers/p-http`, to the segment, and Table 1 with one set of host times.
//!
//! The host times are declared once, below. The published means are of 100 retrievals one after the other: each
//! begins just after the end of the one before, and that is why the client "becomes synchronized" with the
//! heartbeat of its delayed acknowledgements. So are these.

use std::num::NonZeroUsize;

use proto::http::WritePolicy;
use scenario::{Client, Connection, Network, Page, Protocol, Requests, Scenario, Server, Stack, Visit};
use simulate::profile::Clocks;
use simulate::web::{BrowserTimes, ServerTimes};
use simulate::world::{HostId, Record, Seen};
use simulate::{Experiment, Fetched, Hosts};
use wire::{Bytes, Duration, Seed};

/// Close to what Figure 2 shows: "client_think_time: 0.650ms", "server_think_time: 2.175ms", 1.626 ms from the
/// head to the first write. What a connection takes is not printed; it is what lets Table 1's first row be.
const CLIENT: BrowserTimes = BrowserTimes { connection: Duration::ZERO, request: Duration::from_micros(650) };
const SERVER: ServerTimes = ServerTimes {
    connection: Duration::from_micros(5_600),
    request: Duration::from_micros(1_900),
    write: Duration::from_micros(1_626),
};
const HEARTBEAT: Duration = Duration::from_millis(200);

/// What was fetched, and how.
struct Setting {
    protocol: Protocol,
    head_apart: bool,
    nagle: bool,
}

const HTTP: Setting = Setting { protocol: Protocol::Http10, head_apart: false, nagle: true };
const UNMENDED: Setting = Setting { protocol: Protocol::Http10KeepAlive, head_apart: true, nagle: true };
const FIRST_FIX: Setting = Setting { head_apart: false, ..UNMENDED };
const BOTH_FIXES: Setting = Setting { nagle: false, ..FIRST_FIX };

/// One retrieval that begins this long before the client's next tick.
fn retrieve(setting: &Setting, sizes: [u64; 3], tick: Duration) -> Fetched {
    let Setting { protocol, head_apart, nagle } = *setting;
    let mut stack = Stack::named("sunos-4.1.3").unwrap();
    stack.nagle = nagle;
    let scenario = Scenario {
        network: Network::named("ethernet").unwrap(),
        page: Page::from_sizes("yahoo", sizes.map(Bytes::new)).unwrap(),
        visit: Visit::First,
        protocol,
        stack,
        client: Client {
            request: Bytes::new(100),
            requests: Requests::Dependent,
            parallel: 1,
            connection: Connection::Cold,
        },
        server: Server { processing: Duration::ZERO },
        runs: 1,
        seed: Seed::default(),
    };
    let client = Clocks { heartbeat: tick, slow: Duration::from_millis(333) };
    let server = Clocks { heartbeat: Duration::from_millis(77), ..client };
    let hosts = Hosts {
        client: CLIENT,
        server: SERVER,
        writes: WritePolicy { head_apart, buffer: NonZeroUsize::new(4096), gather: None },
        head_bytes: Some(226),
        clocks: Some([client, server]),
        ..Hosts::default()
    };
    Experiment::new(&scenario, hosts).unwrap().run(0, true).unwrap()
}

/// The mean of 100 retrievals one after the other, in milliseconds.
fn mean_of_a_hundred(setting: &Setting) -> f64 {
    let (mut tick, mut total) = (Duration::from_millis(123), 0.0);
    for _ in 0..100 {
        let elapsed = retrieve(setting, [6651, 3883, 1866], tick).elapsed.unwrap();
        total += elapsed.as_millis_f64();
        let since_tick = (HEARTBEAT - tick + elapsed).as_nanos() % HEARTBEAT.as_nanos();
        tick = HEARTBEAT - Duration::from_nanos(since_tick);
    }
    total / 100.0
}

#[test]
fn paper_p_http_table_1_comes_within_a_tenth_with_one_set_of_host_times() {
    for (setting, published) in [(HTTP, 43.0), (UNMENDED, 605.0), (FIRST_FIX, 195.0), (BOTH_FIXES, 26.0)] {
        let ours = mean_of_a_hundred(&setting);
        assert!((ours / published - 1.0).abs() < 0.1, "{ours} ms against {published}");
    }
}

/// What a capture at the server has of one direction or both: times in ms, who, and the range of bytes; or the
/// acknowledgement, where there are none.
fn capture(records: &[Record]) -> Vec<(f64, &'static str, (u64, u64))> {
    let at_server = records.iter().filter_map(|record| match (record.seen, record.from.host) {
        (Seen::Received, HostId(0)) => Some((record, "client")),
        (Seen::Sent, HostId(1)) => Some((record, "server")),
        (Seen::Received | Seen::Sent | Seen::Lost, _) => None,
    });
    at_server
        .map(|(record, who)| {
            let segment = &record.segment;
            let range = match segment.payload.len() as u64 {
                0 => (segment.acknowledgement, segment.acknowledgement),
                bytes => (segment.sequence, segment.sequence + bytes),
            };
            (record.at.as_millis_f64(), who, range)
        })
        .collect()
}

#[test]
fn paper_p_http_figure_2_a_short_first_segment_stalls_until_the_tick() {
    let fetched = retrieve(&UNMENDED, [6651, 3883, 1866], Duration::from_millis(189));
    let seen = capture(&fetched.records);
    let from_answer = seen.iter().position(|(_, who, range)| *who == "server" && range.1 == 227).unwrap();
    let [head, data, ack, next, after] = seen[from_answer..from_answer + 5] else { panic!("{seen:?}") };
    assert_eq!((head.1, head.2), ("server", (1, 227)));
    assert_eq!((data.1, data.2), ("server", (227, 1687)));
    assert_eq!((ack.1, ack.2), ("client", (1687, 1687)));
    assert_eq!((next.1, next.2), ("server", (1687, 3147)));
    assert_eq!((after.1, after.2), ("server", (3147, 4607)));
    // Published: 1.626 ms from the head to the data, 185.736 from the data to what follows.
    assert!((data.0 - head.0 - 1.626).abs() < 0.001, "{seen:?}");
    assert!((160.0..200.0).contains(&(next.0 - data.0)), "{seen:?}");
}

#[test]
fn paper_p_http_figure_4_a_short_last_segment_stalls_until_the_tick() {
    // The first answer of the trace has 6,675 bytes, head and all: 24 more than the document alone.
    let fetched = retrieve(&FIRST_FIX, [6675 - 226, 3883, 1866], Duration::from_millis(189));
    let seen = capture(&fetched.records);
    let from_answer = seen.iter().position(|(_, who, range)| *who == "server" && range.0 == 6676).unwrap();
    let [first, second, third, ack, late_ack, last] = seen[from_answer..from_answer + 6] else {
        panic!("{seen:?}")
    };
    assert_eq!((first.1, first.2), ("server", (6676, 8136)));
    assert_eq!((second.1, second.2), ("server", (8136, 9596)));
    assert_eq!((third.1, third.2), ("server", (9596, 10772)));
    assert_eq!((ack.1, ack.2), ("client", (9596, 9596)));
    assert_eq!((late_ack.1, late_ack.2), ("client", (10772, 10772)));
    assert_eq!((last.1, last.2), ("server", (10772, 10785)));
    // Published: the acknowledgement "is delayed 166ms".
    assert!((160.0..200.0).contains(&(last.0 - third.0)), "{seen:?}");
}

#[test]
fn paper_p_http_the_client_becomes_synchronized_with_its_heartbeat() {
    let fetched = retrieve(&UNMENDED, [6651, 3883, 1866], Duration::from_millis(120));
    let acks: Vec<f64> = fetched
        .records
        .iter()
        .filter(|record| record.seen == Seen::Sent && record.from.host == HostId(0))
        .filter(|record| record.segment.is_pure_ack())
        .map(|record| record.at.as_millis_f64())
        .filter(|at| (at - 120.0).rem_euclid(200.0) < 1e-6)
        .collect();
    assert_eq!(acks, [120.0, 320.0, 520.0]);
}

#[test]
fn without_its_cause_each_stall_is_gone() {
    let stalls = |setting: &Setting| {
        let records = retrieve(setting, [6651, 3883, 1866], Duration::from_millis(189)).records;
        let times: Vec<f64> = capture(&records).iter().map(|(at, _, _)| *at).collect();
        times.windows(2).filter(|pair| pair[1] - pair[0] > 100.0).count()
    };
    assert_eq!([UNMENDED, FIRST_FIX, BOTH_FIXES, HTTP].map(|setting| stalls(&setting)), [3, 1, 0, 0]);
}
