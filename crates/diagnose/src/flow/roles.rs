//! Which side of a connection is the client, and the client's connections before and after it.

use dissect::connections::Slot;
use dissect::hosts::Hosts;
use dissect::{Segment, Side};
use wire::{Duration, Time};

use super::Flow;
use super::state::Handshake;
use crate::causes::connection_per_request::PreviousConnection;
use crate::options::Options;

impl Flow {
    /// Returns whether only its ports show which side is the client.
    pub(crate) const fn are_roles_guessed(&self) -> bool {
        let Handshake { opened, answered, is_done: _ } = self.handshake;
        opened.is_none() && answered.is_none() && !self.are_roles_proven
    }

    /// Settles which side is the client, as a segment's bytes prove. Returns the connection anew if it was the other one: what
    /// was seen before is time of unknown cause.
    pub(crate) fn prove_roles(&mut self, segment: &Segment<'_>, is_from_client: bool) -> Option<Self> {
        self.are_roles_proven = true;
        if is_from_client == (segment.from == Side::Client) {
            return None;
        }
        let options = Options { is_plotted: self.plot.is_some(), since: self.since };
        let anew = Self::new(self.server, self.client, segment, options);
        Some(Self {
            started: self.started,
            last: self.started,
            spent: self.started.at,
            packets: self.packets,
            bytes: self.bytes,
            last_at: self.last_at,
            are_roles_proven: true,
            ..anew
        })
    }

    /// Takes the distance of each host from connections with a handshake, if this one was captured in the middle and shows none.
    pub(crate) fn take_distances(&mut self, hosts: &Hosts) {
        if self.handshake.opened.is_none() && self.handshake.answered.is_none() {
            hosts.complete(&mut self.path, self.client.ip(), self.server.ip());
        }
    }

    /// Gives the distances that its handshake has shown to connections that lack one.
    pub(crate) fn give_distances(&self, hosts: &mut Hosts) {
        hosts.measured(&self.path, self.client.ip(), self.server.ip());
    }

    /// Returns whether its handshake is over.
    pub(crate) const fn is_set_up(&self) -> bool {
        self.handshake.is_done
    }

    /// Returns it as a previous connection, if it has carried few requests, whose responses are complete.
    pub(crate) fn as_previous(&self, closing: Duration) -> Option<PreviousConnection> {
        const FEW: u64 = 16;
        let has_left = self.is_ending() && self.conversation.has_said_goodbye(self.last_at);
        let is_over =
            self.missing_direction().is_some() && self.is_ending() && self.conversation.is_turn_over();
        let is_complete =
            self.conversation.is_idle() || is_over || self.has_closed_with_its_response() || has_left;
        let requests = self.conversation.count().saturating_sub(has_left.into());
        // One captured from its middle may have carried any number before.
        let is_known = self.handshake.opened.is_some() && (1..=FEW).contains(&requests);
        (is_known && is_complete).then(|| PreviousConnection {
            packet: self.started.frame,
            requests,
            window: self.window(),
            closing,
            authority: self.conversation.authority(),
            is_open: !self.is_ending(),
            is_habit: self.follows.as_ref().is_some_and(|follows| !follows.is_open),
        })
    }

    /// Returns when the server had warmed up, if this is one of its first connections and shows that.
    pub(super) fn warmed_up(&self, hosts: &Hosts) -> Option<Time> {
        let (until, longest) = self.warm_up.ended()?;
        let first = hosts.first_accepted(self.server)?;
        self.handshake.answered.filter(|answered| answered.at.since(first) <= longest).map(|_| until)
    }

    /// Returns whether its client is Java, as its hello shows, and it is the server's first connection.
    pub(super) fn is_first_of_java(&self, hosts: &Hosts) -> bool {
        let client = self.conversation.tls().and_then(|tls| tls.client.as_deref());
        let answered = self.handshake.answered.map(|answered| answered.at);
        client.is_some_and(|hello| hello.is_java) && answered == hosts.first_accepted(self.server)
    }

    /// Returns whether the client closed after a record that has a session ticket's size: it had its response.
    fn has_closed_with_its_response(&self) -> bool {
        let tls = self.conversation.tls();
        self.reference.client.has_ended && tls.is_some_and(dissect::tls::Tls::may_have_responded)
    }

    /// Records that another connection was opened while this one was idle.
    pub(crate) fn is_followed_by(&mut self, slot: Slot, frame: u64) {
        self.follower = Some(Box::new((slot, frame)));
    }

    /// Returns the connection that was opened while this one was idle, once this one is used again: the client does keep
    /// connections.
    pub(crate) fn take_refuted_follower(&mut self) -> Option<(Slot, u64)> {
        let is_used_again = self.follower.is_some() && self.conversation.count() > 1;
        self.follower.take_if(|_| is_used_again).map(|follower| *follower)
    }

    /// Marks that the connection before it is used again.
    pub(crate) fn follows_nothing(&mut self) {
        self.follows = None;
    }
}
