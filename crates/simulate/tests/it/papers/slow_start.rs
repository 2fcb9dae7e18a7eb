//! Slow start as the model paper defines it: `papers/heidemann-model#appendix`. Its results (Table V, Fig. 3)
//! are compared by `roundtrip reproduce`.

use scenario::{Network, Page, Protocol, Scenario, Stack};
use simulate::page::SERVER;
use simulate::{Experiment, Hosts};
use tcp::stack::{Acks, Idle};
use wire::{Bytes, Duration, Rate};

/// Segments of 512 bytes over a path with this round trip, one connection for everything.
fn scenario(acks: Acks, rtt: Duration, rate: u64, sizes: &[u64]) -> Scenario {
    let mut stack = Stack::named("period").unwrap();
    stack.acks = acks;
    stack.idle = Idle::Unchanged;
    // Slow start only: no threshold, no receive window.
    stack.receive_buffer = Some(Bytes::new(1 << 30));
    stack.window_scaling = true;
    stack.packets.initial_threshold = None;
    stack.packets.send_buffer = Bytes::new(1 << 30);
    Scenario::new(
        Network::new("test".to_owned(), rtt, Rate::from_bits_per_second(rate).unwrap(), Bytes::new(512)),
        Page::from_sizes("test", sizes.iter().copied().map(Bytes::new)).unwrap(),
        Protocol::Http10KeepAlive,
        stack,
    )
}

/// "cwnd(i) = cwnd(i-1) + acks(i-1), cwnd(1) = 2" (appendix), as a probe shows it.
#[test]
fn paper_heidemann_model_appendix_the_window_opens_by_one_for_each_acknowledgement() {
    let scenario =
        scenario(Acks::NoDelayed, Duration::from_secs(4), 1_000_000_000_000, &[512 * 53 + 512 - 66]);
    let fetched = Experiment::new(&scenario, Hosts::default()).unwrap().run(0, true).unwrap();
    let mut windows: Vec<u64> = fetched
        .probes
        .iter()
        .filter(|probe| probe.local.host == SERVER)
        .map(|probe| probe.stats.cwnd / 512)
        .collect();
    windows.dedup();
    // One before the handshake completes, two after it; 54 segments cause 27 acknowledgements.
    assert_eq!(windows[..29], (1..=29).collect::<Vec<u64>>());
}
