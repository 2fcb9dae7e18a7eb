//! Slow start as the model paper counts it: `papers/heidemann-model#table-5` and its Fig. 3.

use proto::http::WritePolicy;
use scenario::stack::{Acks, Idle};
use scenario::{Client, Connection, Network, Page, Protocol, Requests, Scenario, Server, Stack, Visit};
use simulate::world::{HostId, Record, Seen};
use simulate::{Experiment, Hosts};
use wire::{Bytes, Duration, Rate, Seed};

/// Segments of 512 bytes over a path with this round trip, one connection for everything.
fn scenario(acks: Acks, rtt: Duration, rate: u64, sizes: &[u64]) -> Scenario {
    let mut stack = Stack::named("period").unwrap();
    stack.acks = acks;
    stack.idle = Idle::Kept;
    // Nothing but slow start: no threshold, no window of the receiver's.
    stack.receive_buffer = Some(Bytes::new(1 << 30));
    stack.window_scaling = true;
    stack.packets.initial_threshold = None;
    stack.packets.send_buffer = Bytes::new(1 << 30);
    Scenario {
        network: Network::new(
            "test".to_owned(),
            rtt,
            Rate::from_bits_per_second(rate).unwrap(),
            Bytes::new(512),
        ),
        page: Page::from_sizes("test", sizes.iter().copied().map(Bytes::new)).unwrap(),
        visit: Visit::First,
        protocol: Protocol::Http10KeepAlive,
        stack,
        client: Client {
            request: Bytes::new(256),
            requests: Requests::Dependent,
            parallel: 1,
            connection: Connection::Cold,
        },
        server: Server { processing: Duration::ZERO },
        runs: 1,
        seed: Seed::default(),
    }
}

/// How many data segments the server sends between stalls: a stall is a pause of more than half a round trip.
fn flights(records: &[Record], stall: Duration) -> Vec<usize> {
    let sent = records.iter().filter(|record| {
        record.seen == Seen::Sent && record.from.host == HostId(1) && !record.segment.payload.is_empty()
    });
    let mut flights: Vec<usize> = Vec::new();
    let mut last = None;
    for record in sent {
        match flights.last_mut() {
            Some(flight) if last.is_some_and(|last| record.at.since(last) < stall) => *flight += 1,
            Some(_) | None => flights.push(1),
        }
        last = Some(record.at);
    }
    flights
}

#[test]
fn paper_heidemann_model_table_5_comes_out_of_packets() {
    let published: [(Acks, [usize; 10]); 3] = [
        (Acks::NoDelayed, [2, 3, 3, 6, 9, 12, 18, 27, 42, 63]),
        (Acks::Delayed, [2, 3, 5, 8, 12, 18, 27, 41, 62, 93]),
        (Acks::EverySegment, [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]),
    ];
    for (acks, segments) in published {
        let total: usize = segments.iter().sum();
        let head = 66;
        let scenario =
            scenario(acks, Duration::from_secs(4), 1_000_000_000_000, &[512 * total as u64 + 512 - head]);
        let fetched = Experiment::new(&scenario, Hosts::default()).unwrap().run(0, true).unwrap();
        let flights = flights(&fetched.records, Duration::from_secs(1));
        assert_eq!(flights[..10], segments, "{acks:?}");
    }
}

/// "cwnd(i) = cwnd(i-1) + acks(i-1), cwnd(1) = 2" (appendix), as a probe shows it.
#[test]
fn paper_heidemann_model_appendix_the_window_opens_by_one_for_each_acknowledgement() {
    let scenario =
        scenario(Acks::NoDelayed, Duration::from_secs(4), 1_000_000_000_000, &[512 * 53 + 512 - 66]);
    let fetched = Experiment::new(&scenario, Hosts::default()).unwrap().run(0, true).unwrap();
    let mut windows: Vec<u64> = fetched.probes.iter().map(|probe| probe.vitals.cwnd / 512).collect();
    windows.dedup();
    // One before the handshake is over, two when it is; 54 segments bring 27 acknowledgements.
    assert_eq!(windows[..29], (1..=29).collect::<Vec<u64>>());
}

#[test]
fn paper_heidemann_model_figure_3_comes_out_of_packets() {
    let mut scenario = scenario(
        Acks::NoDelayed,
        Duration::from_millis(133),
        734 * (1 << 20) / 1000,
        // The first answer of the trace is 6,675 bytes, head and all.
        &[6675 - 226, 3883, 1866],
    );
    scenario.stack.receive_buffer = Some(Bytes::new(16_384));
    let hosts = Hosts {
        writes: WritePolicy { buffer: std::num::NonZeroUsize::new(4096), ..WritePolicy::default() },
        head_bytes: Some(226),
        ..Hosts::default()
    };
    let fetched = Experiment::new(&scenario, hosts).unwrap().run(0, true).unwrap();
    let flights = flights(&fetched.records, Duration::from_millis(60));
    assert_eq!(flights[..5], [2, 3, 3, 6, 9]);
}
