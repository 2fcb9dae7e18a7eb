//! Connections that the server opens to its clients: answers go out, nothing comes in.
//!
//! Not which answer goes where: the machine says that, and is told how each connection fares.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;

use dhttp_proto::server::{ConnectionId, Input};
use dhttp_proto::{Id, Server as Machine};
use rustix::event::epoll::{self, EventData, EventFlags};
use wire::Time;

use super::queue::Queue;
use crate::batch::Endpoints;
use crate::handler::Body;
use crate::socket;

/// All of them, in one thread.
#[derive(Debug, Default)]
pub(super) struct OpenedConnections {
    all: BTreeMap<ConnectionId, OpenedConnection>,
    /// Those whose connection could not be had, and what they asked.
    unreached: Vec<(Endpoints, Id)>,
}

#[derive(Debug)]
struct OpenedConnection {
    stream: TcpStream,
    queue: Queue,
    is_there: bool,
    /// Requests that wait for it to open.
    requested: Vec<(Endpoints, Id)>,
}

/// Events watched on all of them, from first to last: one event each time that there is space again.
const WATCHED: EventFlags =
    EventFlags::OUT.union(EventFlags::IN).union(EventFlags::RDHUP).union(EventFlags::ET);

/// A client that lets so much wait has had its connection: pieces, three for an answer.
const MAX_WAITING: usize = 3 * 1_024;

impl OpenedConnections {
    /// Begins to connect.
    ///
    /// # Errors
    /// If the system refuses at once, for want of descriptors or of a way; tell the machine.
    pub(super) fn open(
        &mut self,
        epoll: &OwnedFd,
        id: ConnectionId,
        (local, client): (SocketAddr, SocketAddr),
        fast_open: bool,
    ) -> io::Result<()> {
        let stream: TcpStream = socket::connect(local, client, fast_open)?.into();
        epoll::add(epoll, &stream, data(id), WATCHED)?;
        let opened =
            OpenedConnection { stream, queue: Queue::default(), is_there: false, requested: Vec::new() };
        tracing::debug!(%client, connection = id.0, "connecting to a client");
        self.all.insert(id, opened);
        Ok(())
    }

    /// An answer goes this way: id and head, and a body. It is written at once where that is possible.
    pub(super) fn send(
        &mut self,
        epoll: &OwnedFd,
        now: Time,
        machine: &mut Machine,
        id: ConnectionId,
        requested: (Endpoints, Id),
        (head, body): (Vec<u8>, Option<&Body>),
    ) {
        let Some(opened) = self.all.get_mut(&id) else { return machine.handle(now, Input::Broken(id)) };
        if !opened.is_there {
            opened.requested.push(requested);
        }
        match body {
            // A SYN may carry it, and takes what is written first: of a file the head alone, unless some is read.
            Some(body) if !opened.is_there => opened.queue.push_begun(head, body),
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
        if opened.is_there {
            self.write(epoll, now, machine, id);
        }
    }

    /// A connection is ready for something.
    pub(super) fn ready(
        &mut self,
        epoll: &OwnedFd,
        now: Time,
        machine: &mut Machine,
        id: ConnectionId,
        events: EventFlags,
    ) {
        let Some(opened) = self.all.get_mut(&id) else { return };
        if !opened.is_there {
            if events.intersects(EventFlags::ERR) {
                tracing::debug!(connection = id.0, "a client is not to be reached");
                self.end(id, false);
                return machine.handle(now, Input::Broken(id));
            }
            if !events.intersects(EventFlags::OUT) {
                return;
            }
            opened.is_there = true;
            opened.requested = Vec::new();
            machine.handle(now, Input::Opened(id));
        }
        if events.intersects(EventFlags::ERR | EventFlags::HUP) {
            self.end(id, false);
            return machine.handle(now, Input::Broken(id));
        }
        if events.intersects(EventFlags::IN | EventFlags::RDHUP) {
            // A client says nothing here: it has closed, or breaks the protocol.
            let is_closed = events.intersects(EventFlags::RDHUP);
            let is_done = opened.queue.is_empty();
            self.end(id, !is_closed);
            return machine
                .handle(now, if is_closed && is_done { Input::Closed(id) } else { Input::Broken(id) });
        }
        self.write(epoll, now, machine, id);
    }

    /// Closes a connection that the machine has done with, with a reset if something is missing.
    pub(super) fn end(&mut self, id: ConnectionId, with_reset: bool) {
        // Closing takes it off the list of those that are watched.
        let Some(opened) = self.all.remove(&id) else { return };
        if with_reset {
            socket::reset_on_close(&opened.stream);
        }
        self.unreached.extend(opened.requested);
    }

    /// Those whose connection could not be had since this was asked last. A router that knows nothing of DHTTP stands
    /// before them, most likely: they should ask over plain HTTP, and not wait until they do so by themselves.
    pub(super) fn take_unreached(&mut self) -> Vec<(Endpoints, Id)> {
        std::mem::take(&mut self.unreached)
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether nothing waits anywhere.
    pub(super) fn are_done(&self) -> bool {
        self.all.values().all(|opened| opened.queue.is_empty())
    }

    fn write(&mut self, epoll: &OwnedFd, now: Time, machine: &mut Machine, id: ConnectionId) {
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
            // Others have their turn now; it is told again that there is room. It is watched already, so that this
            // cannot fail for want of anything.
            let _ = epoll::modify(epoll, &opened.stream, data(id), WATCHED);
        }
    }
}

/// Encodes events of these connections, distinguished from others by the lowest bit.
fn data(ConnectionId(id): ConnectionId) -> EventData {
    EventData::new_u64(id << 1 | 1)
}
