//! Facts about openings and connections that failed, as [`crate::gap::Gap`] holds those of a wait.
//!
//! Not the judgement: `flow` records what the packets show, and the rules in `causes/` decide what it means. A failure takes
//! the place of the losses by which it showed.

use core::net::{IpAddr, SocketAddr};

use dissect::hosts::Hosts;
use dissect::{Both, Mark, Side};
use wire::Time;
use wire::packet::icmp::Unreachable;

use crate::cause::Cause;
use crate::finding::{Finding, Severity};
use crate::gap::Wait;

/// Unusual events before the first SYN/ACK.
#[derive(Debug, Default)]
pub(crate) struct Opening {
    /// Each SYN and its retransmission.
    pub(crate) repeats: Vec<(Mark, Mark)>,
    /// A challenge ACK.
    pub(crate) challenge: Option<Mark>,
    pub(crate) refusal: Option<Mark>,
    pub(crate) unreachable: Option<(Mark, Unreachable)>,
    /// When the first SYN/ACK arrived.
    pub(crate) answered: Option<Mark>,
    /// Whether the client was accepted at another address of the port right after.
    pub(crate) has_alternative: bool,
}

/// An opening at the end of its connection.
#[derive(Debug)]
pub(crate) struct OpeningFacts<'a> {
    pub(crate) opening: &'a Opening,
    pub(crate) hosts: &'a Hosts,
    pub(crate) client: SocketAddr,
    pub(crate) server: SocketAddr,
    /// The first SYN, and the last.
    pub(crate) first: Mark,
    pub(crate) last: Mark,
    /// When the connection's last packet passed.
    pub(crate) ended: Time,
    /// Whether the server has sent anything.
    pub(crate) is_heard: bool,
    /// Whether the capture was taken at the server.
    pub(crate) is_at_server: bool,
    /// Whether it was to join a Multipath TCP connection: that goes on over its other subflows.
    pub(crate) is_joining: bool,
}

impl OpeningFacts<'_> {
    /// Returns whether both ends are on one host.
    pub(crate) fn is_local(&self) -> bool {
        self.server.ip().is_loopback() || self.server.ip() == self.client.ip()
    }

    /// Returns a clause on what the connection was for.
    pub(crate) fn join_kind(&self) -> &'static str {
        match self.is_joining {
            true => "; it was to join a Multipath TCP connection (MP_JOIN), which goes on without it",
            false => "",
        }
    }

    /// Returns a failure of the opening, from the first SYN to `until`.
    pub(crate) fn failure(
        &self,
        cause: Cause,
        severity: Severity,
        until: Mark,
        packets: Vec<u64>,
        evidence: String,
    ) -> Finding {
        let wait = Wait { from: self.first, to: until, side: Side::Client };
        Finding { severity, packets, saving: None, ..wait.finding(cause, evidence) }
    }
}

/// The first unacknowledged data, while it is retransmitted repeatedly.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RepeatedRetransmission {
    /// Its first byte.
    pub(crate) start: u64,
    /// When it was first sent, and last.
    pub(crate) first: Mark,
    pub(crate) last: Mark,
    /// Number of times it was sent at its full length, and that length.
    pub(crate) times: u32,
    pub(crate) length: u64,
    /// Number of transmissions since its peer's last packet, and the time of the first of them.
    pub(crate) in_vain: u32,
    pub(crate) silent_since: Mark,
    /// Position up to which its sender had sent.
    pub(crate) next: u64,
    /// The first shorter transmission.
    pub(crate) shorter: Option<(Mark, u64)>,
    /// Whether it is acknowledged in the capture.
    pub(crate) is_needless: bool,
    /// The reset that ended it.
    pub(crate) reset: Option<(Side, Mark)>,
    /// Whether data sent together with it was acknowledged.
    pub(crate) has_small_arrived: bool,
}

