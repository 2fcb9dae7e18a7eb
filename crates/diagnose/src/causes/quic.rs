//! QUIC as its long headers show it: a handshake, a server that may not send more, packets without a response.
//!
//! **Rules**: `quic-handshake` lasts from the client's first Initial packet to its first packet with a short header (or 0-RTT
//! data), and is a note. `quic-amplification-limit`: the server had sent nearly three times what it had received (RFC 9000,
//! section 8.1), or begun its last datagram below that, and went on after the client's next datagram; with more of its handshake, if
//! that one was a Handshake packet, which validates the address. `quic-unanswered`: the client repeated its Initial
//! packets and got nothing. **Refuted by**: any datagram of the server
//! (of `quic-unanswered`); a capture of one direction.

use dissect::quic::{LimitedServer, QuicOpening};
use dissect::{Mark, Side};
use wire::{Duration, Time};

use crate::cause::{Cause, CauseInfo, Describe as _, Fix, Party};
use crate::finding::Finding;
use crate::gap::Wait;
use crate::text::{counted, millis, packets};

pub(crate) const HANDSHAKE: CauseInfo = CauseInfo {
    description: "The QUIC handshake took its round trips before the first request could leave.",
    fixes: &[
        Fix { party: Party::ClientApplication, change: "keep connections open, and resume sessions (0-RTT)" },
        Fix {
            party: Party::ServerApplication,
            change: "validate addresses by tokens of NEW_TOKEN instead of Retry; support the client's version",
        },
    ],
    is_fault: false,
    min_duration: Duration::from_millis(5),
};

pub(crate) const AMPLIFICATION: CauseInfo = CauseInfo {
    description: "The server had sent three times what it had received, and waited for the client's address to be validated.",
    fixes: &[Fix {
        party: Party::ServerApplication,
        change: "a smaller chain of certificates (no root, an ECDSA key, certificate compression of RFC 8879), so that it fits \
                 three client datagrams; larger or more client datagrams also raise the limit",
    }],
    is_fault: true,
    min_duration: Duration::from_millis(5),
};

pub(crate) const UNANSWERED: CauseInfo = CauseInfo {
    description: "The client's QUIC packets had no response.",
    fixes: &[
        Fix {
            party: Party::Network,
            change: "permit UDP to the server's port in firewalls, or reject it (ICMP), so that clients use TCP immediately",
        },
        Fix {
            party: Party::ServerApplication,
            change: "listen on UDP (nginx listen 443 quic reuseport), or do not advertise HTTP/3 (Alt-Svc, HTTPS records)",
        },
    ],
    is_fault: true,
    min_duration: Duration::ZERO,
};

/// Returns the finding of a connection whose client's packets had no response by `end`.
pub(crate) fn unanswered(opening: &QuicOpening, end: Time) -> Option<Finding> {
    /// One repetition may be a loss on the way.
    const MIN_ROUNDS: usize = 2;
    if opening.answered.is_some() || opening.rounds.len() < MIN_ROUNDS {
        return None;
    }
    let (began, last) = (opening.began, *opening.rounds.last()?);
    let wait = Wait { from: began, to: Mark { at: end, frame: last.frame }, side: Side::Server };
    let gaps = opening.rounds.array_windows().map(|[one, other]| millis(other.at.since(one.at)));
    let gaps: Vec<String> = gaps.take(4).collect();
    let evidence = format!(
        "the client sent {} with Initial packets{} in {} ({}), with pauses of {}, and nothing came back",
        counted(opening.initials.into(), "datagram"),
        for_server(opening),
        counted(opening.rounds.len() as u64, "round"),
        packets(began.frame, last.frame),
        gaps.join(", ")
    );
    Some(Finding { saving: None, ..wait.finding(Cause::QuicUnanswered, evidence) })
}

/// Returns the note of a handshake that was completed.
pub(crate) fn handshake(opening: &QuicOpening) -> Option<Finding> {
    let (began, ended) = (opening.began, opening.ended.filter(|_| !opening.is_early)?);
    opening.answered?;
    let wait = Wait { from: began, to: ended, side: Side::Client };
    if wait.duration() < Cause::QuicHandshake.about().min_duration {
        return None;
    }
    let more = match (opening.retry, opening.negotiation) {
        (Some(retry), _) => format!("; a Retry (packet {}) cost one of them", retry.frame),
        (None, Some(versions)) => {
            format!("; a Version Negotiation (packet {}) cost one of them", versions.frame)
        }
        (None, None) => String::new(),
    };
    let evidence = format!(
        "the QUIC handshake{} began in packet {}, and the client's first data left in packet {}, {} later ({}){more}",
        for_server(opening),
        began.frame,
        ended.frame,
        millis(wait.duration()),
        counted(opening.round_trips().into(), "round trip")
    );
    Some(Finding { saving: None, ..wait.finding(Cause::QuicHandshake, evidence) })
}

/// Returns the finding of a server that waited at its limit.
pub(crate) fn limited(opening: &QuicOpening, wait: &LimitedServer) -> Option<Finding> {
    let LimitedServer { since, released, resumed, received, sent } = *wait;
    let wait = Wait { from: since, to: resumed, side: Side::Server };
    if wait.duration() < Cause::QuicAmplificationLimit.about().min_duration {
        return None;
    }
    let evidence = format!(
        "the server{} had sent {sent} bytes (packet {}) for {received} received, three times of which is the limit; it \
         continued (packet {}) after the client's next datagram (packet {}), {} later",
        for_server(opening),
        since.frame,
        resumed.frame,
        released.frame,
        millis(wait.duration())
    );
    let packets = vec![since.frame, released.frame, resumed.frame];
    Some(Finding { packets, ..wait.finding(Cause::QuicAmplificationLimit, evidence) })
}

fn for_server(opening: &QuicOpening) -> String {
    opening.server_name.as_ref().map_or_else(String::new, |name| format!(" of {name}"))
}
