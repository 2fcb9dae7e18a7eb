//! Requests by UDP: each is checked, handled, and its response sent by the state machine's channel.
//!
//! Responses by UDP allocate nothing, unless the handler does.

use std::net::SocketAddr;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use dhttp_proto::server::{self as machine, IgnoreReason, Input, Response as _, Stream, Ticket, Verdict};
use dhttp_proto::token::Token;
use dhttp_proto::{Id, Server as Machine};
use http1::message::RequestHead;
use wire::Time;

use super::date_header::{self, DateHeader};
use super::deferred_requests::RequestChannel;
use super::opened_connections::OpenedConnections;
use super::worker::{Worker, WorkerParts};
use crate::batch::{BATCH, Endpoints, Outbox};
use crate::counters::{Counters, add, count};
use crate::deferred::Reply;
use crate::handler::{Body, Handler, Outcome, Request, Response};
use crate::log::{self, Log};
use crate::readiness::Poller;

/// Maximum number of datagrams received before connections are served.
const TURN_DATAGRAMS: usize = 8 * BATCH;
/// Responses that are gathered for one system call.
const MAX_WAITING: usize = 4 * BATCH;

impl<H: Handler> Worker<H> {
    /// Receives datagrams and responds to them.
    pub(super) fn datagrams(&mut self) {
        let mut received = 0;
        while received < TURN_DATAGRAMS {
            let Ok(messages) = self.inbox.receive(&self.sockets.udp) else { return };
            received += self.inbox.len();
            let now = self.clock.now();
            self.today.look(now);
            for index in 0..self.inbox.len() {
                self.datagram(now, index);
                if self.outbox.len() >= MAX_WAITING {
                    self.send();
                }
            }
            self.send();
            if messages < BATCH {
                return;
            }
        }
    }

    fn send(&mut self) {
        let (bytes, lost) = self.outbox.send(&self.sockets.udp);
        add(&self.counters.sent_bytes, bytes);
        add(&self.counters.unsent, lost);
        if lost > 0 {
            self.referred_for_size();
        }
    }

    /// Refers responses too large for the link to plain HTTP, immediately; similar ones use TCP from now on.
    fn referred_for_size(&mut self) {
        let now = self.clock.now();
        for (datagram, ends) in self.outbox.too_large() {
            self.machine.handle(now, Input::TooLarge(ends.peer.ip(), datagram.len() as u64));
            if let Some((eight, _)) = datagram.split_first_chunk::<{ Id::BYTES }>() {
                self.outbox.slot(ends).extend_from_slice(eight);
                count(&self.counters.referred);
            }
        }
        let (bytes, lost) = self.outbox.send(&self.sockets.udp);
        add(&self.counters.sent_bytes, bytes);
        add(&self.counters.unsent, lost);
    }

