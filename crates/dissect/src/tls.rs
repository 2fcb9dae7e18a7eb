//! TLS of one connection as it shows without keys: hellos, flights and round trips of the handshake, alerts, and later the sizes of
//! records, as far as they show what a record is not.
//!
//! A layer on [`stream`](crate::stream). Encrypted records are types and lengths; their plaintext is as long as the cipher
//! suite shows.

mod control;

pub use control::Content;
use std::collections::VecDeque;
use tls::hello::group_name;
use tls::message::MessageType;

use tls::{ClientHello, ContentType, Direction, Event, ServerHello, Version};
use wire::{Duration, Time};

use crate::stream::Reader;
use crate::{Both, Mark, Side};

/// TLS of one connection.
#[derive(Debug)]
pub struct Tls {
    directions: Both<Direction>,
    /// The Client Hello's first packet.
    pub began: Mark,
    /// The Client Hello.
    pub client: Option<Box<ClientHello>>,
    /// The Server Hello.
    pub server: Option<Box<ServerHello>>,
    /// A Hello Retry Request, and the Client Hello that follows it.
    pub retry: Option<Box<Retry>>,
    /// The server's flight that begins with its Server Hello.
    pub flight: Option<Flight>,
    /// Bytes of the server's certificates, where they are in the clear (TLS 1.2) or decrypted.
    pub certificate: Option<u32>,
    /// Whether the session was resumed; known once the client responds to the server's flight.
    pub is_resumed: bool,
    /// The client's first record after the server's flight: its turn in the handshake.
    pub reply: Option<Mark>,
    /// The client's first application data; in TLS 1.3 it can be its Finished message.
    pub ended: Option<Mark>,
    /// The server's last record of the handshake after the client's turn (TLS 1.2).
    finished: Option<Mark>,
    /// Records of the client's application data after its Finished message; the server's, without session tickets.
    pub contents: Both<u64>,
    /// Whether each side has sent an alert that may be its `close_notify`.
    pub has_closed: Both<bool>,
    /// The first fatal alert.
    pub alert: Option<Alert>,
    /// Bytes of content that each side has sent since its peer last updated a window of HTTP/2, and whether it has done so since they
    /// were sent.
    since_update: Both<u64>,
    is_updated: Both<bool>,
    /// Whether the client's last record can be a PING, with updates of windows or without, and the number of those that the server
    /// answered by a record of that size alone.
    is_pinged: bool,
    pongs: u16,
    /// The last records of each side that only updates of HTTP/2's windows can be.
    updates: Both<VecDeque<Mark>>,
    /// Length of the records that may be session tickets, and their number.
    tickets: Option<(u16, u8)>,
    /// Maximum time after which session tickets follow the client's Finished message, on this path.
    pub soon: Duration,
    is_whole: bool,
    /// Versions that ALPN offers, and chooses in the clear.
    offered: HttpVersions,
    chosen: Option<HttpVersions>,
    /// The version, and the bytes that encryption adds to each record.
    version: Option<Version>,
    overhead: Option<u16>,
    /// Whether HTTP/2 is spoken: by ALPN, or by the sizes of the server's first records.
    is_http2: Option<bool>,
    /// Bytes that the client has sent since the server's last record, and whether so few were a message: no request of HTTP/1.1 is
    /// as short, but messages of WebSocket are.
    turn: u64,
    has_short_turn: bool,
    /// Whether records are decrypted: alerts do not show by their sizes then.
    pub(crate) has_keys: bool,
}

/// Versions of HTTP, as ALPN names them.
#[derive(Clone, Copy, Debug, Default)]
struct HttpVersions {
    http1: bool,
    http2: bool,
}

impl HttpVersions {
    fn among(has: impl Fn(&str) -> bool) -> Self {
        Self { http1: has("http/1.1"), http2: has("h2") }
    }
}

/// Maximum number of updates that are remembered: enough for those of a round trip that come before the one that matters.
const MAX_UPDATES: usize = 64;

/// A Hello Retry Request.
#[derive(Clone, Debug)]
pub struct Retry {
    /// Its packet.
    pub mark: Mark,
    /// The packet of the next Client Hello.
    pub again: Option<Mark>,
    /// The group that the server requests.
    pub group: Option<u16>,
    /// Groups for which the client had sent a share.
    pub offered: Vec<u16>,
}

impl Retry {
    /// Returns the name of a group.
    pub fn name(group: u16) -> String {
        group_name(group).map_or_else(|| format!("group {group}"), str::to_owned)
    }
}

