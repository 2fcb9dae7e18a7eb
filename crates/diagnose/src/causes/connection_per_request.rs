//! A new connection for each request: each costs a round trip, and a new initial window.
//!
//! **Rule**: a client opens a connection to a server soon after one with a single request, of whatever protocol, had closed,
//! or while that one was closing, or while it was open and idle; or after one with a few (those of a transaction), if that had
//! followed another in the same way. **Evidence**: the previous connection. **Refuted by**: a previous connection that was the first
//! with several requests (it closed for another reason), or is used again, or one that is still in use (concurrent connections are
//! deliberate); another name of the server (TLS), or another target of a tunnel.
//!
//! **Saved** are the set-up with the handshake of TLS and of a session (PostgreSQL, Redis), the waits that the previous connection's open window would have spared, and the wait for
//! its close, if the client opened this one immediately after that.

use dissect::tls::Tls;
use dissect::{Mark, Side};
use wire::Duration;

use crate::cause::{Cause, CauseInfo, Fix, Party};
use crate::finding::Finding;
use crate::gap::Wait;
use crate::text::counted;

pub(crate) const ABOUT: CauseInfo = CauseInfo {
    description: "The client opened a new connection though it had just had one to the same server for a single request, or a few.",
    fixes: &[
        Fix {
            party: Party::ClientApplication,
            change: "use one session or pool for all requests (Python requests.Session, Go one http.Client with the \
                     body read to its end, Node an agent with keepAlive: true, Java one HttpClient, curl one handle; a \
                     client of a database or of gRPC: one pool or channel for all calls)",
        },
        Fix {
            party: Party::ServerApplication,
            change: "respond with HTTP/1.1 and without Connection: close (nginx keepalive_timeout 75s and, towards \
                     upstreams, keepalive 32 with proxy_http_version 1.1; Apache KeepAlive On; Python \
                     protocol_version = \"HTTP/1.1\")",
        },
    ],
    is_fault: true,
    min_duration: Duration::ZERO,
};

/// Maximum time before the previous connection began to close; a connection opened earlier than that was concurrent.
pub(crate) const RIGHT_BEFORE: Duration = Duration::from_millis(5);

/// Maximum time since the previous connection; one opened later was opened for another reason.
pub(crate) const SOON: Duration = Duration::from_secs(2);

/// Maximum time after that close within which a client that waited for it opens the next connection.
pub(crate) const IMMEDIATE: Duration = Duration::from_millis(20);

/// A connection right before this one that carried few requests.
#[derive(Clone, Debug)]
pub(crate) struct PreviousConnection {
    /// Its first packet.
    pub(crate) packet: u64,
    pub(crate) requests: u64,
    /// Size of the server's window at its end, in bytes.
    pub(crate) window: u64,
    /// Time for which the client waited for its close, although the response was complete.
    pub(crate) closing: Duration,
    /// Its server's name and tunnel: requests to another cannot share a connection.
    pub(crate) authority: Option<String>,
    /// Whether it was left open.
    pub(crate) is_open: bool,
    /// Whether it had followed another one in the same way.
    pub(crate) is_habit: bool,
}

/// Returns the finding of a connection that was opened after `previous`.
pub(crate) fn finding(
    previous: &PreviousConnection,
    opened: Mark,
    tls: Option<&Tls>,
    lost: Duration,
    saving: Duration,
) -> Finding {
    let PreviousConnection { packet, requests, is_open, .. } = previous;
    let state = if *is_open { ", which was left open" } else { "" };
    let handshake = tls.map_or_else(String::new, |tls| {
        let kind = if tls.is_resumed { "resumed" } else { "full" };
        format!(
            "; its set-up includes a {kind} TLS handshake of {}",
            counted(tls.round_trips().into(), "round trip")
        )
    });
    let evidence = format!(
        "the client opened this connection (packet {}) right after one to the same server that had carried {} (from packet \
         {packet} on{state}){handshake}",
        opened.frame,
        if *requests == 1 { "a single request".to_owned() } else { counted(*requests, "request") }
    );
    let wait = Wait { from: opened, to: opened, side: Side::Client };
    let (saving, packets) = (Some(saving), vec![*packet, opened.frame]);
    Finding { lost, saving, packets, ..wait.finding(Cause::ConnectionPerRequest, evidence) }
}

#[cfg(test)]
mod tests {
    use wire::packet::{Flags, Packet, TcpBuilder};
    use wire::{Duration, Time};

    use crate::{Cause, Diagnosis, Options, PacketPosition};

    /// A connection from a port: when it opens, its messages `(is the client's, bytes)`, one each 5 ms, and whether it closes.
    type Connection<'a> = (u16, u64, &'a [(bool, &'a [u8])], bool);

    /// Returns the savings found, in milliseconds, on a path of 5 ms.
    fn savings(connections: &[Connection<'_>]) -> Vec<u64> {
        let mut packets = Vec::new();
        for (port, opened, messages, closes) in connections.iter().copied() {
            let ends = [([10, 0, 0, 1], port).into(), ([10, 0, 0, 2], 5_432).into()];
            let mut next = [100_u32, 500_u32];
            let mut send = |at: u64, from: usize, flags: Flags, payload: &[u8]| {
                let (seq, ack) = (next[from], next[1 - from]);
                let mut bytes = Vec::new();
                let (source, destination) = (ends[from], ends[1 - from]);
                TcpBuilder { source, destination, seq, ack, flags, window: 60_000, options: &[] }
                    .write(payload, &mut bytes)
                    .unwrap();
                let marks = u32::from(flags.contains(Flags::SYN)) + u32::from(flags.contains(Flags::FIN));
                next[from] += u32::try_from(payload.len()).unwrap() + marks;
                packets.push((opened + at, bytes));
            };
            send(0, 0, Flags::SYN, &[]);
            send(5, 1, Flags::SYN | Flags::ACK, &[]);
            send(5, 0, Flags::ACK, &[]);
            let mut at = 5;
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
        for (frame, (at, bytes)) in (1..).zip(&packets) {
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
        assert_eq!(
            savings(&[(40_000, 0, &SESSION, false), (40_001, 60, &SESSION, false)]),
            [15],
            "left open"
        );
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
}
