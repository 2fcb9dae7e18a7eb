//! Client on kernel sockets: a fetcher on its connections, and on datagrams if it speaks DHTTP.
//!
//! The time of a page begins just before the `connect` that sends the first SYN, or just before the first datagram. It
//! ends just after the `read` that returned the last byte of the last response. Both are read from CLOCK_MONOTONIC on
//! the client's thread. Later packets (the FINs) do not count. When the page is complete the program ends, and with it
//! the connections that a DHTTP server would keep alive.
//!
//! Production use of DHTTP is for the crate `dhttp`. This client is pinned and adds no time of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;

use dhttp_proto::client::ClientConfig;
use fetch::{
    Break, ConnectionId, DhttpConfig, Ending, Endpoint, Failure, Fetcher, FromWire, Output, PageEvent, Plan,
    Report, TransportCounts, WebConfig, Wire,
};
use linux::clock::Clock;
use nix::poll::{PollFd, PollFlags};
use socket2::Socket;
use wire::{Seed, Time};

use super::datagram_socket;
use super::listeners::listen;
use super::wait::{WaitStrategy, WaitUntil};
use crate::Error;
use crate::profile::Profile;
use crate::socket::{Connection, ReadResult};

/// Result of fetching a page.
#[derive(Debug, Default)]
pub struct FetchedPage {
    /// Time just before the first `connect`; `None` if no connection was opened.
    pub began: Option<Time>,
    /// Time just after the `read` of the last byte of the last response; `None` if it never arrived.
    pub ended: Option<Time>,
    /// Connections opened.
    pub connections: u64,
    /// Time at which each connection was opened, in order.
    pub opened: Vec<Time>,
    /// Reports of the fetcher.
    pub reports: Vec<Report>,
    /// Transport of requests and responses, if by DHTTP.
    pub channels: Option<TransportCounts>,
    /// A sentence with the reason for each object that did not arrive, and for each protocol error of the
    /// server.
    pub failures: Vec<String>,
    /// Sockets of HTTP/3: a browser keeps them, so nothing is unreachable for the servers' last datagrams.
    pub datagrams: Vec<UdpSocket>,
}

impl FetchedPage {
    pub(super) fn note(&mut self, report: Report) {
        match &report.event {
            PageEvent::RequestSent { object: _, connection: _ }
            | PageEvent::HeadReceived { object: _, status: _ } => {}
            PageEvent::ObjectFound { object: _, path: _ }
            | PageEvent::TooManyObjects { max: _ }
            | PageEvent::FirstBytesReceived { object: _ } => {}
            PageEvent::ObjectComplete { object: _, status: _, body: _ } => {}
            // The page is as complete as possible, and the row reports it.
            PageEvent::ObjectFailed { object: _, failure: Failure::Missing } => {}
            PageEvent::ObjectFailed { object, failure } => {
                self.failures.push(format!("object {object} did not arrive: {failure}"));
            }
            PageEvent::Fault { connection: _, fault } => self.failures.push(fault.to_string()),
            PageEvent::Finished { failed: _ } => self.ended = Some(report.at),
        }
        self.reports.push(report);
    }
}

/// A DHTTP client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DhttpClient {
    /// Settings of the state machine.
    pub config: ClientConfig,
    /// Seed of its ids: in a laboratory no one guesses them.
    pub seed: Seed,
}

/// The client's port under DHTTP, UDP and TCP; below the kernel's ephemeral ports.
const CLIENT_PORT: u16 = 20_000;

/// Protocols of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientProtocols {
    /// HTTP/1 in the clear.
    Plain,
    /// TLS and HTTP/2, where origins have them.
    Web(Box<WebConfig>),
    /// DHTTP, of the first server.
    Dhttp(Box<DhttpClient>),
}

