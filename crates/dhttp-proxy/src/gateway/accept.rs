//! Accepting of clients' connections, and the limits of their number.
//!
//! No client but this host may exceed its share. For a new connection the longest idle one is closed.

use std::net::IpAddr;

use super::event_loop::EventLoop;
use super::read_request::Connection;
use super::slots::ConnectionSlot;
use super::write_response::refuse_overload;
use crate::fetches::site;
use dhttp::counters::count_shared;

/// Maximum number of connections accepted before the others have their turn.
const SHARE: usize = 64;

impl EventLoop {
    /// Accepts waiting connections.
    pub(super) fn accept(&mut self) {
        for _ in 0..SHARE {
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

    /// Whether the limits allow a connection of that client; the longest idle one is closed for it. No client but this host may
    /// exceed its share.
    fn has_room(&mut self, peer: IpAddr) -> bool {
        let max = self.config.connections;
        let share = self.config.client_connections.unwrap_or((max / 2).max(1));
        let client = site(peer);
        if !peer.to_canonical().is_loopback()
            && self.slots.count(client) >= share
            && !self.evict_idle(|slot| slot.is_of(client))
        {
            return false;
        }
        self.slots.len() < max || self.evict_idle(|_| true)
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
