//! Driver of these tests: connections are queues of bytes, split where the test chooses.

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::num::NonZeroUsize;

use http1::message::RequestHead;
use http1::server::{self, RequestId, ServerConfig, ServerConnection};
use http1::site::Site;
use proptest::prelude::*;
use roundtrip_fetch::{
    Break, ConnectionId, Failure, Fetcher, Flush, FromWire, Output, PageEvent, Pipelining, Plan,
    PlannedObject, Report, Shape, Wire,
};
use wire::{Bytes, Duration, Seed, Time};

/// The objects of the small cluster (`papers/heidemann-model#workloads`).
pub(crate) const SMALL_CLUSTER: [u64; 3] = [6_651, 3_883, 1_866];

pub(crate) fn plan(sizes: &[u64], shape: Shape) -> Plan {
    let object =
        |(index, size): (usize, &u64)| PlannedObject::get(&Site::path(index), Some(Bytes::new(*size)));
    Plan::new("server.test", sizes.iter().enumerate().map(object).collect(), shape)
}

/// Pipelining, with any settings.
pub(crate) fn pipelined() -> impl Strategy<Value = Shape> {
    let flush = prop_oneof![Just(Flush::Never), Just(Flush::First), Just(Flush::Idle)];
    (1_usize..2_000, 0_u64..100, flush).prop_map(|(buffer, flush_after, flush)| {
        let buffer = NonZeroUsize::new(buffer).unwrap();
        Shape::Http11Pipelined(Pipelining { buffer, flush_after: Duration::from_millis(flush_after), flush })
    })
}

/// A page that was fetched.
#[derive(Debug)]
pub(crate) struct FetchedPage {
    pub(crate) reports: Vec<Report>,
    /// Sizes of the robot's writes, by connection.
    pub(crate) up: Vec<Vec<usize>>,
    /// Sizes of the server's writes, by connection.
    pub(crate) down: Vec<Vec<usize>>,
    pub(crate) ended: Time,
}

impl FetchedPage {
    pub(crate) fn connections(&self) -> usize {
        self.up.len()
    }

    pub(crate) fn completed(&self) -> Vec<usize> {
        let object = |report: &Report| match report.event {
            PageEvent::ObjectComplete { object, .. } => Some(object),
            _ => None,
        };
        self.reports.iter().filter_map(object).collect()
    }

    pub(crate) fn failures(&self) -> Vec<(usize, Failure)> {
        let failure = |report: &Report| match report.event {
            PageEvent::ObjectFailed { object, failure } => Some((object, failure)),
            _ => None,
        };
        self.reports.iter().filter_map(failure).collect()
    }
}

/// Server at the other end of each connection, which delays its responses.
pub(crate) struct Listener {
    pub(crate) site: Site,
    pub(crate) config: ServerConfig,
    pub(crate) processing: Duration,
    /// Bytes per arrival, either way.
    pub(crate) cut: usize,
}

impl Listener {
    pub(crate) fn new(sizes: &[u64]) -> Self {
        let sizes: Vec<_> = sizes.iter().map(|size| Bytes::new(*size)).collect();
        Self {
            site: Site::new(&sizes, Seed::default()).unwrap(),
            config: ServerConfig::default(),
            processing: Duration::ZERO,
            cut: 1_460,
        }
    }

    /// Fetches a page from it. Panics if that does not end, or if a state machine violates the contract.
    pub(crate) fn fetch(&self, plan: Plan) -> FetchedPage {
        let mut now = Time::ZERO;
        let mut robot = Fetcher::http1(now, plan).unwrap();
        let mut peers = BTreeMap::new();
        let mut fetched = FetchedPage { reports: Vec::new(), up: Vec::new(), down: Vec::new(), ended: now };
        loop {
            let wake = self.drain_robot(now, &mut robot, &mut peers, &mut fetched);
            let mut wakes = Vec::from_iter(wake);
            let mut has_moved = false;
            for (id, peer) in &mut peers {
                has_moved |= peer.step(self, now, *id, &mut robot, &mut fetched, &mut wakes);
                if has_moved {
                    break;
                }
            }
            if has_moved {
                continue;
            }
            if robot.is_done() {
                fetched.ended = now;
                return fetched;
            }
            let next = wakes.into_iter().min().expect("some state machine has a timeout");
            assert!(next > now, "a timeout that is over");
            now = next;
        }
    }

