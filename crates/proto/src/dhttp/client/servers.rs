//! What a client knows of servers: their round trips and the tokens they gave; and the datagrams that follow from it.
//!
//! Not whether a server speaks DHTTP at all: that is for whoever discovers it.

use core::net::SocketAddr;
use std::collections::BTreeMap;

use super::timing::RoundTrips;
use crate::dhttp::message::{RequestHeader, write_request};
use crate::dhttp::token::TOKEN_FIELD;
use crate::http::{RequestHead, ResponseHead};

/// The header field that fills a first request up; its value means nothing.
pub const FILL_FIELD: &str = "DHTTP-Fill";

/// All that are known; a bounded number.
#[derive(Debug)]
pub(super) struct Servers {
    most: usize,
    known: BTreeMap<SocketAddr, Server>,
}

/// What is known of a server.
#[derive(Debug, Default)]
pub(super) struct Server {
    pub(super) round_trips: RoundTrips,
    pub(super) token: Option<Vec<u8>>,
}

impl Servers {
    pub(super) const fn new(most: usize) -> Self {
        Self { most, known: BTreeMap::new() }
    }

    pub(super) fn round_trips(&self, server: SocketAddr) -> RoundTrips {
        self.known.get(&server).map(|server| server.round_trips).unwrap_or_default()
    }

    pub(super) fn token(&self, server: SocketAddr) -> Option<&[u8]> {
        self.known.get(&server)?.token.as_deref()
    }

    /// One of them, to learn about.
    pub(super) fn learn(&mut self, server: SocketAddr) -> &mut Server {
        if self.known.len() >= self.most && !self.known.contains_key(&server) {
            self.known.pop_first();
        }
        self.known.entry(server).or_default()
    }
}

impl Server {
    /// Keeps the token that an answer gives.
    pub(super) fn learn_token(&mut self, head: &ResponseHead) {
        let token = head.fields.get(TOKEN_FIELD).filter(|token| token.len() <= MOST_TOKEN);
        if let Some(token) = token.filter(|token| token.iter().all(u8::is_ascii_graphic)) {
            self.token = Some(token.to_vec());
        }
    }
}

/// A token of another server than ours may be longer, but not much: it is sent with every request.
const MOST_TOKEN: usize = 64;

/// A request with the token that its server gave, or else filled up.
pub(super) fn write_datagram(
    header: RequestHeader,
    head: &RequestHead,
    token: Option<&[u8]>,
    fill_to: usize,
) -> Vec<u8> {
    let mut head = head.clone();
    let mut datagram = Vec::new();
    match token {
        Some(token) => head.fields.push_checked(TOKEN_FIELD.as_bytes(), token),
        None => {
            write_request(header, &head, &mut datagram);
            let field = FILL_FIELD.len() + ": \r\n".len();
            if datagram.len() < fill_to {
                let fill = "0".repeat(fill_to.saturating_sub(datagram.len() + field).max(1));
                head.fields.push_checked(FILL_FIELD.as_bytes(), fill.as_bytes());
            }
            datagram.clear();
        }
    }
    write_request(header, &head, &mut datagram);
    datagram
}
