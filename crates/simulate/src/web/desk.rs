//! The part of a simulated server that speaks DHTTP: `dhttp-proto`'s state machine, and the connections that it opens.
//!
//! Not the site, and not the time that work takes: [`super::WebServer`] has both. An answer by connection is written in
//! pieces, each when the one before is in the buffer, as a server does that cannot write it all at once.

use std::collections::{BTreeMap, VecDeque};

use dhttp_proto::parts::Divisible;
use dhttp_proto::server::{Channel, ConnectionId, Ignored, Input as Told, Output, Secrets, Ticket, Verdict};
use dhttp_proto::token::TOKEN_FIELD;
use dhttp_proto::{Key, Server, ServerConfig};
use http1::message::RequestHead;
use http1::server::{Response, ResponseBody};
use tcp::Payload;
use wire::{Seed, Time};

use crate::capture;
use crate::world::{Action, Address, Datagram, Input, SocketId};

/// A server of DHTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DhttpServer {
    /// How it behaves.
    pub config: ServerConfig,
    /// Where its keys come from: nobody guesses them here, and the same seed gives the same bytes.
    pub seed: Seed,
}

/// What became of requests and answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DhttpCounts {
    /// Requests that were looked at, resends included.
    pub requests: u64,
    /// Requests that were given to the site.
    pub served: u64,
    /// Those of them that were resends.
    pub resends: u64,
    /// Resends of what had been answered by a connection, or was being worked on.
    pub late_resends: u64,
    /// Answers in a datagram.
    pub by_datagram: u64,
    /// Answers on a connection.
    pub by_connection: u64,
    /// Connections that were opened.
    pub connections: u64,
    /// Requests that were told to come over plain HTTP.
    pub referred: u64,
}

/// The part of a server that speaks DHTTP.
pub(super) struct Desk {
    machine: Server,
    lanes: BTreeMap<ConnectionId, Lane>,
    sockets: BTreeMap<SocketId, ConnectionId>,
    counts: DhttpCounts,
}

/// A request that is to be answered.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) head: RequestHead,
    ticket: Ticket,
    datagram: Datagram,
}

/// What is to be done, in order.
#[derive(Debug)]
pub(super) enum Step {
    /// Ask the site.
    Answer(Box<Asked>),
    Send(Datagram),
    Open(ConnectionId),
    Proceed(ConnectionId),
    Close(ConnectionId),
    Abort(ConnectionId),
}

/// A connection to a client.
#[derive(Debug)]
struct Lane {
    client: Address,
    socket: Option<SocketId>,
    is_open: bool,
    is_writing: bool,
    /// Of the answers that wait, what has not been written.
    answers: VecDeque<Payload>,
}

/// What is written at once: more than any buffer of the papers' day holds.
const PIECE: usize = 65_536;

impl Desk {
    pub(super) fn new(DhttpServer { config, seed }: DhttpServer) -> Self {
        let mut random = seed.stream("dhttp-server", 0);
        let mut secret = || {
            let (high, low) = (random.next_u64(), random.next_u64());
            (u128::from(high) << 64 | u128::from(low)).to_be_bytes()
        };
        let secrets = Secrets { token: Key { generation: 1, secret: secret() }, tables: secret() };
        Self {
            machine: Server::new(config, secrets),
            lanes: BTreeMap::new(),
            sockets: BTreeMap::new(),
            counts: DhttpCounts::default(),
        }
    }

    pub(super) const fn counts(&self) -> DhttpCounts {
        self.counts
    }

    /// Whether this connection was opened here.
    pub(super) fn owns(&self, socket: SocketId) -> bool {
        self.sockets.contains_key(&socket)
    }

    /// A datagram: a request, or nothing.
    pub(super) fn receive(&mut self, now: Time, datagram: Datagram) -> Option<Step> {
        let source = capture::socket(datagram.peer);
        self.counts.requests += 1;
        let (ticket, head) = match self.machine.receive(now, source, &datagram.payload) {
            Verdict::Serve(ticket, head) => (ticket, head.to_head()),
            Verdict::Refer(eight) => {
                self.counts.referred += 1;
                return Some(Step::Send(Datagram { payload: Payload::from(&eight[..]), ..datagram }));
            }
            Verdict::Ignore(why) => {
                let is_late = matches!(why, Ignored::Answered | Ignored::InProgress);
                self.counts.late_resends += u64::from(is_late);
                return None;
            }
        };
        self.counts.served += 1;
        self.counts.resends += u64::from(ticket.is_resend());
        // What comes in while the processor is busy is not seen until then, but what it works on takes its time.
        self.machine.defer(&ticket);
        Some(Step::Answer(Box::new(Asked { head, ticket, datagram })))
    }

