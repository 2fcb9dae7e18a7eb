//! A DHTTP user: the client state machine, and the port that the server connects to. Datagrams use [`Ports`], which
//! users share.
//!
//! The protocol is [`dhttp_proto::client`]'s. Requests that it cannot carry go back to the user, for plain HTTP.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

use dhttp_proto::client::{ConnectionId, Failure, Input, Output, Source};
use dhttp_proto::{Client, ClientConfig, Id};
use http1::message::RequestHead;
use wire::Time;

use crate::gauge::{Gauge, GaugeGuard};
use crate::http1_connection::{Outcome, Pending, Response};
use crate::ports::Ports;
use crate::record::{Channel, FailureReason};

/// A user's state machine and port.
#[derive(Debug)]
pub(crate) struct DhttpUser {
    user: u32,
    server: SocketAddr,
    listener: TcpListener,
    client: Client,
    connections: BTreeMap<ConnectionId, (TcpStream, GaugeGuard)>,
    /// Whether a connection waits in the backlog for which this host has no socket.
    lacks_sockets: bool,
    next: u64,
    requested: BTreeMap<Id, PendingExchange>,
}

/// Number of finished requests to remember. Small, as thousands of users each have this many; a late copy of a
/// response is dropped, whether it is known or not.
const REMEMBERED: usize = 32;

#[derive(Debug)]
struct PendingExchange {
    pending: Pending,
    status: u16,
    received: u64,
    channel: Channel,
}

/// Results of a turn of the state machine.
pub(crate) struct TurnResults<'a> {
    /// Ports for outgoing datagrams.
    pub(crate) ports: &'a mut Ports,
    pub(crate) outcomes: Vec<(Outcome, Channel)>,
    /// Requests that fall back to plain HTTP.
    pub(crate) plain: Vec<Pending>,
}

