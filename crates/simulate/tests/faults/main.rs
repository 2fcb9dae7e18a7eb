//! DHTTP under faults: loss, duplication, reordering, bit errors, a client that is killed, a server that is
//! killed and restarted.
//!
//! In every case the caller gets exactly one result per request. No unsafe request goes by UDP or is
//! resent; and at the end everything is idle. Where the path is good and no host dies, everything arrives.
//!
//! Without the test harness: as a test it runs a sample. `cargo test --release -p roundtrip-simulate --test faults --
//! 20000` runs that number of seeds; `-- 20000 7` begins at seed 7.

extern crate roundtrip_simulate as simulate;

mod node;

use std::collections::BTreeMap;
use std::process::ExitCode;

use dhttp_proto::Extension;
use fetch::TransportCounts;
use fetch::{Failure, PageEvent, Plan, PlannedObject, Release, Report, Shape};
use http1::message::{Limits, Method};
use http1::server::{ConnectionTimeouts, ServerConfig};
use http1::site::Site;
use node::{Node, ProgramFault};
use scenario::Stack;
use scenario::dhttp::Dhttp;
use simulate::page::Flow;
use simulate::profile::{self, Clocks};
use simulate::web::server::PORT;
use simulate::web::*;
use simulate::world::*;
use wire::link::{self, Loss, Reordering};
use wire::seed::Random;
use wire::{Bytes, Duration, Probability, Rate, Seed, Time};

/// Number of seeds in the sample.
const SAMPLE: u64 = 150;
const SERVER: HostId = HostId(0);
const CLIENTS: [HostId; 2] = [HostId(1), HostId(2)];

fn main() -> ExitCode {
    // `ci.sh test` runs tests of other programs by their names.
    if std::env::args().any(|word| word == "--exact") {
        return ExitCode::SUCCESS;
    }
    let mut numbers = std::env::args().skip(1).filter_map(|word| word.parse().ok());
    let (count, first): (u64, u64) = (numbers.next().unwrap_or(SAMPLE), numbers.next().unwrap_or(1));
    let mut sum = Totals::default();
    for seed in first..first.saturating_add(count) {
        let case = Case::of(seed);
        if let Err(event) = case.run(&mut sum) {
            eprintln!("seed {seed}: {event}\n{case:?}");
            return ExitCode::FAILURE;
        }
    }
    println!("{count} seeds from {first}: {sum:?}");
    ExitCode::SUCCESS
}

/// Totals over all seeds.
#[derive(Debug, Default)]
struct Totals {
    requested: u64,
    completed: u64,
    failed: u64,
    by_datagram: u64,
    by_connection: u64,
    by_plain_http: u64,
    resends: u64,
    lost_packets: u64,
    clients_killed: u64,
    servers_killed: u64,
}

/// Faults and requests of one run.
#[derive(Debug)]
struct Case {
    seed: Seed,
    is_internet: bool,
    /// Whether extensions beyond the paper are used, too.
    goes_beyond: bool,
    stack: &'static str,
    delay: Duration,
    loss: f64,
    copies: f64,
    falls_behind: f64,
    flips: f64,
    client_dies: Option<Time>,
    server_turns: Vec<(Time, ProgramFault)>,
    sizes: Vec<u64>,
    /// Every `posts`-th object is requested with POST.
    posts: usize,
}

impl Case {
    fn of(seed: u64) -> Self {
        let seed = Seed::new(seed);
        let mut random = seed.stream("faults", 0);
        let often = |random: &mut Random, share: f64, most: f64| {
            let (is_there, how) = (random.unit() < share, random.unit() * most);
            if is_there { how } else { 0.0 }
        };
        let (loss, copies) = (often(&mut random, 0.7, 0.3), often(&mut random, 0.4, 0.2));
        let (falls_behind, flips) = (often(&mut random, 0.4, 0.3), often(&mut random, 0.3, 0.3));
        let moment = |random: &mut Random, most| Time::ZERO + Duration::from_millis(random.up_to(most));
        let client_dies = (random.unit() < 0.3).then(|| moment(&mut random, 3_000));
        let mut server_turns = Vec::new();
        if random.unit() < 0.4 {
            let dies = moment(&mut random, 5_000);
            server_turns = vec![(dies, ProgramFault::Dies)];
            server_turns.push((dies + Duration::from_millis(random.up_to(20_000)), ProgramFault::Rises));
        }
        let sizes = (0..=random.up_to(11)).map(|_| match random.up_to(2) {
            0 => random.up_to(1_200),
            1 => 1_000 + random.up_to(1_000),
            2.. => random.up_to(30_000),
        });
        let sizes = sizes.collect();
        Self {
            seed,
            is_internet: random.unit() < 0.5,
            stack: if random.unit() < 0.5 { "linux" } else { "period" },
            delay: Duration::from_millis(1 + random.up_to(150)),
            loss,
            copies,
            falls_behind,
            flips,
            client_dies,
            server_turns,
            sizes,
            posts: 3 + usize::try_from(random.up_to(5)).unwrap(),
            goes_beyond: random.unit() < 0.5,
        }
    }

