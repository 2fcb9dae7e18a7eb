//! Client on kernel sockets: a fetcher on its connections, and on datagrams if it speaks DHTTP.
//!
//! The time of a page begins just before the `connect` that sends the first SYN, or just before the first datagram. It
//! ends just after the `read` that returned the last byte of the last response. Both are read from CLOCK_MONOTONIC on
//! the client's thread. Later packets (the FINs) do not count. When the page is complete the program ends, and with it
//! the connections that a DHTTP server would keep alive.
//!
//! Production use of DHTTP is for the crate `dhttp`. This client is pinned and adds no time of its own.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;

use dhttp_proto::client::ClientConfig;
use fetch::{
    Break, ConnectionId, DhttpConfig, Ending, Failure, Fetcher, FromWire, Output, PageEvent, Plan, Report,
    TransportCounts, WebConfig, Wire,
};
use linux::clock::Clock;
use nix::poll::{PollFd, PollFlags};
use socket2::Socket;
use wire::{Seed, Time};

use super::server::listen;
use super::wait::{WaitStrategy, WaitUntil};
use crate::Error;
use crate::profile::Profile;
use crate::socket::{Connection, ReadResult};

/// Result of fetching a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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

/// The only origin of a plan over DHTTP.
const ORIGIN: fetch::Endpoint = 0;

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
        ClientProtocols::Web(config) => Fetcher::web(clock.now(), plan, *config),
        ClientProtocols::Dhttp(dhttp) => {
            let DhttpClient { config: client, seed } = *dhttp;
            channels = servers.first().map(|server| Channels::open(*server)).transpose()?;
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
    /// DHTTP's channels, if it speaks DHTTP.
    channels: Option<Channels>,
    connections: BTreeMap<ConnectionId, Connection>,
    /// Number of connections that the server opened.
    accepted: u32,
    /// Connections that broke while the fetcher was being polled; it is notified afterwards.
    lost: Vec<(ConnectionId, Break)>,
    waiting: WaitStrategy,
    fetched: FetchedPage,
}

/// Sockets of a DHTTP client, apart from connections.
struct Channels {
    datagrams: UdpSocket,
    listener: Socket,
    /// ICMP reported that the port is unreachable; the fetcher is notified afterwards.
    is_refused: bool,
}

/// Ready events.
struct Ready {
    has_datagrams: bool,
    has_connections: bool,
    connections: Vec<(ConnectionId, PollFlags)>,
}

impl Channels {
    fn open(server: SocketAddr) -> Result<Self, Error> {
        let local_address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, CLIENT_PORT));
        let datagrams = UdpSocket::bind(local_address)
            .map_err(Error::io(format!("receive datagrams at {local_address}")))?;
        // A connected socket reports ICMP's port unreachable.
        datagrams.connect(server).map_err(Error::io("find a route to the server"))?;
        datagrams.set_nonblocking(true).map_err(Error::io("read datagrams without waiting"))?;
        Ok(Self { datagrams, listener: listen(local_address)?, is_refused: false })
    }

    /// Sends a datagram. A send failure counts as loss: the state machine will resend.
    fn send(&mut self, datagram: &[u8]) -> Result<(), Error> {
        match self.datagrams.send(datagram) {
            Ok(_) => Ok(()),
            Err(error) => self.ignore_nonfatal(error),
        }
    }

    /// Reads a datagram; `None` if there is none.
    fn receive(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, Error> {
        loop {
            match self.datagrams.recv(buffer) {
                Ok(length) => return Ok(Some(length)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) => self.ignore_nonfatal(error)?,
            }
        }
    }

    /// Ignores errors of the datagram socket that are not fatal.
    fn ignore_nonfatal(&mut self, error: io::Error) -> Result<(), Error> {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(()),
            io::ErrorKind::ConnectionRefused => {
                self.is_refused = true;
                Ok(())
            }
            _another_kind => Err(Error::io("send or read a datagram")(error)),
        }
    }

    /// Accepts a connection; `None` if there is none.
    fn accept(&self) -> Result<Option<Socket>, Error> {
        loop {
            match self.listener.accept() {
                Ok((socket, _)) => return Ok(Some(socket)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => return Err(Error::io("accept a connection")(error)),
            }
        }
    }
}

impl Client<'_> {
    fn run(mut self) -> Result<FetchedPage, Error> {
        let mut buffer = Box::new([0; 65_536]);
        let mut wakes = self.execute_outputs()?;
        while !self.fetcher.is_done() {
            let Ready { has_datagrams, has_connections, connections } = self.wait(wakes)?;
            if has_datagrams {
                self.receive(buffer.as_mut_slice())?;
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
                    let is_refused = |channels: &mut Channels| std::mem::take(&mut channels.is_refused);
                    if let Some((id, reason)) = self.lost.pop() {
                        self.fetcher.handle(now, FromWire::Broken(id, reason));
                    } else if self.channels.as_mut().is_some_and(is_refused) {
                        self.fetcher.handle(now, FromWire::Unreachable(ORIGIN));
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
            Wire::Datagram(_, datagram) => {
                self.fetched.began.get_or_insert(now);
                if let Some(channels) = &mut self.channels {
                    channels.send(&datagram)?;
                }
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

    /// Reads the server's datagrams.
    fn receive(&mut self, buffer: &mut [u8]) -> Result<(), Error> {
        while let Some(channels) = &mut self.channels {
            let Some(length) = channels.receive(buffer)? else { break };
            let datagram = buffer.get(..length).unwrap_or_default();
            self.fetcher.handle(self.clock.now(), FromWire::Datagram(ORIGIN, datagram));
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
            self.fetcher.handle(self.clock.now(), FromWire::Accepted(id, ORIGIN));
            self.execute_outputs()?;
        }
        Ok(())
    }

    fn wait(&mut self, wakes: Option<Time>) -> Result<Ready, Error> {
        let mut sockets = Vec::new();
        if let Some(channels) = &self.channels {
            sockets.push(PollFd::new(channels.datagrams.as_fd(), PollFlags::POLLIN));
            sockets.push(PollFd::new(channels.listener.as_fd(), PollFlags::POLLIN));
        }
        let connections = self.connections.values();
        sockets.extend(connections.map(|connection| PollFd::new(connection.as_fd(), connection.interest())));
        self.waiting.wait(&mut sockets, wakes.map_or(WaitUntil::Ready, WaitUntil::About))?;
        let mut flags = sockets.iter().map(|socket| socket.revents().unwrap_or(PollFlags::empty()));
        let mut is_next_ready =
            || self.channels.is_some() && flags.next().is_some_and(|flags| !flags.is_empty());
        let (has_datagrams, has_connections) = (is_next_ready(), is_next_ready());
        let ready = self.connections.keys().copied().zip(flags);
        let connections = ready.filter(|(_, flags)| !flags.is_empty()).collect();
        Ok(Ready { has_datagrams, has_connections, connections })
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
