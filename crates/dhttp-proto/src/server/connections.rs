//! Connections that a server has opened to its clients: choice of one for a response, and timeouts.
//!
//! Each of the paper's workers has one connection to a client; here a worker is a connection
//! (`papers/dhttp#section-v`). Pending responses are counted from the arrival of a request, before the channel of its
//! response is known: an upper bound, as in the paper. Not a socket: the driver opens, writes and closes.

use core::net::SocketAddr;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use wire::Time;

use super::config::{ConnectionTimeouts, PerClient};
use super::phase::{Event, Phase};
use crate::Id;

/// Id of a connection that a server opened, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionId(pub u64);

/// Decision of the three rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionChoice {
    /// Rule 1: this one is idle.
    Idle(ConnectionId),
    /// Rule 2: the limits allow another.
    New,
    /// Rule 3: this one has the fewest pending responses.
    Fewest(ConnectionId),
    /// The limits allow no other, and there is none to this client.
    Nowhere,
}

/// All connections.
#[derive(Debug)]
pub(super) struct Connections {
    max: usize,
    per_client: PerClient,
    timeout: ConnectionTimeouts,
    all: BTreeMap<ConnectionId, Connection>,
    clients: BTreeMap<SocketAddr, Vec<ConnectionId>>,
    timers: BTreeSet<(Time, ConnectionId)>,
    opened: u64,
}

#[derive(Debug)]
struct Connection {
    client: SocketAddr,
    phase: Phase,
    /// Requests whose responses may take this connection.
    pending: usize,
    /// Responses on this connection: those not yet written, and the last few that were.
    responses: VecDeque<Id>,
    unwritten: usize,
    /// When it was opened, or last accepted bytes.
    active: Time,
    due: Option<Time>,
}

/// Number of written responses that are presumed in flight when a connection breaks.
const UNDER_WAY: usize = 16;

