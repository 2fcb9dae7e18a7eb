//! Openings that fail or take long: refused, unanswered, or blocked by an older connection.

use dissect::hosts::Hosts;
use dissect::{Mark, Segment, Side};
use wire::packet::Flags;
use wire::packet::icmp::{Reason, Unreachable};
use wire::{Duration, Time};

use crate::account::Share;
use crate::cause::Cause;
use crate::finding::{Confidence, Finding, Severity};
use crate::gap::{GapStart, millis, packets};
use crate::report::VantagePoint;

use super::Flow;

/// Unusual events before the first SYN/ACK.
#[derive(Debug, Default)]
pub(super) struct Opening {
    /// Each SYN and its retransmission.
    repeats: Vec<(Mark, Mark)>,
    /// A challenge ACK.
    challenge: Option<Mark>,
    refusal: Option<Mark>,
    unreachable: Option<(Mark, Unreachable)>,
    /// When the first SYN/ACK arrived.
    answered: Option<Mark>,
    /// Whether the client was accepted at another address of the port right after.
    has_alternative: bool,
}

/// Maximum number of retransmitted SYNs that are remembered.
const MAX_REPEATS: usize = 16;

impl Flow {
    /// Records a retransmitted SYN before any response.
    pub(super) fn record_repeated_syn(&mut self, before: Mark, now: Mark) {
        let opening = self.opening.get_or_insert_default();
        if opening.repeats.len() < MAX_REPEATS {
            opening.repeats.push((before, now));
        }
    }

    /// Records the first SYN/ACK.
    pub(super) fn is_opened(&mut self, mark: Mark) {
        if let Some(opening) = &mut self.opening {
            opening.answered.get_or_insert(mark);
        }
    }

    /// Returns whether a segment acknowledges something other than the pending SYN (RFC 5961, section 4).
    pub(super) fn is_challenge(&self, segment: &Segment<'_>) -> bool {
        let is_reply =
            matches!(self.before, GapStart::Handshake(Side::Client)) && segment.from == Side::Server;
        if !is_reply || segment.has(Flags::SYN) || !segment.has(Flags::ACK) {
            return false;
        }
        let sender = &self.ends.client.sender;
        self.handshake.answered.is_none() && sender.position(segment.tcp.ack) != sender.next
    }

    pub(super) fn record_challenge(&mut self, mark: Mark) {
        self.opening.get_or_insert_default().challenge.get_or_insert(mark);
    }

    /// Handles a reset before any SYN/ACK: a refusal by the server, or the client's reply to a challenge. Returns
    /// whether it was either.
    pub(super) fn refuses(&mut self, segment: &Segment<'_>) -> bool {
        let mark = Mark { at: segment.at, frame: segment.frame };
        if self.handshake.opened.is_none() || self.handshake.answered.is_some() {
            return false;
        }
        let sender = &self.ends.client.sender;
        let is_refusal = segment.from == Side::Server && sender.position(segment.tcp.ack) == sender.next;
        if is_refusal {
            self.opening.get_or_insert_default().refusal.get_or_insert(mark);
            self.spend(Share::Stall(Cause::ConnectionRefused), mark.at.since(self.last.at));
            self.begin_gap(mark);
            self.before = GapStart::Ending;
            self.is_reset = true;
        }
        is_refusal
            || (segment.from == Side::Client
                && self.opening.as_ref().is_some_and(|opening| opening.challenge.is_some()))
    }

    /// Records that a router or a host could not deliver a packet of this connection.
    pub(crate) fn is_undelivered(&mut self, mark: Mark, unreachable: &Unreachable) {
        let from = if unreachable.source == self.client { Side::Client } else { Side::Server };
        match unreachable.reason {
            Reason::TooBig { mtu } => self.record_small_mtu(from, mark, mtu, unreachable.reporter),
            Reason::Port | Reason::Host | Reason::Prohibited | Reason::HopLimit => {
                if self.handshake.opened.is_some() && self.handshake.answered.is_none() {
                    self.opening.get_or_insert_default().unreachable.get_or_insert((mark, *unreachable));
                }
            }
        }
    }

    /// Returns whether it was refused.
    pub(crate) fn is_refused(&self) -> bool {
        self.opening.as_ref().is_some_and(|opening| opening.refusal.is_some())
    }

    /// Records that the client was accepted at another address of the same port right after.
    pub(crate) fn has_alternative(&mut self) {
        if let Some(opening) = &mut self.opening {
            opening.has_alternative = true;
        }
    }

