//! A robot over DHTTP: each of its connections stands for one request and its response.
//!
//! The page is handled by the robot, the channels by the client; this module connects them. A request that
//! the client refers to plain HTTP goes over a connection with the robot's own identifier. It is no driver, and its
//! message ids are predictable: the runs of a testbed are repeatable.
//!
//! ```text
//! Dhttp, Plain -> handle -> poll -> Send, Dismiss, Robot
//! ```

use core::net::SocketAddr;
use std::collections::{BTreeMap, VecDeque};

use wire::seed::Random;
use wire::{Duration, Time};

use crate::robot::{self, Break, ConnectionId, Plan, PlanError, Robot};
use dhttp_proto::client::{self, Client, ClientConfig, Failure, Reason, Refusal, Source};
use dhttp_proto::message::{Id, is_resend};
use dhttp_proto::token::{PORT_FIELD, TOKEN_FIELD};
use http1::message::{Fields, Limits, RequestHead, RequestView, ResponseHead, ResponseView};

/// Input from the sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input<'a> {
    /// The UDP socket, and the connections that servers open.
    Dhttp(client::Input<'a>),
    /// The connections that this client opens for plain HTTP.
    Plain(robot::Input<'a>),
}

/// Output of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send this datagram.
    Send(SocketAddr, Vec<u8>),
    /// Close this connection, which the server opened.
    Dismiss(client::ConnectionId),
    /// Output of a robot over plain HTTP; its connections are for plain HTTP.
    Robot(robot::Output),
}

/// A client that fetches one page. `poll` until it returns a timeout, then `handle` an input, and so on.
#[derive(Debug)]
pub struct PageLoader {
    robot: Robot,
    client: Client,
    server: SocketAddr,
    ids: Random,
    limits: Limits,
    /// Maximum idle time of a plain HTTP connection.
    stall: Duration,
    exchanges: BTreeMap<ConnectionId, Exchange>,
    /// Open plain HTTP connections, and the timeout of each.
    due: BTreeMap<ConnectionId, Time>,
    /// Received bytes of incomplete response headers, by connection.
    heads: BTreeMap<ConnectionId, Vec<u8>>,
    /// The robot's connection identifier of each exchange by DHTTP.
    connections: BTreeMap<Id, ConnectionId>,
    /// Connections whose opening the robot has not been notified of yet.
    unreported_connections: VecDeque<ConnectionId>,
    /// Requests to be sent.
    unsent_requests: VecDeque<(ConnectionId, Vec<u8>)>,
    outputs: VecDeque<Output>,
    counts: TransportCounts,
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

/// State of one exchange.
#[derive(Debug)]
enum Exchange {
    /// Request by DHTTP.
    Requested(Id, RequestHead),
    /// Request over plain HTTP, to be sent once the connection is open.
    Plain(Vec<u8>),
}

impl PageLoader {
    /// A client that starts on its plan at `now`, and accepts connections on the TCP port `port`.
    ///
    /// # Errors
    /// An invalid plan.
    pub fn new(
        now: Time,
        plan: Plan,
        config: ClientConfig,
        server: SocketAddr,
        port: u16,
        mut ids: Random,
    ) -> Result<Self, PlanError> {
        let (limits, stall) = (plan.limits, config.stall);
        let robot = Robot::new(now, plan)?;
        let mut secret = [0; 16];
        let words = [ids.next_u64(), ids.next_u64()].map(u64::to_le_bytes);
        secret.iter_mut().zip(words.as_flattened()).for_each(|(byte, word)| *byte = *word);
        Ok(Self {
            robot,
            client: Client::new(config, port, secret),
            server,
            ids,
            limits,
            stall,
            exchanges: BTreeMap::new(),
            due: BTreeMap::new(),
            heads: BTreeMap::new(),
            connections: BTreeMap::new(),
            unreported_connections: VecDeque::new(),
            unsent_requests: VecDeque::new(),
            outputs: VecDeque::new(),
            counts: TransportCounts::default(),
        })
    }

    /// Transport of requests and responses so far.
    pub const fn counts(&self) -> TransportCounts {
        self.counts
    }

    /// Whether every object has arrived or failed, and every connection that this client opened is closed.
    pub fn is_done(&self) -> bool {
        self.robot.is_done() && self.outputs.is_empty()
    }

