//! One page: a scenario becomes two hosts and a link, and a run becomes a row.
//!
//! Not an engine of its own: [`crate::world`] runs it, `pageload` and `http1` speak the HTTP, [`crate::profile`] says what the
//! stack is.

mod flow;
mod plan;

use std::num::NonZeroU32;
use std::sync::Arc;

use http1::message::{Limits, WritePolicy};
use http1::server::{Closing, Patience, ServerConfig};
use http1::site::Site;
use pageload::robot::{Course, Pipelining, Plan, Report, Shape};
use pageload::visitor::Counts;
use scenario::dhttp::{Dhttp, DhttpWays};
use scenario::programs::Validation;
use scenario::{Network, Programs, Protocol, Scenario, Serving, Stack};
use tcp::config::{Sharing, Shortcut};
use tcp::stack::packets;
use wire::{Bytes, Duration, Seed, Time};

use crate::error::Error;
use crate::profile::{self, Clocks};
use crate::stalls::{self, Known, Spent};
use crate::web::server::PORT;
use crate::web::{
    Browser, BrowserConfig, BrowserTimes, DhttpClient, DhttpServer, HeadSizes, ServerTimes, WarmUp, Web,
    WebServer,
};
use crate::world::{Address, Bounds, Counters, Ended, HostConfig, HostId, Probe, Record, World};
pub use flow::Flow;

/// The host that asks.
pub const CLIENT: HostId = HostId(0);
/// The host that answers.
pub const SERVER: HostId = HostId(1);

/// What the hosts do that a scenario does not say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hosts {
    /// What the client's work takes.
    pub client: BrowserTimes,
    /// What the server's work takes; `request` is in addition to the scenario's processing.
    pub server: ServerTimes,
    /// How answers are cut into writes. Where requests are pipelined, answers gather as in
    /// [`WritePolicy::gathering`] unless this says how.
    pub writes: WritePolicy,
    /// When pipelined requests leave.
    pub pipelining: Pipelining,
    /// Requests that the server answers on one connection; `None`: as many as there are.
    pub requests: Option<NonZeroU32>,
    /// How the server ends a connection.
    pub closing: Closing,
    /// What the heads of answers are padded to.
    pub heads: HeadSizes,
    /// What the objects of a page really are of which the scenario has only sizes; `None`: bytes of no meaning.
    pub contents: Option<Contents>,
    /// How a client that has everything asks whether it is still the same; `None`: as its protocol has it.
    pub validation: Option<Validation>,
    /// The client's stack, where it is not the server's.
    pub client_stack: Option<Stack>,
    /// Where the hosts' clocks stand; `None`: anywhere, by the seed.
    pub clocks: Option<[Clocks; 2]>,
    /// How long the user looks at the page before, where the scenario's connection is warm.
    pub think: Duration,
    /// Whether connections use TCP Fast Open, where the protocol has no shortcut of its own.
    pub fast_open: bool,
    /// How client and server behave under DHTTP; `None`: as in the paper.
    pub dhttp: Option<Dhttp>,
}

impl Hosts {
    /// With what a scenario says of the programs: times are added, everything else replaces what was here.
    fn with(self, programs: &Programs) -> Self {
        let Programs {
            client_setup,
            client_think,
            client_reading,
            client_buffer: _,
            client_flush: _,
            client_flush_explicit: _,
            // It is in the plan.
            client_first_bytes: _,
            client_validation,
            // They are in what is served: `Serving`.
            client_codings: _,
            server_compression: _,
            server_setup,
            server_write,
            server_head: _,
            server_buffer: _,
            server_requests,
            server_close,
            dhttp,
            // They are in the stack: `Programs::sockets`.
            nagle: _,
            send_buffer: _,
        } = *programs;
        let BrowserTimes { connection, request, kilobyte } = self.client;
        let client = BrowserTimes {
            connection: connection + client_setup.unwrap_or_default(),
            request: request + client_think.unwrap_or_default(),
            kilobyte: kilobyte + client_reading.unwrap_or_default(),
        };
        let ServerTimes { connection, request, write } = self.server;
        let server = ServerTimes {
            connection: connection + server_setup.unwrap_or_default(),
            request,
            write: write + server_write.unwrap_or_default(),
        };
        Self {
            client,
            server,
            writes: programs.writes(self.writes),
            pipelining: programs.pipelining(self.pipelining),
            requests: server_requests.or(self.requests),
            closing: server_close.unwrap_or(self.closing),
            validation: client_validation.or(self.validation),
            dhttp: dhttp.map(DhttpWays::ends).or(self.dhttp),
            ..self
        }
    }
}