/// The server's first flight.
#[derive(Clone, Copy, Debug)]
pub struct Flight {
    /// Its first segment.
    pub first: Mark,
    /// Its last segment.
    pub last: Mark,
    /// Its bytes, headers of records included.
    pub bytes: u64,
}

/// A fatal alert.
#[derive(Clone, Copy, Debug)]
pub struct Alert {
    /// Side that sent it.
    pub from: Side,
    /// Its packet.
    pub mark: Mark,
    /// The alert; `None` if it is encrypted, and its size and place show it.
    pub alert: Option<tls::Alert>,
}

impl Tls {
    /// Returns whether a connection that begins with `payload` speaks TLS: a record with a Client Hello.
    pub fn begins(payload: &[u8]) -> bool {
        const HANDSHAKE: u8 = 22;
        const CLIENT_HELLO: u8 = 1;
        matches!(payload, [HANDSHAKE, 3, 0..=4, _, _, CLIENT_HELLO, ..])
    }

    /// Creates the state at a Client Hello, or at another record in the middle of a connection.
    pub fn new(began: Mark, is_whole: bool) -> Self {
        Self {
            directions: Both::default(),
            began,
            client: None,
            server: None,
            retry: None,
            flight: None,
            certificate: None,
            is_resumed: false,
            reply: None,
            ended: None,
            finished: None,
            contents: Both::default(),
            has_closed: Both::default(),
            alert: None,
            since_update: Both::default(),
            is_updated: Both::default(),
            updates: Both::default(),
            is_pinged: false,
            pongs: 0,
            tickets: None,
            soon: Duration::from_millis(20),
            is_whole,
            offered: HttpVersions::default(),
            chosen: None,
            version: None,
            overhead: None,
            is_http2: None,
            turn: 0,
            has_short_turn: false,
            has_keys: false,
        }
    }

    /// Returns whether application data follows, or an alert has ended the handshake.
    pub const fn is_over(&self) -> bool {
        self.ended.is_some() || self.alert.is_some()
    }

    /// Returns whether the handshake's beginning was captured.
    pub const fn client_began(&self) -> bool {
        self.is_whole
    }

    /// Returns whether both directions were captured in order so far.
    pub const fn is_read(&self) -> bool {
        !self.directions.client.is_lost() && !self.directions.server.is_lost()
    }

    /// Returns the name of the server, as the client requested it.
    pub fn server_name(&self) -> Option<&str> {
        self.client.as_ref()?.server_name.as_deref()
    }

    /// Returns whether requests get responses: the client offers HTTP/1.1, alone or beside HTTP/2. Clients of gRPC, which also
    /// streams, offer HTTP/2 alone.
    pub fn is_of_requests(&self) -> bool {
        let is_http1 = self.offered.http1 || self.chosen.is_some_and(|chosen| chosen.http1);
        is_http1 && !self.has_short_turn()
    }

    /// Returns whether the server sends nothing but responses: HTTP/1.1, by ALPN, or because the server's first record cannot begin
    /// HTTP/2.
    pub fn is_http1(&self) -> bool {
        let is_not_http2 = !self.offered.http2 || self.is_http2 == Some(false);
        !self.has_short_turn()
            && self.chosen.map_or(self.offered.http1 && is_not_http2, |chosen| chosen.http1)
    }

    /// Returns whether HTTP/2 is spoken, as its server's first record shows.
    pub fn is_http2(&self) -> bool {
        self.is_http2 == Some(true)
    }

    /// Returns the round trips that the handshake needs before the client's first request, as agreed.
    pub fn round_trips(&self) -> u32 {
        let own = match self.version {
            Some(Version::Old | Version::Tls12) if !self.is_resumed => 2,
            Some(Version::Old | Version::Tls12 | Version::Tls13) | None => 1,
        };
        own + u32::from(self.retry.is_some())
    }

    /// Returns the duration from the server's last record of its flight to the client's next: the time that the client
    /// took within the handshake, and the path.
    pub fn client_turn(&self) -> Option<(Mark, Mark)> {
        Some((self.flight?.last, self.reply?))
    }

    /// Returns the end of the handshake, if no side has sent content since and none is requested first: the client waits for what
    /// `payload` of the server begins, its greeting (SMTP, IMAP). An alert is none.
    pub fn awaits_greeting(&self, payload: &[u8]) -> Option<Mark> {
        let &[23, 3, _, a, b, ..] = payload else { return None };
        let has_content = self.contents.client + self.contents.server > 0 || self.offers_http();
        let is_greeting = self.is_whole
            && self.alert.is_none()
            && !has_content
            && !self.is_alert(u16::from_be_bytes([a, b]));
        self.handshake_end().filter(|_| is_greeting)
    }