    /// Runs the case; the error is the violated invariant.
    fn run(&self, sum: &mut Totals) -> Result<(), String> {
        let mut world = self.world();
        world.record();
        let ended = world.run(Bounds { until: Time::MAX, events: 5_000_000 });
        if ended != RunEnd::Quiet {
            return Err(format!("it ends {ended:?} at {:?}", world.now()));
        }
        for record in world.records() {
            let is_request = record.from.host != SERVER && record.seen == ObservationPoint::Sent;
            let is_unsafe = record.segment.payload.windows(5).any(|bytes| bytes == b"POST ");
            if is_request && is_unsafe && Flow::of(record).is_datagrams() {
                return Err("a POST left by UDP".to_owned());
            }
            sum.lost_packets += u64::from(record.seen == ObservationPoint::Lost);
        }
        sum.clients_killed += u64::from(self.client_dies.is_some());
        sum.servers_killed += u64::from(!self.server_turns.is_empty());
        let killed = self.client_dies.map(|_| CLIENTS[0]);
        for client in CLIENTS.into_iter().filter(|client| Some(*client) != killed) {
            let Web::Browser(browser) = world.application(client).web() else {
                return Err("a client is no browser".to_owned());
            };
            let counts = browser.counts().unwrap_or_default();
            self.judge(browser.reports(), sum)?;
            let TransportCounts { by_datagram, by_connection, by_plain_http, resends } = counts;
            sum.by_datagram += by_datagram;
            sum.by_connection += by_connection;
            sum.by_plain_http += by_plain_http;
            sum.resends += resends;
        }
        Ok(())
    }

    /// Whether the caller got exactly one result per object.
    fn judge(&self, reports: &[Report], sum: &mut Totals) -> Result<(), String> {
        let (mut requested, mut ended) = (BTreeMap::new(), BTreeMap::new());
        let (mut finished, mut failed) = (0, 0);
        for report in reports {
            match &report.event {
                PageEvent::RequestSent { object, connection: _ } => {
                    *requested.entry(*object).or_insert(0) += 1
                }
                PageEvent::ObjectComplete { object, status: _, body } => {
                    *ended.entry(*object).or_insert(0) += 1;
                    sum.completed += 1;
                    if body.get() != self.sizes[*object] {
                        return Err(format!("object {object} has {body}"));
                    }
                }
                PageEvent::ObjectFailed { object, failure } => {
                    if *failure == Failure::Deadline {
                        return Err(format!("nobody knew of object {object} until its page was given up"));
                    }
                    *ended.entry(*object).or_insert(0) += 1;
                    // The site rejects every POST.
                    failed += usize::from(!self.is_post(*object));
                }
                PageEvent::Finished { failed: _ } => finished += 1,
                PageEvent::HeadReceived { .. }
                | PageEvent::ObjectFound { .. }
                | PageEvent::TooManyObjects { .. }
                | PageEvent::FirstBytesReceived { .. }
                | PageEvent::Fault { .. } => {}
            }
        }
        sum.requested += self.sizes.len() as u64;
        sum.failed += failed as u64;
        if finished != 1 || ended.len() != self.sizes.len() || ended.values().any(|times| *times != 1) {
            return Err(format!("told of the end {finished} times, of objects {ended:?}"));
        }
        if requested.iter().any(|(object, times)| self.is_post(*object) && *times > 1) {
            return Err(format!("a POST was sent twice: {requested:?}"));
        }
        let is_good = self.loss < 0.02 && self.flips == 0.0 && self.server_turns.is_empty();
        if is_good && failed > 0 {
            return Err(format!("{failed} objects did not come over a good path: {reports:?}"));
        }
        Ok(())
    }

