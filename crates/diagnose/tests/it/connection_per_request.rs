//! Connections whose requests an earlier one could have carried.

use wire::packet::{Flags, Packet, TcpBuilder};
use wire::{Duration, Time};

use diagnose::{Cause, Diagnosis, Options, PacketPosition};

/// From this port on, the first SYN is lost, and retransmitted after a second.
const FIRST_SYN_LOST: u16 = 50_000;

/// A connection from a port: when it opens, its messages `(is the client's, bytes)`, one each 5 ms, and whether it closes.
type Connection<'a> = (u16, u64, &'a [(bool, &'a [u8])], bool);

/// Returns the savings found, in milliseconds, on a path of 5 ms.
fn savings(connections: &[Connection<'_>]) -> Vec<u64> {
    savings_without(0, connections)
}

/// The same, without the first packets.
fn savings_without(first: usize, connections: &[Connection<'_>]) -> Vec<u64> {
    let mut packets = Vec::new();
    for (port, opened, messages, closes) in connections.iter().copied() {
        let ends = [([10, 0, 0, 1], port).into(), ([10, 0, 0, 2], 5_432).into()];
        let mut next = [100_u32, 500_u32];
        let mut send = |at: u64, from: usize, flags: Flags, payload: &[u8]| {
            // A SYN may be retransmitted.
            let (seq, ack) = (if flags == Flags::SYN { 100 } else { next[from] }, next[1 - from]);
            let mut bytes = Vec::new();
            let (source, destination) = (ends[from], ends[1 - from]);
            TcpBuilder { source, destination, seq, ack, flags, window: 60_000, options: &[] }
                .write(payload, &mut bytes)
                .unwrap();
            let marks = u32::from(flags.contains(Flags::SYN)) + u32::from(flags.contains(Flags::FIN));
            next[from] = seq + u32::try_from(payload.len()).unwrap() + marks;
            packets.push((at, bytes));
        };
        let mut at = opened;
        if port >= FIRST_SYN_LOST {
            send(at, 0, Flags::SYN, &[]);
            at += 1_000;
        }
        send(at, 0, Flags::SYN, &[]);
        at += 5;
        send(at, 1, Flags::SYN | Flags::ACK, &[]);
        send(at, 0, Flags::ACK, &[]);
        for (is_client, payload) in messages {
            send(at, usize::from(!is_client), Flags::ACK, payload);
            at += 5;
        }
        if closes {
            send(at, 0, Flags::FIN | Flags::ACK, &[]);
        }
    }
    packets.sort_by_key(|(at, _)| *at);
    let mut diagnosis = Diagnosis::new(Options::default());
    for (frame, (at, bytes)) in (1..).zip(&packets[first..]) {
        let now = Time::ZERO + Duration::from_millis(1_000 + at);
        diagnosis.handle(now, PacketPosition { frame, interface: 0 }, &Packet::read(bytes).unwrap());
    }
    diagnosis.end();
    let reports = std::iter::from_fn(|| diagnosis.poll());
    let findings = reports.flat_map(|report| report.findings);
    let of_it = findings.filter(|finding| finding.cause == Cause::ConnectionPerRequest);
    of_it.map(|finding| finding.saving.unwrap_or_default().as_nanos() / 1_000_000).collect()
}

/// PostgreSQL: startup, password, a query, each with its response.
const SESSION: [(bool, &[u8]); 6] = [
    (true, b"\0\0\0\x10\0\x03\0\0user\0a\0\0"),
    (false, b"R\0\0\0\x08\0\0\0\x03"),
    (true, b"p\0\0\0\x09pass\0"),
    (false, b"R\0\0\0\x08\0\0\0\0"),
    (true, b"Q\0\0\0\x0dSELECT 1\0"),
    (false, b"T\0\0\0\x06\0\0"),
];
const SECOND_QUERY: [(bool, &[u8]); 2] = [(true, b"Q\0\0\0\x0dSELECT 2\0"), (false, b"T\0\0\0\x06\0\0")];

#[test]
fn set_up_of_a_session_counts_for_each_query_on_a_connection_of_its_own() {
    // The handshake and two round trips of the session, 5 ms each; the time of the client itself is not saved.
    assert_eq!(savings(&[(40_000, 0, &SESSION, true), (40_001, 60, &SESSION, true)]), [15]);
    assert_eq!(savings(&[(40_000, 0, &SESSION, false), (40_001, 60, &SESSION, false)]), [15], "left open");
}

#[test]
fn time_of_a_lost_syn_is_not_saved_by_a_connection_that_is_kept() {
    assert_eq!(savings(&[(40_000, 0, &SESSION, true), (50_001, 60, &SESSION, true)]), [15]);
}

#[test]
fn connection_whose_opening_was_not_captured_may_have_carried_other_requests() {
    assert_eq!(savings_without(3, &[(40_000, 0, &SESSION, false), (40_001, 60, &SESSION, false)]).len(), 0);
}

/// Each query in a transaction of its own, and QUIT.
#[test]
fn few_requests_on_each_of_several_connections_are_a_habit() {
    let quit: [(bool, &[u8]); 1] = [(true, b"goodbye")];
    let session = [&SESSION[..], &SECOND_QUERY, &SECOND_QUERY, &quit].concat();
    let one = |number: u16| (40_000 + number, u64::from(number) * 80, &session[..], true);
    assert_eq!(savings(&[one(0), one(1)]).len(), 0, "twice is no habit");
    assert_eq!(savings(&[one(0), one(1), one(2), one(3)]), [15, 15]);
}

#[test]
fn connections_that_are_used_again_or_at_the_same_time_are_no_fault() {
    let twice = [&SESSION[..], &SECOND_QUERY].concat();
    let count = |connections: &[Connection<'_>]| savings(connections).len();
    assert_eq!(count(&[(40_000, 0, &twice, true), (40_001, 60, &SESSION, true)]), 0);
    assert_eq!(count(&[(40_000, 0, &SESSION, false), (40_001, 20, &SESSION, false)]), 0, "concurrent");
    assert_eq!(count(&[(40_000, 0, &SESSION, false), (40_001, 9_000, &SESSION, false)]), 0, "much later");
}
