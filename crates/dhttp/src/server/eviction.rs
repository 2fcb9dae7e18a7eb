//! Eviction: a connection that is closed for a newcomer when a limit is reached.
//!
//! Not the limits: those are in `clients`. The longest idle connection goes first, then the slowest of the largest network, then
//! the one that has stalled longest. If all wait for their handler, one of the most recent goes.

use std::cmp::Reverse;
use std::net::IpAddr;
use std::sync::Arc;

use http1::message::Fields;
use wire::{Duration, Time};

use super::clients::{ConnectionSlot, client_of};
use super::plain::PlainConnection;
use super::worker::Worker;
use crate::counters::count;
use crate::fields::copy;
use crate::handler::{Handler, Response};
use dhttp_proto::shares::{Network, ShareRefusal};

/// Connections that are closed for one newcomer, at most: one for each share.
const MAX_EVICTED: usize = 4;

/// Connections that are examined for one to evict.
const MAX_EXAMINED: usize = 64;

/// Connections whose networks are compared at a time, of those examined.
const MAX_COMPARED: usize = 16;

/// Time without progress after which a client gives way to a newcomer: many round trips.
const STALLED: Duration = Duration::from_millis(500);

/// Times that so many are examined for one newcomer.
const MAX_EXAMINATIONS: usize = 4;

/// Pause after a search that found only waiting requests.
const SEARCH_PAUSE: Duration = Duration::from_millis(10);

/// Share of the connections that may be closed for newcomers although their request waits: one in this many, the most recent.
const RECENT_SHARE: usize = 8;

impl<H: Handler> Worker<H> {
    /// Returns a slot for a connection from that address. If there is none, another connection is closed for it: of the same
    /// client if that has too many, of its network likewise, and any at the total limit.
    pub(super) fn slot_for(&mut self, address: IpAddr) -> Option<ConnectionSlot> {
        let max = (self.config.accepted / self.config.threads.max(1)).max(1);
        if self.plain.len() >= max && !self.evict_for(address) {
            count(&self.counters.refused_total);
            return None;
        }
        let mut refusal = ShareRefusal::Total;
        // One connection may be closed for each share that is used up.
        for _ in 0..MAX_EVICTED {
            refusal = match self.clients.enter(address) {
                Ok(slot) => return Some(slot),
                Err(refusal) => refusal,
            };
            let is_freed = match refusal {
                ShareRefusal::Total => self.evict_for(address),
                ShareRefusal::Client(_) => self.evict_idle_of(client_of(address)),
                ShareRefusal::Network(network) => self.evict_within(network, address),
            };
            if !is_freed {
                break;
            }
        }
        count(match refusal {
            ShareRefusal::Total => &self.counters.refused_total,
            ShareRefusal::Client(_) => &self.counters.refused_client,
            ShareRefusal::Network(_) => &self.counters.refused_network,
        });
        None
    }

    /// Closes the client's connection that has been idle longest.
    fn evict_idle_of(&mut self, client: IpAddr) -> bool {
        let ids = self.of_client.get(&client).into_iter().flatten();
        let idle = longest_idle(ids.filter_map(|id| Some((*id, self.plain.get(id)?))));
        self.evict(idle)
    }

    /// Closes a connection of this network for a newcomer: the longest idle one, or else the slowest of a client that has more
    /// than the newcomer's.
    fn evict_within(&mut self, network: Network, newcomer: IpAddr) -> bool {
        let clients =
            self.of_client.range(network.first()..).take_while(|(client, _)| network.contains(**client));
        let ids = clients.flat_map(|(_, ids)| ids).take(MAX_EXAMINED);
        let examined: Vec<_> = ids.filter_map(|id| Some((*id, self.plain.get(id)?))).collect();
        let victim = longest_idle(examined.iter().copied()).or_else(|| self.slowest(&examined, newcomer, 0));
        self.evict(victim)
    }

    /// Makes room for a newcomer. Connections that have just begun may fill the first slices that are examined.
    fn evict_for(&mut self, newcomer: IpAddr) -> bool {
        let now = self.clock.now();
        let is_due = now >= self.next_search;
        if is_due && self.evict_of_the_next_slices(newcomer) {
            return true;
        }
        if self.evict_waiting(newcomer) {
            if is_due {
                self.next_search = now + SEARCH_PAUSE;
            }
            return true;
        }
        !is_due && self.evict_of_the_next_slices(newcomer)
    }

    fn evict_of_the_next_slices(&mut self, newcomer: IpAddr) -> bool {
        (0..MAX_EXAMINATIONS).any(|_| self.evict_of_the_next(newcomer))
    }

