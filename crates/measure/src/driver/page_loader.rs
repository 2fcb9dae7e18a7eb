//! The client that speaks DHTTP: the robot over datagrams, and over connections that the server opens.
//!
//! The time of a page begins just before the first datagram, or the first `connect` of a request over plain HTTP. It
//! ends just after the `read` of the last byte. When the page is complete the program ends, and with it the
//! connections that the server would keep alive.
//!
//! Production use is for the crate `dhttp`. This client is pinned, adds no time of its own, and resembles
//! [`super::client`] as closely as possible.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;

use dhttp_proto::client::{self, ClientConfig};
use linux::clock::Clock;
use nix::poll::{PollFd, PollFlags};
use pageload::page_loader::{Input, Output, PageLoader};
use pageload::robot::{self, Break, Plan};
use socket2::Socket;
use wire::{Seed, Time};

use super::client::{FetchedPage, reason};
use super::server::listen;
use super::wait::{WaitStrategy, WaitUntil};
use crate::Error;
use crate::profile::Profile;
use crate::socket::{Connection, ReadResult};

/// A DHTTP client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DhttpClient {
    /// Settings of the state machine.
    pub config: ClientConfig,
    /// Seed of its ids: in a laboratory no one guesses them.
    pub seed: Seed,
}

/// The client's port, UDP and TCP; below the kernel's ephemeral ports.
const CLIENT_PORT: u16 = 20_000;

/// Fetches a page from `server`, in the calling thread's namespace, as [`super::client::fetch`] does.
pub fn fetch(
    plan: Plan,
    server: SocketAddr,
    profile: &Profile,
    clock: Clock,
    dhttp: DhttpClient,
) -> Result<FetchedPage, Error> {
    let local_address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, CLIENT_PORT));
    let datagrams =
        UdpSocket::bind(local_address).map_err(Error::io(format!("receive datagrams at {local_address}")))?;
    // A connected socket reports ICMP's port unreachable.
    datagrams.connect(server).map_err(Error::io("find a route to the server"))?;
    datagrams.set_nonblocking(true).map_err(Error::io("read datagrams without waiting"))?;
    let ids = dhttp.seed.stream("dhttp-client", 0);
    let loader = PageLoader::new(clock.now(), plan, dhttp.config, server, CLIENT_PORT, ids)
        .map_err(|error| Error::Unsuited { part: "this page".to_owned(), remedy: error.to_string() })?;
    let client = Client {
        server,
        profile,
        clock,
        loader,
        datagrams,
        listener: listen(local_address)?,
        connections: BTreeMap::new(),
        accepted: 0,
        lost: Vec::new(),
        is_refused: false,
        waiting: WaitStrategy::new(clock),
        fetched: FetchedPage::default(),
    };
    client.run()
}

struct Client<'a> {
    server: SocketAddr,
    profile: &'a Profile,
    clock: Clock,
    loader: PageLoader,
    datagrams: UdpSocket,
    listener: Socket,
    connections: BTreeMap<ConnectionName, Connection>,
    accepted: u64,
    /// Connections that broke while the state machine was being polled; it is notified afterwards.
    lost: Vec<(ConnectionName, Break)>,
    /// ICMP reported that the port is unreachable; the state machine is notified afterwards.
    is_refused: bool,
    waiting: WaitStrategy,
    fetched: FetchedPage,
}

/// Identifier of a connection, by the part of the state machine that uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ConnectionName {
    /// Opened by this client, for plain HTTP.
    Plain(robot::ConnectionId),
    /// Opened by the server.
    Opened(client::ConnectionId),
}

/// Ready events.
struct Ready {
    has_datagrams: bool,
    has_connections: bool,
    connections: Vec<(ConnectionName, PollFlags)>,
}

