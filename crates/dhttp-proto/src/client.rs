//! DHTTP client: sends and resends requests by UDP, and matches responses on any channel in any order.
//!
//! Every request ends once: with a complete response, a failure after its header section, or a fallback to plain HTTP.
//! Plain HTTP is not spoken here (`fetch::transport` does). The caller generates ids with a CSPRNG. The client never
//! replies to what it receives.
//!
//! ```text
//! request ──► poll ──► Send                          Datagram, Unreachable ──► handle ──► poll ──► Head, Body, End
//!                      (resends, until a response)      Accepted, Received, Ended                     Fallback, Failed
//! ```

mod config;
mod events;
mod opened_connections;
mod partial_responses;
pub(crate) mod phase;
mod reassembly;
mod servers;
mod stream;
mod timing;

use core::net::{IpAddr, SocketAddr};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use wire::Time;

use super::address::unmapped;
use super::message::{FallbackMessage, Id, RequestHeader, read_response};
use super::secret::Secret;
use super::token::is_token;
use http1::message::{Method, RequestHead};
use opened_connections::{Connection, IncomingResponse};
use partial_responses::ConnectionPart;
use phase::{Event, Phase};
use reassembly::Reassembly;
use servers::{Cache, Servers, past_caches, write_datagram};
use timing::{ResponseTimer, RoundTrips};

pub use config::{ClientConfig, Resend, Responders};
pub use events::{ConnectionId, Discard, Failure, Input, Output, Reason, Refusal, Source};
pub use servers::FILL_FIELD;

/// State machine of a DHTTP client. `poll` until it returns a timeout, then `handle` an input or make a `request`, and so on.
#[derive(Debug)]
pub struct Client {
    config: ClientConfig,
    /// The TCP port that servers connect to; 0 if none.
    port: u16,
    secret: Secret,
    requests: BTreeMap<Key, Request>,
    /// Keys of finished requests, the oldest first.
    over: VecDeque<Key>,
    connections: BTreeMap<ConnectionId, Connection>,
    servers: Servers,
    timers: BTreeSet<(Time, TimerTarget)>,
    outputs: VecDeque<Output>,
}

#[derive(Debug)]
struct Request {
    id: Id,
    server: SocketAddr,
    method: Method,
    datagram: Vec<u8>,
    phase: Phase,
    resends: u8,
    /// Whether it is marked to pass caches on the path ([`crate::message::PAST_FIELD`]), though nothing was lost.
    passes_caches: bool,
    sent: Time,
    timer: ResponseTimer,
    due: Option<Time>,
    /// Whether it carries a token of the server.
    shows_token: bool,
    /// Whether it accepts a token in the fallback message.
    requests_token: bool,
    /// Number of parts that it offers to accept; 0 if none.
    parts: u8,
    gathered: Option<Box<Reassembly>>,
    /// Whether its missing parts were requested.
    has_recovered: bool,
    connection_part: Option<ConnectionPart>,
}

/// Key of a request: a keyed hash of its id, so that the time of a look-up reveals nothing about ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key(u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum TimerTarget {
    Request(Key),
    Connection(ConnectionId),
}

impl Client {
    /// Creates a client that accepts connections on the TCP port `port` (0: on none); `secret` comes from a CSPRNG.
    pub const fn new(config: ClientConfig, port: u16, secret: [u8; 16]) -> Self {
        Self {
            config,
            port,
            secret: Secret(secret),
            requests: BTreeMap::new(),
            over: VecDeque::new(),
            connections: BTreeMap::new(),
            servers: Servers::new(config.servers),
            timers: BTreeSet::new(),
            outputs: VecDeque::new(),
        }
    }

