//! DHTTP: requests in datagrams, responses in datagrams or on connections that servers open, and plain HTTP where DHTTP
//! does not allow a request.
//!
//! `dhttp-proto`'s client handles the channels. Each exchange has a number of its own, as a connection would; over plain
//! HTTP it is the connection's. It is no driver, and its message ids are predictable: the runs of a testbed are
//! repeatable.

mod plain;

use core::net::SocketAddr;
use std::collections::{BTreeMap, VecDeque};

use dhttp_proto::client::{self, Client, ClientConfig, Reason, Refusal, Source};
use dhttp_proto::message::{Id, is_resend};
use wire::Time;
use wire::seed::Random;

use super::{
    ConnectionId, Ending, FromTransport, FromWire, Outcome, Progress, Request, RequestId, ToTransport, Wire,
};
use crate::plan::Http1Config;
use crate::report::{Break, Failure};
use plain::PlainExchanges;

/// Settings of a client that speaks DHTTP.
#[derive(Debug)]
pub struct DhttpConfig {
    /// Settings of the state machine.
    pub client: ClientConfig,
    /// Addresses of the plan's origins, in order.
    pub servers: Vec<SocketAddr>,
    /// TCP port on which it accepts connections.
    pub port: u16,
    /// Source of its message ids.
    pub ids: Random,
}

/// Transport of requests and responses, as counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransportCounts {
    /// Responses in a datagram.
    pub by_datagram: u64,
    /// Responses that began on a connection opened by the server.
    pub by_connection: u64,
    /// Requests over plain HTTP.
    pub by_plain_http: u64,
    /// Resent datagrams.
    pub resends: u64,
}

/// State of the transport.
#[derive(Debug)]
pub(crate) struct Dhttp {
    config: Http1Config,
    client: Client,
    servers: Vec<SocketAddr>,
    ids: Random,
    exchanges: BTreeMap<RequestId, Exchange>,
    /// Requests that wait for an exchange, and those with one that have not been passed to the client.
    queue: VecDeque<RequestId>,
    unsent: VecDeque<RequestId>,
    /// Request of each message id.
    requests: BTreeMap<Id, RequestId>,
    plain: PlainExchanges,
    /// Number of exchanges begun.
    begun: u32,
    outcomes: VecDeque<Outcome>,
    counts: TransportCounts,
}

/// A request that has not ended.
#[derive(Debug)]
struct Exchange {
    request: Request,
    /// Remaining number of tries.
    tries: u8,
    /// Number of the current try among all exchanges.
    number: ConnectionId,
    /// Whether any part of a response has arrived.
    has_response: bool,
    /// Message id, while it is carried by DHTTP.
    id: Option<Id>,
}

impl Dhttp {
    pub(crate) fn new(config: Http1Config, dhttp: DhttpConfig) -> Self {
        let DhttpConfig { client, servers, port, mut ids } = dhttp;
        let mut secret = [0; 16];
        let words = [ids.next_u64(), ids.next_u64()].map(u64::to_le_bytes);
        secret.iter_mut().zip(words.as_flattened()).for_each(|(byte, word)| *byte = *word);
        Self {
            plain: PlainExchanges::new(config, client.stall),
            config,
            client: Client::new(client, port, secret),
            servers,
            ids,
            exchanges: BTreeMap::new(),
            queue: VecDeque::new(),
            unsent: VecDeque::new(),
            requests: BTreeMap::new(),
            begun: 0,
            outcomes: VecDeque::new(),
            counts: TransportCounts::default(),
        }
    }

    /// Transport of requests and responses so far.
    pub(crate) const fn counts(&self) -> TransportCounts {
        self.counts
    }

    /// Handles input from the policy.
    pub(crate) fn request(&mut self, _now: Time, input: ToTransport) {
        match input {
            ToTransport::Send(request) => {
                let (id, tries) = (request.id, self.config.tries.get());
                let number = ConnectionId(self.begun);
                let exchange = Exchange { request, tries, number, has_response: false, id: None };
                self.exchanges.insert(id, exchange);
                let place = self.queue.partition_point(|other| self.priority(*other) >= self.priority(id));
                self.queue.insert(place, id);
            }
            ToTransport::Cancel(id) => self.end(id),
            // No exchange outlives its response; a plain connection waits for its server's end.
            // An exchange needs no connection of the client's.
            ToTransport::Preconnect(_) | ToTransport::CloseIdle => {}
            ToTransport::Abort => {
                let ids: Vec<RequestId> = self.exchanges.keys().copied().collect();
                ids.into_iter().for_each(|id| self.end(id));
                self.plain.abort(&mut self.outcomes);
            }
        }
    }

