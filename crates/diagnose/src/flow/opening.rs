//! Openings that fail or take long: refused, unanswered, or blocked by an older connection. The rules are those of
//! `causes/{connection_refused,syn_time_wait,syn_unanswered}.rs`; here are their facts.

use dissect::hosts::Hosts;
use dissect::path::VantagePoint;
use dissect::{Mark, Segment, Side};
use wire::Duration;
use wire::packet::Flags;
use wire::packet::icmp::{Reason, Unreachable};

use crate::cause::Cause;
use crate::causes::{connection_refused, syn_time_wait, syn_unanswered};
use crate::failure::OpeningFacts;
use crate::finding::Finding;
use crate::gap::GapStart;
use trace::account::Share;

use super::Flow;

/// The rules of openings that failed or were blocked, in order; the first that applies counts.
const RULES: [fn(&OpeningFacts<'_>) -> Option<Finding>; 4] =
    [connection_refused::by_reset, syn_time_wait::rule, connection_refused::by_icmp, syn_unanswered::rule];

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
        let server = &self.ends.server.sender;
        let facts = OpeningFacts {
            opening: &opening,
            hosts,
            client: self.client,
            server: self.server,
            first: opening.repeats.first().map_or(opened, |(before, _)| *before),
            last: opened,
            ended: self.last_at,
            is_heard: server.is_seen || server.next > 0 || self.handshake.is_done,
            is_at_server: self.path.vantage_point() == VantagePoint::Server,
            is_joining: self.multipath.as_ref().is_some_and(|multipath| multipath.is_joining),
        };
        if let Some(failure) = RULES.iter().find_map(|rule| rule(&facts)) {
            self.find_opening(failure);
        } else if let Some(answered) = opening.answered {
            self.find_late_opening(&facts, answered);
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

    fn find_opening(&mut self, failure: Finding) {
        let Finding { cause, lost, .. } = failure;
        self.account.transfer(Share::Stall(Cause::RetransmissionTimeout), Share::Stall(cause), lost);
        self.add(Finding { saving: (cause == Cause::SynTimeWait).then_some(lost), ..failure });
    }

    /// Finds the cause of a late SYN/ACK: SYNs were lost, or the server dropped them.
    fn find_late_opening(&mut self, facts: &OpeningFacts<'_>, answered: Mark) {
        self.is_opening_lost |= !syn_unanswered::is_dropped(facts);
        for repeat in &facts.opening.repeats {
            let finding = syn_unanswered::late(facts, *repeat, answered);
            let share = Share::Stall(finding.cause);
            self.account.transfer(Share::Stall(Cause::RetransmissionTimeout), share, finding.lost);
            self.add(finding);
        }
    }
}