    /// Sends a request to a server. Its outputs carry `id`, which must be unpredictable and never used before.
    ///
    /// # Errors
    /// The reason why this request does not go over UDP; nothing is sent.
    pub fn request(
        &mut self,
        now: Time,
        id: Id,
        server: SocketAddr,
        head: &RequestHead,
    ) -> Result<(), Refusal> {
        self.check(head)?;
        let key = self.key(id);
        if self.requests.contains_key(&key) {
            return Err(Refusal::IdInUse);
        }
        if self.outstanding() >= self.config.outstanding {
            return Err(Refusal::Crowded);
        }
        let shown = self.servers.shown(server);
        let passes_caches = self.servers.is_behind_unwanted(server);
        let header = RequestHeader { id, port: self.port, is_resend: false };
        let parts = self.offer(server, head);
        let (shows_token, max) = (shown.is_of_server(), self.config.request_bytes);
        let fill_to = self.config.fill_to;
        let write = |requests| write_datagram(header, head, parts, shown.requesting(requests), fill_to);
        let mut requests_token = self.config.takes_tokens && !shown.is_known;
        let mut datagram = write(requests_token);
        if requests_token && datagram.len() > max {
            (requests_token, datagram) = (false, write(false));
        }
        let passes_caches = passes_caches && past_caches(header, &datagram).len() <= max;
        if datagram.len() > max {
            return Err(Refusal::TooLarge);
        }
        let request = Request {
            id,
            server,
            method: head.method.clone(),
            datagram,
            phase: Phase::Waiting,
            resends: 0,
            passes_caches,
            sent: now,
            timer: ResponseTimer::new(now, self.servers.find_or_insert(server).received),
            due: None,
            shows_token,
            requests_token,
            parts,
            gathered: None,
            has_recovered: false,
            connection_part: None,
        };
        self.requests.insert(key, request);
        if parts > 0 {
            self.servers.find_or_insert(server).offer(parts);
        }
        self.send(now, key, None);
        Ok(())
    }

    /// Whether the client has a token of this server.
    pub fn has_token(&self, server: SocketAddr) -> bool {
        self.servers.shown(server).is_of_server()
    }

    /// Stores a token that an earlier client with the same TCP port got from a server, at `learned`. Invalid tokens are
    /// ignored.
    pub fn restore_token(&mut self, learned: Time, server: SocketAddr, token: &[u8]) {
        if is_token(token) {
            self.servers.find_or_insert(server).restore_token(learned, token);
        }
    }

    /// Returns the servers' tokens, and when each was learned.
    pub fn tokens(&self) -> impl Iterator<Item = (SocketAddr, &[u8], Time)> {
        self.servers.tokens()
    }

    /// Cancels a request; it has no further outputs.
    pub fn cancel(&mut self, id: Id) {
        let key = self.key(id);
        self.step(key, Event::Cancelled);
    }

    /// Returns the request whose response is arriving on a connection.
    pub fn arriving_on(&self, id: ConnectionId) -> Option<Id> {
        Some(self.connections.get(&id)?.response()?.id)
    }

    /// Returns the number of requests that have not ended yet.
    pub fn outstanding(&self) -> usize {
        self.requests.len() - self.over.len()
    }

    /// Handles an input from the sockets.
    pub fn handle(&mut self, now: Time, input: Input<'_>) {
        match input {
            Input::Datagram(from, datagram) => {
                if let Err(reason) = self.datagram(now, from, datagram) {
                    self.outputs.push_back(Output::Discarded(from, reason));
                }
            }
            Input::Unreachable(server) => self.unreachable(server),
            Input::Accepted(id, peer) => self.accept(now, id, peer),
            Input::Received(id, bytes) => self.received(now, id, bytes),
            Input::Ended(id) => self.handle_loss(now, id, Failure::Ended),
            Input::Paused(id) => self.pause(id),
            Input::Resumed(id) => self.resume(now, id),
            Input::Heard(server, bytes) => self.servers.count_received(now, server, bytes, false),
        }
    }

    /// Returns the next action.
    pub fn poll(&mut self, now: Time) -> Output {
        while self.outputs.is_empty()
            && let Some((time, due)) = self.timers.first().copied()
            && time <= now
        {
            self.timers.remove(&(time, due));
            match due {
                TimerTarget::Request(key) => self.expire(now, key),
                TimerTarget::Connection(id) => {
                    self.handle_loss(now, id, Failure::Stalled);
                    self.outputs.push_back(Output::Close(id));
                }
            }
        }
        self.outputs.pop_front().unwrap_or(Output::Timeout(self.timers.first().map(|(time, _)| *time)))
    }

    /// Checks whether a request may go over UDP.
    fn check(&self, head: &RequestHead) -> Result<(), Refusal> {
        let has = |name| head.fields.get(name).is_some();
        if !head.method.is_safe() {
            return Err(Refusal::Unsafe);
        }
        if ["Content-Length", "Transfer-Encoding", "Expect", "Upgrade"].into_iter().any(has) {
            return Err(Refusal::NotAlone);
        }
        if !self.config.sends_credentials && (has("Authorization") || has("Cookie")) {
            return Err(Refusal::Credentials);
        }
        Ok(())
    }

