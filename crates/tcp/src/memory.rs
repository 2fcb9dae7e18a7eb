//! State that a host caches about another between connections, and the handshakes that it shortens.
//!
//! The path: window and round trip (RFC 2140, temporal sharing). Transaction TCP's connection counts (RFC
//! 1644) and TCP Fast Open's cookies (RFC 7413), which authenticate the client enough to omit the handshake.
//! The table of hosts belongs to the owner of the connections.

use wire::{Duration, Time};

use crate::config::{Sharing, Shortcut};
use crate::connection::Connection;
use crate::segment::{ConnectionCount, FastOpen, SynOptions};

/// State cached about another host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// State of the path at the end of the last connection.
    pub path: Option<Path>,
    /// Last connection count received from there.
    pub count_seen: Option<u32>,
    /// Whether the other host has cached a count of this one.
    pub is_count_known: bool,
    /// The cookie received from the other host.
    pub cookie: Option<u64>,
}

/// State of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// The congestion window, in bytes.
    pub cwnd: u64,
    /// Slow start threshold, in bytes.
    pub ssthresh: u64,
    /// The smoothed round trip.
    pub round_trip: Option<Duration>,
}

/// State passed to a new connection with a known host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Introduction {
    /// The cached state.
    pub memory: Memory,
    /// Connection count of this connection, above all earlier ones of this host.
    pub count: u32,
    /// The cookie that this host issues to the other.
    pub cookie: u64,
}

impl Connection {
    /// Passes the state cached about the other host to a new connection. Must be called before anything else.
    pub fn introduce(&mut self, introduction: Introduction) {
        self.introduction = introduction;
        if let Some(path) = introduction.memory.path
            && self.shares_path()
        {
            self.window.adopt(path.cwnd, path.ssthresh);
            if let Some(round_trip) = path.round_trip {
                self.timer.record_round_trip(Time::ZERO, Time::ZERO + round_trip);
            }
        }
    }

    const fn shares_path(&self) -> bool {
        match self.config.sharing {
            Sharing::None => false,
            Sharing::Temporal | Sharing::Ensemble => true,
        }
    }

    /// Sets the congestion window, in bytes, to this connection's share of a shared window; at least one segment (RFC
    /// 2140, ensemble sharing).
    pub fn share_window(&mut self, bytes: u64) {
        self.window.share(bytes);
    }

    /// Returns the state to cache about the other host, after this connection.
    pub fn memory(&self) -> Memory {
        let has_path = self.shares_path() && self.timer.smoothed().is_some();
        let path = has_path.then(|| Path {
            cwnd: self.window.cwnd(),
            ssthresh: self.window.threshold(),
            round_trip: self.timer.smoothed(),
        });
        Memory { path: path.or(self.introduction.memory.path), ..self.introduction.memory }
    }

    /// Returns whether a client may send data with its SYN.
    pub(super) fn may_send_early(&self) -> bool {
        let Memory { path: _, count_seen: _, is_count_known, cookie } = self.introduction.memory;
        match self.config.shortcut {
            Shortcut::None => false,
            Shortcut::Ttcp => is_count_known,
            Shortcut::FastOpen => cookie.is_some(),
            Shortcut::Ardp => true,
        }
    }

    /// Returns whether a server trusts a SYN: its data may be read immediately.
    pub(super) fn trusts_syn(&self, syn: &SynOptions) -> bool {
        match self.config.shortcut {
            Shortcut::None => false,
            Shortcut::Ttcp => match (syn.connection_count, self.introduction.memory.count_seen) {
                // RFC 1644's TAO test: a count above all earlier ones is not that of an old duplicate.
                (Some(ConnectionCount::Current(count)), Some(seen)) => count > seen,
                (Some(ConnectionCount::Current(_)), None) => false,
                (Some(ConnectionCount::New(_) | ConnectionCount::Echo { .. }) | None, _) => false,
            },
            Shortcut::FastOpen => syn.fast_open == Some(FastOpen::Cookie(self.introduction.cookie)),
            Shortcut::Ardp => true,
        }
    }

    /// Returns whether the SYN-ACK to a trusted SYN may be delayed until there is data that it can carry.
    pub(super) const fn delays_syn_ack(&self) -> bool {
        match self.config.shortcut {
            Shortcut::None | Shortcut::FastOpen => false,
            Shortcut::Ttcp | Shortcut::Ardp => true,
        }
    }

    /// Returns the options for a shortened handshake in a SYN of this end.
    pub(super) fn shortcut_options(&self, is_syn_ack: bool) -> (Option<ConnectionCount>, Option<FastOpen>) {
        let Introduction { memory, count, cookie } = self.introduction;
        match (self.config.shortcut, is_syn_ack) {
            (Shortcut::None | Shortcut::Ardp, _) => (None, None),
            (Shortcut::Ttcp, false) if memory.is_count_known => (Some(ConnectionCount::Current(count)), None),
            (Shortcut::Ttcp, false) => (Some(ConnectionCount::New(count)), None),
            (Shortcut::Ttcp, true) => {
                let echo = |echo| ConnectionCount::Echo { count, echo };
                (self.peer_count.map(echo), None)
            }
            (Shortcut::FastOpen, false) => {
                (None, Some(memory.cookie.map_or(FastOpen::Request, FastOpen::Cookie)))
            }
            (Shortcut::FastOpen, true) => (None, self.cookie_requested.then_some(FastOpen::Cookie(cookie))),
        }
    }

    /// Reads the options for a shortened handshake in the peer's SYN.
    pub(super) fn read_handshake_options(&mut self, syn: &SynOptions) {
        match syn.connection_count {
            Some(ConnectionCount::Current(count) | ConnectionCount::New(count)) => {
                self.peer_count = Some(count)
            }
            Some(ConnectionCount::Echo { count: _, echo }) => {
                self.introduction.memory.is_count_known = echo == self.introduction.count;
            }
            None => {}
        }
        match syn.fast_open {
            Some(FastOpen::Request) => self.cookie_requested = true,
            Some(FastOpen::Cookie(cookie)) if !self.is_server => {
                self.introduction.memory.cookie = Some(cookie);
            }
            Some(FastOpen::Cookie(_)) | None => {}
        }
    }

    /// Caches the peer's count: the handshake is complete or was not needed, so the count is not that of an old
    /// duplicate.
    pub(super) fn cache_count(&mut self) {
        if self.peer_count.is_some() {
            self.introduction.memory.count_seen = self.peer_count;
        }
    }
}