    /// Settles the result of the opening at the end.
    pub(super) fn settle_opening(&mut self, hosts: &Hosts) {
        let Some(opened) = self.handshake.opened else { return };
        self.settle_abandoned(opened);
        let Some(opening) = self.opening.take() else { return };
        let first = opening.repeats.first().map_or(opened, |(before, _)| *before);
        let server = &self.ends.server.sender;
        let is_heard = server.is_seen || server.next > 0 || self.handshake.is_done;
        if let Some(refusal) = opening.refusal {
            self.find_refused(&opening, first, refusal);
        } else if let (Some(challenge), until) = (opening.challenge, opening.answered.unwrap_or(opened)) {
            self.find_time_wait(first, challenge, until);
        } else if let Some(answered) = opening.answered {
            self.find_lost_opening(&opening, answered);
        } else if let Some((_, Unreachable { reason: Reason::Port, .. })) = opening.unreachable {
            self.find_refused_by_icmp(&opening, first);
        } else if !is_heard && (!opening.repeats.is_empty() || opening.unreachable.is_some()) {
            self.find_unanswered(&opening, first, opened, hosts);
        }
    }

    /// Settles a client that neither completed its handshake nor retransmitted its SYN (a port scan): the SYN/ACKs that
    /// the server retransmits were not lost, and no side waits for them.
    fn settle_abandoned(&mut self, opened: Mark) {
        /// The first retransmission timeout of a SYN (RFC 1122), and a tick.
        const CONNECT_TIMEOUT: Duration = Duration::from_millis(3_500);
        let is_silent = self.reference.client.last_packet_at.is_none_or(|seen| seen <= opened.at);
        if !self.handshake.is_done && is_silent && self.last_at.since(opened.at) >= CONNECT_TIMEOUT {
            let cause = Cause::RetransmissionTimeout;
            let time = self.findings.retract(cause, Side::Server, opened.at);
            self.account.transfer(Share::Stall(cause), Share::Idle, time);
        }
    }

    fn find_opening(
        &mut self,
        cause: Cause,
        severity: Severity,
        first: Mark,
        until: Mark,
        packets: Vec<u64>,
        evidence: String,
    ) {
        let lost = until.at.since(first.at);
        self.account.transfer(Share::Stall(Cause::RetransmissionTimeout), Share::Stall(cause), lost);
        self.add(Finding {
            cause,
            severity,
            confidence: Confidence::High,
            side: Side::Client,
            at: first.at,
            lost,
            saving: (cause == Cause::SynTimeWait).then_some(lost),
            packets,
            evidence,
        });
    }

    /// Returns whether it was to join a Multipath TCP connection: that goes on over its other subflows.
    fn is_joining(&self) -> bool {
        self.multipath.as_ref().is_some_and(|multipath| multipath.is_joining)
    }

