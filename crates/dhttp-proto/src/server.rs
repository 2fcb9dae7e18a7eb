//! DHTTP server: validates requests, chooses the channel of each response, and manages connections to clients.
//!
//! It emits [`Transmit`]s, complete datagrams in the driver's memory, and [`Stream`]s, whose bodies the driver sends,
//! possibly from a file. It stores no body, and allocates nothing for a datagram. Not a server of plain HTTP: that is
//! [`http1::server`].
//!
//! ```text
//! datagram -> receive -> Serve: application -> respond -> Datagrams | Stream | Referred
//!                     -> Refer: eight bytes back       -> Ignore
//! Opened, Progressed, Written, Closed, Broken -> handle -> poll -> Close, Abort, Timeout
//! ```

mod config;
mod connections;
mod loss;
pub(crate) mod phase;
mod prefixes;
mod reply;
mod response_memory;
mod sizes;

use core::net::{IpAddr, SocketAddr};

use wire::Time;

use super::address::{Reach, can_be_client, unmapped};
use super::limiter::{Allowance, Limiter, units};
use super::message::{FallbackMessage, Id, Malformed, Marks, Request};
use super::parts::{DividedResponse, DivisibleResponse};
use super::token::{Key, Token, Tokens, Validity};
use connections::{ConnectionChoice, Connections};
use http1::message::RequestView;
use loss::{ChannelKind, Losses};
use phase::Event;
use response_memory::{GlobalId, ResponseMemory};
use sizes::Sizes;

pub use config::{ConnectionTimeouts, LossConfig, PerClient, Scope, ServerConfig, Validation};
pub use connections::ConnectionId;
pub use reply::{Outbox, Reply, Response, Stream, Transmit, WholeResponse};
pub use sizes::Adaptation;

/// Decision about a datagram.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// A request for the application, which passes the ticket to [`Server::respond`] or [`Server::abandon`].
    Serve(Ticket, RequestView<'a>),
    /// Send this back: the client retries over plain HTTP.
    Refer(FallbackMessage),
    /// Do nothing.
    Ignore(IgnoreReason),
}

/// Reason why a datagram gets no response; for counters and logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IgnoreReason {
    /// Its source cannot be a client.
    Source,
    /// It is not a valid request.
    Malformed(Malformed),
    /// Its prefix has reached its limit.
    Limited,
    /// It is a late resend of a request whose response went by TCP.
    AlreadyAnswered,
    /// It is a resend of a request in progress.
    InProgress,
}

/// A request that awaits its response.
#[must_use = "give it to `Server::respond` or `Server::abandon`, or its connection counts it for ever"]
#[derive(Debug, PartialEq, Eq)]
pub struct Ticket {
    /// The request's id, with which its response begins.
    pub id: Id,
    /// Source of the request, and destination of a response by UDP.
    pub source: SocketAddr,
    /// Address and TCP port on which the client accepts connections.
    client: SocketAddr,
    bytes: u64,
    is_resend: bool,
    /// Number of parts that the client accepts; 0 if none.
    parts: u8,
    /// Whether it requests parts that were lost.
    recovers: bool,
    validity: Validity,
    /// Whether its response may use a connection.
    may_connect: bool,
    /// Whether the fallback message may contain a token.
    requests_token: bool,
    reserved: Option<ConnectionId>,
}

impl Ticket {
    /// Whether the request is marked as a resend after loss.
    pub const fn is_resend(&self) -> bool {
        self.is_resend
    }

    /// Whether a token proves the client's address, or the server trusts every address.
    pub const fn has_proved_its_address(&self) -> bool {
        match self.validity {
            Validity::Valid | Validity::Ageing => true,
            Validity::Nothing => false,
        }
    }
}

/// Channel of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// One datagram: id, header section, body.
    Datagram,
    /// Several datagrams, each a message with a part of the body.
    Parts(DividedResponse),
    /// This connection, after everything queued there: id, header section, body. Report when it is written.
    Connection(ConnectionId),
    /// The same on a new connection, which the driver must open.
    Open {
        /// Id of the new connection.
        connection: ConnectionId,
        /// Address and port to connect to.
        client: SocketAddr,
    },
    /// Send this by UDP instead: the client retries over plain HTTP.
    Refer(FallbackMessage),
}

