//! QUIC as its long headers show it: a handshake, a server that may not send more, packets without a response.
//!
//! **Rules**: `quic-handshake` lasts from the client's first Initial packet to its first packet with a short header (or 0-RTT
//! data), and is a note. `quic-amplification-limit`: the server had sent nearly three times what it had received (RFC 9000,
//! section 8.1), or begun its last datagram below that, and went on after the client's next datagram; with more of its handshake, if
//! that one was a Handshake packet, which validates the address. `quic-unanswered`: the client repeated its Initial
//! packets and got nothing, or nothing but Retry packets. A handshake that a side closes with an error is `tls-alert`,
//! `connection-refused` or `reset-mid-transfer`. One that was never completed is `peer-vanished` where one side fell silent,
//! `connection-refused` without a common version, else `retransmission-timeout`; so is one that the server began after the client
//! had retransmitted a part of its Client Hello, and acknowledged the later packet, but not the first. After the handshake, too, a side
//! that sends after timeouts that double, and gets nothing, waits for a peer that has vanished, or for a while. **Refuted by**: any datagram
//! of the server (of `quic-unanswered`); a capture of one direction.
//!
//! With a key log, frames show the waits after the handshake ([`dissect::quic::opened`]); they have the names of TCP's: a sender that
//! continues after an acknowledgement waited for its congestion window, and after MAX_DATA or MAX_STREAM_DATA, whose limit it had
//! reached, for its peer; a packet whose data is retransmitted was lost.

use dissect::quic::opened::{QuicWait, WaitReason};
use dissect::quic::{
    CloseReason, LimitedServer, LostHello, QuicOpening, Silence, UnfinishedEnd, UnfinishedHandshake,
};
use dissect::{Mark, Side};
use trace::account::Share;
use wire::{Duration, Time};

use super::retransmission::LOSSES;
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

/// Returns the finding of a reply that waited until the client had retransmitted its hello.
pub(crate) fn lost_hello(opening: &QuicOpening) -> Option<Finding> {
    let LostHello { lost, lost_replies, acknowledged, retransmitted, replied } = opening.lost_hello()?;
    let (name, again) = (for_server(opening), retransmitted.frame);
    let time = millis(retransmitted.at.since(lost.at));
    let (from, to, evidence) = if let Some(known) = acknowledged {
        let evidence = format!(
            "the server{name} acknowledged a part of the Client Hello (packet {}), and began its handshake (packet {}) \
             only after the client had retransmitted (packet {again}) what packet {} carried: that was lost, or the \
             server dropped it",
            known.frame, replied.frame, lost.frame
        );
        (known, replied, evidence)
    } else {
        let what = match lost_replies {
            Some(count) => {
                format!(
                    "{} of the server{name} were lost that responded to packet {}",
                    counted(count, "packet"),
                    lost.frame
                )
            }
            None => format!(
                "packet {} with the Client Hello{name} was lost, or the server dropped it",
                lost.frame
            ),
        };
        (
            lost,
            retransmitted,
            format!("{what}: nothing came until the client retransmitted (packet {again}), {time} later"),
        )
    };
    let wait = Wait { from, to, side: Side::Client };
    let packets = vec![lost.frame, again, replied.frame];
    Some(Finding { packets, ..wait.finding(Cause::RetransmissionTimeout, evidence) })
}

/// Returns the finding of a handshake that a side refused, or ended with an error.
pub(crate) fn closed(opening: &QuicOpening) -> Option<Finding> {
    let (mark, side, reason) = opening.closed()?;
    let (cause, error) = match reason {
        CloseReason::Alert(alert) => {
            (Cause::TlsAlert, format!("the fatal alert {} ({})", alert.name(), alert.description))
        }
        CloseReason::Refused => (Cause::ConnectionRefused, "the error CONNECTION_REFUSED".to_owned()),
        CloseReason::Transport(error) => (Cause::ResetMidTransfer, format!("QUIC's error {error:#x}")),
    };
    let evidence = format!(
        "the {side} ended the QUIC handshake{} that began in packet {} with {error}, packet {}",
        with_server(opening),
        opening.began.frame,
        mark.frame
    );
    Some(Finding { saving: None, ..Wait { from: opening.began, to: mark, side }.finding(cause, evidence) })
}

