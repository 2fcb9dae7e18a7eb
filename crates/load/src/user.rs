//! A user: its connections, and its waiting and pending requests.
//!
//! The schedule is the worker's. Slots number a user's sockets, for the worker's epoll.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use http1::message::{Fields, Method, RequestHead};
use rustix::event::epoll::{self, EventData, EventFlags};
use wire::{Duration, Time};

use crate::config::{Config, Protocol, Target};
use crate::dhttp_user::{DhttpUser, TurnResults};
use crate::evidence::Evidence;
use crate::gauge::Gauge;
use crate::http1_connection::transport::Connector;
use crate::http1_connection::{Http1Connection, Outcome, Pending, Response};
use crate::job::{PreparedRequest, closes, version};
use crate::ports::{self, Ports};
use crate::record::{Channel, FailureReason};
use crate::streams::connection_task::Report;
use crate::streams::reactor::Reactor;
use crate::streams::streams_config::StreamsConfig;
use crate::streams::{self, Streams};

/// State that the users of a thread share.
pub(crate) struct ThreadContext {
    pub(crate) epoll: OwnedFd,
    /// For protocols whose connections carry concurrent requests.
    pub(crate) streams: Option<(StreamsConfig, Reactor)>,
    pub(crate) config: Config,
    pub(crate) target: Target,
    /// Opens HTTP/1 connections.
    pub(crate) connector: Connector,
    /// UDP ports, for DHTTP.
    pub(crate) ports: Option<Ports>,
    /// Header sections of requests, and of conditional ones; the target is that of the last request.
    pub(crate) heads: [RequestHead; 2],
    /// The requests of a list; empty for the files of a site.
    pub(crate) list: Arc<[PreparedRequest]>,
    /// Read buffer.
    pub(crate) buffer: Vec<u8>,
    /// Finished requests.
    pub(crate) done: Vec<FinishedRequest>,
    /// Buffer for the results of a turn of DHTTP's state machine.
    pub(crate) outcomes: Vec<(Outcome, Channel)>,
    /// Number of open connections.
    pub(crate) open: Gauge,
    /// Number of connections opened, by users and by the server.
    pub(crate) connections: u64,
    /// Number of retries.
    pub(crate) retries: u64,
    /// Times of HTTP/1 connections.
    pub(crate) evidence: Evidence,
}

/// A finished request.
#[derive(Debug)]
pub(crate) struct FinishedRequest {
    pub(crate) pending: Pending,
    pub(crate) outcome: Result<Response, FailureReason>,
    pub(crate) channel: Channel,
}

/// First slot that is not of an HTTP/1 connection.
const LISTENER: u32 = 1_000;
/// First slot of the connections that the server opens.
const OPENED: u32 = 1_001;
/// Maximum number of pending requests on a connection; servers close with more.
const DEPTH: usize = 64;

/// A user.
#[derive(Debug)]
pub(crate) struct User {
    number: u32,
    connector: Connector,
    own_connections: Vec<Option<Http1Connection>>,
    waiting: VecDeque<Pending>,
    dhttp: Option<DhttpUser>,
    streams: Option<Streams>,
}

impl User {
    /// A user without requests; `secret` is for DHTTP's tables.
    pub(crate) fn new(number: u32, common: &ThreadContext, secret: [u8; 16]) -> io::Result<Self> {
        let mut dhttp = None;
        if common.config.protocol == Protocol::Dhttp {
            let port = DhttpUser::bind(number, common.target.address, common.config.dhttp, secret)?;
            epoll::add(&common.epoll, port.listener(), data(number, LISTENER), EventFlags::IN)?;
            dhttp = Some(port);
        }
        let streams = common.streams.as_ref().map(|(config, _)| Streams::new(number, config));
        let connector = common.connector.with_own_tickets();
        Ok(Self { number, connector, own_connections: Vec::new(), waiting: VecDeque::new(), dhttp, streams })
    }

    /// Sends a request by the configured protocol; the random number must be unpredictable. Returns the user's next timeout.
    pub(crate) fn send_request(
        &mut self,
        now: Time,
        pending: Pending,
        drawn: u64,
        common: &mut ThreadContext,
    ) -> Option<Time> {
        if let Some(dhttp) = &mut self.dhttp {
            let id = ports::id(drawn, self.number);
            let is_accepted = dhttp.send_request(now, id, pending, common.head(&pending));
            if is_accepted {
                return self.wake(now, common);
            }
        }
        if self.streams.is_some() {
            self.stream(now, pending, common);
            return None;
        }
        self.waiting.push_back(pending);
        self.dispatch(now, common);
        None
    }