    /// Sends or resends a request, whole or for its missing parts, and starts its timer.
    fn send(&mut self, now: Time, key: Key, recovery: Option<Vec<u8>>) {
        let Some(request) = self.requests.get_mut(&key) else { return };
        let usual = self.servers.round_trips(request.server).wait(&self.config.resend, request.resends);
        let requested = request.gathered.as_ref().filter(|_| recovery.is_some());
        let Some(wait) = requested.map(|gathered| gathered.timeout_when_asked()).or(usual) else { return };
        request.sent = now;
        request.due = Some(now + wait);
        self.timers.insert((now + wait, TimerTarget::Request(key)));
        let datagram = recovery.unwrap_or_else(|| request.whole(self.port));
        self.outputs.push_back(Output::Send(request.server, datagram));
    }

    /// Handles the timeout of a request.
    fn expire(&mut self, now: Time, key: Key) {
        let Some(request) = self.requests.get_mut(&key) else { return };
        request.due = None;
        let (id, server) = (request.id, request.server);
        if self.has_paused(server.ip()) && self.step(key, Event::TimedOut) {
            self.outputs.push_back(Output::Fallback(id, Reason::Paused));
            return;
        }
        let Some(request) = self.requests.get_mut(&key) else { return };
        let wait = self.servers.round_trips(request.server).wait(&self.config.resend, request.resends);
        if let Some(wait) = wait.filter(|_| request.gathered.is_none())
            && let Some(due) =
                request.timer.extend(now, self.servers.received(request.server), wait, &self.config.resend)
        {
            request.due = Some(due);
            self.timers.insert((due, TimerTarget::Request(key)));
            return;
        }
        self.try_again(now, key);
    }

    /// Resends a request, or falls back after the last resend.
    fn try_again(&mut self, now: Time, key: Key) {
        let Some(request) = self.requests.get(&key) else { return };
        let (id, resends) = (request.id, request.resends.saturating_add(1));
        if RoundTrips::default().wait(&self.config.resend, resends).is_none() {
            if self.step(key, Event::TimedOut) {
                self.outputs.push_back(Output::Fallback(id, Reason::Silence));
            }
            return;
        }
        if self.step(key, Event::Resent)
            && let Some(request) = self.requests.get_mut(&key)
        {
            let header = RequestHeader { id, port: self.port, is_resend: true };
            for (byte, new) in request.datagram.iter_mut().zip(header.to_bytes()) {
                *byte = new;
            }
            let recovery = self.recovery(key);
            if recovery.is_none()
                && let Some(request) = self.requests.get_mut(&key)
            {
                request.resends = resends;
            }
            self.send(now, key, recovery);
        }
    }

    /// Sends a request once past a cache whose responses are not accepted, marked as without loss. If the mark does not
    /// fit the datagram, resends the request as if something was lost.
    fn pass_caches(&mut self, now: Time, key: Key) {
        let Some(request) = self.requests.get_mut(&key) else { return };
        if request.passes_caches || request.resends > 0 {
            return;
        }
        if let Some(due) = request.due.take() {
            self.timers.remove(&(due, TimerTarget::Request(key)));
            let server = self.servers.find_or_insert(request.server);
            server.is_behind_unwanted = true;
            request.passes_caches = true;
            if request.whole(self.port).len() > self.config.request_bytes {
                request.passes_caches = false;
                return self.try_again(now, key);
            }
            request.timer = ResponseTimer::new(now, server.received);
            self.send(now, key, None);
        }
    }