    /// Ends a request that waits for its handler, for a newcomer: the oldest of the most recent. Quick responses thus come through
    /// however many clients wait for slow ones, and most connections are never closed for others. A newcomer beyond its own share
    /// takes the place of an idle connection of its own.
    fn evict_waiting(&mut self, newcomer: IpAddr) -> bool {
        if !self.clients.may_replace(newcomer) {
            return self.evict_idle_of(client_of(newcomer));
        }
        let recent = (self.plain.len() / RECENT_SHARE).checked_sub(1);
        let first = recent.and_then(|index| self.plain.keys().rev().nth(index).copied());
        let Some(first) = first else { return false };
        let mut examined = self.plain.range(first..).take(MAX_EXAMINED);
        let Some((id, number)) = examined.find_map(|(id, plain)| Some((*id, plain.deferred()?))) else {
            return false;
        };
        self.deferred_requests.abandon(number);
        count(&self.counters.evicted_waiting);
        let mut response =
            Response::text(503, "503 Service Unavailable: too many requests in progress; retry later");
        copy(Arc::make_mut(&mut response.fields), b"Retry-After", b"1");
        self.plain(id, |plain, context| {
            plain.respond_now(context, response, Fields::new());
            false
        });
        true
    }

    /// Closes a connection among the next [`MAX_EXAMINED`], which differ on each call: the longest idle one, or else the slowest
    /// of the largest network, if that has more than the newcomer's, or is below the minimum rate under pressure; or else the
    /// one that has stalled longest.
    fn evict_of_the_next(&mut self, newcomer: IpAddr) -> bool {
        let next = self.plain.range(self.eviction_cursor..).chain(self.plain.range(..self.eviction_cursor));
        let examined: Vec<_> = next.take(MAX_EXAMINED).map(|(id, plain)| (*id, plain)).collect();
        let cursor = examined.last().map_or(0, |(last, _)| last + 1);
        let victim = longest_idle(examined.iter().copied())
            .or_else(|| self.slowest(&examined, newcomer, self.min_rate()))
            .or_else(|| longest_stalled(&examined, self.clock.now()));
        self.eviction_cursor = cursor;
        self.evict(victim)
    }

    fn evict(&mut self, victim: Option<u64>) -> bool {
        let Some(id) = victim else { return false };
        if let Some(plain) = self.plain.get(&id).filter(|plain| !plain.is_idle()) {
            plain.reset();
            count(&self.counters.too_slow);
        } else {
            count(&self.counters.evicted);
        }
        self.drop_plain(id);
        true
    }

    /// Returns the slowest of these connections, of the network with the most. Those below `min_rate` count, and those of a client
    /// or network that has more than the newcomer's; none that has just begun. The slowest are considered first, because the
    /// counts of their networks are in a large table.
    fn slowest(&self, examined: &[(u64, &PlainConnection)], newcomer: IpAddr, min_rate: u64) -> Option<u64> {
        let now = self.clock.now();
        let (own, own_network) = self.clients.connections_of(newcomer);
        let rated =
            examined.iter().filter_map(|(id, plain)| Some((plain.rate(now)?, *id, plain.slot.client())));
        let mut rated: Vec<_> = rated.collect();
        rated.sort_unstable();
        rated.chunks(MAX_COMPARED).find_map(|slowest| {
            let judged = slowest.iter().filter_map(|(rate, id, client)| {
                let (of_client, of_network) = self.clients.connections_of(*client);
                let has_more = of_client > own + 1 || of_network > own_network + 1;
                (has_more || *rate < min_rate).then_some((Reverse(of_network), *rate, *id))
            });
            judged.min().map(|(.., id)| id)
        })
    }
}

fn longest_idle<'a>(connections: impl Iterator<Item = (u64, &'a PlainConnection)>) -> Option<u64> {
    let idle = connections.filter(|(_, plain)| plain.is_idle()).map(|(id, plain)| (plain.last_used(), id));
    idle.min().map(|(_, id)| id)
}

/// Returns the one of these connections whose client has kept the server waiting longest: also one too young for a rate.
fn longest_stalled(examined: &[(u64, &PlainConnection)], now: Time) -> Option<u64> {
    let stalled = examined.iter().filter_map(|(id, plain)| {
        let is_stalled = plain.deferred().is_none() && now.since(plain.last_used()) >= STALLED;
        is_stalled.then_some((plain.last_used(), *id))
    });
    stalled.min().map(|(_, id)| id)
}
