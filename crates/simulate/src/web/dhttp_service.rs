//! DHTTP on a simulated server: `dhttp-proto`'s state machine, and the connections that it opens.
//!
//! The site, and the CPU time of work, belong to [`super::WebServer`]. A response on a connection is written
//! in pieces, each when the previous one is in the send buffer. So does a server that cannot write it in one
//! call.

use std::collections::{BTreeMap, VecDeque};

use dhttp_proto::server::{
    ConnectionId, IgnoreReason, Input as ServerInput, Output, Reply, Secrets, Ticket, Transmit, Verdict,
    WholeResponse,
};
use dhttp_proto::{Key, Server, ServerConfig};
use http1::message::RequestHead;
use http1::server::Response;
use tcp::Payload;
use wire::{Seed, Time};

use crate::world::encoding::socket;
use crate::world::{Action, Address, Datagram, Input, SocketId};

/// A DHTTP server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DhttpServer {
    /// Settings of the state machine.
    pub config: ServerConfig,
    /// Seed of its keys: no one guesses them here, and the same seed gives the same bytes.
    pub seed: Seed,
}

/// Counters of requests and responses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DhttpCounts {
    /// Requests processed, including resends.
    pub requests: u64,
    /// Requests passed to the site.
    pub served: u64,
    /// Resends among these.
    pub resends: u64,
    /// Resends of requests that had been served on a connection, or were in progress.
    pub late_resends: u64,
    /// Responses in a datagram.
    pub by_datagram: u64,
    /// Responses on a connection.
    pub by_connection: u64,
    /// Connections that were opened.
    pub connections: u64,
    /// Requests referred to plain HTTP.
    pub referred: u64,
}

/// DHTTP part of a server.
pub(super) struct DhttpService {
    machine: Server,
    open_connections: BTreeMap<ConnectionId, ClientConnection>,
    sockets: BTreeMap<SocketId, ConnectionId>,
    counts: DhttpCounts,
}

/// A request to be served.
#[derive(Debug)]
pub(super) struct PendingRequest {
    pub(super) head: RequestHead,
    ticket: Ticket,
    datagram: Datagram,
}

/// Pending steps, in order.
#[derive(Debug)]
pub(super) enum DhttpStep {
    /// Have the site produce the response.
    Respond(Box<PendingRequest>),
    Send(Datagram),
    Open(ConnectionId),
    Proceed(ConnectionId),
    Close(ConnectionId),
    Abort(ConnectionId),
}

/// A connection to a client.
#[derive(Debug)]
struct ClientConnection {
    client: Address,
    socket: Option<SocketId>,
    is_open: bool,
    is_writing: bool,
    /// Unwritten parts of the pending responses.
    responses: VecDeque<Payload>,
}

/// Maximum size of one write: more than any send buffer of the paper's time holds.
const PIECE: usize = 65_536;

impl DhttpService {
    pub(super) fn new(DhttpServer { config, seed }: DhttpServer) -> Self {
        let mut random = seed.stream("dhttp-server", 0);
        let mut secret = || {
            let (high, low) = (random.next_u64(), random.next_u64());
            (u128::from(high) << 64 | u128::from(low)).to_be_bytes()
        };
        let secrets = Secrets { token: Key { generation: 1, secret: secret() }, tables: secret() };
        Self {
            machine: Server::new(config, secrets),
            open_connections: BTreeMap::new(),
            sockets: BTreeMap::new(),
            counts: DhttpCounts::default(),
        }
    }

    pub(super) const fn counts(&self) -> DhttpCounts {
        self.counts
    }

    /// Number of connections that it has opened and not closed.
    pub(super) fn open(&self) -> usize {
        self.open_connections.len()
    }

    /// Whether this connection was opened by DHTTP.
    pub(super) fn owns(&self, socket: SocketId) -> bool {
        self.sockets.contains_key(&socket)
    }

    /// Handles a datagram. Returns `None` unless it is a request.
    pub(super) fn receive(&mut self, now: Time, datagram: Datagram) -> Option<DhttpStep> {
        let source = socket(datagram.peer);
        self.counts.requests += 1;
        let (ticket, head) = match self.machine.receive(now, source, &datagram.payload) {
            Verdict::Serve(ticket, head) => (ticket, head.to_head()),
            Verdict::Refer(message) => {
                self.counts.referred += 1;
                return Some(DhttpStep::Send(Datagram {
                    payload: Payload::from(message.as_bytes()),
                    ..datagram
                }));
            }
            Verdict::Ignore(why) => {
                let is_late = matches!(why, IgnoreReason::AlreadyAnswered | IgnoreReason::InProgress);
                self.counts.late_resends += u64::from(is_late);
                return None;
            }
        };
        self.counts.served += 1;
        self.counts.resends += u64::from(ticket.is_resend());
        // A datagram that arrives while the CPU is busy is not seen until then, but the current request takes
        // its time.
        self.machine.defer(&ticket);
        Some(DhttpStep::Respond(Box::new(PendingRequest { head, ticket, datagram })))
    }

