//! Dumbbell topology: a server behind a bottleneck, clients with a hundred users each, and competing
//! downloads over the same bottleneck (`papers/dhttp#table-1`).
//!
//! Not the Internet of 2003: there is no other traffic, and the clients' paths lose nothing elsewhere.

pub mod population;

use core::num::NonZeroU32;

use dhttp_proto::{ClientConfig, ServerConfig as DhttpServerConfig};
use http1::message::Limits;
use http1::server::{ConnectionTimeouts, ServerConfig};
use http1::site::Site;
use scenario::Stack;
use scenario::dhttp::Dhttp;
use tcp::Payload;
use tcp::config::Handshake;
use wire::link::{self, QueueLimit};
use wire::seed::Random;
use wire::{Bytes, Duration, Rate, Seed, Time};

use crate::error::Error;
use crate::profile::{self, Clocks};
use crate::web::server::PORT;
use crate::web::{DhttpCounts, DhttpServer, HeadSizes, ServerTimes, Web, WebServer};
use crate::world::{Action, Address, Application, Bounds, HostId, Input, LinkId, SocketId, World};
use population::{Population, UserCounts};

/// "A fractional T3 line with a bandwidth of up to 9Mbps."
const BOTTLENECK_BITS: u64 = 9_000_000;
/// Buffer of the router: 60 packets, 80 ms at this rate.
const QUEUE: QueueLimit = QueueLimit { packets: Some(60), bytes: None };
/// "Two SURGE processes with 50 threads on each client machine."
const USERS: u16 = 100;
/// Round trips to New Jersey from Seattle, Durham and New York.
const ROUND_TRIPS: [Duration; 3] =
    [Duration::from_millis(70), Duration::from_millis(25), Duration::from_millis(10)];
/// Round trip of a competing download.
const ROUND_TRIP: Duration = Duration::from_millis(40);
/// "The persistent connection timeout for both servers is 5 seconds."
const IDLE: Duration = Duration::from_secs(5);
/// "Three connections per client."
const USER_CONNECTIONS: usize = 3;
/// Connection limit above the number of users: no one is refused.
const CONNECTIONS: usize = 1_000;
/// "Standard Linux limits the total number of TCP connections that are [...] waiting to be accepted to 128."
const BACKLOG: usize = 128;
/// "All connected by a 100Mbps LAN", whose switch queues 200 packets.
const LAN_BITS: u64 = 100_000_000;
const LAN_QUEUE: QueueLimit = QueueLimit { packets: Some(200), bytes: None };
/// Round trip of a switched LAN.
const LAN_ROUND_TRIP: Duration = Duration::from_micros(300);
/// "4 processes on each client machine, with 50 threads per process."
const LAN_USERS: u16 = 200;
/// SURGE's lognormal body, with the mean of "roughly 10K" that the paper gives.
const SIGMA: f64 = 1.318;
const MEAN: f64 = 10_000.0;
const OBJECTS: u64 = 2_000;
/// Start of measuring the competing flows, when all users have started.
const SETTLED: Time = Time::from_nanos(10_000_000_000);
/// Length of a run, unless configured.
const LENGTH: Duration = Duration::from_secs(60);

/// Protocol of the users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserProtocol {
    /// HTTP/1.1, pipelined over up to three connections, kept alive as long as the server does.
    Http,
    /// DHTTP as in the paper.
    Dhttp,
    /// DHTTP in the internet profile.
    DhttpOfToday,
}

/// Path between users and server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserPath {
    /// The Internet, with a bottleneck at the server (`papers/dhttp#section-vi-b`, B.2).
    Internet,
    /// A LAN of 100 Mbit/s, where the server is the bottleneck (B.1).
    Lan,
}

/// Transactions of users of T/TCP, one connection each, with the requests in its first segment (`papers/dhttp#figure-14`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transactions {
    /// A page with all its objects in one: the paper's idealized clients.
    WholePage,
    /// The page in one, its embedded objects in a second: the realistic clients of the paper's footnote 10.
    PageFirst,
}

