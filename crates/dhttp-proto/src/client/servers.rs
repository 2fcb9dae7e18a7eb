//! State of servers at a client: their round trips and the tokens they gave; and the datagrams that follow from it.
//!
//! Not whether a server speaks DHTTP at all: that is left to discovery.

use core::net::{IpAddr, SocketAddr};
use core::ops::RangeInclusive;
use std::collections::BTreeMap;

use wire::Time;

use super::timing::{ReceivedTraffic, RoundTrips};
use crate::message::{PAST_FIELD, RequestHeader, write_request};
use crate::parts::{MAX_PARTS, PARTS_FIELD};
use crate::token::{TOKEN_FIELD, TOKEN_REQUEST, is_token};
use http1::message::{Fields, RequestHead, ResponseHead};

/// Header field that pads a first request; its value has no meaning.
pub const FILL_FIELD: &str = "DHTTP-Fill";

/// All known servers; a bounded number.
#[derive(Debug)]
pub(super) struct Servers {
    max: usize,
    known: BTreeMap<SocketAddr, Server>,
}

/// State of a server.
#[derive(Debug, Default)]
pub(super) struct Server {
    pub(super) round_trips: RoundTrips,
    pub(super) received: ReceivedTraffic,
    /// Its token, and when that arrived.
    token: Option<(Vec<u8>, Time)>,
    /// State of the caches on the path to it.
    pub(super) cache: Cache,
    /// Whether a cache on the path to it has responded whose responses are not accepted.
    pub(super) is_behind_unwanted: bool,
    /// Reduction of its window of parts in flight, from [`MAX_WINDOW`].
    narrowed: u8,
    /// Parts that it was offered, in requests that have not ended.
    offered: u8,
}

/// Whether a cache on the path to a server has responded in its own name.
#[derive(Clone, Debug, Default)]
pub(super) enum Cache {
    /// Never.
    #[default]
    Unseen,
    /// It has, and gave no token, or one that is no longer valid.
    Seen,
    /// It has, and gave this token.
    Gave(Vec<u8>),
}

/// Maximum window, in parts: two responses of an initial window each (RFC 6928), as over two connections (RFC 2616,
/// section 8.1.4).
const MAX_WINDOW: u8 = 2 * MAX_PARTS;

impl Servers {
    pub(super) const fn new(max: usize) -> Self {
        Self { max, known: BTreeMap::new() }
    }

    pub(super) fn round_trips(&self, server: SocketAddr) -> RoundTrips {
        self.known.get(&server).map(|server| server.round_trips).unwrap_or_default()
    }

    pub(super) fn received(&self, server: SocketAddr) -> ReceivedTraffic {
        self.known.get(&server).map(|server| server.received).unwrap_or_default()
    }

    /// The same, for any server at this address.
    pub(super) fn received_from_host(&self, from: IpAddr) -> ReceivedTraffic {
        self.known.range(ports_of(from)).next().map(|(_, server)| server.received).unwrap_or_default()
    }

    /// Counts bytes that arrived from this host, on any channel.
    pub(super) fn count_received(&mut self, now: Time, from: IpAddr, bytes: usize, is_in_connection: bool) {
        let bytes = bytes as u64;
        for received in self.known.range_mut(ports_of(from)).map(|(_, server)| &mut server.received) {
            received.at = now;
            received.bytes = received.bytes.saturating_add(bytes);
            if is_in_connection {
                received.in_connections = received.in_connections.saturating_add(bytes);
            }
        }
    }

    /// Returns the fields to send to the server, and to a cache that may respond in its place.
    pub(super) fn shown(&self, server: SocketAddr) -> RequestTokens<'_> {
        let Some(known) = self.known.get(&server) else {
            return RequestTokens { tokens: [None; 3], is_known: false };
        };
        let (cache, is_known) = match &known.cache {
            Cache::Unseen => (None, true),
            Cache::Seen => (None, false),
            Cache::Gave(token) => (Some(&**token), true),
        };
        let token = known.token.as_ref().map(|(token, _)| &**token);
        RequestTokens { tokens: [None, token, cache], is_known: is_known && token.is_some() }
    }

    /// Returns the servers' tokens, and when each was learned.
    pub(super) fn tokens(&self) -> impl Iterator<Item = (SocketAddr, &[u8], Time)> {
        self.known.iter().filter_map(|(server, known)| {
            let (token, learned) = known.token.as_ref()?;
            Some((*server, &**token, *learned))
        })
    }

    /// Whether requests to it must pass caches.
    pub(super) fn is_behind_unwanted(&self, server: SocketAddr) -> bool {
        self.known.get(&server).is_some_and(|server| server.is_behind_unwanted)
    }

    /// Returns the number of parts of responses that a server may send now.
    pub(super) fn window(&self, server: SocketAddr) -> u8 {
        let known = self.known.get(&server);
        known.map_or(MAX_WINDOW, |known| known.window().saturating_sub(known.offered))
    }

    /// Returns the state of a server for an update; inserts it if it is unknown, and evicts another if the table is
    /// full.
    pub(super) fn find_or_insert(&mut self, server: SocketAddr) -> &mut Server {
        if self.known.len() >= self.max && !self.known.contains_key(&server) {
            self.known.pop_first();
        }
        self.known.entry(server).or_default()
    }
}

fn ports_of(host: IpAddr) -> RangeInclusive<SocketAddr> {
    SocketAddr::new(host, 0)..=SocketAddr::new(host, u16::MAX)
}

impl Server {
    fn window(&self) -> u8 {
        MAX_WINDOW.saturating_sub(self.narrowed).max(2)
    }