/// Input from the sockets about a connection. It may concern one that the server no longer knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// It was established.
    Opened(ConnectionId),
    /// It accepted bytes.
    Progressed(ConnectionId),
    /// It accepted the last byte of its oldest unwritten response.
    Written(ConnectionId),
    /// The client closed it.
    Closed(ConnectionId),
    /// It could not be established, or broke.
    Broken(ConnectionId),
    /// Not of a connection: the local link carries no datagram of this many bytes to this address.
    TooLarge(IpAddr, u64),
}

/// Action for the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Close the connection; no later output refers to it.
    Close(ConnectionId),
    /// Reset the connection and drop its queued data; no later output refers to it.
    Abort(ConnectionId),
    /// No action before the next input or this time, when to poll again.
    Timeout(Option<Time>),
}

/// Secrets of a server, from a CSPRNG.
#[derive(Clone, Copy)]
pub struct Secrets {
    /// The first key of tokens.
    pub token: Key,
    /// The key of all tables.
    pub tables: [u8; 16],
}

/// State machine of a DHTTP server. `receive` datagrams and `handle` inputs, then `poll` until it returns a timeout.
#[derive(Debug)]
pub struct Server {
    config: ServerConfig,
    losses: Losses,
    sizes: Sizes,
    response_memory: ResponseMemory,
    connections: Connections,
    guard: Option<Guard>,
}

/// Protection of a server against spoofed source addresses.
#[derive(Debug)]
struct Guard {
    factor: u64,
    tokens: Tokens,
    limits: SharedLimits,
}

/// Response rate limits, whose clones share one state: that of a server's threads.
#[derive(Clone, Debug)]
pub struct SharedLimits {
    /// For clients without a token.
    limiter: Limiter,
    /// For clients with one.
    rate: Limiter,
}

impl SharedLimits {
    /// Limits of a server; `None` if it trusts every address. `key` comes from a CSPRNG.
    pub fn new(config: &ServerConfig, key: [u8; 16]) -> Option<Self> {
        match config.validation {
            Validation::Trusting => None,
            Validation::Tokens { factor: _, lifetime: _, limiter, rate } => {
                Some(Self { limiter: Limiter::new(limiter, key), rate: Limiter::new(rate, key) })
            }
        }
    }
}

/// The headers of IP and UDP, by the longer of both versions (RFC 8200, section 3; RFC 768).
const DATAGRAM_HEADERS: u64 = 40 + 8;

/// Bytes of the SYNs of a connection that is never established: five within ten seconds (Linux from 6.5 on,
/// `tcp_syn_linear_timeouts`), of 80 bytes.
const SYNS_BYTES: u64 = 5 * 80;

impl Server {
    /// Creates a server without connections.
    pub fn new(config: ServerConfig, secrets: Secrets) -> Self {
        let limits = SharedLimits::new(&config, secrets.tables);
        Self::sharing(config, secrets, limits)
    }

    /// Creates the state machine of one of several threads of a server, which share the limits.
    pub fn sharing(config: ServerConfig, secrets: Secrets, limits: Option<SharedLimits>) -> Self {
        let guard = match config.validation {
            Validation::Trusting => None,
            Validation::Tokens { factor, lifetime, limiter: _, rate: _ } => {
                limits.map(|limits| Guard { factor, tokens: Tokens::new(secrets.token, lifetime), limits })
            }
        };
        Self {
            config,
            losses: Losses::new(config.loss, secrets.tables),
            sizes: Sizes::new(config.threshold, config.adapts, secrets.tables),
            response_memory: ResponseMemory::new(config.remembered),
            connections: Connections::new(config.connections, config.per_client, config.timeout),
            guard,
        }
    }

    /// Switches to another key of tokens; see [`Tokens::rotate`].
    pub const fn rotate(&mut self, key: Key) {
        if let Some(guard) = &mut self.guard {
            guard.tokens.rotate(key);
        }
    }

    /// Returns the number of responses and connections that the rate of clients with a token prevented here.
    pub fn rate_limited(&self) -> u64 {
        self.guard.as_ref().map_or(0, |guard| guard.limits.rate.limited())
    }