    const fn offers_http(&self) -> bool {
        self.offered.http1 || self.offered.http2
    }

    /// Returns the last record of the handshake, once it is complete.
    fn handshake_end(&self) -> Option<Mark> {
        let of_client = self.reply.filter(|_| self.is_resumed && !self.is_tls13());
        self.ended.or(self.finished).or(of_client)
    }

    const fn is_tls13(&self) -> bool {
        matches!(self.version, Some(Version::Tls13))
    }

    fn handle(&mut self, side: Side, event: Event, mark: Mark) {
        match event {
            Event::ClientHello(hello) => self.client_hello(hello, mark),
            Event::ServerHello(hello) if hello.is_retry => {
                let offered = self.client.as_ref().map(|hello| hello.shares.clone()).unwrap_or_default();
                self.flight = None;
                self.retry = Some(Box::new(Retry { mark, again: None, group: hello.group, offered }));
            }
            Event::ServerHello(hello) => {
                let is_same =
                    |client: &ClientHello| !hello.session.is_empty() && hello.session == client.session;
                let is_same = self.client.as_deref().is_some_and(is_same);
                self.is_resumed = match hello.version {
                    Version::Tls13 => hello.accepts_psk,
                    Version::Old | Version::Tls12 => is_same,
                };
                self.overhead = hello.suite.overhead(hello.version);
                self.version = Some(hello.version);
                self.choose(hello.protocol.as_deref());
                self.server = Some(hello);
            }
            Event::Message { kind, length } => self.message(side, kind, length),
            Event::Alert(alert) => self.handle_alert(side, alert, mark),
            Event::Begins { content, length } => self.record(side, content, length, mark),
            Event::Ends { .. } => {}
        }
    }

    /// Handles a handshake message, in the clear or decrypted.
    pub(crate) fn message(&mut self, side: Side, kind: MessageType, length: u32) {
        if kind == MessageType::CERTIFICATE && side == Side::Server {
            self.certificate = Some(length);
            self.is_resumed = false;
        }
    }

    fn handle_alert(&mut self, side: Side, alert: tls::Alert, mark: Mark) {
        if alert.is_fatal && !alert.is_orderly() {
            self.alert = self.alert.or(Some(Alert { from: side, mark, alert: Some(alert) }));
        }
    }

    /// Handles an alert that was decrypted.
    pub(crate) fn encrypted_alert(&mut self, side: Side, alert: tls::Alert, mark: Mark) {
        *self.has_closed.of_mut(side) = true;
        self.handle_alert(side, alert, mark);
    }

    /// Handles the server's choice of an application protocol.
    pub(crate) fn choose(&mut self, protocol: Option<&str>) {
        self.chosen = protocol.map(|chosen| HttpVersions::among(|name| chosen == name)).or(self.chosen);
    }

    fn client_hello(&mut self, hello: Box<ClientHello>, mark: Mark) {
        if let Some(retry) = self.retry.as_mut() {
            retry.again.get_or_insert(mark);
        }
        self.offered = HttpVersions::among(|name| hello.offers(name));
        self.client = Some(hello);
    }

    /// Handles the header of a record.
    fn record(&mut self, side: Side, content: ContentType, length: u16, mark: Mark) {
        let is_alert = content == ContentType::Alert || self.ended.is_some() && self.is_alert(length);
        *self.has_closed.of_mut(side) |= is_alert;
        let is_early =
            self.client.as_ref().is_some_and(|hello| hello.has_early_data) && self.flight.is_none();
        if side == Side::Server && !self.is_tls13() && self.reply.is_some() && self.ended.is_none() {
            match content {
                ContentType::ApplicationData if !self.offers_http() => self.ended = self.handshake_end(),
                ContentType::ApplicationData => {}
                _ => self.finished = Some(mark),
            }
        }
        match side {
            Side::Client if is_early => {}
            Side::Client => {
                // Before the server's flight is complete, TLS 1.3 clients send a Change Cipher Spec without meaning.
                if self.flight.is_some() && content != ContentType::ChangeCipherSpec {
                    self.reply.get_or_insert(mark);
                }
                self.reject(side, content, length, mark);
                if content == ContentType::ApplicationData && !self.is_alert(length) {
                    let is_finished = self.ended.is_none() && self.is_finished(length);
                    self.contents.client += u64::from(!is_finished);
                    let plain = length.saturating_sub(self.overhead_of(side).unwrap_or_default());
                    self.turn += if is_finished { 0 } else { plain.into() };
                    self.update_window(side, length, mark);
                    self.ended.get_or_insert(mark);
                }
            }
            Side::Server if content == ContentType::ApplicationData && self.ended.is_some() => {
                if self.is_ticket(length, mark.at, self.tickets) {
                    self.tickets = Some((length, self.tickets.map_or(0, |(_, count)| count) + 1));
                } else if self.is_alert(length) {
                    self.reject(side, content, length, mark);
                } else {
                    self.learn_protocol(length);
                    self.contents.server += 1;
                    self.has_short_turn = self.has_short_turn();
                    self.turn = 0;
                    self.update_window(side, length, mark);
                }
            }
            Side::Server => {}
        }
    }

