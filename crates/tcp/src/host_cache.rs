//! State that a host caches about another between connections: path metrics, and T/TCP's and TCP Fast Open's data.
//!
//! Path metrics are window and round trip (RFC 2140, temporal sharing). Transaction TCP's connection counts (RFC 1644)
//! and TCP Fast Open's cookies (RFC 7413) authenticate the client enough to send data with the SYN. The table of hosts
//! belongs to the caller.

use wire::{Duration, Time};

use crate::config::{Handshake, Sharing};
use crate::connection::Connection;
use crate::segment::{ConnectionCount, FastOpen, SynOptions};

/// State cached about another host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCacheEntry {
    /// State of the path after the last connection.
    pub path: Option<Path>,
    /// Last connection count received from it (T/TCP).
    pub last_count: Option<u32>,
    /// Whether the other host has cached a count of this one.
    pub is_count_acknowledged: bool,
    /// Cookie received from the other host (TCP Fast Open).
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

/// Initial state of a connection with a known host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InitialState {
    /// The cached state.
    pub cached: HostCacheEntry,
    /// Connection count of this connection, above all earlier ones of this host (T/TCP).
    pub count: u32,
    /// Cookie that this host issues to the other (TCP Fast Open).
    pub cookie: u64,
}

impl Connection {
    /// Sets the state cached about the other host. Must be called before any input.
    pub fn set_initial_state(&mut self, initial: InitialState) {
        self.initial = initial;
        if let Some(path) = initial.cached.path
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
    pub fn host_cache_entry(&self) -> HostCacheEntry {
        let has_path = self.shares_path() && self.timer.smoothed().is_some();
        let path = has_path.then(|| Path {
            cwnd: self.window.cwnd(),
            ssthresh: self.window.threshold(),
            round_trip: self.timer.smoothed(),
        });
        HostCacheEntry { path: path.or(self.initial.cached.path), ..self.initial.cached }
    }

    /// Returns whether a client may send data with its SYN.
    pub(super) fn may_send_early(&self) -> bool {
        let HostCacheEntry { path: _, last_count: _, is_count_acknowledged, cookie } = self.initial.cached;
        match self.config.handshake {
            Handshake::ThreeWay => false,
            Handshake::Ttcp => is_count_acknowledged,
            Handshake::FastOpen => cookie.is_some(),
            Handshake::Ardp => true,
        }
    }

    /// Returns whether a server trusts a SYN: its data may be read immediately.
    pub(super) fn trusts_syn(&self, syn: &SynOptions) -> bool {
        match self.config.handshake {
            Handshake::ThreeWay => false,
            Handshake::Ttcp => match (syn.connection_count, self.initial.cached.last_count) {
                // RFC 1644's TAO test: a count above all earlier ones is not that of an old duplicate.
                (Some(ConnectionCount::Current(count)), Some(seen)) => count > seen,
                (Some(ConnectionCount::Current(_)), None) => false,
                (Some(ConnectionCount::New(_) | ConnectionCount::Echo { .. }) | None, _) => false,
            },
            Handshake::FastOpen => syn.fast_open == Some(FastOpen::Cookie(self.initial.cookie)),
            Handshake::Ardp => true,
        }
    }

    /// Returns whether the SYN-ACK to a trusted SYN may be delayed until there is data that it can carry.
    pub(super) const fn delays_syn_ack(&self) -> bool {
        match self.config.handshake {
            Handshake::ThreeWay | Handshake::FastOpen => false,
            Handshake::Ttcp | Handshake::Ardp => true,
        }
    }

    /// Returns the options for a shortened handshake in a SYN of this end.
    pub(super) fn handshake_options(&self, is_syn_ack: bool) -> (Option<ConnectionCount>, Option<FastOpen>) {
        let InitialState { cached, count, cookie } = self.initial;
        match (self.config.handshake, is_syn_ack) {
            (Handshake::ThreeWay | Handshake::Ardp, _) => (None, None),
            (Handshake::Ttcp, false) if cached.is_count_acknowledged => {
                (Some(ConnectionCount::Current(count)), None)
            }
            (Handshake::Ttcp, false) => (Some(ConnectionCount::New(count)), None),
            (Handshake::Ttcp, true) => {
                let echo = |echo| ConnectionCount::Echo { count, echo };
                (self.peer_count.map(echo), None)
            }
            (Handshake::FastOpen, false) => {
                (None, Some(cached.cookie.map_or(FastOpen::Request, FastOpen::Cookie)))
            }
            (Handshake::FastOpen, true) => (None, self.cookie_requested.then_some(FastOpen::Cookie(cookie))),
        }
    }

    /// Reads the options for a shortened handshake in the peer's SYN.
    pub(super) fn read_handshake_options(&mut self, syn: &SynOptions) {
        match syn.connection_count {
            Some(ConnectionCount::Current(count) | ConnectionCount::New(count)) => {
                self.peer_count = Some(count)
            }
            Some(ConnectionCount::Echo { count: _, echo }) => {
                self.initial.cached.is_count_acknowledged = echo == self.initial.count;
            }
            None => {}
        }
        match syn.fast_open {
            Some(FastOpen::Request) => self.cookie_requested = true,
            Some(FastOpen::Cookie(cookie)) if !self.is_server => {
                self.initial.cached.cookie = Some(cookie);
            }
            Some(FastOpen::Cookie(_)) | None => {}
        }
    }

    /// Caches the peer's count: the handshake is complete or was not needed, so the count is not that of an old
    /// duplicate.
    pub(super) fn cache_count(&mut self) {
        if self.peer_count.is_some() {
            self.initial.cached.last_count = self.peer_count;
        }
    }
}
