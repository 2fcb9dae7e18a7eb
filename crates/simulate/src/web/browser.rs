//! A client on a simulated host: `proto`'s robot, and the time its work takes.
//!
//! Not HTTP, and not the page: the robot has both.

use std::collections::{BTreeMap, VecDeque};

use proto::robot::{self, Break, ConnectionId, Plan, PlanError, Report, Robot, What};
use wire::{Duration, Time};

use crate::tcp::{Failure, Payload};
use crate::world::{Action, Address, Input, SocketId};

/// What a client's work takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BrowserTimes {
    /// Before a connection is asked for: making a socket.
    pub connection: Duration,
    /// Before a request is written: reading what came before, deciding what to ask for.
    pub request: Duration,
    /// For each 1024 bytes that are read, before anything else is done: looking at them, keeping them.
    pub kilobyte: Duration,
}

impl BrowserTimes {
    /// What so many bytes take.
    fn reading(&self, bytes: usize) -> Duration {
        Duration::from_nanos(self.kilobyte.as_nanos().saturating_mul(bytes as u64) / 1024)
    }
}

/// A page before the page: what is learnt and kept from it, the page itself finds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WarmUp {
    /// How many objects of the plan belong to it; none if there is no page before.
    pub objects: usize,
    /// How long the user looks at it.
    pub think: Duration,
}

/// How a client uses the plan that it is given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BrowserConfig {
    /// What its work takes.
    pub times: BrowserTimes,
    /// Whether it ends its half of each connection with the request (T/TCP's `MSG_EOF`).
    pub is_transaction: bool,
    /// The page before.
    pub warm_up: WarmUp,
}

/// A client that fetches a page.
pub struct Browser {
    robot: Robot,
    server: Address,
    config: BrowserConfig,
    completed: usize,
    /// When the page itself began.
    began: Time,
    steps: VecDeque<Step>,
    sockets: BTreeMap<ConnectionId, SocketId>,
    connections: BTreeMap<SocketId, Line>,
    reports: Vec<Report>,
    /// The connection whose turn it is to be opened.
    opening: Option<ConnectionId>,
}

/// One connection.
#[derive(Debug)]
struct Line {
    id: ConnectionId,
    /// Requests that wait for the one before to be in the buffer.
    writes: VecDeque<Vec<u8>>,
    is_writing: bool,
}

/// What is to be done, in order.
#[derive(Debug)]
enum Step {
    Work(Duration),
    Open(ConnectionId),
    Write(SocketId),
    Close(SocketId),
    Abort(SocketId),
    /// The page before is over.
    Begin,
}

impl Browser {
    /// A client that begins at `start` to fetch what is in this plan.
    ///
    /// # Errors
    /// What is wrong with the plan.
    pub fn new(start: Time, plan: Plan, server: Address, config: BrowserConfig) -> Result<Self, PlanError> {
        Ok(Self {
            robot: Robot::new(start, plan)?,
            server,
            config,
            completed: 0,
            began: start,
            steps: VecDeque::new(),
            sockets: BTreeMap::new(),
            connections: BTreeMap::new(),
            reports: Vec::new(),
            opening: None,
        })
    }

    /// What the robot has told so far.
    pub fn reports(&self) -> &[Report] {
        &self.reports
    }

    /// When the page itself began: after the page before, where there was one.
    pub const fn began(&self) -> Time {
        self.began
    }

    /// When the last object had arrived, if all have.
    pub fn finished(&self) -> Option<Time> {
        self.reports.iter().find_map(|report| match report.what {
            What::Finished { failed: 0 } => Some(report.at),
            What::Finished { failed: 1.. }
            | What::RequestSent { .. }
            | What::HeadReceived { .. }
            | What::ObjectFound { .. }
            | What::TooManyObjects { .. }
            | What::FirstBytesReceived { .. }
            | What::ObjectComplete { .. }
            | What::ObjectFailed { .. }
            | What::Fault { .. } => None,
        })
    }