    /// Something happened on a connection that was opened here.
    pub(super) fn handle(&mut self, now: Time, input: &Input) -> Option<Step> {
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
                self.lanes.get_mut(&id)?.is_open = true;
                self.machine.handle(now, Told::Opened(id));
                Some(Step::Proceed(id))
            }
            Input::Written(_) => {
                let lane = self.lanes.get_mut(&id)?;
                lane.is_writing = false;
                let is_whole = lane.answers.front().is_none_or(|rest| rest.is_empty());
                if is_whole {
                    lane.answers.pop_front();
                }
                let told = if is_whole { Told::Written(id) } else { Told::Progressed(id) };
                self.machine.handle(now, told);
                Some(Step::Proceed(id))
            }
            Input::Finished(_) => {
                self.machine.handle(now, Told::Closed(id));
                Some(Step::Close(id))
            }
            Input::Closed(_) | Input::Failed(..) => {
                self.machine.handle(now, Told::Broken(id));
                self.forget(id);
                None
            }
            // Nothing is ever said there.
            Input::Data(..) | Input::Accepted(..) | Input::Datagram(_) => None,
        }
    }

    /// An answer finds its channel: what is to be done for it.
    pub(super) fn answer(&mut self, now: Time, asked: Asked, mut response: Response) -> Vec<Step> {
        let Asked { head, ticket, datagram } = asked;
        if let Some(token) = self.machine.token(now, &ticket) {
            // Hexadecimal digits can stand in a field.
            let _ = response.fields.push(TOKEN_FIELD, token.as_str());
        }
        let mut bytes = ticket.id.to_bytes().to_vec();
        let whole = response.clone();
        if response.encode(&head.method, &mut bytes).is_err() {
            // The site gives whole objects and final statuses only.
            self.machine.abandon(ticket);
            return Vec::new();
        }
        let (id, client) = (ticket.id, datagram.peer);
        let divisible = || Divisible::of(whole.status, whole.fields.iter(), body(&whole).len() as u64);
        let send =
            |payload: Vec<u8>| Step::Send(Datagram { payload: Payload::from(payload), ..datagram.clone() });
        match self.machine.answer_in_parts(now, ticket, bytes.len() as u64, divisible) {
            Channel::Datagram => {
                self.counts.by_datagram += 1;
                vec![send(bytes)]
            }
            Channel::Parts(division) => {
                self.counts.by_datagram += 1;
                let part = |part| division.datagram(part, id, whole.fields.iter(), body(&whole));
                division.map(|number| send(part(number))).collect()
            }
            Channel::Refer(eight) => {
                self.counts.referred += 1;
                vec![send(eight.to_vec())]
            }
            Channel::Connection(id) => {
                self.counts.by_connection += 1;
                let Some(lane) = self.lanes.get_mut(&id) else { return Vec::new() };
                lane.answers.push_back(Payload::from(bytes));
                vec![Step::Proceed(id)]
            }
            Channel::Open { connection, client: at, tries: _ } => {
                self.counts.by_connection += 1;
                self.counts.connections += 1;
                let lane = Lane {
                    client: Address { port: at.port(), ..client },
                    socket: None,
                    is_open: false,
                    is_writing: false,
                    answers: [Payload::from(bytes)].into(),
                };
                self.lanes.insert(connection, lane);
                vec![Step::Open(connection)]
            }
        }
    }

    /// Does one thing; `fresh` is the name of a connection that is opened now.
    pub(super) fn act(&mut self, step: Step, fresh: SocketId) -> Option<Action> {
        match step {
            // It needs the site.
            Step::Answer(_) => None,
            Step::Send(datagram) => Some(Action::Send(datagram)),
            Step::Open(id) => {
                let lane = self.lanes.get_mut(&id)?;
                lane.socket = Some(fresh);
                self.sockets.insert(fresh, id);
                Some(Action::Connect(lane.client))
            }
            Step::Proceed(id) => self.proceed(id),
            Step::Close(id) => self.forget(id).map(Action::Close),
            Step::Abort(id) => self.forget(id).map(Action::Abort),
        }
    }

    /// What the machine's timers end, or when they will.
    pub(super) fn expire(&mut self, now: Time) -> Result<Step, Option<Time>> {
        match self.machine.poll(now) {
            Output::Close(id) => Ok(Step::Close(id)),
            Output::Abort(id) => Ok(Step::Abort(id)),
            Output::Timeout(until) => Err(until),
        }
    }

    /// The next piece of what a connection carries.
    fn proceed(&mut self, id: ConnectionId) -> Option<Action> {
        let lane = self.lanes.get_mut(&id)?;
        if !lane.is_open || lane.is_writing {
            return None;
        }
        let rest = lane.answers.front_mut()?;
        let after = rest.split_off(PIECE.min(rest.len()));
        let piece = std::mem::replace(rest, after);
        lane.is_writing = true;
        Some(Action::Write(lane.socket?, piece))
    }

    /// A connection is no more; its socket, if it had one.
    fn forget(&mut self, id: ConnectionId) -> Option<SocketId> {
        let socket = self.lanes.remove(&id)?.socket?;
        self.sockets.remove(&socket);
        Some(socket)
    }
}

/// The bytes of an answer, which the site has whole.
fn body(response: &Response) -> &[u8] {
    match &response.body {
        ResponseBody::Whole(bytes) => bytes,
        ResponseBody::Length(_) | ResponseBody::Unknown => &[],
    }
}
