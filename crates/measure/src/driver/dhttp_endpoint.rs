//! DHTTP part of the laboratory's server: a UDP socket, and the connections that it opens.
//!
//! Production use is for the crate `dhttp`. This server is pinned, and takes the scenario's processing time
//! for each request, to the microsecond.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;

use dhttp_proto::server::{
    ConnectionId, Input, Output, Reply, Secrets, Ticket, Transmit, Verdict, WholeResponse,
};
use dhttp_proto::{Key, Server as Machine, ServerConfig};
use http1::message::RequestHead;
use http1::site::Site;
use nix::poll::{PollFd, PollFlags};
use wire::{Duration, Seed, Time};

use super::datagram_socket;
use crate::Error;
use crate::profile::Profile;
use crate::socket::{Connection, ReadResult};

/// A DHTTP server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DhttpServer {
    /// Settings of the state machine.
    pub config: ServerConfig,
    /// Seed of its keys: in a laboratory no one guesses them.
    pub seed: Seed,
}

/// The socket, the state machine, and its work in progress.
#[derive(Debug)]
pub(super) struct DhttpEndpoint {
    datagrams: UdpSocket,
    machine: Machine,
    open_connections: BTreeMap<ConnectionId, ClientConnection>,
    /// Requests that wait for their processing time, by its end.
    due: BTreeMap<(Time, u64), QueuedRequest>,
    serial: u64,
    /// Next deadline of the state machine.
    wakes: Option<Time>,
}

/// A request to be served.
#[derive(Debug)]
struct QueuedRequest {
    ticket: Ticket,
    head: RequestHead,
}

/// A connection to a client.
#[derive(Debug)]
struct ClientConnection {
    connection: Connection,
    /// Responses that the state machine considers incomplete.
    responses: usize,
}

impl DhttpEndpoint {
    pub(super) fn open(address: SocketAddr, dhttp: DhttpServer) -> Result<Self, Error> {
        let datagrams = datagram_socket(address)?;
        let DhttpServer { config, seed } = dhttp;
        let mut random = seed.stream("dhttp-server", 0);
        let mut secret = || {
            let (high, low) = (random.next_u64(), random.next_u64());
            (u128::from(high) << 64 | u128::from(low)).to_be_bytes()
        };
        let secrets = Secrets { token: Key { generation: 1, secret: secret() }, tables: secret() };
        let machine = Machine::new(config, secrets);
        let (open_connections, due) = (BTreeMap::new(), BTreeMap::new());
        Ok(Self { datagrams, machine, open_connections, due, serial: 0, wakes: None })
    }

