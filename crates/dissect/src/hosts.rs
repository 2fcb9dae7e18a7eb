//! Hosts and ports that responded, and their distances: evidence from the whole capture about a single connection.

use core::net::{IpAddr, SocketAddr};
use std::collections::BTreeMap;

use wire::{Duration, Time};

use crate::Side;
use crate::path::Path;

/// Time of the latest packet, by address.
#[derive(Debug, Default)]
pub struct Hosts {
    /// For a server's port: the first and the latest SYN/ACK.
    accepting: BTreeMap<SocketAddr, (Time, Time)>,
    /// For a host: the latest SYN/ACK, FIN or reset.
    alive: BTreeMap<IpAddr, Time>,
    /// For a host and its peer: the minimum round trip from the point of capture to the host, by handshakes.
    distances: BTreeMap<(IpAddr, IpAddr), Duration>,
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

    /// Records the round trips from the point of capture to both hosts of a connection whose handshake is over.
    pub fn measured(&mut self, path: &Path, client: IpAddr, server: IpAddr) {
        for (side, ends) in [(Side::Client, (client, server)), (Side::Server, (server, client))] {
            let Some(round_trip) = path.to(side) else { continue };
            if self.distances.len() < MAX_HOSTS || self.distances.contains_key(&ends) {
                let least = self.distances.entry(ends).or_insert(round_trip);
                *least = round_trip.min(*least);
            }
        }
    }

    /// Completes a path that lacks the round trip to one of its hosts by what other connections between them have shown.
    pub fn complete(&self, path: &mut Path, client: IpAddr, server: IpAddr) {
        for (side, ends) in [(Side::Client, (client, server)), (Side::Server, (server, client))] {
            if path.lacks_distance(side)
                && let Some(round_trip) = self.distances.get(&ends)
            {
                path.measured_elsewhere(side, *round_trip);
            }
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn host(number: u8) -> IpAddr {
        [10, 0, 0, number].into()
    }

    proptest! {
        /// Handshakes between a few hosts: client, server, and the round trip to each in microseconds.
        #[test]
        fn path_is_completed_by_the_fastest_handshake_of_the_same_hosts_alone(
            handshakes in prop::collection::vec((0_u8..4, 0_u8..4, 1_u64..90_000, 1_u64..90_000), 0..20),
            own in prop::option::of(1_u64..90_000),
        ) {
            let micros = Duration::from_micros;
            let mut hosts = Hosts::default();
            for (client, server, to_client, to_server) in &handshakes {
                let mut path = Path::default();
                path.answered(Side::Client, micros(*to_client));
                path.answered(Side::Server, micros(*to_server));
                hosts.measured(&path, host(*client), host(*server));
            }
            let mut path = Path::default();
            own.into_iter().for_each(|own| path.answered(Side::Client, micros(own)));
            hosts.complete(&mut path, host(0), host(1));
            // As the server of the other host, too.
            let times = |of: u8, peer: u8| {
                handshakes.iter().flat_map(move |(client, server, to_client, to_server)| {
                    let to = |ends, time| ((of, peer) == ends).then_some(micros(time));
                    [to((*client, *server), *to_client), to((*server, *client), *to_server)]
                })
            };
            let least = |of, peer| times(of, peer).flatten().min();
            prop_assert_eq!(path.to(Side::Client), own.map(micros).or(least(0, 1)));
            prop_assert_eq!(path.to(Side::Server), least(1, 0));
        }
    }
}
