//! The window with which a connection begins after losses of its handshake.

use scenario::{Network, Page, Protocol, Scenario, Stack};
use simulate::world::{ObservationPoint, Record, SERVER};
use simulate::{Experiment, Hosts};
use wire::link::Loss;
use wire::{Bytes, Duration, Rate, Time};

/// SYN-ACKs of the server, and the segments of data that it sends in the round trip after its first.
fn flights(stack: &Stack, rtt: Duration, lost: &[u64]) -> (usize, usize) {
    let rate = Rate::from_bits_per_second(1_000_000_000).unwrap();
    let mut network = Network::new("custom".to_owned(), rtt, rate, Bytes::new(1_460));
    network.down.loss = Loss::Exactly(lost.iter().copied().collect());
    let page = Page::from_sizes("page", [Bytes::new(100_000)]).unwrap();
    let scenario = Scenario::new(network, page, Protocol::Http11, stack.clone());
    let fetched = Experiment::new(&scenario, Hosts::default()).unwrap().run(0, true).unwrap();
    assert!(fetched.elapsed.is_some());
    let sent = |record: &&Record| record.from.host == SERVER && record.seen == ObservationPoint::Sent;
    let sent = || fetched.records.iter().filter(sent);
    let data: Vec<Time> =
        sent().filter(|record| !record.segment.payload.is_empty()).map(|record| record.at).collect();
    let first = data.iter().take_while(|at| at.since(data[0]) < rtt).count();
    (sent().filter(|record| record.segment.flags.syn).count(), first)
}

/// RFC 6928, and `tcp_init_transfer` of Linux: ten segments, unless the timer of the SYN-ACK expired twice. The client's SYN
/// is repeated at the same times, so that two SYN-ACKs follow each expiry.
#[test]
fn window_of_one_segment_follows_the_second_timeout_of_a_syn_ack() {
    let rtt = Duration::from_millis(100);
    for (lost, syn_acks, segments) in [(&[][..], 1, 10), (&[1], 3, 10), (&[1, 2, 3], 5, 1)] {
        assert_eq!(flights(&Stack::LINUX, rtt, lost), (syn_acks, segments), "{lost:?} lost");
    }
    // No other stack of the catalogue makes the difference: BSD starts with one segment anyway.
    let [none, twice] =
        [&[][..], &[1, 2, 3]].map(|lost| flights(&Stack::named("bsd-4.4").unwrap(), rtt, lost).1);
    assert_eq!(none, twice);
}

/// `tcp_try_undo_spurious_syn` of Linux: the echoed timestamp is that of the first SYN-ACK, which was only late.
#[test]
fn window_survives_timeouts_of_a_handshake_that_is_only_slow() {
    let rtt = Duration::from_secs(4);
    let window = |timestamps| flights(&Stack { timestamps, ..Stack::LINUX }, rtt, &[]).1;
    assert_eq!((window(true), window(false)), (10, 1));
}