    fn join_kind(&self) -> &'static str {
        if self.is_joining() {
            "; it was to join a Multipath TCP connection (MP_JOIN), which goes on without it"
        } else {
            ""
        }
    }

    fn find_refused(&mut self, opening: &Opening, first: Mark, refusal: Mark) {
        let is_spared = opening.has_alternative || self.is_joining();
        let severity = if is_spared { Severity::Low } else { Severity::High };
        let alternative = if opening.has_alternative {
            "; the client was accepted at another address of the same port"
        } else {
            ""
        };
        let evidence = format!(
            "{} replied to the SYN (packet {}) with a reset (packet {}){alternative}{}",
            self.server,
            first.frame,
            refusal.frame,
            self.join_kind()
        );
        self.find_opening(
            Cause::ConnectionRefused,
            severity,
            first,
            refusal,
            vec![first.frame, refusal.frame],
            evidence,
        );
    }

    fn find_refused_by_icmp(&mut self, opening: &Opening, first: Mark) {
        let Some((mark, Unreachable { reporter, .. })) = opening.unreachable else { return };
        let evidence = format!(
            "{reporter} replied to the SYN to {} (packet {}) with ICMP \"port unreachable\" (packet {})",
            self.server, first.frame, mark.frame
        );
        // The message is not one of this connection's packets, with which the account ends.
        let until = Mark { at: mark.at.min(self.last_at), frame: mark.frame };
        self.find_opening(
            Cause::ConnectionRefused,
            Severity::High,
            first,
            until,
            vec![first.frame, mark.frame],
            evidence,
        );
    }

    fn find_time_wait(&mut self, first: Mark, challenge: Mark, until: Mark) {
        let severity = Severity::most(Cause::SynTimeWait);
        let evidence = format!(
            "the reply to the SYN (packet {}) was an acknowledgement of something else (packet {}): the server still had an \
             older connection between these ports; {} later (packet {}) the new one went on",
            first.frame,
            challenge.frame,
            millis(until.at.since(first.at)),
            until.frame,
        );
        let packets = vec![first.frame, challenge.frame, until.frame];
        self.find_opening(Cause::SynTimeWait, severity, first, until, packets, evidence);
    }

    /// Finds the cause of a late SYN/ACK: SYNs were lost, or the server dropped them.
    fn find_lost_opening(&mut self, opening: &Opening, answered: Mark) {
        let is_loopback = self.client.ip() == self.server.ip() || self.server.ip().is_loopback();
        let is_dropped = is_loopback || self.path.vantage_point() == VantagePoint::Server;
        let cause = if is_dropped { Cause::SynUnanswered } else { Cause::RetransmissionTimeout };
        self.is_opening_lost |= !is_dropped;
        for (before, repeated) in &opening.repeats {
            let lost = repeated.at.since(before.at);
            if is_dropped {
                let cause = Share::Stall(Cause::SynUnanswered);
                self.account.transfer(Share::Stall(Cause::RetransmissionTimeout), cause, lost);
            }
            let why = if is_dropped {
                format!(
                    "; it had reached the server, which replied in packet {}: its listen backlog was full, or a filter on \
                     the host dropped it",
                    answered.frame
                )
            } else {
                String::new()
            };
            self.add(Finding {
                cause,
                severity: Severity::most(Cause::RetransmissionTimeout),
                confidence: if is_dropped { Confidence::Medium } else { Confidence::High },
                side: Side::Client,
                at: before.at,
                lost,
                saving: Some(lost),
                packets: vec![before.frame, repeated.frame],
                evidence: format!(
                    "the client's SYN (packet {}) got no reply and was retransmitted (packet {}) {} later{why}",
                    before.frame,
                    repeated.frame,
                    millis(lost)
                ),
            });
        }
    }

    fn find_unanswered(&mut self, opening: &Opening, first: Mark, last: Mark, hosts: &Hosts) {
        let since = first.at;
        let times = opening.repeats.len() + 1;
        let why = match opening.unreachable {
            Some((mark, Unreachable { reporter, reason: Reason::Prohibited, .. })) => {
                format!("{reporter} reports that a filter forbids it (ICMP, packet {})", mark.frame)
            }
            Some((mark, Unreachable { reporter, .. })) => {
                format!("{reporter} reports that the host cannot be reached (ICMP, packet {})", mark.frame)
            }
            None if hosts.accepts(self.server, since) => {
                "other connections to this port were accepted: its listen backlog was full, or packets were lost".to_owned()
            }
            None if self.server.ip().is_loopback() || self.server.ip() == self.client.ip() => {
                "on loopback nothing is lost: the listen backlog was full, or a filter on the host drops it".to_owned()
            }
            None if hosts.is_alive(self.server.ip(), since) => {
                "the host replied on other ports: a firewall drops packets to this one".to_owned()
            }
            None => "nothing was heard from this host: it is down, the address is wrong, or a firewall drops packets to it".to_owned(),
        };
        let sent = if times == 1 { "was sent".to_owned() } else { format!("was sent {times} times") };
        let evidence = format!(
            "the SYN to {} {sent} ({}) and got no reply; {why}{}",
            self.server,
            packets(first.frame, last.frame),
            self.join_kind()
        );
        let until = Mark { at: self.last_at, frame: last.frame };
        self.find_opening(
            Cause::SynUnanswered,
            if self.is_joining() { Severity::Low } else { Severity::High },
            first,
            until,
            vec![first.frame, last.frame],
            evidence,
        );
    }
}

/// Maximum time after a refusal within which a connection to another address of the port is its alternative.
pub(crate) const ALTERNATIVE: Duration = Duration::from_secs(1);

/// A refused connection that an alternative may follow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RefusedConnection {
    pub(crate) at: Time,
    pub(crate) port: u16,
    pub(crate) slot: dissect::connections::Slot,
    pub(crate) frame: u64,
}