    /// Returns the number of connections that are open or being opened.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// Validates a datagram, and decides what to do with it.
    pub fn receive<'a>(&mut self, now: Time, source: SocketAddr, datagram: &'a [u8]) -> Verdict<'a> {
        if !can_be_client(source) {
            return Verdict::Ignore(IgnoreReason::Source);
        }
        let request = match Request::read(datagram, &self.config.limits) {
            Ok(request) => request,
            Err(reason) => return Verdict::Ignore(IgnoreReason::Malformed(reason)),
        };
        let Request { header, head, marks } = request;
        let client = SocketAddr::new(source.ip(), header.port);
        let validity = self.validity(now, client, &marks);
        let requests_token = marks.requests_token && validity == Validity::Nothing;
        if let Some(guard) = self.guard.as_mut().filter(|_| validity == Validity::Nothing) {
            match guard.limits.limiter.charge(now, source.ip(), 1) {
                Allowance::Granted => {}
                Allowance::Slip => {
                    return Verdict::Refer(self.fallback(now, header.id, client, requests_token));
                }
                Allowance::Silence => return Verdict::Ignore(IgnoreReason::Limited),
            }
        }
        // Send only the missing parts, so that those received are not wasted.
        let recovers = header.is_resend && marks.parts > 0 && marks.has_range;
        if header.is_resend {
            let id = global(source, header.id);
            let ignored = if self.response_memory.contains(id) && !recovers {
                Some(IgnoreReason::AlreadyAnswered)
            } else {
                self.response_memory.is_in_progress(id).then_some(IgnoreReason::InProgress)
            };
            // A client without a valid token must not be able to report loss on a path.
            let is_loss = ignored.is_none() || self.losses.counts_late_resends();
            if validity != Validity::Nothing && !marks.is_past_caches && is_loss {
                self.losses.count_resent(now, source.ip());
            }
            if let Some(reason) = ignored {
                return Verdict::Ignore(reason);
            }
        }
        if !self.is_for_datagrams(&head, &marks) {
            return Verdict::Refer(self.fallback(now, header.id, client, requests_token));
        }
        // Without a token no response takes a connection, not even an open one.
        let may_connect = validity != Validity::Nothing && self.may_begin_connection(header.id);
        let reserved = if may_connect { self.reserve(client) } else { None };
        let ticket = Ticket {
            id: header.id,
            source,
            client,
            bytes: datagram.len() as u64,
            is_resend: header.is_resend && !marks.is_past_caches,
            parts: marks.parts,
            recovers,
            validity,
            may_connect,
            requests_token,
            reserved,
        };
        Verdict::Serve(ticket, head)
    }

    /// Returns the token for a response of `size` bytes (id, header section and body), to be sent in the field
    /// [`super::token::TOKEN_FIELD`]. It is for clients without a valid token or with an ageing one, unless the
    /// response fits a datagram only without the field.
    pub fn token(&mut self, now: Time, ticket: &Ticket, size: impl FnOnce() -> u64) -> Option<Token> {
        if ticket.validity == Validity::Valid {
            return None;
        }
        let (guard, size) = (self.guard.as_ref()?, size());
        let max = self.sizes.max(now, ticket.source.ip()).min(guard.budget(ticket).unwrap_or(u64::MAX));
        let is_in_the_way = size <= max && size + Token::LINE_BYTES as u64 > max;
        (!is_in_the_way).then(|| guard.tokens.make(now, ticket.client))
    }

    /// Maximum bytes of UDP payload in response to a request; `None` with a token.
    pub fn budget(&self, ticket: &Ticket) -> Option<u64> {
        self.guard.as_ref().and_then(|guard| guard.budget(ticket))
    }

    /// Marks a request as in progress: resends of it are not served, but direct its response to TCP.
    pub fn defer(&mut self, ticket: &Ticket) {
        self.response_memory.begin(global(ticket.source, ticket.id));
    }

    /// Opens a connection for a deferred request while the application makes the response (`papers/dhttp#section-iii`), if the
    /// configuration has it: its id and the client. Only for clients with a token, within their rate, and by the rules for new
    /// connections. A response by UDP leaves the connection to later ones.
    pub fn open_early(&mut self, now: Time, ticket: &mut Ticket) -> Option<(ConnectionId, SocketAddr)> {
        let is_free = ticket.reserved.is_none() && ticket.may_connect;
        if !self.config.opens_early || !is_free {
            return None;
        }
        let (connection, is_new) = self.connection(now, ticket.client, None)?;
        ticket.reserved = Some(connection);
        is_new.then_some((connection, ticket.client))
    }

    /// Chooses the channel of a response of `size` bytes: id, header section and body.
    pub fn channel(&mut self, now: Time, ticket: Ticket, size: u64) -> Channel {
        self.channel_in_parts(now, ticket, size, || None)
    }

    /// The same, for a response that may be divisible; `divisible` is called only where it makes a difference.
    pub fn channel_in_parts(
        &mut self,
        now: Time,
        ticket: Ticket,
        size: u64,
        divisible: impl FnOnce() -> Option<DivisibleResponse>,
    ) -> Channel {
        let budget = self.budget(&ticket);
        let is_within = |bytes| budget.is_none_or(|budget| bytes <= budget);
        let Ticket {
            id,
            source,
            client,
            bytes: _,
            is_resend,
            parts,
            recovers,
            validity,
            may_connect,
            requests_token,
            reserved,
        } = ticket;
        let is_resend = (self.response_memory.end(global(source, id)) || is_resend) && !recovers;
        let max = self.sizes.max(now, source.ip());
        let parts = parts.min(self.config.parts);
        let division = if size > max && parts > 1 {
            divisible().and_then(|whole| whole.divide(max, parts))
        } else {
            None
        };
        if is_resend && (size <= max || division.is_some()) && validity != Validity::Nothing {
            self.strike(now, source.ip(), size.min(max));
        }
        let division = division.filter(|division| !is_resend && is_within(cost(*division)));
        let is_large = size > max && division.is_none();
        let kind = self.losses.choose(now, source.ip(), is_large, is_resend);
        if kind == ChannelKind::Udp && (division.is_some() || is_within(size)) {
            self.release(reserved);
            let bytes = division.map_or(size, cost) + DATAGRAM_HEADERS;
            if validity != Validity::Nothing && !self.is_within_rate(now, source.ip(), bytes) {
                return Channel::Refer(id.into());
            }
            if !recovers {
                self.losses.count_fresh(source.ip());
                self.sizes.sent(source.ip(), size.min(max));
            }
            return division.map_or(Channel::Datagram, Channel::Parts);
        }
        // Without a token the source may be spoofed: no SYN is sent there, and no response goes on a connection.
        let found = if may_connect { self.connection(now, client, reserved) } else { None };
        let Some((connection, is_new)) = found else {
            return Channel::Refer(self.fallback(now, id, client, requests_token));
        };
        self.connections.carry(now, connection, id);
        if !recovers {
            self.response_memory.remember(global(source, id));
        }
        if is_new { Channel::Open { connection, client } } else { Channel::Connection(connection) }
    }

    /// Ends a request without a response, and returns the message by which its client retries over plain HTTP.
    pub fn refer(&mut self, now: Time, ticket: Ticket) -> FallbackMessage {
        let message = self.fallback(now, ticket.id, ticket.client, ticket.requests_token);
        self.abandon(ticket);
        message
    }

    /// Ends a request without a response.
    pub fn abandon(&mut self, ticket: Ticket) {
        self.response_memory.end(global(ticket.source, ticket.id));
        self.release(ticket.reserved);
    }

    /// Handles an input from the sockets.
    pub fn handle(&mut self, now: Time, input: Input) {
        match input {
            Input::Opened(id) => self.connections.opened(now, id),
            Input::Progressed(id) => self.connections.progressed(now, id),
            Input::Written(id) => self.connections.written(now, id),
            Input::Closed(id) => self.end(id, Event::Lost, false),
            Input::Broken(id) => self.end(id, Event::Lost, true),
            Input::TooLarge(client, size) => self.sizes.refused(now, client, size),
        }
    }

    /// Returns the next action.
    pub fn poll(&mut self, now: Time) -> Output {
        let Some((id, is_idle)) = self.connections.overdue(now) else {
            return Output::Timeout(self.connections.next_due());
        };
        self.end(id, Event::TimedOut, !is_idle);
        if is_idle { Output::Close(id) } else { Output::Abort(id) }
    }

    /// The fallback message for a request, with a token if its client accepts one there.
    fn fallback(&self, now: Time, id: Id, client: SocketAddr, requests_token: bool) -> FallbackMessage {
        let guard = self.guard.as_ref().filter(|_| requests_token);
        let token = guard.map(|guard| guard.tokens.make(now, client));
        FallbackMessage::new(id, token.as_ref())
    }

    /// Counts a resend for a response small enough for UDP, which was lost to congestion or because of its size.
    fn strike(&mut self, now: Time, client: IpAddr, size: u64) {
        if let Some(resent) = self.sizes.count_resend(now, client, size) {
            self.losses.forgive(client, resent);
        }
    }

    fn validity(&self, now: Time, client: SocketAddr, marks: &Marks<'_>) -> Validity {
        let Some(guard) = &self.guard else { return Validity::Valid };
        let check = |token| guard.tokens.check(now, client, token);
        match marks.token.map_or(Validity::Nothing, check) {
            Validity::Nothing => marks.other_token.map_or(Validity::Nothing, check),
            validity @ (Validity::Valid | Validity::Ageing) => validity,
        }
    }

    /// Whether a response on a connection may begin with this id. In the Internet only a marked one, because the requester
    /// chooses these bytes, and another program may listen at the port.
    fn may_begin_connection(&self, id: Id) -> bool {
        match self.config.reach {
            Reach::Anywhere => true,
            Reach::Internet => id.number().is_some(),
        }
    }

    /// Whether the paper sends this over UDP: the request may be repeated, and everyone on the path may read it.
    fn is_for_datagrams(&self, head: &RequestView<'_>, marks: &Marks<'_>) -> bool {
        let is_safe = matches!(head.method, "GET" | "HEAD" | "OPTIONS");
        is_safe && !marks.wants_more && (self.config.takes_credentials || !marks.has_credentials)
    }

    /// Counts a request as pending at the connection that its response would take now.
    fn reserve(&mut self, client: SocketAddr) -> Option<ConnectionId> {
        match self.connections.choose(client) {
            ConnectionChoice::Idle(id) | ConnectionChoice::Fewest(id) => {
                self.connections.assign(id).then_some(id)
            }
            ConnectionChoice::New | ConnectionChoice::Nowhere => None,
        }
    }

    fn release(&mut self, reserved: Option<ConnectionId>) {
        if let Some(id) = reserved {
            self.connections.release(id);
        }
    }

    /// Returns a connection for a response, and whether it must be opened.
    fn connection(
        &mut self,
        now: Time,
        client: SocketAddr,
        reserved: Option<ConnectionId>,
    ) -> Option<(ConnectionId, bool)> {
        if let Some(id) = reserved.filter(|id| self.connections.is_open(*id)) {
            return Some((id, false));
        }
        match self.connections.choose(client) {
            ConnectionChoice::Idle(id) | ConnectionChoice::Fewest(id) => {
                self.connections.assign(id).then_some((id, false))
            }
            ConnectionChoice::New => {
                let is_allowed =
                    self.config.reach.allows(client) && self.is_within_rate(now, client.ip(), SYNS_BYTES);
                is_allowed.then(|| (self.connections.open(now, client), true))
            }
            ConnectionChoice::Nowhere => None,
        }
    }

    /// Whether `bytes` are within the limit of a client with a token; if so, they are counted.
    fn is_within_rate(&mut self, now: Time, client: IpAddr, bytes: u64) -> bool {
        let Some(guard) = &mut self.guard else { return true };
        unmapped(client).is_loopback() || {
            guard.limits.rate.charge(now, client, units(bytes)) == Allowance::Granted
        }
    }

    /// Removes a connection, and forgets those of its responses that may not have arrived.
    fn end(&mut self, id: ConnectionId, event: Event, broke: bool) {
        let Some((client, lost)) = self.connections.end(id, event, broke) else { return };
        for id in lost {
            self.response_memory.forget(global(client, id));
        }
    }
}

impl Guard {
    /// Maximum bytes of UDP payload in response to a request; `None` with a token.
    const fn budget(&self, ticket: &Ticket) -> Option<u64> {
        match ticket.validity {
            Validity::Valid | Validity::Ageing => None,
            Validity::Nothing => Some(self.factor.saturating_mul(ticket.bytes)),
        }
    }
}

/// Bytes of the UDP payload of all parts, and of the headers of each part but the first. The first one's headers are
/// as long as the request's own.
fn cost(division: DividedResponse) -> u64 {
    division.bytes() + DATAGRAM_HEADERS * (division.count() as u64).saturating_sub(1)
}

fn global(client: SocketAddr, id: Id) -> GlobalId {
    (unmapped(client.ip()), id)
}
