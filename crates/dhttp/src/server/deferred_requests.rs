//! Requests whose responses a handler has deferred.
//!
//! Not the deferred response itself: that is [`crate::deferred`].

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use dhttp_proto::server::Ticket;
use http1::message::{Fields, RequestHead};
use wire::Time;

use crate::batch::Endpoints;
use crate::deferred::{DeferredResponse, Mailbox, ResponseEvent};
use crate::handler::Response;
use crate::readiness::Waker;

/// Deferred requests of one thread.
#[derive(Debug)]
pub(super) struct DeferredRequests {
    mailbox: Arc<Mailbox>,
    waiting: BTreeMap<u64, DeferredRequest>,
    /// Number of deferred requests per client; unknown clients count as one.
    clients: BTreeMap<Option<IpAddr>, usize>,
    next: u64,
    /// Maximum number in this thread, and of one client.
    limits: (usize, usize),
}

#[derive(Debug)]
struct DeferredRequest {
    since: Time,
    client: Option<IpAddr>,
    requested: RequestChannel,
    later: DeferredResponse,
}

/// Channel of a request.
#[derive(Debug)]
pub(super) enum RequestChannel {
    /// In a datagram, with its ticket and header section.
    Datagram(Box<(Endpoints, Ticket, RequestHead)>),
    /// On the connection with this number.
    Connection(u64),
}

/// Maximum wait: the client has timed out by then.
const DEFERRED_TIMEOUT: wire::Duration = wire::Duration::from_secs(60);

impl DeferredRequests {
    /// Creates an empty set for at most `pending` requests, and `client_pending` of one client: an address, or a /64 of IPv6.
    ///
    /// # Errors
    /// If the system has no descriptor left.
    pub(super) fn new(pending: usize, client_pending: usize) -> io::Result<Self> {
        Ok(Self {
            mailbox: Arc::new(Mailbox::new()?),
            waiting: BTreeMap::new(),
            clients: BTreeMap::new(),
            next: 0,
            limits: (pending, client_pending),
        })
    }

    /// Returns the waker, ready when a response has arrived.
    pub(super) fn waker(&self) -> &Waker {
        self.mailbox.waker()
    }

    /// Whether the thread's or this client's maximum is reached.
    pub(super) fn is_full(&self, client: Option<IpAddr>) -> bool {
        let its = self.clients.get(&client.map(site)).copied().unwrap_or(0);
        let (total, of_client) = self.limits;
        self.waiting.len() >= total || its >= of_client
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Waits for a response; returns the number of the wait.
    pub(super) fn wait(
        &mut self,
        now: Time,
        later: DeferredResponse,
        client: Option<IpAddr>,
        requested: RequestChannel,
    ) -> u64 {
        let (number, client) = (self.next, client.map(site));
        self.next += 1;
        *self.clients.entry(client).or_default() += 1;
        later.await_in(&self.mailbox, number);
        self.waiting.insert(number, DeferredRequest { since: now, client, requested, later });
        number
    }

    /// Ends a wait: whatever arrives later is dropped.
    pub(super) fn abandon(&mut self, number: u64) {
        if let Some(request) = self.waiting.get(&number) {
            request.later.abandon();
        }
        self.leave(number);
    }

    /// Takes the messages that have arrived, with their requests.
    pub(super) fn take(&mut self) -> Vec<(RequestChannel, ResponseEvent)> {
        let arrived = self.mailbox.take().into_iter();
        arrived.filter_map(|(number, event)| Some((self.of(number, &event)?, event))).collect()
    }

    /// Returns the request that this message is for, if the message can be delivered.
    fn of(&mut self, number: u64, event: &ResponseEvent) -> Option<RequestChannel> {
        match (event, &self.waiting.get(&number)?.requested) {
            (ResponseEvent::Answer(..) | ResponseEvent::PlainHttp, _) => self.leave(number),
            (ResponseEvent::Interim(..), RequestChannel::Connection(id)) => {
                Some(RequestChannel::Connection(*id))
            }
            // One datagram carries one message, which is the response.
            (ResponseEvent::Interim(..), RequestChannel::Datagram(_)) => None,
        }
    }

    /// Removes requests that have timed out, and returns them with their 504 responses.
    pub(super) fn expired(&mut self, now: Time) -> Vec<(RequestChannel, ResponseEvent)> {
        let mut expired = Vec::new();
        // Numbers increase with time.
        while let Some((number, first)) = self.waiting.first_key_value()
            && now.since(first.since) > DEFERRED_TIMEOUT
            && let Some(requested) = self.leave(*number)
        {
            let response = Response::text(504, "504 Gateway Timeout");
            expired.push((requested, ResponseEvent::Answer(response, Fields::new())));
        }
        expired
    }

    /// Removes a request.
    fn leave(&mut self, number: u64) -> Option<RequestChannel> {
        let DeferredRequest { since: _, client, requested, later: _ } = self.waiting.remove(&number)?;
        if let Some(its) = self.clients.get_mut(&client) {
            *its -= 1;
            if *its == 0 {
                self.clients.remove(&client);
            }
        }
        Some(requested)
    }
}

/// Returns the address that identifies a client: /32, or /64 of IPv6.
fn site(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into(),
        address @ IpAddr::V4(_) => address,
    }
}