/// A page that is real: its objects, and where its document names them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// As they are sent, each of the size that the scenario's page has (deflated, if the protocol is).
    pub objects: Vec<Arc<[u8]>>,
    /// How much of the first has arrived when the client knows of each; where this ends, all of it.
    pub named_at: Vec<Bytes>,
}

/// What came of one run.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// When the page was asked for; later than zero where another page was fetched before it.
    pub began: Time,
    /// From the first packet of the first request to the last byte of the last answer; `None` if something did
    /// not arrive.
    pub elapsed: Option<Duration>,
    /// What the client sent.
    pub up: Counters,
    /// What the server sent.
    pub down: Counters,
    /// Packets that the link lost or its queue dropped, both ways.
    pub lost: u64,
    /// Why the run ended; [`Ended::Quiet`] if nothing was left to happen.
    pub ended: Ended,
    /// How much happened.
    pub events: u64,
    /// What the robot told.
    pub reports: Vec<Report>,
    /// How requests and answers travelled, if by DHTTP; what a page before took is in it.
    pub channels: Option<Counts>,
    /// Every packet, if they were to be kept.
    pub records: Vec<Record>,
    /// How the connections were at either end, each change in order of time, if packets were to be kept.
    pub probes: Vec<Probe>,
}

impl Fetched {
    /// What the visit was like, without the page before.
    pub fn course(&self) -> Course {
        let before = self.reports.partition_point(|report| report.at < self.began);
        Course::of(self.reports.get(before..).unwrap_or_default())
    }
}

/// A scenario that can be run.
#[derive(Clone, Debug)]
pub struct Experiment {
    network: Network,
    stack: Stack,
    site: Site,
    plan: Plan,
    hosts: Hosts,
    shortcut: Shortcut,
    warm_up: WarmUp,
    dhttp: Option<Dhttp>,
    seed: Seed,
    /// What the scenario asks for and this engine does otherwise.
    notes: Vec<String>,
}

/// More than any page takes: a page of 10,000 objects, each of which is lost a few times.
const EVENTS_MOST: u64 = 100_000_000;

impl Experiment {
    /// Checks that this engine can run the scenario.
    ///
    /// # Errors
    /// What it cannot do, and what can be done instead.
    pub fn new(scenario: &Scenario, hosts: Hosts) -> Result<Self, Error> {
        let Scenario { network, page, visit: _, protocol, stack, client, server, programs, runs: _, seed } =
            scenario;
        let mut hosts = hosts.with(programs);
        network.check().map_err(Error::Network)?;
        let mut serving = Serving::of(scenario)?;
        if let Some(Contents { objects, named_at: _ }) = &hosts.contents {
            serving.site = plan::site(page, objects)?;
        }
        let shape = plan::shape(*protocol, client, hosts.pipelining)?;
        serving.validate(scenario, shape.version(), hosts.validation);
        let (mut plan, mut notes) = plan::plan(shape, &serving, client);
        plan.first_bytes = programs.client_first_bytes;
        notes.extend(programs.described().map(|said| format!("programs: {said}")));
        notes.extend(shared(stack.packets.sharing).map(str::to_owned));
        plan::name(&mut plan, hosts.contents.as_ref());
        let warm_up = WarmUp { objects: plan.begins_at, think: hosts.think };
        if let Shape::Http11Pipelined(_) = plan.shape {
            hosts.writes.gather = hosts.writes.gather.or(WritePolicy::gathering().gather);
        }
        hosts.server.request += server.processing;
        let dhttp = match plan.shape {
            Shape::Dhttp => {
                let (dhttp, note) = hosts.dhttp.unwrap_or_else(Dhttp::paper).on(network);
                notes.extend(note);
                if dhttp.server.parts > 1 {
                    // By which what is lost can be asked for.
                    serving.site = serving.site.with_validators(*seed);
                }
                Some(dhttp)
            }
            Shape::Http10 { parallel: _ }
            | Shape::Http10KeepAlive
            | Shape::Http11
            | Shape::Http11Parallel { parallel: _ }
            | Shape::Http11Pipelined(_) => None,
        };
        hosts.client_stack = hosts.client_stack.map(|stack| programs.sockets(&stack));
        let experiment = Self {
            network: network.clone(),
            stack: programs.sockets(stack),
            site: serving.site,
            plan,
            shortcut: shortcut(*protocol, hosts.fast_open),
            hosts,
            warm_up,
            dhttp,
            seed: *seed,
            notes,
        };
        for stack in experiment.stacks() {
            experiment.host(stack, Clocks::random(*seed, 0)).tcp.check().map_err(Error::Stack)?;
        }
        Ok(experiment)
    }