/// Users, server and competing traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DumbbellConfig {
    /// Number of client hosts with a hundred users each.
    pub machines: usize,
    /// Their protocol.
    pub users: UserProtocol,
    /// Number of competing bulk downloads without end, by TCP. The paper has none.
    pub downloads: usize,
    /// Number of the server's processes, each of which serves one connection, whichever end opened it; `None`: no limit.
    pub processes: Option<usize>,
    /// Length of the run; its first ten seconds are not counted.
    pub lasts: Duration,
    /// Path between users and server.
    pub path: UserPath,
    /// Whether users of HTTP have T/TCP, and so does the server.
    pub transactions: Option<Transactions>,
    /// Maximum number of connections that a user opens.
    pub connections: usize,
    /// Whether users of HTTP close their connections after each page ("altruistic", `papers/dhttp#figure-12`).
    pub closes_early: bool,
    /// Idle timeout of the connections that clients open; zero: the server closes them after each response.
    pub idle: Duration,
    /// CPU time of the server's work.
    pub times: ServerTimes,
    /// DHTTP's server.
    pub dhttp: DhttpServerConfig,
    /// DHTTP's clients.
    pub client: ClientConfig,
}

impl DumbbellConfig {
    /// The paper's experiment (`papers/dhttp#section-vi-b`): users alone, a server that is never busy.
    pub fn new(machines: usize, users: UserProtocol) -> Self {
        let profile = match users {
            UserProtocol::Http | UserProtocol::Dhttp => Dhttp::paper(),
            UserProtocol::DhttpOfToday => Dhttp::internet(),
        };
        let client = match users {
            UserProtocol::Http | UserProtocol::Dhttp => ClientConfig::paper(),
            UserProtocol::DhttpOfToday => ClientConfig::internet(),
        };
        let mut dhttp = profile.server;
        dhttp.timeout.idle = IDLE;
        dhttp.connections = CONNECTIONS;
        Self {
            machines,
            users,
            downloads: 0,
            processes: None,
            lasts: LENGTH,
            path: UserPath::Internet,
            transactions: None,
            connections: USER_CONNECTIONS,
            closes_early: false,
            idle: IDLE,
            times: ServerTimes::default(),
            dhttp,
            client,
        }
    }
}

/// Result of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DumbbellResult {
    /// The server's counters.
    pub dhttp: DhttpCounts,
    /// Throughput of each competing flow, in bits per second.
    pub flows: Vec<f64>,
    /// Responses and bytes of all users after the first seconds.
    pub users: UserCounts,
    /// Seconds of that.
    pub seconds: f64,
}

impl DumbbellResult {
    /// Share of responses that went by UDP.
    pub fn udp_share(&self) -> f64 {
        let DhttpCounts { by_datagram, by_connection, .. } = self.dhttp;
        by_datagram as f64 / (by_datagram + by_connection).max(1) as f64
    }

    /// Resent requests per response sent by UDP.
    pub fn resent(&self) -> f64 {
        self.all_resent() / self.dhttp.by_datagram.max(1) as f64
    }

    /// Share of resent requests that came late and were ignored.
    pub fn ignored(&self) -> f64 {
        self.dhttp.late_resends as f64 / self.all_resent().max(1.0)
    }

    /// Jain's fairness index of the competing flows: 1 if all get the same, 1/n if one gets everything.
    pub fn fairness(&self) -> f64 {
        let sum: f64 = self.flows.iter().sum();
        let squares: f64 = self.flows.iter().map(|flow| flow * flow).sum();
        if squares == 0.0 { 0.0 } else { sum * sum / (self.flows.len() as f64 * squares) }
    }

    /// Responses to the users per second.
    pub fn per_second(&self) -> f64 {
        self.users.responses as f64 / self.seconds
    }

    /// Mean milliseconds from a request to its complete response.
    pub fn mean_ms(&self) -> f64 {
        self.users.waited.as_millis_f64() / (self.users.responses.max(1)) as f64
    }

    /// Mean milliseconds of a response as SURGE reports it, which "charges the overlapped latency to only one of the
    /// downloads" (`papers/dhttp#section-vi-b`).
    pub fn charged_ms(&self) -> f64 {
        self.users.pages.as_millis_f64() / (self.users.responses.max(1)) as f64
    }

    /// Bits per second of the users' responses.
    pub fn users_bits(&self) -> f64 {
        self.users.bytes as f64 * 8.0 / self.seconds
    }

    fn all_resent(&self) -> f64 {
        (self.dhttp.resends + self.dhttp.late_resends) as f64
    }
}

