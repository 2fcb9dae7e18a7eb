//! HTTP client on kernel sockets: the robot on its connections.
//!
//! The time of a page begins just before the `connect` that sends the first SYN. It ends just after the `read`
//! that returned the last byte of the last response. Both are read from CLOCK_MONOTONIC on the client's thread.
//! Later packets (the FINs) do not count.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use linux::clock::Clock;
use nix::poll::{PollFd, PollFlags};
use pageload::page_loader::TransportCounts;
use pageload::robot::{Break, ConnectionId, Failure, Input, Output, PageEvent, Plan, Report, Robot};
use wire::Time;

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
    /// Reports of the robot.
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

/// Fetches a page from `server`, in the calling thread's namespace. Ends when every connection is closed; the
/// plan's deadline bounds it.
pub fn fetch(plan: Plan, server: SocketAddr, profile: &Profile, clock: Clock) -> Result<FetchedPage, Error> {
    let robot = Robot::new(clock.now(), plan)
        .map_err(|error| Error::Unsuited { part: "this page".to_owned(), remedy: error.to_string() })?;
    let client = Client {
        server,
        profile,
        clock,
        robot,
        connections: BTreeMap::new(),
        lost: Vec::new(),
        waiting: WaitStrategy::new(clock),
        fetched: FetchedPage::default(),
    };
    client.run()
}

struct Client<'a> {
    server: SocketAddr,
    profile: &'a Profile,
    clock: Clock,
    robot: Robot,
    connections: BTreeMap<ConnectionId, Connection>,
    /// Connections that broke while the robot was being polled; it is notified afterwards.
    lost: Vec<(ConnectionId, Break)>,
    waiting: WaitStrategy,
    fetched: FetchedPage,
}

impl Client<'_> {
    fn run(mut self) -> Result<FetchedPage, Error> {
        let mut buffer = Box::new([0; 65_536]);
        let mut wakes = self.execute_outputs()?;
        while !self.robot.is_done() {
            for (id, flags) in self.wait(wakes)? {
                self.handle_readiness(id, flags, buffer.as_mut_slice())?;
                self.execute_outputs()?;
            }
            wakes = self.execute_outputs()?;
        }
        Ok(self.fetched)
    }

    /// Executes the robot's outputs until there are none.
    fn execute_outputs(&mut self) -> Result<Option<Time>, Error> {
        loop {
            let now = self.clock.now();
            match self.robot.poll(now) {
                Output::Open(id) => {
                    self.fetched.began.get_or_insert(now);
                    self.fetched.connections += 1;
                    self.fetched.opened.push(now);
                    match Connection::open(self.server, self.profile) {
                        Ok(connection) => {
                            self.connections.insert(id, connection);
                        }
                        Err(error) => self.lost.push((id, reason(&error))),
                    }
                }
                Output::Send(id, bytes) => {
                    if let Some(connection) = self.connections.get_mut(&id)
                        && let Err(error) = connection.write(bytes)
                    {
                        self.lose(id, &error);
                    }
                }
                Output::Close(id) => {
                    self.connections.remove(&id);
                }
                Output::Abort(id) => {
                    if let Some(connection) = self.connections.remove(&id) {
                        connection.abort().map_err(Error::io("reset a connection"))?;
                    }
                }
                Output::Report(report) => self.fetched.note(report),
                Output::Timeout(wakes) => match self.lost.pop() {
                    Some((id, reason)) => self.robot.handle(now, Input::Broken(id, reason)),
                    None => return Ok(wakes),
                },
            }
        }
    }

    fn wait(&mut self, wakes: Option<Time>) -> Result<Vec<(ConnectionId, PollFlags)>, Error> {
        let mut sockets: Vec<_> = self
            .connections
            .values()
            .map(|connection| PollFd::new(connection.as_fd(), connection.interest()))
            .collect();
        self.waiting.wait(&mut sockets, wakes.map_or(WaitUntil::Ready, WaitUntil::About))?;
        let flags = sockets.iter().map(|socket| socket.revents().unwrap_or(PollFlags::empty()));
        let ready = self.connections.keys().copied().zip(flags);
        Ok(ready.filter(|(_, flags)| !flags.is_empty()).collect())
    }

    /// Passes a socket's data to the robot.
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
                    self.robot.handle(self.clock.now(), Input::Connected(id));
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
                self.robot.handle(now, Input::Received(id, buffer.get(..length).unwrap_or_default()));
            }
            Ok(ReadResult::End) => self.robot.handle(now, Input::EndOfStream(id)),
            Err(error) => self.lose(id, &error),
        }
        Ok(())
    }

    fn lose(&mut self, id: ConnectionId, error: &io::Error) {
        self.connections.remove(&id);
        self.lost.push((id, reason(error)));
    }
}

pub(super) fn reason(error: &io::Error) -> Break {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => Break::Refused,
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionAborted => {
            Break::Reset
        }
        _another_kind => Break::Unreachable,
    }
}