    /// What the scenario asks for and this engine does otherwise, in sentences.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Runs it once; `number` makes its randomness its own.
    ///
    /// # Errors
    /// If link or plan are not possible.
    pub fn run(&self, number: u32, keeps_packets: bool) -> Result<Fetched, Error> {
        let seed = Seed::new(self.seed.stream("run", u64::from(number)).next_u64());
        let clocks = self.hosts.clocks.unwrap_or_else(|| [Clocks::random(seed, 0), Clocks::random(seed, 1)]);
        let [client_clocks, server_clocks] = clocks;
        let [client, server] = self.stacks();
        let (client_host, server_host) = (self.host(client, client_clocks), self.host(server, server_clocks));
        let address = Address { host: SERVER, port: PORT };
        let is_transaction = match self.shortcut {
            Shortcut::None | Shortcut::FastOpen => false,
            Shortcut::Ttcp | Shortcut::Ardp => true,
        };
        let (times, warm_up) = (self.hosts.client, self.warm_up);
        let dhttp = self.dhttp.map(|Dhttp { client, server: _ }| DhttpClient { config: client, seed });
        let config = BrowserConfig { times, is_transaction, warm_up, dhttp };
        let browser = Browser::new(Time::ZERO, self.plan.clone(), address, config).map_err(Error::Plan)?;
        let patience = Patience {
            idle: self.plan.deadline,
            request: self.plan.deadline,
            linger: self.plan.deadline,
            ..Patience::default()
        };
        let (writes, requests, closing) = (self.hosts.writes, self.hosts.requests, self.hosts.closing);
        let config = ServerConfig { limits: Limits::default(), writes, requests, closing, patience };
        let server =
            WebServer::new(self.site.clone(), config, self.hosts.server, self.hosts.heads, is_transaction);
        let server = match self.dhttp {
            Some(Dhttp { client: _, server: config }) => server.with_dhttp(DhttpServer { config, seed }),
            None => server,
        };

        let mut world = World::new(seed);
        let client = world.add_host(client_host, Web::Browser(Box::new(browser))).map_err(Error::Stack)?;
        let server = world.add_host(server_host, Web::Server(Box::new(server))).map_err(Error::Stack)?;
        let links = self.network.links();
        let up = world.add_link(&links.up).map_err(Error::Link)?;
        let down = world.add_link(&links.down).map_err(Error::Link)?;
        world.add_route(client, server, &[up]);
        world.add_route(server, client, &[down]);
        let bounds = Bounds { until: Time::MAX, events: EVENTS_MOST };
        let lost = |world: &World<Web>| {
            let counters = [up, down].map(|link| *world.link(link));
            counters.iter().map(|link| link.lost.packets + link.dropped.packets).sum::<u64>()
        };
        let (mut before, mut lost_before) = ([Counters::default(); 2], 0);
        if self.warm_up.objects > 0 && world.run(bounds) == Ended::Finished {
            before = [client, server].map(|host| *world.counters(host));
            lost_before = lost(&world);
        }
        if keeps_packets {
            world.record();
            world.probe(client);
            world.probe(server);
        }
        let ended = world.run(bounds);
        let lost = lost(&world) - lost_before;
        Ok(account(&world, [client, server], before, ended, lost))
    }