    /// Handles input from the network.
    pub(crate) fn handle(&mut self, now: Time, input: FromWire<'_>) {
        match input {
            FromWire::Datagram(from, datagram) => {
                if let Some(server) = self.servers.get(from) {
                    self.client.handle(now, client::Input::Datagram(*server, datagram));
                }
            }
            FromWire::Unreachable(origin) => {
                if let Some(server) = self.servers.get(origin) {
                    self.client.handle(now, client::Input::Unreachable(*server));
                }
            }
            FromWire::Accepted(id, from) => {
                if let (Some(id), Some(server)) = (opened(id), self.servers.get(from)) {
                    self.client.handle(now, client::Input::Accepted(id, *server));
                }
            }
            FromWire::Received(id, bytes) => match opened(id) {
                Some(id) => self.client.handle(now, client::Input::Received(id, bytes)),
                None => self.receive_plain(now, id, bytes),
            },
            FromWire::EndOfStream(id) | FromWire::Broken(id, _) => match opened(id) {
                Some(id) => self.client.handle(now, client::Input::Ended(id)),
                None => self.handle_plain(now, input),
            },
            FromWire::Connected(_) => self.handle_plain(now, input),
        }
    }

    /// Next queued output.
    pub(crate) fn take(&mut self) -> Option<Outcome> {
        self.outcomes.pop_front()
    }

    /// Takes the next step: begins exchanges, handles the client's output, sends a request, or handles a timer.
    pub(crate) fn poll(&mut self, now: Time) -> Progress {
        if self.begin() {
            return Progress::Some;
        }
        let channels = match self.client.poll(now) {
            client::Output::Timeout(channels) => channels,
            output => {
                self.handle_client_output(now, output);
                return Progress::Some;
            }
        };
        if let Some(id) = self.unsent.pop_front() {
            self.send(now, id);
            return Progress::Some;
        }
        match self.plain.next_timeout() {
            Some((id, due)) if due <= now => {
                self.outcomes.push_back(Outcome::Wire(Wire::Close(id, Ending::Reset)));
                self.handle_plain(now, FromWire::Broken(id, Break::Unreachable));
                Progress::Some
            }
            idle => {
                self.plain.settle(now, &mut self.outcomes);
                if !self.outcomes.is_empty() {
                    return Progress::Some;
                }
                let times = [channels, idle.map(|(_, due)| due), self.plain.linger()];
                Progress::Timeout(times.into_iter().flatten().min())
            }
        }
    }

    /// Whether no request and no connection of the client's own is left.
    pub(crate) fn is_idle(&self) -> bool {
        self.exchanges.is_empty() && self.plain.is_idle() && self.outcomes.is_empty()
    }

    fn priority(&self, id: RequestId) -> page::Priority {
        self.exchanges.get(&id).map_or(page::Priority::Lowest, |exchange| exchange.request.priority)
    }

    fn event(&mut self, event: FromTransport) {
        self.outcomes.push_back(Outcome::Event(event));
    }

    /// Begins exchanges for waiting requests, while there are fewer than the maximum; returns whether it did.
    fn begin(&mut self) -> bool {
        let mut has_begun = false;
        while self.exchanges.len() - self.queue.len() < self.config.connections {
            let Some(id) = self.queue.pop_front() else { break };
            let Some(exchange) = self.exchanges.get_mut(&id) else { continue };
            exchange.number = ConnectionId(self.begun);
            exchange.tries -= 1;
            self.begun += 1;
            let number = exchange.number;
            self.unsent.push_back(id);
            self.event(FromTransport::Sent(id, number));
            has_begun = true;
        }
        has_begun
    }

    /// Sends a request by DHTTP, or over plain HTTP where DHTTP does not allow it.
    fn send(&mut self, now: Time, id: RequestId) {
        loop {
            let message = Id::marked(self.ids.next_u64());
            let Some(exchange) = self.exchanges.get_mut(&id) else { return };
            let Some(server) = self.servers.get(exchange.request.origin) else { return };
            match self.client.request(now, message, *server, &exchange.request.head) {
                Ok(()) => {
                    exchange.id = Some(message);
                    self.requests.insert(message, id);
                    return;
                }
                Err(Refusal::IdInUse) => {}
                Err(
                    Refusal::Unsafe
                    | Refusal::NotAlone
                    | Refusal::Credentials
                    | Refusal::TooLarge
                    | Refusal::Crowded,
                ) => return self.fall_back(now, id),
            }
        }
    }

    fn fall_back(&mut self, now: Time, id: RequestId) {
        let Some(exchange) = self.exchanges.get(&id) else { return };
        self.counts.by_plain_http += 1;
        self.plain.open(now, exchange.number, &exchange.request, &mut self.outcomes);
    }