    pub(super) fn handle(&mut self, now: Time, input: Input) {
        let (Input::Accepted(socket, _)
        | Input::Connected(socket)
        | Input::Data(socket, _)
        | Input::Finished(socket)
        | Input::Written(socket)
        | Input::Closed(socket)
        | Input::Failed(socket, _)) = &input;
        let socket = *socket;
        let Some(line) = self.connections.get_mut(&socket) else { return };
        let id = line.id;
        match input {
            Input::Accepted(..) | Input::Closed(_) => {}
            Input::Connected(_) => self.robot.handle(now, robot::Input::Connected(id)),
            Input::Data(_, bytes) => {
                self.robot.handle(now, robot::Input::Received(id, &bytes));
                self.steps.push_front(Step::Work(self.config.times.reading(bytes.len())));
            }
            Input::Finished(_) => self.robot.handle(now, robot::Input::EndOfStream(id)),
            Input::Written(_) => {
                line.is_writing = false;
                self.write_next(socket);
            }
            Input::Failed(_, failure) => {
                let why = match failure {
                    Failure::Refused => Break::Refused,
                    Failure::Reset => Break::Reset,
                    Failure::TimedOut => Break::Unreachable,
                };
                self.robot.handle(now, robot::Input::Broken(id, why));
            }
        }
    }

    pub(super) fn poll(&mut self, now: Time, fresh: SocketId) -> Action {
        loop {
            if let Some(id) = self.opening.take() {
                self.sockets.insert(id, fresh);
                self.connections.insert(fresh, Line { id, writes: VecDeque::new(), is_writing: false });
                return Action::Connect(self.server);
            }
            match self.steps.pop_front() {
                Some(Step::Work(Duration::ZERO)) => {}
                Some(Step::Work(time)) => return Action::Work(time),
                Some(Step::Open(id)) => self.opening = Some(id),
                Some(Step::Write(socket)) => {
                    if let Some(action) = self.write(socket) {
                        return action;
                    }
                }
                Some(Step::Close(socket)) => return Action::Close(socket),
                Some(Step::Abort(socket)) => return Action::Abort(socket),
                Some(Step::Begin) => {
                    self.began = now;
                    return Action::Finish;
                }
                None => {
                    if let Some(until) = self.ask_robot(now) {
                        return Action::Wait(until);
                    }
                }
            }
        }
    }

    /// What the robot wants next, as steps; or until when it waits.
    fn ask_robot(&mut self, now: Time) -> Option<Option<Time>> {
        match self.robot.poll(now) {
            robot::Output::Open(id) => {
                self.steps.extend([Step::Work(self.config.times.connection), Step::Open(id)]);
            }
            robot::Output::Send(id, bytes) => {
                if let Some(socket) = self.sockets.get(&id).copied()
                    && let Some(line) = self.connections.get_mut(&socket)
                {
                    line.writes.push_back(bytes);
                    self.write_next(socket);
                }
            }
            robot::Output::Close(id) => self.steps.extend(self.sockets.get(&id).copied().map(Step::Close)),
            robot::Output::Abort(id) => self.steps.extend(self.sockets.get(&id).copied().map(Step::Abort)),
            robot::Output::Report(report) => self.note(report),
            robot::Output::Timeout(until) => return Some(until),
        }
        None
    }

    fn note(&mut self, report: Report) {
        if let What::ObjectComplete { .. } = report.what {
            self.completed += 1;
            if self.completed == self.config.warm_up.objects {
                self.steps.extend([Step::Work(self.config.warm_up.think), Step::Begin]);
            }
        }
        self.reports.push(report);
    }

    /// The next request of a connection, unless one is being written.
    fn write_next(&mut self, socket: SocketId) {
        let Some(line) = self.connections.get_mut(&socket) else { return };
        if !line.is_writing && !line.writes.is_empty() {
            line.is_writing = true;
            self.steps.extend([Step::Work(self.config.times.request), Step::Write(socket)]);
        }
    }

    fn write(&mut self, socket: SocketId) -> Option<Action> {
        let bytes = self.connections.get_mut(&socket)?.writes.pop_front()?;
        let payload = Payload::from(bytes);
        Some(if self.config.is_transaction {
            Action::WriteLast(socket, payload)
        } else {
            Action::Write(socket, payload)
        })
    }
}
