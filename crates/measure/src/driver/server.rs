//! HTTP server on kernel sockets: a listener, its connections, and a site with a processing time.
//!
//! Each request is served when the scenario's processing time has passed since its last byte was read. The
//! actual time belongs in any comparison with a model, and is best measured from outside
//! ([`testbed::reactions`]).

mod web;

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::AsFd;
use std::sync::Arc;

use dhttp_proto::server::ConnectionId;
use fetch::serving::HttpConnection;
use http1::message::{Method, RequestHead, WritePolicy};
use http1::server::{Input, Misuse, Output, RequestId, ResponseBody, ServerConnection};
use linux::clock::Clock;
use nix::poll::{PollFd, PollFlags};
use nix::sys::eventfd::EventFd;
use wire::Time;

use super::dhttp_endpoint::DhttpEndpoint;
use super::http3_endpoint::Http3Endpoint;
use super::listeners::Listeners;
use super::pending_requests::Progress;
use super::service::Service;
use super::wait::{WaitStrategy, WaitUntil};
use crate::Error;
use crate::socket::Connection;
use web::WebConnection;

/// Result of a server's run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerResult {
    /// Connections accepted.
    pub connections: u64,
    /// Clients' protocol errors, in sentences.
    pub faults: Vec<String>,
}

/// A server whose listener is open.
#[derive(Debug)]
pub struct Server {
    service: Service,
    clock: Clock,
    listeners: Listeners,
    connections: BTreeMap<u64, ServedConnection>,
    /// Connections over TLS or HTTP/2.
    secured: BTreeMap<u64, WebConnection>,
    /// Responses that wait for their processing time, by its end.
    due: BTreeSet<(Time, u64, RequestId)>,
    endpoint: Option<DhttpEndpoint>,
    /// HTTP/3 of the origins that have it.
    http3: Vec<Http3Endpoint>,
    result: ServerResult,
    buffer: Box<[u8; BUFFER_BYTES]>,
}

const BUFFER_BYTES: usize = 65_536;

/// Ready events, and whether to stop.
struct Ready {
    is_stopped: bool,
    connections: Vec<(u64, PollFlags)>,
    secured: Vec<(u64, PollFlags)>,
    has_datagrams: bool,
    dhttp_ready: Vec<(ConnectionId, PollFlags)>,
}

/// One connection: its socket, its state machine, and the request in progress.
#[derive(Debug)]
struct ServedConnection {
    connection: Connection,
    machine: ServerConnection,
    wakes: Option<Time>,
    pending_request: Option<RequestHead>,
    /// Part of a response that has not been passed to the state machine yet.
    remaining_body: Option<RemainingBody>,
    /// The state machine is done with it; the kernel has not accepted the last writes yet.
    is_closing: bool,
    /// Whether it broke while the state machine was being polled, which is notified afterwards.
    is_broken: bool,
}

/// Unsent part of a large body, passed on in pieces: copying it whole would delay its first byte.
#[derive(Debug)]
struct RemainingBody {
    request: RequestId,
    body: Arc<[u8]>,
    sent: usize,
}

/// Bytes of a body that are passed to the state machine at a time.
const PIECE_BYTES: usize = 1 << 18;

impl ServedConnection {
    /// Responds; a large body in pieces, as the kernel accepts them.
    fn respond(
        &mut self,
        now: Time,
        request: RequestId,
        pending_request: &RequestHead,
        service: &Service,
    ) -> Result<(), Misuse> {
        let mut response = service.respond(pending_request, false);
        // A configured division into writes is honoured: then the body is passed whole.
        let WritePolicy { head_apart, buffer, gather: _ } = service.config.writes;
        let is_one_write = !head_apart && buffer.is_none() && pending_request.method == Method::Get;
        match &response.body {
            ResponseBody::Whole(body) if is_one_write && body.len() > PIECE_BYTES => {
                self.remaining_body = Some(RemainingBody { request, body: Arc::clone(body), sent: 0 });
                response.body = ResponseBody::Length(body.len() as u64);
            }
            ResponseBody::Whole(_) | ResponseBody::Length(_) | ResponseBody::Unknown => {}
        }
        self.machine.respond(now, request, response)?;
        self.send_next_piece(now)
    }