    fn is_post(&self, object: usize) -> bool {
        object % self.posts == self.posts - 1
    }

    fn world(&self) -> World<Node> {
        let mut world = World::new(self.seed);
        let chance = |share| Probability::new(share).expect("a share");
        let stack = Stack::named(self.stack).expect("a stack");
        let tcp = |host| {
            let clocks = Clocks::random(self.seed, host);
            profile::config(&stack, Bytes::new(1_460), Duration::from_micros(1_200), clocks)
        };
        let random = |host| self.seed.stream("flips", host);
        let dhttp = if self.is_internet { Dhttp::internet() } else { Dhttp::paper() };
        let beyond = Extension::ALL.into_iter().filter(|_| self.goes_beyond);
        let dhttp = beyond.fold(dhttp, |dhttp, extension| dhttp.with(extension, true));
        let server = self.server(dhttp);
        let server = Node::new(server, self.server_turns.clone(), chance(self.flips), random(0));
        world.add_host(HostConfig::immediate(tcp(0)), server).expect("a server");
        for (number, death) in [(1, self.client_dies), (2, None)] {
            let turns = death.map(|at| (at, ProgramFault::Dies)).into_iter().collect();
            let client = Node::new(self.client(dhttp, number), turns, chance(self.flips), random(number));
            let client = world.add_host(HostConfig::immediate(tcp(number)), client).expect("a client");
            let link = link::Config {
                rate: Rate::from_bits_per_second(10_000_000),
                delay: self.delay,
                loss: Loss::Independent(chance(self.loss)),
                duplication: chance(self.copies),
                reordering: (self.falls_behind > 0.0)
                    .then(|| Reordering { probability: chance(self.falls_behind), by: self.delay * 2 }),
                ..link::Config::default()
            };
            let [up, down] = [(); 2].map(|()| world.add_link(&link).expect("a link"));
            world.add_route(client, SERVER, &[up]);
            world.add_route(SERVER, client, &[down]);
        }
        world
    }

    fn server(&self, dhttp: Dhttp) -> Box<dyn Fn() -> Web> {
        let sizes: Vec<Bytes> = self.sizes.iter().copied().map(Bytes::new).collect();
        let (site, seed) = (Site::new(&sizes, self.seed).expect("a small site"), self.seed);
        let site = if self.goes_beyond { site.with_validators(seed) } else { site };
        Box::new(move || {
            let timeout = Duration::from_secs(60);
            let timeout = ConnectionTimeouts {
                idle: timeout,
                request: timeout,
                linger: timeout,
                ..ConnectionTimeouts::default()
            };
            let config = ServerConfig { limits: Limits::default(), timeout, ..ServerConfig::default() };
            let (times, heads) = (ServerTimes::default(), HeadSizes::default());
            let server = WebServer::new(site.clone(), config, times, heads, false);
            Web::Server(Box::new(server.with_dhttp(DhttpServer { config: dhttp.server, seed })))
        })
    }

    fn client(&self, dhttp: Dhttp, number: u64) -> Box<dyn Fn() -> Web> {
        let object = |(index, size): (usize, &u64)| {
            let expected = if self.is_post(index) { None } else { Some(Bytes::new(*size)) };
            let get = PlannedObject::get(&Site::path(index), expected);
            let post = || Method::Other("POST".to_owned());
            if self.is_post(index) { PlannedObject { method: post(), ..get } } else { get }
        };
        let objects = self.sizes.iter().enumerate().map(object).collect();
        let release = if number == 1 { Release::Independent } else { Release::AfterFirst };
        let deadline = Duration::from_secs(24 * 3_600);
        let plan = Plan { release, deadline, ..Plan::new("server", objects, Shape::Dhttp) };
        let seed = Seed::new(self.seed.get().wrapping_mul(3).wrapping_add(number));
        let dhttp = Some(DhttpClient { config: dhttp.client, seed });
        Box::new(move || {
            let config = BrowserConfig { dhttp, ..BrowserConfig::default() };
            let address = Address { host: SERVER, port: PORT };
            let browser = Browser::new(Time::ZERO, plan.clone(), vec![address], config).expect("a plan");
            Web::Browser(Box::new(browser))
        })
    }
}