/// Fetches a page from `servers`, one for each of the plan's origins, in the calling thread's namespace. Ends when every
/// connection is closed; the plan's deadline bounds it.
pub fn fetch(
    plan: Plan,
    servers: Vec<SocketAddr>,
    profile: &Profile,
    clock: Clock,
    protocols: ClientProtocols,
) -> Result<FetchedPage, Error> {
    let mut channels = None;
    let fetcher = match protocols {
        ClientProtocols::Plain => Fetcher::http1(clock.now(), plan),
        ClientProtocols::Web(config) => {
            channels = config.http3.map(|_| Channels::default());
            Fetcher::web(clock.now(), plan, *config)
        }
        ClientProtocols::Dhttp(dhttp) => {
            let DhttpClient { config: client, seed } = *dhttp;
            channels = servers.first().map(|server| Channels::of_dhttp(*server)).transpose()?;
            let (servers, ids) = (servers.clone(), seed.stream("dhttp-client", 0));
            Fetcher::dhttp(clock.now(), plan, DhttpConfig { client, servers, port: CLIENT_PORT, ids })
        }
    };
    let client = Client {
        servers,
        profile,
        clock,
        fetcher: fetcher
            .map_err(|error| Error::Unsuited { part: "this page".to_owned(), remedy: error.to_string() })?,
        channels,
        connections: BTreeMap::new(),
        accepted: 0,
        lost: Vec::new(),
        waiting: WaitStrategy::new(clock),
        fetched: FetchedPage::default(),
    };
    client.run()
}

struct Client<'a> {
    servers: Vec<SocketAddr>,
    profile: &'a Profile,
    clock: Clock,
    fetcher: Fetcher,
    /// Datagrams, if it speaks DHTTP or HTTP/3.
    channels: Option<Channels>,
    connections: BTreeMap<ConnectionId, Connection>,
    /// Number of connections that the server opened.
    accepted: u32,
    /// Connections that broke while the fetcher was being polled; it is notified afterwards.
    lost: Vec<(ConnectionId, Break)>,
    waiting: WaitStrategy,
    fetched: FetchedPage,
}

/// Sockets of a client that sends datagrams, apart from connections.
#[derive(Default)]
struct Channels {
    /// One for each server.
    datagrams: BTreeMap<Endpoint, UdpSocket>,
    /// For connections that the server opens (DHTTP).
    listener: Option<Socket>,
    /// Servers whose port is unreachable, as ICMP reported; the fetcher is notified afterwards.
    refused: BTreeSet<Endpoint>,
}

/// Ready events.
struct Ready {
    datagrams: Vec<Endpoint>,
    has_connections: bool,
    connections: Vec<(ConnectionId, PollFlags)>,
}

impl Channels {
    fn of_dhttp(server: SocketAddr) -> Result<Self, Error> {
        let local_address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, CLIENT_PORT));
        let mut channels = Self { listener: Some(listen(local_address)?), ..Self::default() };
        channels.open(0, server, CLIENT_PORT)?;
        Ok(channels)
    }

    /// Opens a socket for the datagrams of a server.
    fn open(&mut self, endpoint: Endpoint, server: SocketAddr, port: u16) -> Result<(), Error> {
        let socket = datagram_socket(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)))?;
        // A connected socket reports ICMP's port unreachable.
        socket.connect(server).map_err(Error::io("find a route to the server"))?;
        self.datagrams.insert(endpoint, socket);
        Ok(())
    }

    /// Sends a datagram. A send failure counts as loss: the state machine will resend.
    fn send(&mut self, endpoint: Endpoint, datagram: &[u8]) -> Result<(), Error> {
        match self.datagrams.get(&endpoint).map(|socket| socket.send(datagram)) {
            Some(Err(error)) => self.ignore_nonfatal(endpoint, error),
            Some(Ok(_)) | None => Ok(()),
        }
    }

    /// Reads a datagram of a server; `None` if there is none.
    fn receive(&mut self, endpoint: Endpoint, buffer: &mut [u8]) -> Result<Option<usize>, Error> {
        while let Some(socket) = self.datagrams.get(&endpoint) {
            match socket.recv(buffer) {
                Ok(length) => return Ok(Some(length)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => self.ignore_nonfatal(endpoint, error)?,
            }
        }
        Ok(None)
    }

    /// Ignores errors of a datagram socket that are not fatal.
    fn ignore_nonfatal(&mut self, endpoint: Endpoint, error: io::Error) -> Result<(), Error> {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(()),
            io::ErrorKind::ConnectionRefused => {
                self.refused.insert(endpoint);
                Ok(())
            }
            _another_kind => Err(Error::io("send or read a datagram")(error)),
        }
    }

    /// Accepts a connection; `None` if there is none.
    fn accept(&self) -> Result<Option<Socket>, Error> {
        while let Some(listener) = &self.listener {
            match listener.accept() {
                Ok((socket, _)) => return Ok(Some(socket)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => return Err(Error::io("accept a connection")(error)),
            }
        }
        Ok(None)
    }
}

