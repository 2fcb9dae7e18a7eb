//! The part of a client that handles the connections that servers open to it.
//!
//! An unknown id closes a connection without a reply: nothing after it can be trusted. A header section must be
//! complete within its timeout; bytes of it do not count as progress. Not a listener: the driver accepts connections.

use core::net::{IpAddr, SocketAddr};

use wire::Time;

use super::phase::{Event, Phase};
use super::stream::{Stream, StreamEvent};
use super::timing::ReceivedTraffic;
use super::{Client, ConnectionId, Discard, Failure, Key, Output, Source, TimerTarget, same_host};
use crate::Id;

/// An open connection.
#[derive(Debug)]
pub(super) struct Connection {
    peer: SocketAddr,
    stream: Stream,
    /// Time of its timeout; `None` while it is not read.
    due: Option<Time>,
    /// When it was accepted, and the traffic from the server by then; `None` once the response has begun for which it
    /// was opened.
    opened: Option<(Time, ReceivedTraffic)>,
}

/// A response that is arriving on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IncomingResponse {
    pub(super) key: Key,
    pub(super) id: Id,
    pub(super) is_wanted: bool,
}

/// Size of a SYN without options (RFC 9293, section 3.1).
const SYN_BYTES: usize = 40;

impl Connection {
    pub(super) fn response(&self) -> Option<IncomingResponse> {
        self.stream.respond()
    }
}

impl Client {
    pub(super) fn accept(&mut self, now: Time, id: ConnectionId, peer: SocketAddr) {
        let reason = if !self.may_respond(peer.ip(), None) {
            Discard::Stranger
        } else if self.connections.len() >= self.config.connections {
            Discard::Crowded
        } else {
            // A peer that opens a connection is expected to send: the stall timeout applies.
            let (due, stream) = (now + self.config.stall, Stream::new(self.config.limits));
            // The SYN counts as received traffic: the response may be queued behind data on this connection.
            self.servers.count_received(now, peer.ip(), SYN_BYTES, true);
            let opened = Some((now, self.servers.received_from_host(peer.ip())));
            self.connections.insert(id, Connection { peer, stream, due: None, opened });
            self.set_timeout(id, Some(due));
            return;
        };
        self.outputs.extend([Output::Discarded(peer, reason), Output::Close(id)]);
    }

    pub(super) fn received(&mut self, now: Time, id: ConnectionId, mut bytes: &[u8]) {
        let Some(mut connection) = self.take(id) else { return };
        self.servers.count_received(now, connection.peer.ip(), bytes.len(), true);
        let mut has_progressed = false;
        loop {
            match connection.stream.read(&mut bytes) {
                Ok(Some(step)) => match self.stream_step(now, &mut connection, step) {
                    Ok(()) => has_progressed = true,
                    Err(reason) => {
                        self.outputs.extend([Output::Discarded(connection.peer, reason), Output::Close(id)]);
                        return;
                    }
                },
                Ok(None) => break,
                Err(reason) => {
                    self.abort_response(now, &connection, Failure::Malformed(reason));
                    self.outputs.extend([
                        Output::Discarded(connection.peer, Discard::Malformed(reason)),
                        Output::Close(id),
                    ]);
                    return;
                }
            }
        }
        let before = connection.due.take();
        let due = if connection.stream.is_between_responses() {
            Some(now + self.config.idle)
        } else if has_progressed {
            Some(now + self.config.stall)
        } else {
            before
        };
        self.connections.insert(id, connection);
        self.set_timeout(id, due);
    }

    /// Stops the timer of a connection that is not read.
    pub(super) fn pause(&mut self, id: ConnectionId) {
        self.set_timeout(id, None);
    }

    /// Starts it again.
    pub(super) fn resume(&mut self, now: Time, id: ConnectionId) {
        self.set_timeout(id, Some(now + self.config.stall));
    }

    /// Whether a connection from this host is not read.
    pub(super) fn has_paused(&self, host: IpAddr) -> bool {
        self.connections.values().any(|one| one.due.is_none() && same_host(one.peer.ip(), host))
    }