    fn datagram(&mut self, now: Time, index: usize) {
        let WorkerParts { inbox, handler, deferred_requests, mut context } = self.parts();
        let Some((ends, bytes)) = inbox.datagram(index) else {
            return count(&context.counters.ignored_malformed);
        };
        add(&context.counters.received_bytes, bytes.len() as u64);
        // A datagram addressed to the server's own port is for this server.
        let on_its_way_to = inbox.written_to(index).filter(|to| to.port() != context.local.port());
        // The response to a diverted datagram leaves from this server's own address.
        let ends = if on_its_way_to.is_some() { Endpoints { local: None, ..ends } } else { ends };
        let (mut ticket, head) = match context.machine.receive(now, ends.peer, bytes) {
            Verdict::Serve(ticket, head) => {
                if ticket.is_resend() {
                    count(&context.counters.resent);
                }
                (ticket, head)
            }
            Verdict::Refer(message) => {
                count(&context.counters.referred);
                context.outbox.slot(ends).extend_from_slice(message.as_bytes());
                return;
            }
            Verdict::Ignore(reason) => {
                if matches!(reason, IgnoreReason::AlreadyAnswered | IgnoreReason::InProgress) {
                    count(&context.counters.resent);
                }
                return count(match reason {
                    IgnoreReason::Source => &context.counters.ignored_source,
                    IgnoreReason::Malformed(_) => &context.counters.ignored_malformed,
                    IgnoreReason::Limited => &context.counters.ignored_limited,
                    IgnoreReason::AlreadyAnswered | IgnoreReason::InProgress => {
                        &context.counters.ignored_answered
                    }
                });
            }
        };
        let validated_client = ticket.has_proved_its_address().then(|| ends.peer.ip().to_canonical());
        let budget = context.machine.budget(&ticket);
        let request = Request::of_datagram(&head)
            .on_its_way_to(on_its_way_to)
            .from_client(validated_client)
            .within(budget);
        handler.respond_with(now, &request, |shown| match shown {
            Outcome::Borrowed(response) => context.respond(now, (ends, ticket), &request, response),
            Outcome::Owned(Reply::Now(response)) => context.respond(now, (ends, ticket), &request, &response),
            Outcome::Owned(Reply::PlainHttp) => context.refer(now, ends, ticket),
            Outcome::Owned(Reply::Later(later)) if deferred_requests.is_full(validated_client) => {
                drop(later);
                count(&context.counters.refused_pending);
                context.respond(
                    now,
                    (ends, ticket),
                    &request,
                    &Response::text(503, "503 Service Unavailable"),
                );
            }
            Outcome::Owned(Reply::Later(later)) => {
                // Resends get no response until this request has one.
                context.machine.defer(&ticket);
                context.open_early(now, ends, &mut ticket);
                deferred_requests.wait(
                    now,
                    later,
                    validated_client,
                    RequestChannel::Datagram(Box::new((ends, ticket, head.to_head()))),
                );
            }
        });
    }

    /// Refers clients that could not be connected to plain HTTP.
    pub(super) fn refer_unreached(&mut self) {
        let unreached = self.opened.take_unreached();
        if unreached.is_empty() {
            return;
        }
        for (ends, id) in unreached {
            self.outbox.slot(ends).extend_from_slice(&id.to_bytes());
            count(&self.counters.referred);
        }
        self.send();
    }

    /// Refers a client with a deferred request to plain HTTP.
    pub(super) fn refer_datagram(&mut self, ends: Endpoints, ticket: Ticket) {
        let now = self.clock.now();
        self.parts().context.refer(now, ends, ticket);
        self.send();
    }

    /// Responds to a deferred request.
    pub(super) fn respond_datagram(
        &mut self,
        now: Time,
        ends: Endpoints,
        ticket: Ticket,
        head: &RequestHead,
        response: &Response,
    ) {
        self.today.look(now);
        let request = Request::of_connection(head, &[]);
        self.parts().context.respond(now, (ends, ticket), &request, response);
        self.send();
    }
}

/// Parts of the thread that a response to a datagram needs.
pub(super) struct DatagramContext<'a> {
    pub(super) machine: &'a mut Machine,
    pub(super) opened: &'a mut OpenedConnections,
    pub(super) outbox: &'a mut Outbox,
    pub(super) poller: &'a Poller,
    pub(super) today: &'a DateHeader,
    pub(super) counters: &'a Counters,
    pub(super) log: Option<&'a Log>,
    pub(super) local: SocketAddr,
    pub(super) fast_open: bool,
}