    fn datagram(&mut self, now: Time, from: SocketAddr, datagram: &[u8]) -> Result<(), Discard> {
        let (id, message) = Id::split(datagram).map_err(Discard::Malformed)?;
        let key = self.find(id).ok_or(Discard::Unknown)?;
        let request = self.requests.get(&key).ok_or(Discard::Unknown)?;
        let is_server = from == request.server;
        self.servers.count_received(now, from.ip(), datagram.len(), false);
        if !is_server && !self.config.responders.include(from.ip()) {
            // A host that knows the id has seen the request: a cache on the path.
            self.pass_caches(now, key);
            return Err(Discard::Stranger);
        }
        if message.is_empty() || request.requests_token && FallbackMessage::has_token(message) {
            let (server, shows_token) = (request.server, request.shows_token);
            if !self.step(key, Event::Referred) {
                return Err(Discard::Late);
            }
            let known = self.servers.find_or_insert(server);
            match (message, is_server) {
                // The token may have become invalid: without it the next request is padded.
                ([], true) if shows_token => known.forget_token(),
                ([], true) => {}
                ([], false) => known.cache = Cache::Seen,
                (token, true) => known.store_token(now, token),
                (token, false) => known.cache = Cache::Gave(token.to_vec()),
            }
            self.outputs.push_back(Output::Fallback(id, Reason::Referred));
            return Ok(());
        }
        let (head, body) =
            read_response(message, &request.method, &self.config.limits).map_err(Discard::Malformed)?;
        if head.status == 206 && request.parts > 0 {
            return self.part(now, key, from, head.to_head(), body);
        }
        let (timer, has_recovered) = (request.timer, request.has_recovered);
        if !self.step(key, Event::Response) {
            return Err(Discard::Late);
        }
        let head = head.to_head();
        if is_server {
            let server = self.servers.find_or_insert(from);
            server.received.by_datagram = server.received.by_datagram.max(timer.began);
            if !has_recovered && timer.was_quiet(server.received, datagram.len()) {
                server.round_trips.measured(now.since(timer.began));
            }
            server.learn_token_of(now, &head);
        } else {
            let server = self.requests.get(&key).map(|request| request.server);
            server.into_iter().for_each(|server| self.servers.find_or_insert(server).learn_cache(&head));
        }
        self.outputs.push_back(Output::Head(id, Source::Datagram(from), head));
        if !body.is_empty() {
            self.outputs.push_back(Output::Body(id, body.to_vec()));
        }
        self.outputs.push_back(Output::End(id));
        Ok(())
    }

    fn unreachable(&mut self, server: SocketAddr) {
        let its: Vec<Key> = self
            .requests
            .iter()
            .filter(|(_, request)| request.server == server)
            .map(|(key, _)| *key)
            .collect();
        for key in its {
            if let Some(id) = self.requests.get(&key).map(|request| request.id)
                && self.step(key, Event::Unreachable)
            {
                self.outputs.push_back(Output::Fallback(id, Reason::Unreachable));
            }
        }
    }

    /// Whether a host at this address may respond to this request, or to any.
    fn may_respond(&self, peer: IpAddr, request: Option<&Request>) -> bool {
        let is_asked = match request {
            Some(request) => same_host(request.server.ip(), peer),
            None => self.requests.values().any(|request| same_host(request.server.ip(), peer)),
        };
        is_asked || self.config.responders.include(peer)
    }

    fn phase(&self, key: Key) -> Option<Phase> {
        self.requests.get(&key).map(|request| request.phase)
    }

    /// Applies an event to a request; `false` if the event is ignored.
    fn step(&mut self, key: Key, event: Event) -> bool {
        let Some(request) = self.requests.get_mut(&key) else { return false };
        let Some(next) = request.phase.next(event) else { return false };
        request.phase = next;
        if !matches!(next, Phase::Waiting | Phase::Gathering)
            && let Some(due) = request.due.take()
        {
            self.timers.remove(&(due, TimerTarget::Request(key)));
        }
        if next == Phase::Over {
            (request.datagram, request.gathered, request.connection_part) = (Vec::new(), None, None);
            if request.parts > 0 {
                self.servers.find_or_insert(request.server).take_back(request.parts);
            }
            self.over.push_back(key);
            if self.over.len() > self.config.remembered {
                self.over.pop_front().map(|oldest| self.requests.remove(&oldest));
            }
        }
        true
    }

    fn key(&self, id: Id) -> Key {
        Key(self.secret.hash(&id.to_bytes()))
    }

    /// Finds the request with this id. Both ids are machine words: the comparison takes constant time.
    fn find(&self, id: Id) -> Option<Key> {
        let key = self.key(id);
        self.requests.get(&key).filter(|request| request.id.0 ^ id.0 == 0).map(|_| key)
    }
}

impl Request {
    /// Returns the whole datagram to send now. It is marked to pass caches only before the first resend, while nothing
    /// was lost.
    fn whole(&self, port: u16) -> Vec<u8> {
        let header = RequestHeader { id: self.id, port, is_resend: true };
        match self.passes_caches && self.resends == 0 {
            true => past_caches(header, &self.datagram),
            false => self.datagram.clone(),
        }
    }
}

fn same_host(one: IpAddr, other: IpAddr) -> bool {
    unmapped(one) == unmapped(other)
}