    /// Handles an event of a connection that this service opened.
    pub(super) fn handle(&mut self, now: Time, input: &Input) -> Option<DhttpStep> {
        let (Input::Connected(socket)
        | Input::Data(socket, _)
        | Input::Finished(socket)
        | Input::Written(socket)
        | Input::Closed(socket)
        | Input::Failed(socket, _)) = input
        else {
            return None;
        };
        let id = *self.sockets.get(socket)?;
        match input {
            Input::Connected(_) => {
                self.open_connections.get_mut(&id)?.is_open = true;
                self.machine.handle(now, ServerInput::Opened(id));
                Some(DhttpStep::Proceed(id))
            }
            Input::Written(_) => {
                let client_connection = self.open_connections.get_mut(&id)?;
                client_connection.is_writing = false;
                let is_whole = client_connection.responses.front().is_none_or(|rest| rest.is_empty());
                if is_whole {
                    client_connection.responses.pop_front();
                }
                let reported = if is_whole { ServerInput::Written(id) } else { ServerInput::Progressed(id) };
                self.machine.handle(now, reported);
                Some(DhttpStep::Proceed(id))
            }
            Input::Finished(_) => {
                self.machine.handle(now, ServerInput::Closed(id));
                Some(DhttpStep::Close(id))
            }
            Input::Closed(_) | Input::Failed(..) => {
                self.machine.handle(now, ServerInput::Broken(id));
                self.forget(id);
                None
            }
            // The client never sends there.
            Input::Data(..) | Input::Accepted(..) | Input::Datagram(_) => None,
        }
    }

    /// Returns the steps that send a response on its channel.
    pub(super) fn respond(
        &mut self,
        now: Time,
        requested: PendingRequest,
        response: &Response,
    ) -> Vec<DhttpStep> {
        let PendingRequest { head, ticket, datagram } = requested;
        let Ok(response) = WholeResponse::new(response, &head.method) else {
            // The site returns whole objects and final statuses only.
            self.machine.abandon(ticket);
            return Vec::new();
        };
        let mut transmits: Vec<Transmit> = Vec::new();
        match self.machine.respond(now, ticket, &response, &mut transmits) {
            Reply::Datagrams { parts: _ } => self.counts.by_datagram += 1,
            Reply::Referred => self.counts.referred += 1,
            Reply::Stream(stream) => {
                self.counts.by_connection += 1;
                let (id, opens) = (stream.connection, stream.opens);
                let message = Payload::from(stream.message(&response));
                let Some(at) = opens else {
                    let Some(client_connection) = self.open_connections.get_mut(&id) else {
                        return Vec::new();
                    };
                    client_connection.responses.push_back(message);
                    return vec![DhttpStep::Proceed(id)];
                };
                self.counts.connections += 1;
                let client = Address { port: at.port(), ..datagram.peer };
                let responses = [message].into();
                let client_connection =
                    ClientConnection { client, socket: None, is_open: false, is_writing: false, responses };
                self.open_connections.insert(id, client_connection);
                return vec![DhttpStep::Open(id)];
            }
        }
        let send = |Transmit { destination: _, contents }| {
            DhttpStep::Send(Datagram { payload: Payload::from(contents), ..datagram.clone() })
        };
        transmits.into_iter().map(send).collect()
    }

    /// Executes a step; `fresh` is the identifier of a connection that is opened now.
    pub(super) fn act(&mut self, step: DhttpStep, fresh: SocketId) -> Option<Action> {
        match step {
            // This step needs the site.
            DhttpStep::Respond(_) => None,
            DhttpStep::Send(datagram) => Some(Action::Send(datagram)),
            DhttpStep::Open(id) => {
                let client_connection = self.open_connections.get_mut(&id)?;
                client_connection.socket = Some(fresh);
                self.sockets.insert(fresh, id);
                Some(Action::Connect(client_connection.client))
            }
            DhttpStep::Proceed(id) => self.proceed(id),
            DhttpStep::Close(id) => self.forget(id).map(Action::Close),
            DhttpStep::Abort(id) => self.forget(id).map(Action::Abort),
        }
    }

    /// Step for an expired timer, or the next timeout.
    pub(super) fn expire(&mut self, now: Time) -> Result<DhttpStep, Option<Time>> {
        match self.machine.poll(now) {
            Output::Close(id) => Ok(DhttpStep::Close(id)),
            Output::Abort(id) => Ok(DhttpStep::Abort(id)),
            Output::Timeout(until) => Err(until),
        }
    }

    /// Writes the next piece on a connection.
    fn proceed(&mut self, id: ConnectionId) -> Option<Action> {
        let client_connection = self.open_connections.get_mut(&id)?;
        if !client_connection.is_open || client_connection.is_writing {
            return None;
        }
        let rest = client_connection.responses.front_mut()?;
        let after = rest.split_off(PIECE.min(rest.len()));
        let piece = std::mem::replace(rest, after);
        client_connection.is_writing = true;
        Some(Action::Write(client_connection.socket?, piece))
    }

    /// Forgets a connection; returns its socket, if it had one.
    fn forget(&mut self, id: ConnectionId) -> Option<SocketId> {
        let socket = self.open_connections.remove(&id)?.socket?;
        self.sockets.remove(&socket);
        Some(socket)
    }
}