/// Returns the finding of a handshake that was neither completed nor closed.
pub(crate) fn unfinished(opening: &QuicOpening) -> Option<Finding> {
    let UnfinishedHandshake { end, since, last, rounds, is_limited } = opening.unfinished()?;
    let rounds_of = |side| counted((*rounds.of(side)).into(), "round");
    let (cause, side, why) = match end {
        UnfinishedEnd::Version => {
            let why =
                "the server offers other versions (Version Negotiation), and the client did not continue";
            (Cause::ConnectionRefused, Side::Server, why.to_owned())
        }
        UnfinishedEnd::Retry(count) => {
            let (retries, rounds) = (counted(count.into(), "Retry packet"), rounds_of(Side::Client));
            let why =
                format!("the server sent {retries} and nothing else, though the client sent {rounds} more");
            (Cause::QuicUnanswered, Side::Server, why)
        }
        UnfinishedEnd::Silent(silent) => {
            let side = silent.other();
            let rounds = rounds_of(side);
            let limit = if is_limited && side == Side::Server {
                ", up to three times what it had received,"
            } else {
                ""
            };
            let why =
                format!("the {side} sent {rounds} of packets{limit} and nothing more came from the {silent}");
            (Cause::PeerVanished, side, why)
        }
        UnfinishedEnd::Repeated => {
            let [client, server] = [Side::Client, Side::Server].map(rounds_of);
            let why = format!(
                "the client sent {client} of packets and the server {server}: the path or an end drops some of them each time"
            );
            (Cause::RetransmissionTimeout, Side::Server, why)
        }
    };
    let evidence = format!(
        "the QUIC handshake{} that began in packet {} was never completed: after packet {} {why} (up to packet {})",
        with_server(opening),
        opening.began.frame,
        since.frame,
        last.frame
    );
    let found = Wait { from: since, to: last, side }.finding(cause, evidence);
    Some(Finding { saving: found.saving.filter(|_| !cause.is_failure()), ..found })
}

/// Returns the finding of a time after the handshake in which a side sent in vain.
pub(crate) fn silence(silence: &Silence) -> Finding {
    let Silence { sender, since, last, until, timeouts } = *silence;
    let cause = if until.is_some() { Cause::RetransmissionTimeout } else { Cause::PeerVanished };
    let wait = Wait { from: since, to: until.unwrap_or(last), side: sender };
    let ended =
        until.map_or_else(|| "to the end".to_owned(), |until| format!("until packet {}", until.frame));
    let evidence = format!(
        "the {sender} sent packets in vain ({}), after {} of which each took longer than the one before: nothing came from the {} \
         for {}, {ended}, not even acknowledgements, which do not wait for a program's work: the path dropped packets, or the \
         process stood still",
        packets(since.frame, last.frame),
        counted(timeouts.into(), "timeout"),
        sender.other(),
        millis(wait.duration()),
    );
    wait.finding(cause, evidence)
}

/// Returns the finding of a server that waited at its limit.
pub(crate) fn limited(opening: &QuicOpening, wait: &LimitedServer) -> Option<Finding> {
    let LimitedServer { since, released, resumed, received, sent } = *wait;
    let wait = Wait { from: since, to: resumed, side: Side::Server };
    if wait.duration() < Cause::QuicAmplificationLimit.about().min_duration {
        return None;
    }
    let [since, released, resumed] = [since, released, resumed].map(|mark| mark.frame);
    let evidence = format!(
        "the server{} had sent {sent} bytes (packet {since}) for {received} received, three times of which is the limit; it \
         continued (packet {resumed}) after the client's next datagram (packet {released}), {} later",
        for_server(opening),
        millis(wait.duration())
    );
    Some(Finding {
        packets: vec![since, released, resumed],
        ..wait.finding(Cause::QuicAmplificationLimit, evidence)
    })
}

/// Returns the fixes for a cause over QUIC where TCP's do not apply: its windows and timers are settings of programs.
pub(crate) const fn fixes(cause: Cause) -> Option<&'static [Fix]> {
    const fn sender(change: &'static str) -> Fix {
        Fix { party: Party::SendingApplication, change }
    }
    const FLOW_CONTROL: Fix = Fix {
        party: Party::ReceivingApplication,
        change: "larger windows of QUIC (initial_max_data, initial_max_stream_data) than rate times round trip, raised before they are \
                 used up: quinn stream_receive_window, quic-go InitialStreamReceiveWindow, nginx http3_stream_buffer_size",
    };
    const PROBES: Fix = sender(
        "probes with data instead of PING (RFC 9002, section 6.2.4); in handshakes an initial \
        round trip like the path's (quinn initial_rtt): the default of 333 ms makes the first probe wait for a second",
    );
    const BBR: Fix = sender("a congestion control that stray losses do not slow down (quinn BbrConfig)");
    const REUSE: Fix =
        Fix { party: Party::ClientApplication, change: "reuse connections: an open window stays open" };
    const FIRST_FLIGHT: Fix = sender(
        "send less (compression), and begin with ten full datagrams (RFC 9002, section 7.2) \
        as large as the path permits: quinn initial_window, mtu_discovery_config",
    );
    const WHOLE_HELLO: Fix = Fix {
        party: Party::ServerApplication,
        change: "where it is always the Client Hello: a current server; some drop its second datagram (quic-go, issue 3760)",
    };
    const DROPPED: Fix = Fix {
        party: Party::Network,
        change: "check the path and the peer at that time: a firewall or NAT that drops UDP, a program that ended",
    };
    const FALLBACK: Fix =
        sender("fall back to TCP, or to another address, within a second (RFC 9308, section 2)");
    const REFUSAL: Fix = Fix {
        party: Party::ServerApplication,
        change: "accept QUIC version 1 (RFC 9000), and find out why it refuses: its load, or its configuration",
    };
    match cause {
        Cause::PeerVanished => Some(&[DROPPED, FALLBACK]),
        Cause::ConnectionRefused => Some(&[REFUSAL]),
        Cause::ReceiveWindowLimited => Some(&[FLOW_CONTROL]),
        Cause::RetransmissionTimeout => Some(&[LOSSES, PROBES, WHOLE_HELLO]),
        Cause::CongestionWindow => Some(&[LOSSES, BBR]),
        Cause::SlowStart => Some(&[REUSE, FIRST_FLIGHT]),
        _ => None,
    }
}

