//! Hosts and ports that responded: what the capture as a whole shows of a server that leaves one connection without a response.

use core::net::{IpAddr, SocketAddr};
use std::collections::BTreeMap;

use wire::{Duration, Time};

/// When something was last heard, by address.
#[derive(Debug, Default)]
pub(crate) struct Hosts {
    /// Of a server's port: a SYN/ACK.
    accepting: BTreeMap<SocketAddr, Time>,
    /// Of a host: a SYN/ACK or a reset.
    alive: BTreeMap<IpAddr, Time>,
}

/// Kept of each.
const MAX_HOSTS: usize = 1 << 14;
/// Connections within this time before count as concurrent.
const MEANWHILE: Duration = Duration::from_secs(60);

impl Hosts {
    /// A SYN/ACK from `server`.
    pub(crate) fn accepted(&mut self, server: SocketAddr, at: Time) {
        if self.accepting.len() < MAX_HOSTS || self.accepting.contains_key(&server) {
            self.accepting.insert(server, at);
        }
        self.heard(server.ip(), at);
    }

    /// A packet from a host that shows it is up.
    pub(crate) fn heard(&mut self, host: IpAddr, at: Time) {
        if self.alive.len() < MAX_HOSTS || self.alive.contains_key(&host) {
            self.alive.insert(host, at);
        }
    }

    /// Whether others were accepted there, since shortly before `since`.
    pub(crate) fn accepts(&self, server: SocketAddr, since: Time) -> bool {
        self.accepting.get(&server).is_some_and(|at| *at + MEANWHILE >= since)
    }

    /// Whether the host was heard, since shortly before `since`.
    pub(crate) fn is_alive(&self, host: IpAddr, since: Time) -> bool {
        self.alive.get(&host).is_some_and(|at| *at + MEANWHILE >= since)
    }
}