impl Connections {
    pub(super) const fn new(max: usize, per_client: PerClient, timeout: ConnectionTimeouts) -> Self {
        Self {
            max,
            per_client,
            timeout,
            all: BTreeMap::new(),
            clients: BTreeMap::new(),
            timers: BTreeSet::new(),
            opened: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// The three rules for choosing among a client's connections.
    pub(super) fn choose(&self, client: SocketAddr) -> ConnectionChoice {
        let its = self.clients.get(&client).map_or(&[][..], Vec::as_slice);
        let phases = its.iter().filter_map(|id| Some((*id, self.all.get(id)?)));
        if let Some((idle, _)) = phases.clone().find(|(_, connection)| connection.phase == Phase::Idle) {
            return ConnectionChoice::Idle(idle);
        }
        let PerClient { max, max_when_few, few_below } = self.per_client;
        let allowed = if self.all.len() < few_below { max_when_few } else { max };
        if its.len() < allowed && self.all.len() < self.max {
            return ConnectionChoice::New;
        }
        let fewest = phases.min_by_key(|(id, connection)| (connection.pending, *id));
        fewest.map_or(ConnectionChoice::Nowhere, |(id, _)| ConnectionChoice::Fewest(id))
    }

    pub(super) fn is_open(&self, id: ConnectionId) -> bool {
        self.all.contains_key(&id)
    }

    /// Adds a pending response; `false` if the connection is gone.
    pub(super) fn assign(&mut self, id: ConnectionId) -> bool {
        self.change(id, |connection| {
            connection.pending += 1;
            connection.step(Event::Assigned);
        })
    }

    /// Removes a pending response, which took another channel.
    pub(super) fn release(&mut self, id: ConnectionId) {
        self.change(id, |connection| connection.settle());
    }

    /// Opens a connection for a pending response.
    pub(super) fn open(&mut self, now: Time, client: SocketAddr) -> ConnectionId {
        let id = ConnectionId(self.opened);
        self.opened += 1;
        let due = now + self.timeout.open;
        let (responses, phase) = (VecDeque::new(), Phase::Opening);
        let connection =
            Connection { client, phase, pending: 1, responses, unwritten: 0, active: now, due: Some(due) };
        self.all.insert(id, connection);
        self.clients.entry(client).or_default().push(id);
        self.timers.insert((due, id));
        id
    }

    /// Queues a pending response on a connection; `false` if the connection is gone.
    pub(super) fn carry(&mut self, now: Time, id: ConnectionId, response: Id) -> bool {
        self.change(id, |connection| {
            if connection.unwritten == 0 {
                connection.active = now.max(connection.active);
            }
            connection.responses.push_back(response);
            connection.unwritten += 1;
        })
    }

    pub(super) fn opened(&mut self, now: Time, id: ConnectionId) {
        self.change(id, |connection| {
            connection.active = now;
            connection.step(Event::Opened);
            // It was opened early, and its response has taken another channel.
            if connection.pending == 0 {
                connection.step(Event::Drained);
            }
        });
    }

    pub(super) fn progressed(&mut self, now: Time, id: ConnectionId) {
        self.change(id, |connection| connection.active = now);
    }

    /// Marks the oldest unwritten response as written.
    pub(super) fn written(&mut self, now: Time, id: ConnectionId) {
        self.change(id, |connection| {
            if connection.unwritten > 0 {
                connection.active = now;
                connection.unwritten -= 1;
                let settled = connection.responses.len().saturating_sub(connection.unwritten + UNDER_WAY);
                connection.responses.drain(..settled);
                connection.settle();
            }
        });
    }

    /// Removes a connection; returns its client and its responses that may not have arrived. If it broke, these include
    /// the last that were written.
    pub(super) fn end(
        &mut self,
        id: ConnectionId,
        event: Event,
        broke: bool,
    ) -> Option<(SocketAddr, VecDeque<Id>)> {
        let mut connection = self.all.remove(&id)?;
        connection.step(event);
        if let Some(due) = connection.due {
            self.timers.remove(&(due, id));
        }
        if let Some(its) = self.clients.get_mut(&connection.client) {
            its.retain(|other| *other != id);
            if its.is_empty() {
                self.clients.remove(&connection.client);
            }
        }
        let mut lost = connection.responses;
        if !broke {
            lost.drain(..lost.len().saturating_sub(connection.unwritten));
        }
        Some((connection.client, lost))
    }

    /// Returns a connection whose deadline has passed, and whether it is idle, so that nothing is lost.
    pub(super) fn overdue(&self, now: Time) -> Option<(ConnectionId, bool)> {
        let (due, id) = self.timers.first()?;
        let is_idle = self.all.get(id).is_none_or(|connection| connection.phase == Phase::Idle);
        (*due <= now).then_some((*id, is_idle))
    }

    pub(super) fn next_due(&self) -> Option<Time> {
        self.timers.first().map(|(due, _)| *due)
    }

    /// Changes a connection and its deadline; `false` if it is gone.
    fn change(&mut self, id: ConnectionId, change: impl FnOnce(&mut Connection)) -> bool {
        let Some(connection) = self.all.get_mut(&id) else { return false };
        change(connection);
        let due = connection.deadline(&self.timeout);
        if due != connection.due {
            if let Some(before) = std::mem::replace(&mut connection.due, due) {
                self.timers.remove(&(before, id));
            }
            self.timers.extend(due.map(|due| (due, id)));
        }
        true
    }
}

impl Connection {
    fn step(&mut self, event: Event) {
        self.phase = self.phase.next(event).unwrap_or(self.phase);
    }

    /// Removes a pending response.
    fn settle(&mut self) {
        self.pending = self.pending.saturating_sub(1);
        if self.pending == 0 {
            self.step(Event::Drained);
        }
    }

    fn deadline(&self, timeout: &ConnectionTimeouts) -> Option<Time> {
        match self.phase {
            Phase::Opening => Some(self.active + timeout.open),
            Phase::Idle => Some(self.active + timeout.idle),
            Phase::Busy if self.unwritten > 0 => Some(self.active + timeout.stall),
            Phase::Busy | Phase::Closed => None,
        }
    }
}