    /// Counts the parts that a request offers to accept.
    pub(super) const fn offer(&mut self, parts: u8) {
        self.offered = self.offered.saturating_add(parts);
    }

    /// Releases the parts of a request that has ended.
    pub(super) const fn take_back(&mut self, parts: u8) {
        self.offered = self.offered.saturating_sub(parts);
    }

    /// Increases the window after a response whose parts all arrived.
    pub(super) const fn widen(&mut self) {
        self.narrowed = self.narrowed.saturating_sub(1);
    }

    /// Halves the window after a loss of parts.
    pub(super) fn narrow(&mut self) {
        self.narrowed = MAX_WINDOW - (self.window() / 2).max(2);
    }

    /// Stores the token of a response, if it has one.
    pub(super) fn learn_token_of(&mut self, now: Time, head: &ResponseHead) {
        if let Some(token) = token(head) {
            self.store_token(now, token);
        }
    }

    /// Stores a token that arrived by UDP or on a connection that the server opened.
    pub(super) fn store_token(&mut self, now: Time, token: &[u8]) {
        self.token = Some((token.to_vec(), now));
    }

    /// Stores a token of an earlier client, unless there is one already.
    pub(super) fn restore_token(&mut self, learned: Time, token: &[u8]) {
        if self.token.is_none() {
            self.store_token(learned, token);
        }
    }

    /// Drops the token, because the server referred a request that carried it.
    pub(super) fn forget_token(&mut self) {
        self.token = None;
    }

    /// Stores the token of a cache on the path, which has responded in its own name.
    pub(super) fn learn_cache(&mut self, head: &ResponseHead) {
        match (token(head), &self.cache) {
            (Some(token), _) => self.cache = Cache::Gave(token.to_vec()),
            (None, Cache::Unseen) => self.cache = Cache::Seen,
            (None, Cache::Seen | Cache::Gave(_)) => {}
        }
    }
}

/// The tokens that go with a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestTokens<'a> {
    /// A request for a token, the server's, and the cache's.
    tokens: [Option<&'a [u8]>; 3],
    /// Whether every host that may respond has issued one of them.
    pub(super) is_known: bool,
}

impl RequestTokens<'_> {
    /// Whether the server's is among them.
    pub(super) const fn is_of_server(&self) -> bool {
        self.tokens[1].is_some()
    }

    /// The same tokens, with a request for one if `is_requested`.
    pub(super) fn requesting(self, is_requested: bool) -> Self {
        let [_, server, cache] = self.tokens;
        Self { tokens: [is_requested.then_some(TOKEN_REQUEST.as_bytes()), server, cache], ..self }
    }
}

/// Returns the token of a response if it is valid: it is sent with every request from now on.
fn token(head: &ResponseHead) -> Option<&[u8]> {
    head.fields.get(TOKEN_FIELD).filter(|token| is_token(token))
}

/// Writes a request that accepts this number of parts, with the tokens of its server and of a cache. It is padded if
/// one of them does not know this client.
pub(super) fn write_datagram(
    header: RequestHeader,
    head: &RequestHead,
    parts: u8,
    shown: RequestTokens<'_>,
    fill_to: usize,
) -> Vec<u8> {
    let mut datagram = Vec::with_capacity(USUAL_BYTES);
    // These fields are hop-by-hop: if forwarded, they would bring parts that are never reassembled.
    if [PARTS_FIELD, PAST_FIELD].into_iter().any(|name| head.fields.get(name).is_some()) {
        let mut own = RequestHead { fields: Fields::new(), ..head.clone() };
        let is_of_hop =
            |name: &[u8]| [PARTS_FIELD, PAST_FIELD].iter().any(|of| name.eq_ignore_ascii_case(of.as_bytes()));
        let others = head.fields.iter().filter(|(name, _)| !is_of_hop(name));
        others.for_each(|(name, value)| own.fields.push_checked(name, value));
        write_request(header, &own, &mut datagram);
    } else {
        write_request(header, head, &mut datagram);
    }
    // More fields come before the empty line.
    datagram.truncate(datagram.len() - LINE_END.len());
    if parts > 0 {
        add_field(&mut datagram, PARTS_FIELD, parts.to_string().as_bytes());
    }
    for token in shown.tokens.into_iter().flatten() {
        add_field(&mut datagram, TOKEN_FIELD, token);
    }
    let length = datagram.len() + LINE_END.len();
    if !shown.is_known && length < fill_to {
        let field = FILL_FIELD.len() + ": \r\n".len();
        let fill = "0".repeat(fill_to.saturating_sub(length + field).max(1));
        add_field(&mut datagram, FILL_FIELD, fill.as_bytes());
    }
    datagram.extend_from_slice(LINE_END);
    datagram
}

/// The same request in a form that caches on the path forward: marked as a resend, with [`PAST_FIELD`].
pub(super) fn past_caches(header: RequestHeader, datagram: &[u8]) -> Vec<u8> {
    let fields = RequestHeader::BYTES..datagram.len().saturating_sub(LINE_END.len());
    let mut past = header.to_bytes().to_vec();
    past.extend_from_slice(datagram.get(fields).unwrap_or_default());
    add_field(&mut past, PAST_FIELD, b"caches");
    past.extend_from_slice(LINE_END);
    past
}

/// Appends a field line to an unfinished header section.
fn add_field(datagram: &mut Vec<u8>, name: &str, value: &[u8]) {
    for piece in [name.as_bytes(), b": ", value, LINE_END] {
        datagram.extend_from_slice(piece);
    }
}

const LINE_END: &[u8] = b"\r\n";
/// Initial capacity: most requests are not longer.
const USUAL_BYTES: usize = 512;
