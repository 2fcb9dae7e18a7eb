//! Hosts and ports that responded: evidence from the whole capture about a server that does not respond.

use core::net::{IpAddr, SocketAddr};
use std::collections::BTreeMap;

use wire::{Duration, Time};

/// Time of the latest packet, by address.
#[derive(Debug, Default)]
pub struct Hosts {
    /// For a server's port: the first and the latest SYN/ACK.
    accepting: BTreeMap<SocketAddr, (Time, Time)>,
    /// For a host: the latest SYN/ACK, FIN or reset.
    alive: BTreeMap<IpAddr, Time>,
}

/// Maximum number of entries in each map.
const MAX_HOSTS: usize = 1 << 14;
/// Connections within this time before count as concurrent.
const MEANWHILE: Duration = Duration::from_secs(60);

impl Hosts {
    /// Records a SYN/ACK from `server`.
    pub fn accepted(&mut self, server: SocketAddr, at: Time) {
        if self.accepting.len() < MAX_HOSTS || self.accepting.contains_key(&server) {
            self.accepting.entry(server).or_insert((at, at)).1 = at;
        }
        self.record_alive(server.ip(), at);
    }

    /// Records a packet that shows that its host is up.
    pub fn record_alive(&mut self, host: IpAddr, at: Time) {
        if self.alive.len() < MAX_HOSTS || self.alive.contains_key(&host) {
            self.alive.insert(host, at);
        }
    }

    /// Returns whether other connections to the port were accepted since shortly before `since`.
    pub fn accepts(&self, server: SocketAddr, since: Time) -> bool {
        self.accepting.get(&server).is_some_and(|(_, at)| *at + MEANWHILE >= since)
    }

    /// Returns when the port first accepted a connection.
    pub fn first_accepted(&self, server: SocketAddr) -> Option<Time> {
        self.accepting.get(&server).map(|(first, _)| *first)
    }

    /// Returns whether the host sent anything since shortly before `since`.
    pub fn is_alive(&self, host: IpAddr, since: Time) -> bool {
        self.alive.get(&host).is_some_and(|at| *at + MEANWHILE >= since)
    }
}