/// Data that was retransmitted repeatedly, when that is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StuckFacts<'a> {
    pub(crate) from: Side,
    pub(crate) stuck: RepeatedRetransmission,
    pub(crate) until: Mark,
    /// The sender's largest segment.
    pub(crate) mss: u64,
    /// Whether none as large was acknowledged, and a network card does not split it.
    pub(crate) is_largest: bool,
    /// Whether the peer sent nothing after the last transmission.
    pub(crate) is_silent: bool,
    /// Whether several segments are in flight, none of them smaller.
    pub(crate) is_all_full: bool,
    /// A router's report about the sender's packets.
    pub(crate) reported: Option<&'a SmallMtu>,
    /// The server's SYN/ACK, if it has sent nothing since.
    pub(crate) only_answer: Option<Mark>,
}

impl StuckFacts<'_> {
    /// Returns the failure of the sender, from `since` to the end.
    pub(crate) fn failure(&self, cause: Cause, since: Mark, packets: Vec<u64>, evidence: String) -> Finding {
        let wait = Wait { from: since, to: self.until, side: self.from };
        Finding { packets, saving: None, ..wait.finding(cause, evidence) }
    }
}

/// A lost segment that its sender repeated in smaller pieces, seen at its receiver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SplitRepair {
    /// When the loss showed, and the first piece.
    pub(crate) since: Mark,
    pub(crate) mark: Mark,
    /// Lengths of what was lost and of that piece.
    pub(crate) lost: u64,
    pub(crate) piece: u64,
}

/// An MTU that a router reported.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SmallMtu {
    pub(crate) mark: Mark,
    pub(crate) mtu: u32,
    pub(crate) reporter: IpAddr,
    pub(crate) from: Side,
}

/// A reset, and what it met.
#[derive(Debug)]
pub(crate) struct ResetFacts {
    pub(crate) from: Side,
    pub(crate) mark: Mark,
    /// Whether it acknowledges nothing: the connection does not exist.
    pub(crate) is_bare: bool,
    /// Whether a message of that side is incomplete.
    pub(crate) is_within: Both<bool>,
    /// Whether that side had closed, and whether it has sent data.
    pub(crate) has_ended: Both<bool>,
    pub(crate) is_seen: Both<bool>,
    /// Bytes of the peer that were not acknowledged.
    pub(crate) unacknowledged: u64,
    /// The first packet of that side that was not acknowledged, or the last event.
    pub(crate) sending: Both<Mark>,
    /// Whether messages can be read, and whether TLS is spoken.
    pub(crate) is_read: bool,
    pub(crate) is_tls: bool,
    /// The sign that a server which resets had not ended what it was sending.
    pub(crate) truncation: Option<&'static str>,
    /// The hop limit of its sender's other packets, and its own.
    pub(crate) usual_hop_limit: Option<u8>,
    pub(crate) hop_limit: u8,
    /// Whether it has the IP ID of the packet that it rejects.
    pub(crate) is_copied: bool,
}

/// Requests without a response at a server's reset.
#[derive(Debug)]
pub(crate) struct LostResponses {
    pub(crate) reset: Mark,
    /// Requests, and those of them without a complete response; `None` where they cannot be read.
    pub(crate) requests: u64,
    pub(crate) unanswered: Option<usize>,
    /// The first of them.
    pub(crate) first_unanswered: Option<Mark>,
    /// The client's first data that was not acknowledged, or the event before the reset.
    pub(crate) unread: Mark,
    /// Whether the client sent more than a TLS alert to a server that had closed its side.
    pub(crate) is_late: bool,
    /// Whether the client had closed; and whether both had, and everything had arrived.
    pub(crate) has_client_ended: bool,
    pub(crate) is_settled: bool,
    /// Whether anything of the server was captured before.
    pub(crate) is_heard: bool,
}

/// A window that blocked its sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClosedWindow {
    pub(crate) window: u32,
    /// Number of probes by its sender.
    pub(crate) probes: u32,
    /// From the acknowledgement that closed it to the one that opened it.
    pub(crate) wait: Wait,
}

/// Maximum time after a refusal within which a connection to another address of the port is its alternative.
pub(crate) const ALTERNATIVE: wire::Duration = wire::Duration::from_secs(1);

/// A refused connection that an alternative may follow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RefusedConnection {
    pub(crate) at: Time,
    pub(crate) port: u16,
    pub(crate) slot: dissect::connections::Slot,
    pub(crate) frame: u64,
}