/// Returns the share of a wait's time, from `since` on.
pub(crate) fn share(wait: &QuicWait) -> Share {
    match (wait.reason, wait.side) {
        (WaitReason::Flowing, _) => Share::Transfer,
        (WaitReason::Program(_), Side::Client) => Share::Stall(Cause::ClientThink),
        (WaitReason::Program(_), Side::Server) => Share::Stall(Cause::ServerThink),
        (WaitReason::Window { has_lost, .. } | WaitReason::Paced { has_lost, .. }, _) => {
            Share::Stall(if has_lost { Cause::CongestionWindow } else { Cause::SlowStart })
        }
        (WaitReason::FlowControl(_), _) => Share::Stall(Cause::ReceiveWindowLimited),
        (WaitReason::Reported(_), _) => Share::Stall(Cause::FastRetransmit),
        (WaitReason::Timeout(_), _) => Share::Stall(Cause::RetransmissionTimeout),
        (WaitReason::Unknown, _) => Share::Unknown,
    }
}

/// Returns the finding of a wait; `request_of` names the request of a packet.
pub(crate) fn finding(
    wait: &QuicWait,
    cause: Cause,
    request_of: impl FnOnce(Mark) -> Option<String>,
) -> Finding {
    let QuicWait { from, to, side, since, reason, is_cut } = *wait;
    let lost = Wait { from: Mark { at: since, ..from }, to, side };
    let time = millis(lost.duration());
    let (sender, to) = (side.to_string(), to.frame);
    let evidence = match reason {
        WaitReason::Program(Some(packet)) => format!(
            "the server began its response to {} of packet {} in packet {to}, {time} later than the path needs",
            request_of(packet).as_deref().unwrap_or("the request"),
            packet.frame
        ),
        WaitReason::Program(None) => {
            format!(
                "nothing of the {sender} was in flight, no window held it, and packet {to} left {time} later"
            )
        }
        WaitReason::Window { acked: Mark { frame, .. }, in_flight, .. } => format!(
            "the {sender} had {in_flight} bytes in flight and waited {time} for an acknowledgement (packet {frame}) before it sent \
             more (packet {to})"
        ),
        WaitReason::Paced { in_flight, .. } => format!(
            "the {sender} had {in_flight} bytes in flight, and its congestion window or the pacing of its packets held packet {to} \
             for {time}"
        ),
        WaitReason::FlowControl(Mark { frame, .. }) => format!(
            "the {sender} had reached the limit of a stream or of the connection, and waited {time} until packet {frame} raised it"
        ),
        WaitReason::Reported(Mark { frame, .. }) => format!(
            "packet {frame} was lost: packets after it were acknowledged, and packet {to} retransmitted its data"
        ),
        WaitReason::Timeout(Mark { frame, .. }) => format!(
            "packet {frame} was lost, or its acknowledgement: nothing came until a timer of the {sender} expired, and packet {to} \
             followed after {time}"
        ),
        WaitReason::Flowing | WaitReason::Unknown => String::new(),
    };
    let is_window = matches!(reason, WaitReason::Window { .. } | WaitReason::Paced { .. });
    let saving = Some(lost.duration()).filter(|_| !is_window);
    let mut finding = Finding { saving, ..lost.finding(cause, evidence) };
    if is_cut {
        finding.doubt("; packets within this time have unknown frames, and were not read to their end");
    }
    finding
}

fn for_server(opening: &QuicOpening) -> String {
    opening.server_name.as_ref().map_or_else(String::new, |name| format!(" of {name}"))
}

fn with_server(opening: &QuicOpening) -> String {
    opening.server_name.as_ref().map_or_else(String::new, |name| format!(" with {name}"))
}