    /// Returns whether the client's turn, or an earlier one, is too short for HTTP. A request of HTTP/1.1 has a method, a target, the
    /// version and the name of its host (RFC 9112, section 3).
    fn has_short_turn(&self) -> bool {
        const MIN_REQUEST: u64 = b"GET / HTTP/1.1\r\nHost:\r\n\r\n".len() as u64;
        let is_known = self.overhead.is_some() && !self.may_be_http2();
        self.has_short_turn || is_known && (1..MIN_REQUEST).contains(&self.turn)
    }

    /// Recognizes the alert of a side that rejects the handshake, encrypted in TLS 1.3: the client's in place of its Finished
    /// message, the server's in place of all that it would send next, though a request waits.
    fn reject(&mut self, side: Side, content: ContentType, length: u16, mark: Mark) {
        let is_due = match side {
            Side::Client => self.flight.is_some() && self.ended.is_none(),
            Side::Server => self.contents.server == 0 && self.tickets.is_none() && self.contents.client > 0,
        };
        let is_whole = self.is_whole && self.server.is_some() && !self.has_closed.of(side.other());
        if is_due
            && is_whole
            && !self.has_keys
            && content == ContentType::ApplicationData
            && self.is_alert(length)
        {
            self.alert = Some(Alert { from: side, mark, alert: None });
        }
    }

    /// Returns the bytes that encryption adds to records of `side`. Java pads its content in TLS 1.3 with 16 bytes.
    fn overhead_of(&self, side: Side) -> Option<u16> {
        const PADDING: u16 = 16;
        let is_java = side == Side::Client && self.client.as_ref().is_some_and(|hello| hello.is_java);
        let padding = if is_java && self.is_tls13() { PADDING } else { 0 };
        self.overhead.map(|overhead| overhead + padding)
    }

    /// Handles a record of content that may update a window of HTTP/2.
    fn update_window(&mut self, side: Side, length: u16, mark: Mark) {
        let plain = self.overhead_of(side).map_or(length, |overhead| length.saturating_sub(overhead));
        let is_pong = self.is_pinged && side == Side::Server && plain == control::PING;
        self.pongs = self.pongs.saturating_add(u16::from(is_pong));
        self.is_pinged = side == Side::Client && control::is_ping(plain);
        if self.is_http2 == Some(true) && self.is_window_update(side, plain) {
            let updates = self.updates.of_mut(side);
            updates.truncate(MAX_UPDATES - 1);
            updates.push_front(mark);
            *self.is_updated.of_mut(side.other()) = true;
        } else {
            let is_new = std::mem::take(self.is_updated.of_mut(side));
            let since = self.since_update.of_mut(side);
            *since = if is_new { 0 } else { *since } + u64::from(length);
        }
    }

    /// Returns whether a record's plaintext updates windows. A request whose fields are all indexed can be as short, but a client
    /// updates no window for less than a page; a server widens one before it reads a body.
    fn is_window_update(&self, side: Side, plain: u16) -> bool {
        const PAGE: u64 = 4_096;
        let is_after_data = *self.since_update.of(side.other()) >= PAGE;
        match plain {
            control::WINDOW_UPDATE => is_after_data || side == Side::Server,
            control::TWO_WINDOW_UPDATES => is_after_data,
            // A response's fields can be as long, but a server that reads a body has sent other updates before.
            control::THREE_WINDOW_UPDATES => {
                is_after_data && side == Side::Server && !self.updates.server.is_empty()
            }
            _ => false,
        }
    }

    /// Returns the last record of `side`, up to `until`, that only updates of HTTP/2's windows can be.
    pub fn update_until(&self, side: Side, until: Time) -> Option<Mark> {
        self.updates.of(side).iter().find(|mark| mark.at <= until).copied()
    }

