//! A peer that vanished: data is retransmitted repeatedly, and no response arrives.
//!
//! **Rule**: the same data was sent at least four times, over at least a second, and no packet of the peer passed after
//! its first transmission, up to the end of the connection. **Or** data that is acknowledged in the capture is
//! retransmitted at least four times: the peer's packets reach the capture but not the sender. **Evidence**: the first
//! and the last of them; a server that has sent nothing since its SYN/ACK may have a full listen backlog. **Refuted by**: any
//! packet of the peer (`retransmission-timeout`); a retransmitted FIN or a probe, for which no side waits.

use wire::Duration;

use crate::cause::{Cause, CauseInfo, Fix, Party};
use crate::causes::path_mtu;
use crate::failure::StuckFacts;
use crate::finding::Finding;
use crate::text::{counted, packets};

pub(crate) const ABOUT: CauseInfo = CauseInfo {
    description: "The peer stopped replying: data was retransmitted repeatedly without an acknowledgement.",
    fixes: &[
        Fix {
            party: Party::Network,
            change: "check the path and the peer at that time: link down, host suspended or crashed, a NAT or firewall that \
                     forgot the connection",
        },
        Fix {
            party: Party::SendingApplication,
            change: "a timeout of its own (TCP_USER_TIMEOUT), to fail over within seconds",
        },
    ],
    is_fault: true,
    min_duration: Duration::ZERO,
};

/// Shortest time over which it was retransmitted.
const MIN_SILENCE: Duration = Duration::from_secs(1);
/// Number of transmissions after which the peer counts as vanished.
const MIN_VAIN_TRANSMISSIONS: u32 = 4;

/// Detects data that no response follows, unless it was too large for the path.
pub(crate) fn rule(facts: &StuckFacts<'_>) -> Option<Finding> {
    let (from, peer, stuck) = (facts.from, facts.from.other(), &facts.stuck);
    // A peer that has nothing to acknowledge has not vanished.
    let has_vanished = stuck.in_vain >= MIN_VAIN_TRANSMISSIONS
        && stuck.last.at.since(stuck.silent_since.at) >= MIN_SILENCE
        && (facts.is_silent || stuck.is_needless);
    if !has_vanished || path_mtu::is_proven_by_smaller(facts) || path_mtu::is_upload_too_large(facts) {
        return None;
    }
    let ended = stuck.reset.map_or_else(String::new, |(by, reset)| {
        format!("; the {by} then reset the connection (packet {})", reset.frame)
    });
    let first = if stuck.is_needless { stuck.first } else { stuck.silent_since };
    let sent = counted(stuck.length, "byte");
    let shown = packets(first.frame, stuck.last.frame);
    let evidence = if stuck.is_needless {
        format!(
            "the {from} retransmitted the same {sent} repeatedly ({shown}) though their acknowledgement \
             passed here: what the {peer} sends does not reach it{ended}",
        )
    } else {
        format!(
            "the {from} sent {sent} {} times ({shown}) and received nothing more from the {peer}{}{ended}",
            stuck.in_vain,
            full_backlog(facts)
        )
    };
    let mut frames = vec![first.frame, stuck.last.frame];
    frames.extend(stuck.reset.map(|(_, reset)| reset.frame));
    Some(facts.failure(Cause::PeerVanished, stuck.silent_since, frames, evidence))
}

/// Returns the other possible reason if the server has sent nothing since its SYN/ACK: its kernel drops the handshake's
/// last segment and data of a connection for which the listen backlog has no space.
fn full_backlog(facts: &StuckFacts<'_>) -> String {
    facts.only_answer.map_or_else(String::new, |answered| {
        format!(
            "; the server has sent nothing since its SYN/ACK (packet {}): its listen backlog may be full{}",
            answered.frame,
            if path_mtu::is_too_large(facts) { ", or the path too narrow for full segments" } else { "" }
        )
    })
}