impl Client<'_> {
    fn run(mut self) -> Result<FetchedPage, Error> {
        let mut buffer = Box::new([0; 65_536]);
        let mut wakes = self.execute_outputs()?;
        while !self.loader.is_done() {
            let Ready { has_datagrams, has_connections, connections } = self.wait(wakes)?;
            if has_datagrams {
                self.receive(buffer.as_mut_slice())?;
            }
            if has_connections {
                self.accept()?;
            }
            for (name, flags) in connections {
                self.handle_readiness(name, flags, buffer.as_mut_slice())?;
                self.execute_outputs()?;
            }
            wakes = self.execute_outputs()?;
        }
        self.fetched.channels = Some(self.loader.counts());
        Ok(self.fetched)
    }

    /// Executes the state machine's outputs until there are none.
    fn execute_outputs(&mut self) -> Result<Option<Time>, Error> {
        loop {
            let now = self.clock.now();
            let output = match self.loader.poll(now) {
                Output::Send(_, datagram) => {
                    self.fetched.began.get_or_insert(now);
                    self.send(&datagram)?;
                    continue;
                }
                Output::Dismiss(id) => {
                    self.connections.remove(&ConnectionName::Opened(id));
                    continue;
                }
                Output::Robot(output) => output,
            };
            match output {
                robot::Output::Open(id) => {
                    self.fetched.began.get_or_insert(now);
                    self.fetched.connections += 1;
                    self.fetched.opened.push(now);
                    match Connection::open(self.server, self.profile) {
                        Ok(connection) => {
                            self.connections.insert(ConnectionName::Plain(id), connection);
                        }
                        Err(error) => self.lost.push((ConnectionName::Plain(id), reason(&error))),
                    }
                }
                robot::Output::Send(id, bytes) => {
                    if let Some(connection) = self.connections.get_mut(&ConnectionName::Plain(id))
                        && let Err(error) = connection.write(bytes)
                    {
                        self.lose(ConnectionName::Plain(id), &error);
                    }
                }
                robot::Output::Close(id) => {
                    self.connections.remove(&ConnectionName::Plain(id));
                }
                robot::Output::Abort(id) => {
                    if let Some(connection) = self.connections.remove(&ConnectionName::Plain(id)) {
                        connection.abort().map_err(Error::io("reset a connection"))?;
                    }
                }
                robot::Output::Report(report) => self.fetched.note(report),
                robot::Output::Timeout(wakes) => match self.lost.pop() {
                    Some((name, reason)) => self.report_end(now, name, reason),
                    None if std::mem::take(&mut self.is_refused) => {
                        let input = client::Input::Unreachable(self.server);
                        self.loader.handle(now, Input::Dhttp(input));
                    }
                    None => return Ok(wakes),
                },
            }
        }
    }

    /// Sends a datagram. A send failure counts as loss: the state machine will resend.
    fn send(&mut self, datagram: &[u8]) -> Result<(), Error> {
        match self.datagrams.send(datagram) {
            Ok(_) => Ok(()),
            Err(error) => self.ignore_nonfatal(error),
        }
    }

    /// Reads the server's datagrams.
    fn receive(&mut self, buffer: &mut [u8]) -> Result<(), Error> {
        loop {
            match self.datagrams.recv(buffer) {
                Ok(length) => {
                    let now = self.clock.now();
                    let datagram = buffer.get(..length).unwrap_or_default();
                    self.loader.handle(now, Input::Dhttp(client::Input::Datagram(self.server, datagram)));
                    self.execute_outputs()?;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
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

    fn accept(&mut self) -> Result<(), Error> {
        loop {
            match self.listener.accept() {
                Ok((socket, _)) => {
                    let connection = Connection::accepted(socket, self.profile)
                        .map_err(Error::io("accept a connection"))?;
                    let id = client::ConnectionId(self.accepted);
                    self.accepted += 1;
                    self.fetched.connections += 1;
                    self.connections.insert(ConnectionName::Opened(id), connection);
                    let now = self.clock.now();
                    self.loader.handle(now, Input::Dhttp(client::Input::Accepted(id, self.server)));
                    self.execute_outputs()?;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => return Err(Error::io("accept a connection")(error)),
            }
        }
    }

    fn wait(&mut self, wakes: Option<Time>) -> Result<Ready, Error> {
        let mut sockets = vec![
            PollFd::new(self.datagrams.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.listener.as_fd(), PollFlags::POLLIN),
        ];
        let connections = self.connections.values();
        sockets.extend(connections.map(|connection| PollFd::new(connection.as_fd(), connection.interest())));
        self.waiting.wait(&mut sockets, wakes.map_or(WaitUntil::Ready, WaitUntil::About))?;
        let mut flags = sockets.iter().map(|socket| socket.revents().unwrap_or(PollFlags::empty()));
        let mut is_next_ready = || flags.next().is_some_and(|flags| !flags.is_empty());
        let (has_datagrams, has_connections) = (is_next_ready(), is_next_ready());
        let ready = self.connections.keys().copied().zip(flags);
        let connections = ready.filter(|(_, flags)| !flags.is_empty()).collect();
        Ok(Ready { has_datagrams, has_connections, connections })
    }

    /// Passes a connection's data to the state machine.
    fn handle_readiness(
        &mut self,
        name: ConnectionName,
        flags: PollFlags,
        buffer: &mut [u8],
    ) -> Result<(), Error> {
        let Some(connection) = self.connections.get_mut(&name) else { return Ok(()) };
        if !connection.is_open() {
            match (connection.conclude_opening(), name) {
                (Ok(()), ConnectionName::Plain(id)) => {
                    connection.check(self.profile)?;
                    self.loader.handle(self.clock.now(), Input::Plain(robot::Input::Connected(id)));
                }
                (Ok(()), ConnectionName::Opened(_)) => {}
                (Err(error), name) => self.lose(name, &error),
            }
            return Ok(());
        }
        if flags.contains(PollFlags::POLLOUT)
            && let Err(error) = connection.write_pending()
        {
            self.lose(name, &error);
            return Ok(());
        }
        let arrived = connection.read(buffer);
        let now = self.clock.now();
        match arrived {
            Ok(ReadResult::Nothing) => {}
            Ok(ReadResult::Bytes(length)) => {
                let bytes = buffer.get(..length).unwrap_or_default();
                let input = match name {
                    ConnectionName::Plain(id) => Input::Plain(robot::Input::Received(id, bytes)),
                    ConnectionName::Opened(id) => Input::Dhttp(client::Input::Received(id, bytes)),
                };
                self.loader.handle(now, input);
            }
            Ok(ReadResult::End) => match name {
                ConnectionName::Plain(id) => {
                    self.loader.handle(now, Input::Plain(robot::Input::EndOfStream(id)));
                }
                ConnectionName::Opened(_) => {
                    self.connections.remove(&name);
                    self.report_end(now, name, Break::Reset);
                }
            },
            Err(error) => self.lose(name, &error),
        }
        Ok(())
    }

    fn lose(&mut self, name: ConnectionName, error: &io::Error) {
        self.connections.remove(&name);
        self.lost.push((name, reason(error)));
    }

    fn report_end(&mut self, now: Time, name: ConnectionName, reason: Break) {
        let input = match name {
            ConnectionName::Plain(id) => Input::Plain(robot::Input::Broken(id, reason)),
            ConnectionName::Opened(id) => Input::Dhttp(client::Input::Ended(id)),
        };
        self.loader.handle(now, input);
    }
}