    /// Returns whether a record of `side` is incomplete; `None` if its records were not followed from the beginning.
    pub fn is_within_record(&self, side: Side) -> Option<bool> {
        let direction = self.directions.of(side);
        (self.is_whole && !direction.is_lost()).then(|| direction.is_within())
    }

    /// Learns from the server's first record whether it speaks HTTP/2: it begins with SETTINGS.
    fn learn_protocol(&mut self, length: u16) {
        if self.contents.server == 0 && self.may_be_http2() {
            let plain = self.overhead.map(|overhead| length.saturating_sub(overhead));
            // A server that writes much at once sends its SETTINGS with it.
            let is_certain = self.client.as_ref().is_some_and(|hello| hello.protocols == ["h2"]);
            self.is_http2 = Some(is_certain || plain.is_some_and(control::is_server_preface));
        }
    }

    /// Returns whether a record has the size of an encrypted alert of TLS 1.3: `close_notify` is no message.
    fn is_alert(&self, length: u16) -> bool {
        const ALERT: u16 = 2;
        // Before TLS 1.3 the type of a record is in the clear.
        self.is_tls13() && self.overhead.is_some_and(|overhead| length == overhead + ALERT)
    }

    /// Returns whether the client's first record of application data has the size of a Finished message (TLS 1.3).
    fn is_finished(&self, length: u16) -> bool {
        const HEADER: u16 = 4;
        // A hash of SHA-256 or SHA-384.
        self.is_tls13()
            && self
                .overhead
                .is_some_and(|overhead| [32, 48].contains(&length.saturating_sub(overhead + HEADER)))
    }

    /// Handles a part of the server's flight, of `length` bytes with headers.
    fn extend_flight(&mut self, length: u64, mark: Mark) {
        // A Hello Retry Request is no part of it.
        let is_due = self.retry.as_ref().is_none_or(|retry| retry.again.is_some());
        if self.is_whole && is_due && self.reply.is_none() && self.ended.is_none() {
            let Flight { first, bytes, .. } =
                self.flight.unwrap_or(Flight { first: mark, last: mark, bytes: 0 });
            self.flight = Some(Flight { first, last: mark, bytes: bytes + length });
        }
    }

    /// Returns whether HTTP/2 is possible: by ALPN in the clear, or offered and not known otherwise.
    fn may_be_http2(&self) -> bool {
        let by_alpn = self.chosen.map_or(self.offered.http2 && self.is_tls13(), |chosen| chosen.http2);
        self.is_http2.unwrap_or(by_alpn)
    }

    /// Returns whether a record that may be a session ticket may as well be the response: the client has sent a request, and the
    /// server nothing else.
    pub const fn may_have_responded(&self) -> bool {
        self.contents.client > 0 && self.contents.server == 0 && self.tickets.is_some()
    }

    /// Returns whether a server's record may be a session ticket of TLS 1.3: sent soon after the client's Finished message,
    /// before anything else, in the size of a ticket. A server's `tickets` have one length.
    fn is_ticket(&self, length: u16, at: Time, tickets: Option<(u16, u8)>) -> bool {
        const SIZES: core::ops::RangeInclusive<u16> = 80..=1_500;
        const MAX_TICKETS: u8 = 4;
        if self.contents.server > 0 || !self.is_tls13() || !SIZES.contains(&length) {
            return false;
        }
        let is_soon = self.ended.is_some_and(|ended| at.since(ended.at) <= self.soon);
        let is_alike = tickets.is_none_or(|(other, count)| other == length && count < MAX_TICKETS);
        // No server sends one to a client that cannot use it (RFC 8446, section 4.2.9).
        let is_usable = self.client.as_ref().is_none_or(|hello| hello.takes_tickets);
        is_usable && is_soon && is_alike
    }
}

impl Reader for Tls {
    fn bytes(&mut self, side: Side, data: &[u8], mark: Mark) {
        if self.alert.is_some() {
            return;
        }
        if !self.directions.of_mut(side).continues(data) {
            let mut direction = std::mem::take(self.directions.of_mut(side));
            direction.read(data, &mut |event| self.handle(side, event, mark));
            *self.directions.of_mut(side) = direction;
        }
        if side == Side::Server {
            self.extend_flight(data.len() as u64, mark);
        }
    }

    fn hole(&mut self, side: Side, length: u64, mark: Mark) {
        let mut direction = std::mem::take(self.directions.of_mut(side));
        direction.skip(length, &mut |event| self.handle(side, event, mark));
        *self.directions.of_mut(side) = direction;
        if side == Side::Server {
            self.extend_flight(length, mark);
        }
    }
}