    fn set_timeout(&mut self, id: ConnectionId, due: Option<Time>) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let before = std::mem::replace(&mut connection.due, due);
        if let Some(before) = before {
            self.timers.remove(&(before, TimerTarget::Connection(id)));
        }
        if let Some(due) = due {
            self.timers.insert((due, TimerTarget::Connection(id)));
        }
    }

    /// Removes a connection and its timer.
    fn take(&mut self, id: ConnectionId) -> Option<Connection> {
        let connection = self.connections.remove(&id)?;
        if let Some(due) = connection.due {
            self.timers.remove(&(due, TimerTarget::Connection(id)));
        }
        Some(connection)
    }

    fn stream_step(
        &mut self,
        now: Time,
        connection: &mut Connection,
        step: StreamEvent<'_>,
    ) -> Result<(), Discard> {
        match step {
            StreamEvent::Id(id) => {
                let key = self.find(id).ok_or(Discard::Unknown)?;
                let request = self.requests.get(&key).ok_or(Discard::Unknown)?;
                if !self.may_respond(connection.peer.ip(), Some(request)) {
                    return Err(Discard::Stranger);
                }
                let method = request.method.clone();
                if same_host(request.server.ip(), connection.peer.ip()) {
                    let (timer, was_sent_once) = (request.timer, request.resends == 0);
                    let server = self.servers.find_or_insert(request.server);
                    server.received.by_connection = server.received.by_connection.max(timer.began);
                    // The connection arrives one round trip after a request that was sent once, or two where an
                    // acknowledgement must come first; never earlier.
                    if let Some((at, received)) = connection.opened.take()
                        && was_sent_once
                        && timer.was_quiet(received, 0)
                    {
                        server.round_trips.measured(at.since(timer.began));
                    }
                }
                let is_wanted = self.step(key, Event::Claim);
                connection.stream.expect(IncomingResponse { key, id, is_wanted }, method);
            }
            StreamEvent::Head(response, head) => {
                if response.is_wanted && self.takes_aside(now, response, &head) {
                    return Ok(());
                }
                if response.is_wanted && self.step(response.key, Event::Head) {
                    if let Some(server) = self.requests.get(&response.key).map(|request| request.server) {
                        let known = self.servers.find_or_insert(server);
                        if same_host(server.ip(), connection.peer.ip()) {
                            known.learn_token_of(now, &head);
                        } else {
                            known.learn_cache(&head);
                        }
                    }
                    self.outputs.push_back(Output::Head(
                        response.id,
                        Source::Connection(connection.peer),
                        head,
                    ));
                }
            }
            StreamEvent::Body(response, part) => {
                if response.is_wanted {
                    self.put_aside(response.key, part);
                }
                if response.is_wanted && self.phase(response.key) == Some(Phase::Arriving) {
                    self.outputs.push_back(Output::Body(response.id, part.to_vec()));
                }
            }
            StreamEvent::End(response) => {
                if response.is_wanted && self.end_aside(now, response, connection.peer) {
                    return Ok(());
                }
                if response.is_wanted && self.step(response.key, Event::Complete) {
                    self.outputs.push_back(Output::End(response.id));
                }
            }
        }
        Ok(())
    }

    /// Removes a connection that was closed, broke or stalled.
    pub(super) fn handle_loss(&mut self, now: Time, id: ConnectionId, reason: Failure) {
        let Some(connection) = self.take(id) else { return };
        self.abort_response(now, &connection, reason);
    }

    /// Resends the request of a response that broke off, if nothing of it was delivered; otherwise reports a failure.
    fn abort_response(&mut self, now: Time, connection: &Connection, reason: Failure) {
        let Some(IncomingResponse { key, id, is_wanted: true }) = connection.stream.respond() else { return };
        if !self.step(key, Event::Broken) {
            return;
        }
        match self.phase(key) {
            Some(Phase::Waiting | Phase::Gathering) => {
                if let Some(request) = self.requests.get_mut(&key) {
                    request.timer.end();
                    request.due = Some(now);
                    self.timers.insert((now, TimerTarget::Request(key)));
                }
            }
            Some(Phase::Claimed | Phase::Arriving | Phase::Over) | None => {
                self.outputs.push_back(Output::Failed(id, reason));
            }
        }
    }
}