impl Client<'_> {
    fn run(mut self) -> Result<FetchedPage, Error> {
        let mut buffer = Box::new([0; 65_536]);
        let mut wakes = self.execute_outputs()?;
        while !self.fetcher.is_done() {
            let Ready { datagrams, has_connections, connections } = self.wait(wakes)?;
            for endpoint in datagrams {
                self.receive(endpoint, buffer.as_mut_slice())?;
            }
            if has_connections {
                self.accept()?;
            }
            for (id, flags) in connections {
                self.handle_readiness(id, flags, buffer.as_mut_slice())?;
                self.execute_outputs()?;
            }
            wakes = self.execute_outputs()?;
        }
        self.fetched.channels = self.fetcher.counts();
        if let Some(channels) = self.channels.filter(|channels| channels.listener.is_none()) {
            self.fetched.datagrams.extend(channels.datagrams.into_values());
        }
        Ok(self.fetched)
    }

    /// Executes the fetcher's outputs until there are none.
    fn execute_outputs(&mut self) -> Result<Option<Time>, Error> {
        loop {
            let now = self.clock.now();
            match self.fetcher.poll(now) {
                Output::Wire(wire) => self.transmit(now, wire)?,
                Output::Report(report) => self.fetched.note(report),
                Output::Timeout(wakes) => {
                    let refused = self.channels.as_mut().and_then(|channels| channels.refused.pop_first());
                    if let Some((id, reason)) = self.lost.pop() {
                        self.fetcher.handle(now, FromWire::Broken(id, reason));
                    } else if let Some(endpoint) = refused {
                        self.fetcher.handle(now, FromWire::Unreachable(endpoint));
                    } else {
                        return Ok(wakes);
                    }
                }
            }
        }
    }

    fn transmit(&mut self, now: Time, wire: Wire) -> Result<(), Error> {
        match wire {
            Wire::Open(id, endpoint) => {
                self.fetched.began.get_or_insert(now);
                self.fetched.connections += 1;
                self.fetched.opened.push(now);
                let server = self.servers.get(endpoint).copied();
                let server = server.ok_or_else(|| io::Error::from(io::ErrorKind::AddrNotAvailable));
                match server.and_then(|server| Connection::open(server, self.profile)) {
                    Ok(connection) => drop(self.connections.insert(id, connection)),
                    Err(error) => self.lost.push((id, reason(&error))),
                }
            }
            Wire::Send(id, bytes) => {
                if let Some(connection) = self.connections.get_mut(&id)
                    && let Err(error) = connection.write(bytes)
                {
                    self.lose(id, &error);
                }
            }
            Wire::Datagram(endpoint, datagram) => {
                self.fetched.began.get_or_insert(now);
                let Some(channels) = &mut self.channels else { return Ok(()) };
                if let Some(server) = self.servers.get(endpoint).copied()
                    && !channels.datagrams.contains_key(&endpoint)
                {
                    channels.open(endpoint, server, 0)?;
                    self.fetched.connections += 1;
                    self.fetched.opened.push(now);
                }
                channels.send(endpoint, &datagram)?;
            }
            Wire::Close(id, ending) => match (self.connections.remove(&id), ending) {
                (Some(connection), Ending::Reset) => {
                    connection.abort().map_err(Error::io("reset a connection"))?;
                }
                (Some(_), Ending::Fin) | (None, Ending::Fin | Ending::Reset) => {}
            },
        }
        Ok(())
    }

    /// Reads a server's datagrams.
    fn receive(&mut self, endpoint: Endpoint, buffer: &mut [u8]) -> Result<(), Error> {
        while let Some(channels) = &mut self.channels {
            let Some(length) = channels.receive(endpoint, buffer)? else { break };
            let datagram = buffer.get(..length).unwrap_or_default();
            self.fetcher.handle(self.clock.now(), FromWire::Datagram(endpoint, datagram));
            self.execute_outputs()?;
        }
        Ok(())
    }

    /// Accepts the server's connections.
    fn accept(&mut self) -> Result<(), Error> {
        while let Some(channels) = &self.channels {
            let Some(socket) = channels.accept()? else { break };
            let connection =
                Connection::accepted(socket, self.profile).map_err(Error::io("accept a connection"))?;
            let id = ConnectionId::accepted(self.accepted);
            self.accepted += 1;
            self.fetched.connections += 1;
            self.connections.insert(id, connection);
            // Over DHTTP there is one origin.
            self.fetcher.handle(self.clock.now(), FromWire::Accepted(id, 0));
            self.execute_outputs()?;
        }
        Ok(())
    }

    fn wait(&mut self, wakes: Option<Time>) -> Result<Ready, Error> {
        let mut sockets = Vec::new();
        let datagrams = self.channels.iter().flat_map(|channels| &channels.datagrams);
        sockets.extend(datagrams.clone().map(|(_, socket)| PollFd::new(socket.as_fd(), PollFlags::POLLIN)));
        let listener = self.channels.as_ref().and_then(|channels| channels.listener.as_ref());
        sockets.extend(listener.map(|listener| PollFd::new(listener.as_fd(), PollFlags::POLLIN)));
        let connections = self.connections.values();
        sockets.extend(connections.map(|connection| PollFd::new(connection.as_fd(), connection.interest())));
        self.waiting.wait(&mut sockets, wakes.map_or(WaitUntil::Ready, WaitUntil::About))?;
        let mut flags = sockets.iter().map(|socket| socket.revents().unwrap_or(PollFlags::empty()));
        // A zip takes no more flags than there are sockets, if the sockets come first.
        let datagrams = datagrams.zip(&mut flags).filter(|(_, flags)| !flags.is_empty());
        let datagrams = datagrams.map(|((endpoint, _), _)| *endpoint).collect();
        let has_connections = listener.is_some() && flags.next().is_some_and(|flags| !flags.is_empty());
        let ready = self.connections.keys().copied().zip(flags);
        let connections = ready.filter(|(_, flags)| !flags.is_empty()).collect();
        Ok(Ready { datagrams, has_connections, connections })
    }

    /// Passes a connection's data to the fetcher.
    fn handle_readiness(
        &mut self,
        id: ConnectionId,
        flags: PollFlags,
        buffer: &mut [u8],
    ) -> Result<(), Error> {
        let Some(connection) = self.connections.get_mut(&id) else { return Ok(()) };
        if !connection.is_open() {
            match connection.conclude_opening() {
                Ok(()) => {
                    connection.check(self.profile)?;
                    self.fetcher.handle(self.clock.now(), FromWire::Connected(id));
                }
                Err(error) => self.lose(id, &error),
            }
            return Ok(());
        }
        if flags.contains(PollFlags::POLLOUT)
            && let Err(error) = connection.write_pending()
        {
            self.lose(id, &error);
            return Ok(());
        }
        let arrived = connection.read(buffer);
        let now = self.clock.now();
        match arrived {
            Ok(ReadResult::Nothing) => {}
            Ok(ReadResult::Bytes(length)) => {
                let bytes = buffer.get(..length).unwrap_or_default();
                self.fetcher.handle(now, FromWire::Received(id, bytes));
            }
            Ok(ReadResult::End) => {
                // A fetcher closes only the connections that it has opened itself.
                if id.accepted_number().is_some() {
                    self.connections.remove(&id);
                }
                self.fetcher.handle(now, FromWire::EndOfStream(id));
            }
            Err(error) => self.lose(id, &error),
        }
        Ok(())
    }

    fn lose(&mut self, id: ConnectionId, error: &io::Error) {
        self.connections.remove(&id);
        self.lost.push((id, reason(error)));
    }
}

fn reason(error: &io::Error) -> Break {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => Break::Refused,
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionAborted => {
            Break::Reset
        }
        _another_kind => Break::Unreachable,
    }
}