    /// Ends an exchange without a report.
    fn end(&mut self, id: RequestId) {
        let Some(exchange) = self.exchanges.remove(&id) else { return };
        self.queue.retain(|other| *other != id);
        self.unsent.retain(|other| *other != id);
        match exchange.id {
            Some(message) => {
                self.requests.remove(&message);
                self.client.cancel(message);
            }
            None => self.plain.close(exchange.number, &mut self.outcomes),
        }
    }

    /// Handles an event of a client's exchange.
    fn handle_client_output(&mut self, now: Time, output: client::Output) {
        match output {
            client::Output::Send(to, datagram) => {
                self.counts.resends += u64::from(is_resend(&datagram));
                if let Some(endpoint) = self.servers.iter().position(|server| *server == to) {
                    self.outcomes.push_back(Outcome::Wire(Wire::Datagram(endpoint, datagram)));
                }
            }
            client::Output::Head(id, source, head) => {
                match source {
                    Source::Datagram(_) => self.counts.by_datagram += 1,
                    Source::Connection(_) => self.counts.by_connection += 1,
                }
                if let Some(request) = self.requests.get(&id).copied() {
                    self.deliver(FromTransport::Head(request, head));
                }
            }
            client::Output::Body(id, part) => {
                if let Some(request) = self.requests.get(&id).copied() {
                    let count = part.len() as u64;
                    self.deliver(FromTransport::Bytes(request, count, part));
                }
            }
            client::Output::End(id) => {
                if let Some(request) = self.requests.remove(&id) {
                    self.deliver(FromTransport::Done(request));
                }
            }
            client::Output::Failed(id, cause) => {
                let cause = match cause {
                    client::Failure::Ended | client::Failure::Malformed(_) => Break::Reset,
                    client::Failure::Stalled => Break::Unreachable,
                };
                if let Some(request) = self.requests.remove(&id) {
                    self.deliver(FromTransport::Failed(request, Failure::Broken(cause)));
                }
            }
            client::Output::Fallback(
                id,
                Reason::Referred | Reason::Unreachable | Reason::Silence | Reason::Paused,
            ) => {
                if let Some(request) = self.requests.remove(&id) {
                    self.exchanges.entry(request).and_modify(|exchange| exchange.id = None);
                    self.fall_back(now, request);
                }
            }
            client::Output::Close(id) => {
                let id = ConnectionId::accepted(u32::try_from(id.0).unwrap_or(u32::MAX));
                self.outcomes.push_back(Outcome::Wire(Wire::Close(id, Ending::Fin)));
            }
            client::Output::Discarded(..) | client::Output::Timeout(_) => {}
        }
    }

    /// Passes an event of an exchange on. A request that failed without any response is retried where allowed.
    fn deliver(&mut self, event: FromTransport) {
        match &event {
            FromTransport::Head(id, _) => {
                self.exchanges.entry(*id).and_modify(|exchange| exchange.has_response = true);
            }
            FromTransport::Done(id) => drop(self.exchanges.remove(id)),
            FromTransport::Failed(id, _) => {
                let Some(exchange) = self.exchanges.get_mut(id) else { return };
                exchange.id = None;
                let may_retry = !exchange.has_response && exchange.tries > 0;
                if may_retry && exchange.request.head.method.is_safe() {
                    let id = *id;
                    let place = self.queue.partition_point(|other| self.priority(*other) > self.priority(id));
                    return self.queue.insert(place, id);
                }
                self.exchanges.remove(id);
            }
            // An exchange is reported as sent when it begins, whatever carries it.
            FromTransport::Sent(..) => return,
            FromTransport::Bytes(..) | FromTransport::Fault(..) => {}
        }
        self.event(event);
    }

    fn receive_plain(&mut self, now: Time, id: ConnectionId, bytes: &[u8]) {
        if let Some(server) = self.plain.origin(id).and_then(|origin| self.servers.get(origin)).copied() {
            self.client.handle(now, client::Input::Heard(server.ip(), bytes.len()));
        }
        self.handle_plain(now, FromWire::Received(id, bytes));
    }

    /// Handles an event of a plain connection.
    fn handle_plain(&mut self, now: Time, input: FromWire<'_>) {
        let mut outcomes = VecDeque::new();
        self.plain.handle(now, input, &mut outcomes);
        for outcome in outcomes {
            match outcome {
                Outcome::Event(event) => self.deliver(event),
                wire @ Outcome::Wire(_) => self.outcomes.push_back(wire),
            }
        }
    }
}

/// DHTTP's identifier of a connection that a server opened.
fn opened(id: ConnectionId) -> Option<client::ConnectionId> {
    id.accepted_number().map(|number| client::ConnectionId(u64::from(number)))
}