    fn stream(&mut self, now: Time, pending: Pending, common: &mut ThreadContext) {
        if let (Some(streams), Some((_, reactor))) = (&mut self.streams, &common.streams) {
            let is_new = streams.send_request(Pending { sent: now, ..pending }, reactor, &common.open);
            common.connections += u64::from(is_new);
        }
    }

    /// Handles a report of a connection with concurrent requests.
    pub(crate) fn reported(&mut self, now: Time, report: Report, common: &mut ThreadContext) {
        let Some(streams) = &mut self.streams else { return };
        match streams.reported(now, report) {
            streams::ReportOutcome::Nothing => {}
            streams::ReportOutcome::Finished(pending, outcome, channel) => {
                common.done.push(FinishedRequest { pending, outcome, channel })
            }
            streams::ReportOutcome::Retry(pending) => {
                common.retries += 1;
                self.stream(now, pending, common);
            }
        }
    }

    /// Runs DHTTP's state machine up to now.
    pub(crate) fn wake(&mut self, now: Time, common: &mut ThreadContext) -> Option<Time> {
        self.turn(now, common, |dhttp, turn| dhttp.poll(now, turn))?
    }

    /// Handles events of this slot.
    pub(crate) fn ready(&mut self, now: Time, slot: u32, common: &mut ThreadContext) -> Option<Time> {
        let mut buffer = std::mem::take(&mut common.buffer);
        let wake = match slot {
            0..LISTENER => {
                self.connection_ready(now, slot, &mut buffer, common);
                None
            }
            LISTENER => self.accept(now, common),
            slot => {
                let number = u64::from(slot - OPENED);
                self.turn(now, common, |dhttp, turn| dhttp.read(now, number, &mut buffer, turn))
            }
        };
        common.buffer = buffer;
        wake.and_then(|()| self.wake(now, common))
    }

    /// Handles a response by UDP. Returns the user's next timeout.
    pub(crate) fn datagram(
        &mut self,
        now: Time,
        from: SocketAddr,
        datagram: &[u8],
        common: &mut ThreadContext,
    ) -> Option<Time> {
        self.turn(now, common, |dhttp, turn| dhttp.datagram(now, from, datagram, turn))?
    }

    /// Handles ICMP's report that the server accepts no datagrams of this user.
    pub(crate) fn refused(&mut self, now: Time, common: &mut ThreadContext) -> Option<Time> {
        self.turn(now, common, |dhttp, turn| dhttp.refused(now, turn))?
    }

    /// Number of connections without any response, whose request was sent before `sent_before`.
    pub(crate) fn unserved(&self, sent_before: Time) -> u64 {
        let connections = self.own_connections.iter().flatten();
        let is_old =
            |connection: &&Http1Connection| connection.oldest().is_some_and(|sent| sent < sent_before);
        connections.filter(|connection| connection.is_unserved()).filter(is_old).count() as u64
    }

    /// Closes idle connections.
    pub(crate) fn close(&mut self) {
        for connection in &mut self.own_connections {
            connection.take_if(|connection| connection.requested() == 0);
        }
        if let Some(streams) = &mut self.streams {
            streams.close();
        }
    }

    /// Closes connections that have been idle for `idle_timeout`.
    pub(crate) fn close_idle(&mut self, now: Time, idle_timeout: Duration) {
        for connection in &mut self.own_connections {
            connection
                .take_if(|connection| connection.idle().is_some_and(|since| since + idle_timeout <= now));
        }
        if let Some(streams) = &mut self.streams {
            streams.close_idle(now, idle_timeout);
        }
    }