    /// How the time of a run was spent, if it kept its packets.
    pub fn spent(&self, fetched: &Fetched) -> Spent {
        let network = &self.network;
        // Of a full segment's payload timestamps take 12 bytes (RFC 7323).
        let is_stamped = self.stacks().iter().all(|stack| stack.timestamps);
        let mss = Bytes::new(network.mss.get().saturating_sub(12 * u64::from(is_stamped)));
        let wake_up = self.stacks().iter().map(|stack| stack.packets.wake_up).max().unwrap_or_default();
        let known = Known { up: network.rate_up.unwrap_or(network.rate), down: network.rate, mss, wake_up };
        // What is still sent when all has arrived costs nobody anything.
        let end = fetched.elapsed.map_or(Time::MAX, |elapsed| fetched.began + elapsed);
        let until = fetched.records.partition_point(|record| record.at <= end);
        let records = fetched.records.get(..until).unwrap_or_default();
        stalls::spent(records, &fetched.probes, fetched.began, &known)
    }

    /// The client's and the server's.
    fn stacks(&self) -> [&Stack; 2] {
        [self.hosts.client_stack.as_ref().unwrap_or(&self.stack), &self.stack]
    }

    fn host(&self, stack: &Stack, clocks: Clocks) -> HostConfig {
        let mss = self.network.mss;
        let mut host = profile::host(stack, mss, self.network.rate.time_for(mss), clocks);
        let config = &mut host.tcp;
        config.shortcut = self.shortcut;
        match self.shortcut {
            Shortcut::None | Shortcut::FastOpen => {}
            Shortcut::Ttcp => {
                config.sharing = match config.sharing {
                    Sharing::None | Sharing::Temporal => Sharing::Temporal,
                    Sharing::Ensemble => Sharing::Ensemble,
                };
                config.ending.time_wait = TTCP_TIME_WAIT;
            }
            // No handshake opens its window: it begins where that would have left it.
            Shortcut::Ardp => {
                config.congestion.initial_window = stack.initial_window;
                config.ending.time_wait = TTCP_TIME_WAIT;
                // Its header has room for neither.
                config.timestamps = false;
                config.window_scaling = false;
            }
        }
        host
    }
}

/// "reducing the duration that per-connection state is retained": 12 s (`papers/heidemann-model`, section II-B).
const TTCP_TIME_WAIT: Duration = Duration::from_secs(12);

/// What a reader must know of connections that are not alone.
const fn shared(sharing: packets::Sharing) -> Option<&'static str> {
    match sharing {
        packets::Sharing::None => None,
        packets::Sharing::Temporal => Some("a connection begins with the window that the last one left"),
        packets::Sharing::Ensemble => Some("connections that are open at once have one window together"),
    }
}

fn shortcut(protocol: Protocol, is_fast_open: bool) -> Shortcut {
    match protocol {
        Protocol::Ttcp => Shortcut::Ttcp,
        Protocol::Ardp => Shortcut::Ardp,
        Protocol::Minimum
        | Protocol::Http10
        | Protocol::Http10KeepAlive
        | Protocol::Http11
        | Protocol::Http11Parallel
        | Protocol::Http11Pipelined
        | Protocol::Http11PipelinedDeflate
        | Protocol::Dhttp
            if is_fast_open =>
        {
            Shortcut::FastOpen
        }
        Protocol::Minimum
        | Protocol::Http10
        | Protocol::Http10KeepAlive
        | Protocol::Http11
        | Protocol::Http11Parallel
        | Protocol::Http11Pipelined
        | Protocol::Http11PipelinedDeflate
        | Protocol::Dhttp => Shortcut::None,
    }
}

fn account(
    world: &World<Web>,
    [client, server]: [HostId; 2],
    before: [Counters; 2],
    ended: Ended,
    lost: u64,
) -> Fetched {
    let (reports, began, elapsed, channels) = match world.application(client) {
        Web::Browser(browser) => {
            let began = browser.began();
            let elapsed = browser.finished().map(|finished| finished.since(began));
            (browser.reports().to_vec(), began, elapsed, browser.counts())
        }
        Web::Server(_) => (Vec::new(), Time::ZERO, None, None),
    };
    let since = |host, before| world.counters(host).since(before);
    let mut probes = [world.probes(client), world.probes(server)].concat();
    probes.sort_by_key(|probe| probe.at);
    Fetched {
        began,
        elapsed,
        up: since(client, &before[0]),
        down: since(server, &before[1]),
        lost,
        ended,
        events: world.events(),
        reports,
        channels,
        records: world.records().to_vec(),
        probes,
    }
}
