//! Connections that the server opens to its clients: they only send responses.
//!
//! Not the choice of a connection for a response: the state machine makes it, and gets each connection's events.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpStream};

use dhttp_proto::server::{ConnectionId, Input};
use dhttp_proto::{Id, Server as Machine};
use wire::Time;

use super::queue::Queue;
use crate::batch::Endpoints;
use crate::handler::Body;
use crate::readiness::{Interest, Poller};
use crate::socket;

/// All of them, in one thread.
#[derive(Debug, Default)]
pub(super) struct OpenedConnections {
    all: BTreeMap<ConnectionId, OpenedConnection>,
    /// Clients that could not be connected, and their request ids.
    unreached: Vec<(Endpoints, Id)>,
}

#[derive(Debug)]
struct OpenedConnection {
    stream: TcpStream,
    queue: Queue,
    is_established: bool,
    /// Pending requests until it is open.
    requested: Vec<(Endpoints, Id)>,
}

/// Events watched during the whole lifetime of a connection: edge-triggered, one event each time that buffer is available
/// again.
const WATCHED: Interest = Interest::OUT.union(Interest::IN).union(Interest::RDHUP).union(Interest::ET);

/// Maximum number of queued pieces (three for a response); beyond it the connection is broken.
const MAX_WAITING: usize = 3 * 1_024;

impl OpenedConnections {
    /// Begins to connect.
    ///
    /// # Errors
    /// If the system refuses immediately, for lack of descriptors or of a route; report it to the state machine.
    pub(super) fn open(
        &mut self,
        poller: &Poller,
        id: ConnectionId,
        (local, client): (SocketAddr, SocketAddr),
        fast_open: bool,
    ) -> io::Result<()> {
        let stream: TcpStream = socket::connect(local, client, fast_open)?.into();
        poller.add(&stream, token(id), WATCHED)?;
        let opened = OpenedConnection {
            stream,
            queue: Queue::default(),
            is_established: false,
            requested: Vec::new(),
        };
        tracing::debug!(%client, connection = id.0, "connecting to a client");
        self.all.insert(id, opened);
        Ok(())
    }

    /// Queues a response: id and header section, and a body. It is written immediately where possible.
    pub(super) fn send(
        &mut self,
        poller: &Poller,
        now: Time,
        machine: &mut Machine,
        id: ConnectionId,
        requested: (Endpoints, Id),
        (head, body): (Vec<u8>, Option<&Body>),
    ) {
        let Some(opened) = self.all.get_mut(&id) else { return machine.handle(now, Input::Broken(id)) };
        if !opened.is_established {
            opened.requested.push(requested);
        }
        match body {
            // A SYN may carry data, but only what is written first: of a file only the header section, unless part of it is
            // read now.
            Some(body) if !opened.is_established => opened.queue.push_begun(head, body),
            Some(body) => {
                opened.queue.push_bytes(head);
                opened.queue.push_body(body);
            }
            None => opened.queue.push_bytes(head),
        }
        opened.queue.push_end();
        if opened.queue.len() > MAX_WAITING {
            self.end(id, true);
            return machine.handle(now, Input::Broken(id));
        }
        if opened.is_established {
            self.write(poller, now, machine, id);
        }
    }

    /// Handles the events of a connection.
    pub(super) fn ready(
        &mut self,
        poller: &Poller,
        now: Time,
        machine: &mut Machine,
        id: ConnectionId,
        events: Interest,
    ) {
        let Some(opened) = self.all.get_mut(&id) else { return };
        if !opened.is_established {
            if events.intersects(Interest::ERR) {
                tracing::debug!(connection = id.0, "client unreachable");
                self.end(id, false);
                return machine.handle(now, Input::Broken(id));
            }
            if !events.intersects(Interest::OUT) {
                return;
            }
            opened.is_established = true;
            opened.requested = Vec::new();
            machine.handle(now, Input::Opened(id));
        }
        if events.intersects(Interest::ERR | Interest::HUP) {
            self.end(id, false);
            return machine.handle(now, Input::Broken(id));
        }
        if events.intersects(Interest::IN | Interest::RDHUP) {
            // A client sends nothing here: it has closed, or violates the protocol.
            let is_closed = events.intersects(Interest::RDHUP);
            let is_done = opened.queue.is_empty();
            self.end(id, !is_closed);
            return machine
                .handle(now, if is_closed && is_done { Input::Closed(id) } else { Input::Broken(id) });
        }
        self.write(poller, now, machine, id);
    }

    /// Closes a connection that the state machine no longer needs, with a reset if data is missing.
    pub(super) fn end(&mut self, id: ConnectionId, with_reset: bool) {
        // Closing a descriptor ends its registration.
        let Some(opened) = self.all.remove(&id) else { return };
        if with_reset {
            socket::reset_on_close(&opened.stream);
        }
        self.unreached.extend(opened.requested);
    }

    /// Takes the clients that could not be connected since the last call. Most likely a NAT or firewall without DHTTP is in
    /// front of them. They should use plain HTTP now, without waiting for their own timeout.
    pub(super) fn take_unreached(&mut self) -> Vec<(Endpoints, Id)> {
        std::mem::take(&mut self.unreached)
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether all queues are empty.
    pub(super) fn are_done(&self) -> bool {
        self.all.values().all(|opened| opened.queue.is_empty())
    }

    fn write(&mut self, poller: &Poller, now: Time, machine: &mut Machine, id: ConnectionId) {
        let Some(opened) = self.all.get_mut(&id) else { return };
        let Ok(written) = opened.queue.write(&opened.stream) else {
            self.end(id, true);
            return machine.handle(now, Input::Broken(id));
        };
        if written.bytes > 0 {
            machine.handle(now, Input::Progressed(id));
        }
        for _ in 0..written.responses {
            machine.handle(now, Input::Written(id));
        }
        if !opened.queue.is_empty() && !written.is_full {
            // Re-arms the event, so that other connections have their turn first.
            poller.modify(&opened.stream, token(id), WATCHED);
        }
    }
}

/// Returns the token of a connection, distinguished from others by the lowest bit.
const fn token(ConnectionId(id): ConnectionId) -> u64 {
    id << 1 | 1
}