    /// Sockets to wait for: the datagram socket first, then every connection in order.
    pub(super) fn sockets(&self) -> impl Iterator<Item = PollFd<'_>> {
        let open_connections =
            self.open_connections.values().map(|client_connection| &client_connection.connection);
        let open_connections =
            open_connections.map(|connection| PollFd::new(connection.as_fd(), connection.interest()));
        std::iter::once(PollFd::new(self.datagrams.as_fd(), PollFlags::POLLIN)).chain(open_connections)
    }

    /// Time of the next response.
    pub(super) fn next_response(&self) -> Option<Time> {
        self.due.keys().next().map(|(due, _)| *due)
    }

    /// Next deadline of the state machine.
    pub(super) const fn wakes(&self) -> Option<Time> {
        self.wakes
    }

    /// The connections, in the order of [`DhttpEndpoint::sockets`].
    pub(super) fn connections(&self) -> impl Iterator<Item = ConnectionId> {
        self.open_connections.keys().copied()
    }

    /// Reads pending requests; each is served after `processing`.
    pub(super) fn receive(
        &mut self,
        now: Time,
        processing: Duration,
        buffer: &mut [u8],
    ) -> Result<(), Error> {
        loop {
            let (length, from) = match self.datagrams.recv_from(buffer) {
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // The client is gone: ICMP's port unreachable for an earlier response.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => continue,
                Err(error) => return Err(Error::io("read a datagram")(error)),
            };
            match self.machine.receive(now, from, buffer.get(..length).unwrap_or_default()) {
                Verdict::Serve(ticket, head) => {
                    let head = head.to_head();
                    self.machine.defer(&ticket);
                    self.due.insert((now + processing, self.serial), QueuedRequest { ticket, head });
                    self.serial += 1;
                }
                Verdict::Refer(message) => self.send(message.as_bytes(), from)?,
                Verdict::Ignore(_) => {}
            }
        }
    }

    /// Responds to requests whose processing time is over.
    pub(super) fn respond(&mut self, now: Time, site: &Site, profile: &Profile) -> Result<(), Error> {
        while let Some(entry) = self.due.first_entry().filter(|entry| entry.key().0 <= now) {
            let QueuedRequest { ticket, head } = entry.remove();
            let response = site.respond(&head);
            let Ok(response) = WholeResponse::new(&response, &head.method) else {
                // The site returns whole objects and final statuses only.
                self.machine.abandon(ticket);
                continue;
            };
            let mut transmits: Vec<Transmit> = Vec::new();
            if let Reply::Stream(stream) = self.machine.respond(now, ticket, &response, &mut transmits) {
                let (id, client_address) = (stream.connection, stream.opens);
                match client_address.map(|client| Connection::open(client, profile)).transpose() {
                    Ok(opened) => {
                        let client_connection =
                            opened.map(|connection| ClientConnection { connection, responses: 0 });
                        self.open_connections
                            .extend(client_connection.map(|client_connection| (id, client_connection)));
                        self.carry(now, id, stream.message(&response));
                    }
                    Err(_) => self.machine.handle(now, Input::Broken(id)),
                }
            }
            for Transmit { destination, contents } in transmits {
                self.send(&contents, destination)?;
            }
        }
        Ok(())
    }

    /// Passes a connection's events to the state machine.
    pub(super) fn handle_readiness(
        &mut self,
        now: Time,
        id: ConnectionId,
        flags: PollFlags,
        profile: &Profile,
    ) -> Result<(), Error> {
        let Some(client_connection) = self.open_connections.get_mut(&id) else { return Ok(()) };
        if !client_connection.connection.is_open() {
            if client_connection.connection.conclude_opening().is_err() {
                self.end(now, id, Input::Broken(id));
                return Ok(());
            }
            client_connection.connection.check(profile)?;
            self.machine.handle(now, Input::Opened(id));
            self.write(now, id);
            return Ok(());
        }
        if flags.contains(PollFlags::POLLOUT) {
            self.write(now, id);
        }
        let Some(client_connection) = self.open_connections.get(&id) else { return Ok(()) };
        if flags.intersects(PollFlags::POLLIN | PollFlags::POLLHUP | PollFlags::POLLERR) {
            // Clients send nothing there: any data is discarded.
            match client_connection.connection.read(&mut [0; 1_024]) {
                Ok(ReadResult::Nothing | ReadResult::Bytes(_)) => {}
                Ok(ReadResult::End) => self.end(now, id, Input::Closed(id)),
                Err(_) => self.end(now, id, Input::Broken(id)),
            }
        }
        Ok(())
    }

    /// Executes the state machine's outputs until it waits.
    pub(super) fn execute_outputs(&mut self, now: Time) -> Result<(), Error> {
        loop {
            match self.machine.poll(now) {
                Output::Close(id) => {
                    self.open_connections.remove(&id);
                }
                Output::Abort(id) => {
                    if let Some(client_connection) = self.open_connections.remove(&id) {
                        client_connection.connection.abort().map_err(Error::io("reset a connection"))?;
                    }
                }
                Output::Timeout(wakes) => {
                    self.wakes = wakes;
                    return Ok(());
                }
            }
        }
    }

    fn carry(&mut self, now: Time, id: ConnectionId, response: Vec<u8>) {
        let Some(client_connection) = self.open_connections.get_mut(&id) else { return };
        client_connection.responses += 1;
        match client_connection.connection.write(response) {
            Ok(()) => self.settle(now, id),
            Err(_) => self.end(now, id, Input::Broken(id)),
        }
    }

    fn write(&mut self, now: Time, id: ConnectionId) {
        let Some(client_connection) = self.open_connections.get_mut(&id) else { return };
        match client_connection.connection.write_pending() {
            Ok(()) => {
                self.machine.handle(now, Input::Progressed(id));
                self.settle(now, id);
            }
            Err(_) => self.end(now, id, Input::Broken(id)),
        }
    }

    /// Reports the responses that the kernel has accepted completely.
    fn settle(&mut self, now: Time, id: ConnectionId) {
        let Some(client_connection) = self.open_connections.get_mut(&id) else { return };
        let pending_writes = client_connection.connection.writes();
        for _ in pending_writes..client_connection.responses {
            self.machine.handle(now, Input::Written(id));
        }
        client_connection.responses = pending_writes;
    }

    fn end(&mut self, now: Time, id: ConnectionId, input: Input) {
        self.open_connections.remove(&id);
        self.machine.handle(now, input);
    }

    /// Sends a datagram. A send failure counts as loss: the client will resend.
    fn send(&self, datagram: &[u8], to: SocketAddr) -> Result<(), Error> {
        match self.datagrams.send_to(datagram, to) {
            Ok(_) => Ok(()),
            Err(error)
                if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::ConnectionRefused) =>
            {
                Ok(())
            }
            Err(error) => Err(Error::io("send a datagram")(error)),
        }
    }
}