/// Simulates a run.
///
/// # Errors
/// Errors of the simulator.
pub fn run(config: &DumbbellConfig, seed: Seed) -> Result<DumbbellResult, Error> {
    let mut dumbbell = Dumbbell::new(config, seed)?;
    let (mut populations, mut sinks) = (Vec::new(), Vec::new());
    for machine in 0..config.machines {
        populations.push(dumbbell.add_users(config, machine)?);
    }
    for _ in 0..config.downloads {
        sinks.push(dumbbell.add_flow()?);
    }
    let world = &mut dumbbell.world;
    world.run(Bounds { until: SETTLED, events: u64::MAX });
    let before: Vec<u64> = sinks.iter().map(|sink| received(world, *sink)).collect();
    let users_before = counted(world, &populations);
    let end = Time::ZERO + config.lasts;
    world.run(Bounds { until: end, events: u64::MAX });
    let seconds = end.since(SETTLED).as_secs_f64();
    let mut result = DumbbellResult {
        flows: sinks
            .iter()
            .zip(before)
            .map(|(sink, before)| (received(world, *sink) - before) as f64 * 8.0 / seconds)
            .collect(),
        users: counted(world, &populations).since(users_before),
        seconds,
        ..DumbbellResult::default()
    };
    if let HostProgram::Web(Web::Server(server)) = world.application(HostId(0)) {
        result.dhttp = server.dhttp_counts().unwrap_or_default();
    }
    Ok(result)
}

/// The server behind its bottleneck, and all other hosts.
struct Dumbbell {
    world: World<HostProgram>,
    seed: Seed,
    handshake: Handshake,
    up: LinkId,
    down: LinkId,
    hosts: u64,
}

impl Dumbbell {
    fn new(config: &DumbbellConfig, seed: Seed) -> Result<Self, Error> {
        let stack = Stack::named("linux-2.0").expect("a stack of the catalogue");
        let clocks = Clocks::random(seed, 0);
        let mut host = profile::host(&stack, Bytes::new(1_460), Duration::from_micros(1_300), clocks);
        let handshake = if config.transactions.is_some() { Handshake::Ttcp } else { Handshake::ThreeWay };
        host.tcp.handshake = handshake;
        let mut world = World::new(seed);
        let mut random = seed.stream("sizes", 0);
        let sizes: Vec<Bytes> = (0..OBJECTS).map(|_| size(&mut random)).collect();
        let site = Site::new(&sizes, seed).expect("10 MB at most, 2,000 times, fit");
        let timeout = ConnectionTimeouts {
            idle: if config.idle == Duration::ZERO { IDLE } else { config.idle },
            request: IDLE * 60,
            linger: IDLE,
            ..ConnectionTimeouts::default()
        };
        let requests = if config.idle == Duration::ZERO { NonZeroU32::new(1) } else { None };
        let http = ServerConfig { limits: Limits::default(), timeout, requests, ..ServerConfig::default() };
        let server =
            WebServer::new(site, http, config.times, HeadSizes::default(), config.transactions.is_some())
                .with_processes(config.processes, BACKLOG)
                .with_dhttp(DhttpServer { config: config.dhttp, seed });
        let server = HostProgram::Web(Web::Server(Box::new(server)));
        world.add_host(host, server).map_err(Error::Stack)?;
        let (bits, queue) = match config.path {
            UserPath::Internet => (BOTTLENECK_BITS, QUEUE),
            UserPath::Lan => (LAN_BITS, LAN_QUEUE),
        };
        let link = link::Config { rate: Rate::from_bits_per_second(bits), queue, ..link::Config::default() };
        let [up, down] = [world.add_link(&link), world.add_link(&link)];
        let (up, down) = (up.map_err(Error::Link)?, down.map_err(Error::Link)?);
        Ok(Self { world, seed, handshake, up, down, hosts: 1 })
    }

    fn add_users(&mut self, config: &DumbbellConfig, machine: usize) -> Result<HostId, Error> {
        let random = self.seed.stream("crowd", machine as u64);
        let server = Address { host: HostId(0), port: PORT };
        let (users, round_trip) = match config.path {
            UserPath::Internet => (USERS, ROUND_TRIPS.get(machine).copied().unwrap_or(ROUND_TRIP)),
            UserPath::Lan => (LAN_USERS, LAN_ROUND_TRIP),
        };
        let population = Population::new(config, server, OBJECTS, users, random);
        let population = self.add(HostProgram::Users(Box::new(population)))?;
        self.join(HostId(0), population, round_trip)?;
        Ok(population)
    }