    /// Handles input from the sockets.
    pub fn handle(&mut self, now: Time, input: Input<'_>) {
        match input {
            Input::Dhttp(input) => self.client.handle(now, input),
            // The robot was notified of this long ago; but now its request can leave.
            Input::Plain(robot::Input::Connected(connection)) => {
                self.due.insert(connection, now + self.stall);
                if let Some(Exchange::Plain(request)) = self.exchanges.get_mut(&connection) {
                    let request = std::mem::take(request);
                    if self.client.named_port().is_some() {
                        self.heads.insert(connection, Vec::new());
                    }
                    self.outputs.push_back(Output::Robot(robot::Output::Send(connection, request)));
                }
            }
            Input::Plain(input @ robot::Input::Received(connection, bytes)) => {
                self.client.handle(now, client::Input::Heard(self.server.ip(), bytes.len()));
                self.due.entry(connection).and_modify(|due| *due = now + self.stall);
                self.store_token(now, connection, bytes);
                self.robot.handle(now, input);
            }
            Input::Plain(
                input @ (robot::Input::EndOfStream(connection) | robot::Input::Broken(connection, _)),
            ) => {
                self.due.remove(&connection);
                self.heads.remove(&connection);
                self.robot.handle(now, input);
            }
        }
    }

    /// Looks for a token in the headers of a response over plain HTTP.
    fn store_token(&mut self, now: Time, connection: ConnectionId, bytes: &[u8]) {
        let Some(head) = self.heads.get_mut(&connection) else { return };
        head.extend_from_slice(bytes);
        loop {
            let end = head.windows(4).position(|window| window == b"\r\n\r\n");
            if end.is_none() && head.len() <= self.limits.head_bytes {
                return;
            }
            let mut rest = head.as_slice();
            match ResponseView::read(&mut rest, &self.limits) {
                Ok(view) if view.status < 200 => *head = rest.to_vec(),
                Ok(view) => {
                    if let Some(token) = view.fields.get(TOKEN_FIELD) {
                        self.client.store_token(now, self.server, token);
                    }
                    break;
                }
                // The robot reports the error.
                Err(_) => break,
            }
        }
        self.heads.remove(&connection);
    }

    /// Next output.
    pub fn poll(&mut self, now: Time) -> Output {
        loop {
            if let Some(output) = self.outputs.pop_front() {
                return output;
            }
            let page = match self.robot.poll(now) {
                robot::Output::Timeout(page) => page,
                output => {
                    self.handle_robot_output(output);
                    continue;
                }
            };
            // The robot is idle: notify it of the connections that it requested.
            if let Some(connection) = self.unreported_connections.pop_front() {
                self.robot.handle(now, robot::Input::Connected(connection));
                continue;
            }
            let channels = match self.client.poll(now) {
                client::Output::Timeout(channels) => channels,
                output => {
                    self.handle_client_output(now, output);
                    continue;
                }
            };
            // Both are idle: send the robot's requests.
            if let Some((connection, request)) = self.unsent_requests.pop_front() {
                self.send_request(now, connection, request);
                continue;
            }
            let next_idle =
                self.due.iter().min_by_key(|(_, due)| **due).map(|(connection, due)| (*connection, *due));
            match next_idle {
                Some((connection, due)) if due <= now => self.time_out_idle(now, connection),
                Some(_) | None => {
                    let wake = [page, channels, next_idle.map(|(_, due)| due)].into_iter().flatten().min();
                    return Output::Robot(robot::Output::Timeout(wake));
                }
            }
        }
    }

    /// Handles an output of the robot.
    fn handle_robot_output(&mut self, output: robot::Output) {
        match output {
            robot::Output::Open(connection) => self.unreported_connections.push_back(connection),
            robot::Output::Send(connection, request) => self.unsent_requests.push_back((connection, request)),
            robot::Output::Close(connection) | robot::Output::Abort(connection) => {
                self.unsent_requests.retain(|(other, _)| *other != connection);
                self.due.remove(&connection);
                self.heads.remove(&connection);
                match self.exchanges.remove(&connection) {
                    Some(Exchange::Plain(_)) => self.outputs.push_back(Output::Robot(output)),
                    Some(Exchange::Requested(id, _)) => {
                        self.connections.remove(&id);
                        self.client.cancel(id);
                    }
                    None => {}
                }
            }
            robot::Output::Report(_) | robot::Output::Timeout(_) => {
                self.outputs.push_back(Output::Robot(output));
            }
        }
    }