    /// Times out requests sent before `sent_before`, and checks for free sockets.
    pub(crate) fn expire_requests(&mut self, now: Time, sent_before: Time, common: &mut ThreadContext) {
        if let Some(dhttp) = self.dhttp.as_mut().filter(|dhttp| dhttp.lacks_sockets()) {
            dhttp.try_again();
            set_listener_events(dhttp, self.number, EventFlags::IN, common);
        }
        let mut outcomes = Vec::new();
        for connection in &mut self.own_connections {
            if let Some(mut late) =
                connection.take_if(|connection| connection.oldest().is_some_and(|sent| sent < sent_before))
            {
                late.fail(FailureReason::Timeout, &mut outcomes);
            }
        }
        let late = self.waiting.iter().take_while(|pending| pending.intended < sent_before).count();
        outcomes.extend(
            self.waiting.drain(..late).map(|pending| Outcome::Done(pending, Err(FailureReason::Timeout))),
        );
        let late =
            self.streams.as_mut().map(|streams| streams.expire_requests(sent_before)).unwrap_or_default();
        outcomes.extend(late.into_iter().map(|pending| Outcome::Done(pending, Err(FailureReason::Timeout))));
        self.settle(outcomes, Channel::TcpClient, common);
        self.turn(now, common, |dhttp, turn| dhttp.expire_requests(sent_before, turn));
        self.dispatch(now, common);
    }

    fn turn<T>(
        &mut self,
        now: Time,
        common: &mut ThreadContext,
        act: impl FnOnce(&mut DhttpUser, &mut TurnResults<'_>) -> T,
    ) -> Option<T> {
        let (dhttp, ports) = (self.dhttp.as_mut()?, common.ports.as_mut()?);
        let mut turn =
            TurnResults { ports, outcomes: std::mem::take(&mut common.outcomes), plain: Vec::new() };
        let result = act(dhttp, &mut turn);
        let TurnResults { ports: _, mut outcomes, plain } = turn;
        for (outcome, channel) in outcomes.drain(..) {
            self.settle([outcome], channel, common);
        }
        common.outcomes = outcomes;
        if !plain.is_empty() {
            self.waiting.extend(plain);
            self.dispatch(now, common);
        }
        Some(result)
    }

    fn accept(&mut self, now: Time, common: &mut ThreadContext) -> Option<()> {
        loop {
            let (number, epoll, open) = (self.number, &common.epoll, &common.open);
            let accepted = |dhttp: &mut DhttpUser, turn: &mut TurnResults<'_>| {
                let (number_opened, fd) = dhttp.accept(now, open, turn)?;
                // A user never has four thousand million connections.
                let slot = OPENED.wrapping_add(u32::try_from(number_opened).unwrap_or(0));
                epoll::add(epoll, fd, data(number, slot), EventFlags::IN).ok()
            };
            let mut turn =
                TurnResults { ports: common.ports.as_mut()?, outcomes: Vec::new(), plain: Vec::new() };
            let accepted = accepted(self.dhttp.as_mut()?, &mut turn);
            let TurnResults { ports: _, outcomes, plain } = turn;
            for (outcome, channel) in outcomes {
                self.settle([outcome], channel, common);
            }
            self.waiting.extend(plain);
            if accepted.is_none() {
                if let Some(dhttp) = self.dhttp.as_ref().filter(|dhttp| dhttp.lacks_sockets()) {
                    set_listener_events(dhttp, number, EventFlags::empty(), common);
                }
                self.dispatch(now, common);
                return Some(());
            }
            common.connections += 1;
        }
    }

    fn connection_ready(&mut self, now: Time, slot: u32, buffer: &mut [u8], common: &mut ThreadContext) {
        let Some(index) = self.own_connections.get_mut(slot as usize) else { return };
        let Some(connection) = index else { return };
        let mut outcomes = Vec::new();
        let is_open = connection.ready(now, buffer, &mut outcomes);
        connection.report(&mut common.evidence);
        if !is_open {
            *index = None;
        }
        self.settle(outcomes, Channel::TcpClient, common);
        self.listen(slot as usize, common);
        self.dispatch(now, common);
    }

    /// Reports finished requests; those to be retried come first in the queue.
    fn settle(
        &mut self,
        outcomes: impl IntoIterator<Item = Outcome, IntoIter: DoubleEndedIterator>,
        channel: Channel,
        common: &mut ThreadContext,
    ) {
        for outcome in outcomes.into_iter().rev() {
            match outcome {
                Outcome::Done(pending, outcome) => {
                    common.done.push(FinishedRequest { pending, outcome, channel })
                }
                Outcome::Retry(pending) => {
                    common.retries += 1;
                    self.waiting.push_front(pending);
                }
            }
        }
    }

