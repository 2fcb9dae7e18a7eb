//! Accepting of clients' connections, and the limits of their number.
//!
//! No client but this host may exceed its share. For a new connection the longest idle one is closed.

use std::net::IpAddr;

use super::connection::Connection;
use super::event_loop::EventLoop;
use super::slots::ConnectionSlot;
use super::write_response::refuse_overload;
use dhttp::counters::count_shared;
use dhttp_proto::shares::{ShareLimits, ShareRefusal};

/// Connections that are closed for one newcomer, at most.
const MAX_EVICTED: usize = 4;

/// Maximum number of connections accepted before the others have their turn. With several threads one takes a single
/// connection, so that all have some.
const SHARE: usize = 64;

impl EventLoop {
    /// Accepts waiting connections.
    pub(super) fn accept(&mut self) {
        let share = if self.shared.completions.len() > 1 { 1 } else { SHARE };
        for _ in 0..share {
            match self.listener.accept() {
                Ok((_, peer)) if !self.shared.allows(peer.ip()) => {}
                Ok((stream, peer)) if !self.has_room(peer.ip()) => {
                    count_shared(&self.shared.counters.turned_away);
                    refuse_overload(&stream);
                }
                Ok((stream, peer)) => {
                    count_shared(&self.shared.counters.accepted);
                    let number = self.next;
                    self.next += 2;
                    self.watch(number, Connection::new(peer, stream));
                }
                Err(error) => {
                    if !self.spare.refuse_next(&error, &self.listener, refuse_overload) {
                        return;
                    }
                }
            }
        }
    }

    /// Whether the limits allow a connection of that client; the longest idle one is closed for it, of the client or network that
    /// has its share. No client but this host may exceed its share.
    fn has_room(&mut self, peer: IpAddr) -> bool {
        let max = self.config.connections;
        let share = self.config.client_connections.unwrap_or((max / 2).max(1));
        let to_u64 = |count| u64::try_from(count).unwrap_or(u64::MAX);
        let is_own = peer.to_canonical().is_loopback();
        let limits = ShareLimits {
            total: to_u64(max),
            client: if is_own { u64::MAX } else { to_u64(share) },
            has_networks: !is_own,
        };
        // One connection may be closed for each share that is used up.
        for _ in 0..MAX_EVICTED {
            let checked = self.slots.shares().check(peer, limits);
            let is_freed = match checked {
                Ok(()) => return true,
                Err(ShareRefusal::Total) => self.evict_idle(|_| true),
                Err(ShareRefusal::Client(network) | ShareRefusal::Network(network)) => {
                    self.evict_idle(|slot| slot.is_of(network))
                }
            };
            if !is_freed {
                return false;
            }
        }
        false
    }

    fn evict_idle(&mut self, may: impl Fn(&ConnectionSlot) -> bool) -> bool {
        let idle = self.slots.iter().filter(|(_, slot)| may(slot)).filter_map(|(number, slot)| match slot {
            ConnectionSlot::Watched(waiting) => Some((waiting.idle_since()?, number)),
            ConnectionSlot::Leased(..) | ConnectionSlot::Tunnel(_) => None,
        });
        let Some((_, number)) = idle.min() else { return false };
        count_shared(&self.shared.counters.evicted);
        self.slots.remove(number).is_some()
    }
}