    /// Sends a request by DHTTP, or over plain HTTP where DHTTP does not allow it.
    fn send_request(&mut self, now: Time, connection: ConnectionId, request: Vec<u8>) {
        let Ok(head) = RequestView::read(&mut request.as_slice(), &self.limits).map(|view| view.to_head())
        else {
            return self.fall_back(connection, request);
        };
        loop {
            let id = Id(self.ids.next_u64());
            match self.client.request(now, id, self.server, &head) {
                Ok(()) => {
                    self.connections.insert(id, connection);
                    self.exchanges.insert(connection, Exchange::Requested(id, head));
                    return;
                }
                Err(Refusal::IdInUse) => {}
                Err(
                    Refusal::Unsafe
                    | Refusal::NotAlone
                    | Refusal::Credentials
                    | Refusal::TooLarge
                    | Refusal::Crowded,
                ) => return self.fall_back(connection, self.encode_separate(head)),
            }
        }
    }

    fn fall_back(&mut self, connection: ConnectionId, request: Vec<u8>) {
        self.counts.by_plain_http += 1;
        self.exchanges.insert(connection, Exchange::Plain(request));
        self.outputs.push_back(Output::Robot(robot::Output::Open(connection)));
    }

    /// Times out an idle plain HTTP connection: a server that died, and whose reset was lost, sends nothing
    /// more.
    fn time_out_idle(&mut self, now: Time, connection: ConnectionId) {
        self.due.remove(&connection);
        self.heads.remove(&connection);
        self.exchanges.remove(&connection);
        self.outputs.push_back(Output::Robot(robot::Output::Abort(connection)));
        self.robot.handle(now, robot::Input::Broken(connection, Break::Unreachable));
    }

    /// Translates the client's output to input of the robot on a connection.
    fn handle_client_output(&mut self, now: Time, output: client::Output) {
        match output {
            client::Output::Send(to, datagram) => {
                self.counts.resends += u64::from(is_resend(&datagram));
                self.outputs.push_back(Output::Send(to, datagram));
            }
            client::Output::Head(id, source, head) => {
                match source {
                    Source::Datagram(_) => self.counts.by_datagram += 1,
                    Source::Connection(_) => self.counts.by_connection += 1,
                }
                let mut bytes = Vec::new();
                bounded(head).encode(&mut bytes);
                self.deliver(now, id, |connection| robot::Input::Received(connection, &bytes));
            }
            client::Output::Body(id, part) => {
                self.deliver(now, id, |connection| robot::Input::Received(connection, &part));
            }
            client::Output::End(id) => self.deliver(now, id, robot::Input::EndOfStream),
            client::Output::Failed(id, cause) => {
                let cause = match cause {
                    Failure::Ended | Failure::Malformed(_) => Break::Reset,
                    Failure::Stalled => Break::Unreachable,
                };
                self.deliver(now, id, |connection| robot::Input::Broken(connection, cause));
            }
            client::Output::Fallback(
                id,
                Reason::Referred | Reason::Unreachable | Reason::Silence | Reason::Paused,
            ) => {
                if let Some(connection) = self.connections.remove(&id)
                    && let Some(Exchange::Requested(_, head)) = self.exchanges.remove(&connection)
                {
                    self.fall_back(connection, self.encode_separate(head));
                }
            }
            client::Output::Close(connection) => self.outputs.push_back(Output::Dismiss(connection)),
            client::Output::Discarded(..) | client::Output::Timeout(_) => {}
        }
    }

    fn deliver<'a>(&mut self, now: Time, id: Id, input: impl FnOnce(ConnectionId) -> robot::Input<'a>) {
        if let Some(connection) = self.connections.get(&id) {
            self.robot.handle(now, input(*connection));
        }
    }

    /// Encodes a request that has a connection of its own. It requests `Connection: close`, and names the port, if
    /// any, for which the server adds a token to its response.
    fn encode_separate(&self, mut head: RequestHead) -> Vec<u8> {
        head.fields.push_checked(b"Connection", b"close");
        if let Some(port) = self.client.named_port() {
            head.fields.push_checked(PORT_FIELD.as_bytes(), port.to_string().as_bytes());
        }
        let mut request = Vec::new();
        head.encode(&mut request);
        request
    }
}

/// The response's headers as on a connection that ends with the response: the client has decoded the coding.
fn bounded(head: ResponseHead) -> ResponseHead {
    let mut fields = Fields::new();
    let others = head.fields.iter().filter(|(name, _)| !name.eq_ignore_ascii_case(b"Transfer-Encoding"));
    others.for_each(|(name, value)| fields.push_checked(name, value));
    ResponseHead { fields, ..head }
}