    fn drain_robot(
        &self,
        now: Time,
        robot: &mut Fetcher,
        peers: &mut BTreeMap<ConnectionId, Peer>,
        fetched: &mut FetchedPage,
    ) -> Option<Time> {
        loop {
            match robot.poll(now) {
                Output::Wire(Wire::Open(id, _)) => {
                    peers.insert(id, Peer::new(now, self.config));
                    fetched.up.push(Vec::new());
                    fetched.down.push(Vec::new());
                }
                Output::Wire(Wire::Send(id, write)) => {
                    fetched.up[id.0 as usize].push(write.len());
                    if let Some(peer) = peers.get_mut(&id) {
                        peer.up.extend(write.chunks(self.cut).map(<[u8]>::to_vec));
                        peer.reset_if_closed();
                    }
                }
                Output::Wire(Wire::Close(id, _)) => {
                    peers.remove(&id);
                }
                Output::Wire(Wire::Datagram(..)) => panic!("HTTP/1 sends no datagrams"),
                Output::Report(report) => fetched.reports.push(report),
                Output::Timeout(wake) => return wake,
            }
        }
    }
}

/// One connection: the server's state machine, and the bytes in flight in both directions.
struct Peer {
    connected: bool,
    /// Whether the server has closed both halves.
    closed: bool,
    server: ServerConnection,
    up: VecDeque<Vec<u8>>,
    down: VecDeque<DownstreamItem>,
    requested: BTreeMap<RequestId, RequestHead>,
    pending_response: Option<(Time, RequestId)>,
}

enum DownstreamItem {
    Bytes(Vec<u8>),
    End,
    Reset,
}

impl Peer {
    fn new(now: Time, config: ServerConfig) -> Self {
        Self {
            connected: false,
            closed: false,
            server: ServerConnection::new(now, config),
            up: VecDeque::new(),
            down: VecDeque::new(),
            requested: BTreeMap::new(),
            pending_response: None,
        }
    }

    /// Moves one item in one direction; `false` if nothing could be moved.
    fn step(
        &mut self,
        listener: &Listener,
        now: Time,
        id: ConnectionId,
        robot: &mut Fetcher,
        fetched: &mut FetchedPage,
        wakes: &mut Vec<Time>,
    ) -> bool {
        if !self.connected {
            self.connected = true;
            robot.handle(now, FromWire::Connected(id));
            return true;
        }
        if let Some((_, request)) = self.pending_response.take_if(|(due, _)| *due <= now) {
            let response = listener.site.respond(&self.requested.remove(&request).unwrap());
            self.server.respond(now, request, response).unwrap();
        } else if let Some(bytes) = self.up.pop_front_if(|_| self.server.is_reading()) {
            self.server.handle(now, server::Input::Received(&bytes));
        } else if let Some(down) = self.down.pop_front() {
            robot.handle(
                now,
                match &down {
                    DownstreamItem::Bytes(bytes) => FromWire::Received(id, bytes),
                    DownstreamItem::End => FromWire::EndOfStream(id),
                    DownstreamItem::Reset => FromWire::Broken(id, Break::Reset),
                },
            );
            return true;
        } else {
            wakes.extend(self.pending_response.map(|(due, _)| due));
            return self.drain_server(listener, now, id, fetched, wakes);
        }
        self.drain_server(listener, now, id, fetched, wakes);
        true
    }

    /// Data to a closed socket causes a reset, which destroys data that the robot has not read yet.
    fn reset_if_closed(&mut self) {
        if self.closed && !self.up.is_empty() {
            self.up.clear();
            self.down = [DownstreamItem::Reset].into();
        }
    }

    /// Executes the server's outputs; `true` if there were any.
    fn drain_server(
        &mut self,
        listener: &Listener,
        now: Time,
        id: ConnectionId,
        fetched: &mut FetchedPage,
        wakes: &mut Vec<Time>,
    ) -> bool {
        let mut has_moved = false;
        loop {
            match self.server.poll(now) {
                server::Output::Request(request, head) => {
                    self.requested.insert(request, head);
                }
                server::Output::RequestBody(..) => {}
                server::Output::RequestEnd(request) => {
                    self.pending_response = Some((now + listener.processing, request));
                }
                server::Output::RequestAborted(request) => {
                    self.requested.remove(&request);
                    self.pending_response = None;
                }
                server::Output::Send(write) => {
                    fetched.down[id.0 as usize].push(write.len());
                    self.down.extend(
                        write.chunks(listener.cut).map(|piece| DownstreamItem::Bytes(piece.to_vec())),
                    );
                }
                server::Output::HalfClose => self.down.push_back(DownstreamItem::End),
                server::Output::Close => {
                    self.closed = true;
                    self.down.push_back(DownstreamItem::End);
                    self.reset_if_closed();
                }
                server::Output::Abort => self.down.push_back(DownstreamItem::Reset),
                server::Output::Fault(fault) => panic!("the server refused the robot: {fault}"),
                server::Output::Timeout(wake) => {
                    wakes.extend(wake);
                    return has_moved;
                }
            }
            has_moved = true;
        }
    }
}