    /// Passes the next piece of a body to the state machine, if the kernel has accepted the previous one.
    fn send_next_piece(&mut self, now: Time) -> Result<(), Misuse> {
        let Some(RemainingBody { request, body, sent }) = &mut self.remaining_body else { return Ok(()) };
        if self.connection.has_writes() {
            return Ok(());
        }
        let (request, last) = (*request, body.len().min(*sent + PIECE_BYTES));
        self.machine.send_part(request, body.get(*sent..last).unwrap_or_default())?;
        *sent = last;
        let is_whole = last == body.len();
        self.connection.hold_last_segment(!is_whole);
        if is_whole {
            self.remaining_body = None;
            self.machine.finish(now, request)?;
        }
        Ok(())
    }
}

impl Server {
    /// Listens in the calling thread's namespace.
    pub fn open(service: Service, clock: Clock) -> Result<Self, Error> {
        let listeners = Listeners::open(service.origins.iter().map(|origin| origin.address))?;
        let endpoint = service.origins.first().zip(service.dhttp);
        let endpoint =
            endpoint.map(|(origin, dhttp)| DhttpEndpoint::open(origin.address, dhttp)).transpose()?;
        let of_http3 =
            service.origins.iter().filter_map(|origin| Some((origin.address, origin.protocols.http3?)));
        let http3 = of_http3
            .map(|(address, config)| Http3Endpoint::open(address, config))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            service,
            clock,
            listeners,
            connections: BTreeMap::new(),
            secured: BTreeMap::new(),
            due: BTreeSet::new(),
            endpoint,
            http3,
            result: ServerResult::default(),
            buffer: Box::new([0; BUFFER_BYTES]),
        })
    }

    /// Serves until `stop` is written to.
    pub fn serve(mut self, stop: &Arc<EventFd>) -> Result<ServerResult, Error> {
        let mut waiting = WaitStrategy::new(self.clock);
        loop {
            self.send_due_responses()?;
            let Ready { is_stopped, connections, secured, has_datagrams, dhttp_ready } =
                self.wait(&mut waiting, stop)?;
            if is_stopped {
                return Ok(self.result);
            }
            for (id, flags) in connections {
                self.handle_readiness(id, flags)?;
            }
            for (id, flags) in secured {
                if let Some(secured) = self.secured.get_mut(&id) {
                    secured.handle_readiness(self.clock.now(), flags, self.buffer.as_mut_slice());
                    self.advance(id)?;
                }
            }
            self.poll_dhttp(has_datagrams, dhttp_ready)?;
            self.poll_http3()?;
            self.accept()?;
            self.wake()?;
        }
    }

    /// Waits for sockets and deadlines.
    fn wait(&self, waiting: &mut WaitStrategy, stop: &EventFd) -> Result<Ready, Error> {
        let mut sockets = vec![PollFd::new(stop.as_fd(), PollFlags::POLLIN)];
        sockets.extend(self.listeners.poll_fds());
        sockets.extend(self.connections.values().map(|served| {
            let mut interest = served.connection.interest();
            interest.set(PollFlags::POLLIN, served.machine.is_reading());
            PollFd::new(served.connection.as_fd(), interest)
        }));
        sockets.extend(self.secured.values().map(WebConnection::poll_fd));
        sockets.extend(self.http3.iter().map(Http3Endpoint::poll_fd));
        sockets.extend(self.endpoint.iter().flat_map(DhttpEndpoint::sockets));
        let response = self.due.first().map(|(due, ..)| *due);
        let response =
            response.into_iter().chain(self.endpoint.as_ref().and_then(DhttpEndpoint::next_response));
        let response = response.chain(self.http3.iter().filter_map(Http3Endpoint::next_response)).min();
        let timeout = self.connections.values().filter_map(|served| served.wakes);
        let timeout = timeout.chain(self.secured.values().filter_map(WebConnection::wakes));
        let timeout = timeout.chain(self.http3.iter().filter_map(Http3Endpoint::wakes));
        let timeout = timeout.chain(self.endpoint.as_ref().and_then(DhttpEndpoint::wakes)).min();
        waiting.wait(&mut sockets, WaitUntil::first(response, timeout))?;
        let mut flags = sockets.iter().map(|socket| socket.revents().unwrap_or(PollFlags::empty()));
        let is_stopped = flags.next().is_some_and(|flags| !flags.is_empty());
        // The listeners are polled in any case.
        let mut flags = flags.by_ref().skip(self.listeners.poll_fds().len());
        let ready = |(_, flags): &(u64, PollFlags)| !flags.is_empty();
        // A zip takes no more flags than there are connections, if the connections come first.
        let connections = self.connections.keys().copied().zip(&mut flags).filter(ready).collect();
        let secured = self.secured.keys().copied().zip(&mut flags).filter(ready).collect();
        // Every origin's datagrams are polled in any case.
        let mut flags = flags.skip(self.http3.len());
        let has_datagrams = flags.next().is_some_and(|flags| !flags.is_empty());
        let dhttp_ready = self.endpoint.iter().flat_map(DhttpEndpoint::connections).zip(flags);
        let dhttp_ready = dhttp_ready.filter(|(_, flags)| !flags.is_empty()).collect();
        Ok(Ready { is_stopped, connections, secured, has_datagrams, dhttp_ready })
    }

    /// Lets the DHTTP part do its pending work.
    fn poll_dhttp(
        &mut self,
        has_datagrams: bool,
        dhttp_ready: Vec<(ConnectionId, PollFlags)>,
    ) -> Result<(), Error> {
        let Some(endpoint) = &mut self.endpoint else { return Ok(()) };
        if has_datagrams {
            endpoint.receive(self.clock.now(), self.service.processing, self.buffer.as_mut_slice())?;
        }
        for (id, flags) in dhttp_ready {
            endpoint.handle_readiness(self.clock.now(), id, flags, &self.service.profile)?;
        }
        endpoint.execute_outputs(self.clock.now())
    }

    /// Lets HTTP/3 do its pending work.
    fn poll_http3(&mut self) -> Result<(), Error> {
        for endpoint in &mut self.http3 {
            self.result.connections +=
                endpoint.proceed(self.clock.now(), &self.service, self.buffer.as_mut_slice())?;
        }
        Ok(())
    }

    fn accept(&mut self) -> Result<(), Error> {
        let accepted = self.listeners.accept(&self.service.profile)?;
        accepted.into_iter().try_for_each(|(origin, connection)| self.begin(origin, connection))
    }

    /// Begins to serve an accepted connection.
    fn begin(&mut self, origin: usize, connection: Connection) -> Result<(), Error> {
        if self.result.connections == 0 {
            connection.check(&self.service.profile)?;
        }
        let machine = ServerConnection::new(self.clock.now(), self.service.config);
        let id = self.result.connections;
        self.result.connections += 1;
        let protocols = self.service.origins.get(origin).map(|origin| &origin.protocols);
        if let Some(protocols) = protocols.filter(|protocols| !protocols.is_plain()) {
            let http = HttpConnection::new(protocols, machine);
            self.secured.insert(id, WebConnection::new(connection, http));
            return self.advance(id);
        }
        let served = ServedConnection {
            connection,
            machine,
            wakes: None,
            pending_request: None,
            remaining_body: None,
            is_closing: false,
            is_broken: false,
        };
        self.connections.insert(id, served);
        self.execute_outputs(id)
    }

    /// Executes the outputs of a connection over TLS or HTTP/2.
    fn advance(&mut self, id: u64) -> Result<(), Error> {
        let now = self.clock.now();
        let Some(secured) = self.secured.get_mut(&id) else { return Ok(()) };
        let Progress { requests, faults, is_over } = secured.advance(now)?;
        self.result.faults.extend(faults);
        for (request, target) in requests {
            self.due.insert((now + self.service.processing(Some(&target)), id, request));
        }
        if is_over {
            self.secured.remove(&id);
        }
        Ok(())
    }

    /// Passes a socket's data to its connection's state machine, and executes its outputs.
    fn handle_readiness(&mut self, id: u64, flags: PollFlags) -> Result<(), Error> {
        let Some(served) = self.connections.get_mut(&id) else { return Ok(()) };
        if flags.contains(PollFlags::POLLOUT) && served.connection.write_pending().is_err() {
            served.machine.handle(self.clock.now(), Input::Reset);
            return self.execute_outputs(id);
        }
        if flags.contains(PollFlags::POLLOUT) && served.remaining_body.is_some() {
            // It fails if the response has been aborted.
            let _ = served.send_next_piece(self.clock.now());
            self.execute_outputs(id)?;
        }
        let Some(served) = self.connections.get_mut(&id) else { return Ok(()) };
        if served.is_closing {
            if !served.connection.has_writes() || flags.contains(PollFlags::POLLERR) {
                self.connections.remove(&id);
            }
            return Ok(());
        }
        if !flags.intersects(PollFlags::POLLIN | PollFlags::POLLHUP | PollFlags::POLLERR) {
            return Ok(());
        }
        let Some(input) = served.connection.read_input(self.buffer.as_mut_slice()) else { return Ok(()) };
        served.machine.handle(self.clock.now(), input);
        self.execute_outputs(id)
    }

    /// Handles expired deadlines of the state machines.
    fn wake(&mut self) -> Result<(), Error> {
        let now = self.clock.now();
        let is_due = |wakes: Option<Time>| wakes.is_some_and(|moment| moment <= now);
        let expired = self.connections.iter().filter(|(_, served)| is_due(served.wakes));
        let expired: Vec<u64> = expired.map(|(id, _)| *id).collect();
        expired.into_iter().try_for_each(|id| self.execute_outputs(id))?;
        let expired = self.secured.iter().filter(|(_, secured)| is_due(secured.wakes()));
        let expired: Vec<u64> = expired.map(|(id, _)| *id).collect();
        expired.into_iter().try_for_each(|id| self.advance(id))
    }

    fn send_due_responses(&mut self) -> Result<(), Error> {
        if let Some(endpoint) = &mut self.endpoint {
            endpoint.respond(self.clock.now(), &self.service.site, &self.service.profile)?;
            endpoint.execute_outputs(self.clock.now())?;
        }
        // Everything that is due on a connection is known before HTTP/2 chooses what it writes first.
        let mut written = BTreeSet::new();
        while let Some((moment, id, request)) = self.due.first().copied() {
            let now = self.clock.now();
            if moment > now {
                break;
            }
            self.due.pop_first();
            if let Some(secured) = self.secured.get_mut(&id) {
                secured.respond(now, request, &self.service);
                written.insert(id);
                continue;
            }
            let Some(served) = self.connections.get_mut(&id) else { continue };
            let Some(pending_request) = served.pending_request.take() else { continue };
            // It fails if the client has disconnected: then no response is needed.
            if served.respond(now, request, &pending_request, &self.service).is_ok() {
                self.execute_outputs(id)?;
            }
        }
        written.into_iter().try_for_each(|id| self.advance(id))
    }

    /// Executes the outputs of a connection's state machine until there are none.
    fn execute_outputs(&mut self, id: u64) -> Result<(), Error> {
        loop {
            let Some(served) = self.connections.get_mut(&id) else { return Ok(()) };
            let now = self.clock.now();
            match served.machine.poll(now) {
                Output::Request(_, head) => served.pending_request = Some(head),
                Output::RequestBody(_, _) => {}
                Output::RequestEnd(request) => {
                    let target = served.pending_request.as_ref().map(|head| head.target.as_str());
                    self.due.insert((now + self.service.processing(target), id, request));
                }
                Output::RequestAborted(request) => {
                    served.remaining_body = None;
                    self.due.retain(|(_, connection, waiting)| (*connection, *waiting) != (id, request));
                }
                Output::Send(bytes) => {
                    served.is_broken |= served.connection.write(bytes).is_err();
                    // If the client has disconnected, the state machine is notified afterwards.
                    let _ = served.send_next_piece(now);
                }
                Output::HalfClose => {
                    served.is_broken |= served.connection.half_close().is_err();
                }
                Output::Close if served.connection.has_writes() => {
                    (served.is_closing, served.wakes) = (true, None);
                    return Ok(());
                }
                Output::Close => {
                    self.connections.remove(&id);
                }
                Output::Abort => {
                    if let Some(served) = self.connections.remove(&id) {
                        served.connection.abort().map_err(Error::io("reset a connection"))?;
                    }
                }
                Output::Fault(fault) => self.result.faults.push(fault.to_string()),
                Output::Timeout(_) if served.is_broken => {
                    served.is_broken = false;
                    served.machine.handle(now, Input::Reset);
                }
                Output::Timeout(wakes) => {
                    served.wakes = wakes;
                    return Ok(());
                }
            }
        }
    }
}