impl DhttpUser {
    /// Binds its port; `secret` and the ids come from unpredictable generators.
    pub(crate) fn bind(
        user: u32,
        server: SocketAddr,
        config: ClientConfig,
        secret: [u8; 16],
    ) -> io::Result<Self> {
        let any: IpAddr = match server {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let listener = TcpListener::bind((any, 0))?;
        listener.set_nonblocking(true)?;
        let config = ClientConfig { remembered: REMEMBERED, ..config };
        let client = Client::new(config, listener.local_addr()?.port(), secret);
        let (connections, requested) = (BTreeMap::new(), BTreeMap::new());
        Ok(Self { user, server, listener, client, connections, lacks_sockets: false, next: 0, requested })
    }

    pub(crate) fn listener(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// Sends a request; returns `false` if it must go over plain HTTP.
    pub(crate) fn send_request(&mut self, now: Time, id: Id, pending: Pending, head: &RequestHead) -> bool {
        let is_accepted = self.client.request(now, id, self.server, head).is_ok();
        if is_accepted {
            self.requested
                .insert(id, PendingExchange { pending, status: 0, received: 0, channel: Channel::Udp });
        }
        is_accepted
    }

    /// Performs the state machine's output; returns its next timeout.
    pub(crate) fn poll(&mut self, now: Time, turn: &mut TurnResults<'_>) -> Option<Time> {
        loop {
            match self.client.poll(now) {
                Output::Send(_, bytes) => turn.ports.put(self.user, &bytes),
                Output::Head(id, source, head) => {
                    if let Some(requested) = self.requested.get_mut(&id) {
                        requested.status = head.status;
                        requested.channel = match source {
                            Source::Datagram(_) => Channel::Udp,
                            Source::Connection(_) => Channel::TcpOpened,
                        };
                    }
                }
                Output::Body(id, bytes) => {
                    if let Some(requested) = self.requested.get_mut(&id) {
                        requested.received += bytes.len() as u64;
                    }
                }
                Output::End(id) => {
                    let Some(PendingExchange { pending, status, received, channel }) =
                        self.requested.remove(&id)
                    else {
                        continue;
                    };
                    let response = Response { status, bytes: received };
                    turn.outcomes.push((Outcome::Done(pending, Ok(response)), channel));
                }
                Output::Fallback(id, _) => {
                    turn.plain.extend(self.requested.remove(&id).map(|requested| requested.pending));
                }
                Output::Failed(id, failure) => {
                    let Some(PendingExchange { pending, channel, .. }) = self.requested.remove(&id) else {
                        continue;
                    };
                    let reason = match failure {
                        Failure::Ended => FailureReason::Closed,
                        Failure::Stalled => FailureReason::Timeout,
                        Failure::Malformed(_) => FailureReason::Garbage,
                    };
                    turn.outcomes.push((Outcome::Done(pending, Err(reason)), channel));
                }
                Output::Close(id) => {
                    self.connections.remove(&id);
                }
                Output::Discarded(..) => {}
                Output::Timeout(next) => return next,
            }
        }
    }

    /// Handles a datagram from this address.
    pub(crate) fn datagram(
        &mut self,
        now: Time,
        from: SocketAddr,
        datagram: &[u8],
        turn: &mut TurnResults<'_>,
    ) -> Option<Time> {
        self.client.handle(now, Input::Datagram(from, datagram));
        self.poll(now, turn)
    }

    /// Handles ICMP's report that nothing listens there.
    pub(crate) fn refused(&mut self, now: Time, turn: &mut TurnResults<'_>) -> Option<Time> {
        self.client.handle(now, Input::Unreachable(self.server));
        self.poll(now, turn)
    }

    /// Accepts a connection that the server opened, and returns its number; `None` when there is none.
    pub(crate) fn accept(
        &mut self,
        now: Time,
        open: &Gauge,
        turn: &mut TurnResults<'_>,
    ) -> Option<(u64, BorrowedFd<'_>)> {
        let accepted = self.listener.accept().inspect_err(|error| {
            let passes = [ErrorKind::WouldBlock, ErrorKind::Interrupted, ErrorKind::ConnectionAborted];
            self.lacks_sockets = !passes.contains(&error.kind());
        });
        let (stream, from) = accepted.ok()?;
        stream.set_nonblocking(true).ok()?;
        let id = ConnectionId(self.next);
        self.next += 1;
        self.client.handle(now, Input::Accepted(id, SocketAddr::new(from.ip().to_canonical(), from.port())));
        self.connections.insert(id, (stream, open.open()));
        self.poll(now, turn);
        self.connections.get(&id).map(|(stream, _)| (id.0, stream.as_fd()))
    }

    /// Whether a connection waits for which this host had no socket: epoll would report it forever.
    pub(crate) fn lacks_sockets(&self) -> bool {
        self.lacks_sockets
    }

    /// Accepts again: there may be a free socket now.
    pub(crate) fn try_again(&mut self) {
        self.lacks_sockets = false;
    }

    /// Reads from a connection.
    pub(crate) fn read(&mut self, now: Time, number: u64, buffer: &mut [u8], turn: &mut TurnResults<'_>) {
        let id = ConnectionId(number);
        let Some((stream, _)) = self.connections.get_mut(&id) else { return };
        match stream.read(buffer) {
            Ok(length) if length > 0 => {
                let bytes = buffer.get(..length).unwrap_or_default();
                self.client.handle(now, Input::Received(id, bytes));
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return,
            Ok(_) | Err(_) => {
                self.connections.remove(&id);
                self.client.handle(now, Input::Ended(id));
            }
        }
        self.poll(now, turn);
    }

    /// Times out requests sent before `sent_before`.
    pub(crate) fn expire_requests(&mut self, sent_before: Time, turn: &mut TurnResults<'_>) {
        let late = self.requested.iter().filter(|(_, requested)| requested.pending.sent < sent_before);
        let late: Vec<Id> = late.map(|(id, _)| *id).collect();
        for id in late {
            self.client.cancel(id);
            let requested = self.requested.remove(&id);
            let failed = |PendingExchange { pending, channel, .. }: PendingExchange| {
                (Outcome::Done(pending, Err(FailureReason::Timeout)), channel)
            };
            turn.outcomes.extend(requested.map(failed));
        }
    }
}