impl DatagramContext<'_> {
    /// Refers the client to plain HTTP.
    fn refer(&mut self, now: Time, ends: Endpoints, ticket: Ticket) {
        let message = self.machine.refer(now, ticket);
        self.outbox.slot(ends).extend_from_slice(message.as_bytes());
        count(&self.counters.referred);
    }

    fn respond(
        &mut self,
        now: Time,
        (ends, ticket): (Endpoints, Ticket),
        request: &Request<'_>,
        reply: &Response,
    ) {
        let body = (!request.is_head() && !reply.is_bodiless()).then_some(&reply.body);
        let response = DatagramResponse { response: reply, body, today: self.today };
        let mut outbox = ClientOutbox { outbox: self.outbox, ends };
        let channel = match self.machine.respond(now, ticket, &response, &mut outbox) {
            machine::Reply::Datagrams { parts } => {
                add(&self.counters.parts, parts.unwrap_or(0));
                count(&self.counters.udp);
                log::Channel::Udp
            }
            machine::Reply::Stream(stream) => self.stream(now, ends, stream, body),
            machine::Reply::Referred => {
                count(&self.counters.referred);
                log::Channel::Overload
            }
        };
        if let Some(log) = self.log {
            let bytes = response.body_bytes();
            log.line(self.today.second(), ends.peer.ip(), request, reply.status, bytes, channel);
        }
    }

    /// Opens a connection while the response is made, if the configuration has it. Without data in its SYN: there is none yet.
    fn open_early(&mut self, now: Time, ends: Endpoints, ticket: &mut Ticket) {
        if let Some((connection, client)) = self.machine.open_early(now, ticket) {
            let local = SocketAddr::new(ends.local.unwrap_or(self.local.ip()), self.local.port());
            let opened = self.opened.open(self.poller, connection, (local, client), false);
            let counter = if opened.is_ok() { &self.counters.opened } else { &self.counters.broken };
            if opened.is_err() {
                self.machine.handle(now, Input::Broken(connection));
            }
            count(counter);
        }
    }

    /// Sends a response on a connection, which is opened first if it is new.
    fn stream(&mut self, now: Time, ends: Endpoints, stream: Stream, body: Option<&Body>) -> log::Channel {
        let Stream { connection, opens, id, head } = stream;
        if let Some(client) = opens {
            // From the address that received the request, as for datagrams.
            let local = ends.local.unwrap_or(self.local.ip());
            let addresses = (SocketAddr::new(local, self.local.port()), client);
            if self.opened.open(self.poller, connection, addresses, self.fast_open).is_err() {
                self.machine.handle(now, Input::Broken(connection));
                self.outbox.slot(ends).extend_from_slice(&id.to_bytes());
                count(&self.counters.broken);
                count(&self.counters.referred);
                return log::Channel::Overload;
            }
            count(&self.counters.opened);
        }
        self.opened.send(self.poller, now, self.machine, connection, (ends, id), (head, body));
        count(&self.counters.tcp_opened);
        log::Channel::TcpOpened
    }
}

/// Outgoing datagrams to one client, in the outbox of all.
struct ClientOutbox<'a> {
    outbox: &'a mut Outbox,
    ends: Endpoints,
}

impl machine::Outbox for ClientOutbox<'_> {
    fn begin(&mut self, destination: SocketAddr) -> &mut Vec<u8> {
        self.outbox.slot(Endpoints { peer: destination, ..self.ends })
    }

    fn discard(&mut self) {
        self.outbox.take_back();
    }
}

/// A response, and the body that is sent with it.
struct DatagramResponse<'a> {
    response: &'a Response,
    body: Option<&'a Body>,
    today: &'a DateHeader,
}

impl machine::Response for DatagramResponse<'_> {
    fn status(&self) -> u16 {
        self.response.status
    }

    fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        date_header::fields(self.response, self.today)
    }

    fn write_head(&self, token: Option<&Token>, out: &mut Vec<u8>) {
        date_header::write(out, self.response, self.today, token);
    }

    fn body_bytes(&self) -> u64 {
        self.body.map_or(0, Body::len)
    }

    fn write_body(&self, range: Range<u64>, out: &mut Vec<u8>) {
        write_body(out, self.body, range);
    }
}

/// Writes a range of a body's bytes.
fn write_body(slot: &mut Vec<u8>, body: Option<&Body>, range: Range<u64>) {
    let to_usize = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
    match body {
        None | Some(Body::Described(_)) => {}
        Some(Body::Whole(bytes)) => {
            slot.extend_from_slice(bytes.get(to_usize(range.start)..to_usize(range.end)).unwrap_or_default());
        }
        Some(Body::File { file, offset, length: _ }) => {
            let (start, length) = (slot.len(), to_usize(range.end - range.start));
            slot.resize(start + length, 0);
            // A file that has been truncated gives a datagram shorter than its `Content-Length`: the client discards it.
            let read =
                slot.get_mut(start..).map_or(Ok(0), |buffer| file.read_at(buffer, *offset + range.start));
            slot.truncate(start + read.unwrap_or(0));
        }
    }
}
