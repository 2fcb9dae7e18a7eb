//! Requests whose answers a handler has promised for later.
//!
//! Not the promise: that is [`crate::later`].

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use dhttp_proto::server::Ticket;
use http1::message::{Fields, RequestHead};
use wire::Time;

use crate::batch::Ends;
use crate::handler::Answer;
use crate::later::{Later, Mailbox, Word};

/// Those of one thread.
#[derive(Debug)]
pub(super) struct Desk {
    mailbox: Arc<Mailbox>,
    waiting: BTreeMap<u64, Waiting>,
    /// Number of them per client; unknown clients count as one.
    clients: BTreeMap<Option<IpAddr>, usize>,
    next: u64,
}

#[derive(Debug)]
struct Waiting {
    since: Time,
    client: Option<IpAddr>,
    asked: Asked,
}

/// Channel of a request.
#[derive(Debug)]
pub(super) enum Asked {
    /// In a datagram, by this request.
    Datagram(Box<(Ends, Ticket, RequestHead)>),
    /// On the connection with this number.
    Connection(u64),
}

/// No more wait in one thread.
const MOST: usize = 16_384;
/// Nor more of one client: an address, or a /64 of IPv6.
const CLIENT_MOST: usize = 1_024;
/// Nobody waits longer: whoever asked has given up by then.
const PATIENCE: wire::Duration = wire::Duration::from_secs(60);

impl Desk {
    /// # Errors
    /// If the system has no descriptor left.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            mailbox: Arc::new(Mailbox::new()?),
            waiting: BTreeMap::new(),
            clients: BTreeMap::new(),
            next: 0,
        })
    }

    /// Readable when an answer has come.
    pub(super) fn waker(&self) -> &OwnedFd {
        self.mailbox.waker()
    }

    /// Whether no more can wait, or no more of this client's.
    pub(super) fn is_full(&self, client: Option<IpAddr>) -> bool {
        let its = self.clients.get(&client.map(site)).copied().unwrap_or(0);
        self.waiting.len() >= MOST || its >= CLIENT_MOST
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn wait(&mut self, now: Time, later: Later, client: Option<IpAddr>, asked: Asked) {
        let (number, client) = (self.next, client.map(site));
        self.next += 1;
        *self.clients.entry(client).or_default() += 1;
        self.waiting.insert(number, Waiting { since: now, client, asked });
        later.await_in(&self.mailbox, number);
    }

    /// Takes the messages that have come, with their requests.
    pub(super) fn take(&mut self) -> Vec<(Asked, Word)> {
        let come = self.mailbox.take().into_iter();
        come.filter_map(|(number, word)| Some((self.of(number, &word)?, word))).collect()
    }

    /// Returns the request that this message is for, if it gets it.
    fn of(&mut self, number: u64, word: &Word) -> Option<Asked> {
        match (word, &self.waiting.get(&number)?.asked) {
            (Word::Answer(..) | Word::PlainHttp, _) => self.leave(number),
            (Word::Interim(..), Asked::Connection(id)) => Some(Asked::Connection(*id)),
            // One datagram is one message, and that is the answer.
            (Word::Interim(..), Asked::Datagram(_)) => None,
        }
    }

    /// Those who have waited for too long, and what they are told.
    pub(super) fn expired(&mut self, now: Time) -> Vec<(Asked, Word)> {
        let mut expired = Vec::new();
        // Numbers are given in the order of time.
        while let Some((number, first)) = self.waiting.first_key_value()
            && now.since(first.since) > PATIENCE
            && let Some(asked) = self.leave(*number)
        {
            let answer = Answer::text(504, "504 Gateway Timeout");
            expired.push((asked, Word::Answer(answer, Fields::new())));
        }
        expired
    }

    /// One waits no longer.
    fn leave(&mut self, number: u64) -> Option<Asked> {
        let Waiting { since: _, client, asked } = self.waiting.remove(&number)?;
        if let Some(its) = self.clients.get_mut(&client) {
            *its -= 1;
            if *its == 0 {
                self.clients.remove(&client);
            }
        }
        Some(asked)
    }
}

/// The addresses that are one client: /32, or /64 of IPv6.
fn site(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into(),
        address @ IpAddr::V4(_) => address,
    }
}