    /// Sends waiting requests, as far as connections allow.
    fn dispatch(&mut self, now: Time, common: &mut ThreadContext) {
        let depth = if common.config.protocol == Protocol::Pipelined { DEPTH } else { 1 };
        while let Some(pending) = self.waiting.front().copied() {
            let Some(index) = self.choose_connection(depth, common.config.connections) else { return };
            self.waiting.pop_front();
            let pending = Pending { sent: now, ..pending };
            if self.own_connections[index].is_none() {
                let opened =
                    Http1Connection::open(now, &self.connector, &common.open).and_then(|connection| {
                        let data = data(self.number, index);
                        epoll::add(&common.epoll, &connection, data, connection.interest())?;
                        Ok(connection)
                    });
                match opened {
                    Ok(connection) => {
                        common.connections += 1;
                        self.own_connections[index] = Some(connection);
                    }
                    Err(_) => {
                        let outcome = Err(FailureReason::Exhausted);
                        common.done.push(FinishedRequest { pending, outcome, channel: Channel::TcpClient });
                        continue;
                    }
                }
            }
            let Some(connection) = self.own_connections[index].as_mut() else { continue };
            if !connection.send_request(pending, |out| common.encode(&pending, out)) {
                let mut outcomes = Vec::new();
                connection.broken(&mut outcomes);
                self.own_connections[index] = None;
                self.settle(outcomes, Channel::TcpClient, common);
            }
            self.listen(index, common);
        }
    }

    /// The connection for the next request: an idle one, a new one, or with pipelining the one with the fewest requests.
    fn choose_connection(&mut self, depth: usize, max_connections: usize) -> Option<usize> {
        let requested =
            |connection: &Option<Http1Connection>| connection.as_ref().map(Http1Connection::requested);
        let best = self
            .own_connections
            .iter()
            .map(requested)
            .enumerate()
            .filter_map(|(index, requested)| Some((requested?, index)))
            .min();
        if let Some((0, index)) = best {
            return Some(index);
        }
        if let Some(index) = self.own_connections.iter().position(Option::is_none) {
            return Some(index);
        }
        if self.own_connections.len() < max_connections {
            self.own_connections.push(None);
            return Some(self.own_connections.len() - 1);
        }
        best.filter(|(requested, _)| *requested < depth).map(|(_, index)| index)
    }

    fn listen(&mut self, index: usize, common: &ThreadContext) {
        if let Some(Some(connection)) = self.own_connections.get_mut(index)
            && let Some(interest) = connection.new_interest()
        {
            // It is registered: a closed one is no longer in the list.
            let _ = epoll::modify(&common.epoll, connection.as_fd(), data(self.number, index), interest);
        }
    }
}

/// Enables or disables events of the port that the server connects to.
fn set_listener_events(dhttp: &DhttpUser, user: u32, flags: EventFlags, common: &ThreadContext) {
    // It is registered as long as its user exists.
    let _ = epoll::modify(&common.epoll, dhttp.listener(), data(user, LISTENER), flags);
}

/// epoll's data for this user's slot.
fn data(user: u32, slot: impl TryInto<u32>) -> EventData {
    EventData::new_u64(u64::from(user) << 32 | u64::from(slot.try_into().unwrap_or(0)))
}

impl ThreadContext {
    /// Writes a request of HTTP/1.
    fn encode(&mut self, pending: &Pending, out: &mut Vec<u8>) {
        match self.list.get(pending.number as usize) {
            Some(prepared) => prepared.encode(out),
            None => self.head(pending).encode(out),
        }
    }

    /// The header section of a request; for a file only the changed parts are written.
    fn head(&mut self, pending: &Pending) -> &RequestHead {
        if let Some(prepared) = self.list.get(pending.number as usize) {
            return &prepared.head;
        }
        let [changed, conditional] = &mut self.heads;
        let head = if pending.is_conditional { conditional } else { changed };
        head.target.truncate(self.target.directory.len());
        head.target.push_str(&workload::plan::path(pending.number));
        head
    }
}

/// The header sections of requests for a site, unconditional and conditional; `unchanged_since` is a time after every
/// modification.
pub(crate) fn heads(config: &Config, target: &Target, unchanged_since: &str) -> [RequestHead; 2] {
    let Target { address: _, host, directory, security: _ } = target;
    [None, Some(unchanged_since)].map(|since| {
        let mut fields = Fields::new();
        // Both are validated before the run.
        let _ = fields.push("Host", host);
        if closes(config) {
            let _ = fields.push("Connection", "close");
        }
        if let Some(since) = since {
            let _ = fields.push("If-Modified-Since", since);
        }
        RequestHead {
            method: Method::Get,
            target: directory.clone(),
            version: version(config.protocol),
            fields,
        }
    })
}
