//! Accepting of clients' connections, and the limits of their number.
//!
//! No client but this host may exceed its share. For a new connection the longest idle one is closed. If all are busy, one of
//! the most recent is: quick responses thus come through, however many clients wait for slow servers, and most exchanges are
//! never ended for others.

use std::net::IpAddr;

use super::connection::Connection;
use super::event_loop::EventLoop;
use super::slots::ConnectionSlot;
use super::write_response::refuse_overload;
use dhttp::counters::count_shared;
use dhttp_proto::shares::{Network, ShareLimits, ShareRefusal};
use wire::Duration;

/// Connections that are closed for one newcomer, at most.
const MAX_EVICTED: usize = 4;

/// Share of the connections that may be closed for newcomers although they are busy: one in this many, the most recent.
const RECENT_SHARE: usize = 8;

/// Time that a new connection has for its request before it counts as idle: many round trips.
const FIRST_REQUEST: Duration = Duration::from_millis(500);

/// Pause after a search in which no connection was idle.
const SEARCH_PAUSE: Duration = Duration::from_millis(10);

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
                    self.watch_new(number, Connection::new(peer, stream));
                }
                Err(error) => {
                    if !self.spare.refuse_next(&error, &self.listener, refuse_overload) {
                        return;
                    }
                }
            }
        }
    }

    /// Counts a connection of that client if the limits allow it; the longest idle one is closed for it, of the client or network that
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
            let taken = self.slots.shares().take(peer, limits);
            let is_freed = match taken {
                Ok(()) => return true,
                Err(ShareRefusal::Total) => self.evict_for(peer, limits),
                Err(ShareRefusal::Client(network) | ShareRefusal::Network(network)) => {
                    self.evict_idle_of(network)
                }
            };
            if !is_freed {
                return false;
            }
        }
        false
    }

    /// Closes the longest idle connection of a client or network; also one that a thread has just returned.
    fn evict_idle_of(&mut self, network: Network) -> bool {
        if self.evict_idle(|slot| slot.is_of(network)) {
            return true;
        }
        self.process_completions();
        self.evict_idle(|slot| slot.is_of(network))
    }

    /// Closes a connection when all are in use: of the newcomer's own client or network, if that has its share, or of another.
    fn evict_for(&mut self, newcomer: IpAddr, limits: ShareLimits) -> bool {
        let one_more = ShareLimits { total: limits.total.saturating_add(1), ..limits };
        let checked = self.slots.shares().check(newcomer, one_more);
        match checked {
            Ok(()) => self.evict_any_idle() || self.evict_busy() || self.evict_idle(|_| true),
            Err(ShareRefusal::Client(network) | ShareRefusal::Network(network)) => {
                self.evict_idle_of(network)
            }
            Err(ShareRefusal::Total) => false,
        }
    }

    /// Closes the longest idle connection that had time for a request. A search that finds none is not repeated soon.
    fn evict_any_idle(&mut self) -> bool {
        let now = self.shared.clock.now();
        if now < self.next_search {
            return false;
        }
        let is_evicted = self.evict_idle(|slot| match slot {
            ConnectionSlot::Watched(waiting) => {
                let since = waiting.idle_since().unwrap_or(now);
                waiting.connection.has_requested || now.since(since) >= FIRST_REQUEST
            }
            ConnectionSlot::Leased(..) | ConnectionSlot::Tunnel(_) => false,
        });
        if !is_evicted {
            self.next_search = now + SEARCH_PAUSE;
        }
        is_evicted
    }

    /// Ends what one of the most recent connections does.
    fn evict_busy(&mut self) -> bool {
        let recent = self.slots.recent(self.slots.len() / RECENT_SHARE).next().map(|(number, _)| number);
        let Some(number) = recent.filter(|_| !self.has_lasting_threads()) else { return false };
        count_shared(&self.shared.counters.aborted);
        self.abort(number);
        true
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