    fn add_flow(&mut self) -> Result<HostId, Error> {
        let source = self.add(HostProgram::Source(vec![Action::Listen(BULK)]))?;
        let server = Address { host: source, port: BULK };
        let sink = self.add(HostProgram::Sink(vec![Action::Connect(server)], 0))?;
        self.join(source, sink, ROUND_TRIP)?;
        Ok(sink)
    }

    fn add(&mut self, inhabitant: HostProgram) -> Result<HostId, Error> {
        let stack = Stack::named("linux-2.0").expect("a stack of the catalogue");
        let clocks = Clocks::random(self.seed, self.hosts);
        let mut host = profile::host(&stack, Bytes::new(1_460), Duration::from_micros(1_300), clocks);
        host.tcp.handshake = self.handshake;
        self.hosts += 1;
        self.world.add_host(host, inhabitant).map_err(Error::Stack)
    }

    /// Adds both directions of a path between a host behind the bottleneck and one beyond it.
    fn join(&mut self, behind: HostId, beyond: HostId, round_trip: Duration) -> Result<(), Error> {
        let own = link::Config { delay: round_trip / 2, ..link::Config::default() };
        let [to, from] = [self.world.add_link(&own), self.world.add_link(&own)];
        let (to, from) = (to.map_err(Error::Link)?, from.map_err(Error::Link)?);
        self.world.add_route(behind, beyond, &[self.down, to]);
        self.world.add_route(beyond, behind, &[from, self.up]);
        Ok(())
    }
}

/// Size of an object: lognormal, by the Box-Muller transform.
fn size(random: &mut Random) -> Bytes {
    let (radius, angle) = ((-2.0 * (1.0 - random.unit()).ln()).sqrt(), std::f64::consts::TAU * random.unit());
    let median = MEAN / (SIGMA * SIGMA / 2.0).exp();
    let sample = median * (SIGMA * radius * angle.cos()).exp();
    // Above zero and below 2^53: nine deviations from the median are 600 MB, and no sample lies beyond.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let bytes = sample.min(1e7) as u64;
    Bytes::new(bytes)
}

/// Port of the competing flows' sources.
const BULK: u16 = 81;

/// A host's program.
enum HostProgram {
    Web(Web),
    Users(Box<Population>),
    /// Sends as fast as TCP allows.
    Source(Vec<Action>),
    /// Receives everything, and counts the bytes.
    Sink(Vec<Action>, u64),
}

impl Application for HostProgram {
    fn handle(&mut self, now: Time, input: Input) {
        match self {
            Self::Web(web) => web.handle(now, input),
            Self::Users(population) => population.handle(now, input),
            Self::Source(next) => {
                if let Input::Accepted(socket, ..) | Input::Written(socket) = input {
                    next.push(Action::Write(socket, Payload::from(vec![0; 65_536])));
                }
            }
            Self::Sink(_, received) => {
                if let Input::Data(_, bytes) = input {
                    *received += bytes.len() as u64;
                }
            }
        }
    }

    fn poll(&mut self, now: Time, fresh: SocketId) -> Action {
        match self {
            Self::Web(web) => web.poll(now, fresh),
            Self::Users(population) => population.poll(now, fresh),
            Self::Source(next) | Self::Sink(next, _) => next.pop().unwrap_or(Action::Wait(None)),
        }
    }
}

fn received(world: &World<HostProgram>, sink: HostId) -> u64 {
    match world.application(sink) {
        HostProgram::Sink(_, received) => *received,
        HostProgram::Web(_) | HostProgram::Users(_) | HostProgram::Source(_) => 0,
    }
}

/// Sum of the counters of all users.
fn counted(world: &World<HostProgram>, populations: &[HostId]) -> UserCounts {
    let mut sum = UserCounts::default();
    for population in populations {
        if let HostProgram::Users(population) = world.application(*population) {
            let UserCounts { responses, failures, waited, bytes, pages } = population.counts();
            sum.responses += responses;
            sum.failures += failures;
            sum.waited += waited;
            sum.bytes += bytes;
            sum.pages += pages;
        }
    }
    sum
}
