//! One page: a scenario becomes a client, its servers and their links, and a run becomes a row.
//!
//! Not an engine of its own: [`crate::world`] runs it, `fetch` and `http1` speak HTTP, [`crate::profile`]
//! translates the stack.

pub(crate) mod flow;
mod neighbours;
mod opening;
mod plan;

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use ::page::Host;
use fetch::TransportCounts;
use fetch::serving::Http3Server;
use fetch::{PageEvent, Pipelining, Plan, PlanError, Report, Shape, VisitStats, WebConfig};
use http1::message::{Limits, WritePolicy};
use http1::server::{Closing, ConnectionTimeouts, ServerConfig};
use http1::site::Site;
use scenario::dhttp::{Dhttp, DhttpProfile};
use scenario::network::Direction;
use scenario::programs::{ClientStack, Validation};
use scenario::{Network, Programs, Protocol, Remark, Scenario, Serving, Stack, serving};
use tcp::config::{BufferOccupancy, Handshake, Sharing};
use trace::Stall;
use wire::{Bytes, Duration, Seed, Time};

use crate::error::Error;
use crate::profile::{self, Clocks};
use crate::stalls::{self, PathFacts, Probes, TimeAccount};
use crate::topology::{Server, Topology, add_access};
use crate::web::server::{PORT, SECURE_PORT};
use crate::web::{
    Browser, BrowserConfig, BrowserTimes, DhttpClient, DhttpServer, HeadSizes, QuicProbe, ResponseTraits,
    ServerTimes, WarmUp, Web, WebServer,
};
use crate::world::{Address, Bounds, Counters, HostConfig, HostId, LinkId, Probe, Record, RunEnd, World};
pub use crate::world::{CLIENT, SERVER};
pub use flow::Flow;
pub use opening::{Opening, openings};

/// Settings of the hosts that a scenario does not have.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hosts {
    /// CPU time of the client's work.
    pub client: BrowserTimes,
    /// CPU time of the server's work; `request` is in addition to the scenario's processing.
    pub server: ServerTimes,
    /// Division of responses into writes. Where requests are pipelined, the default is
    /// [`WritePolicy::gathering`].
    pub writes: WritePolicy,
    /// Time at which pipelined requests leave.
    pub pipelining: Pipelining,
    /// Maximum number of requests that the server serves on one connection; `None`: unlimited.
    pub requests: Option<NonZeroU32>,
    /// Connection closing of the server.
    pub closing: Closing,
    /// Whether the server's FIN leaves in the segment of its last data, as if one call wrote and closed.
    pub fin_with_data: bool,
    /// Idle timeout of the server's connections; `None`: none.
    pub idle: Option<Duration>,
    /// Maximum number of connections that the server serves at a time; `None`: unlimited.
    pub connections: Option<NonZeroU32>,
    /// Minimum sizes to which response headers are padded.
    pub heads: HeadSizes,
    /// Contents of a page's objects, of which the scenario has only sizes; `None`: filler bytes.
    pub contents: Option<Contents>,
    /// Validation by a client that has everything cached; `None`: its protocol's default.
    pub validation: Option<Validation>,
    /// The client's stack, if it differs from the server's.
    pub client_stack: Option<Stack>,
    /// Phases of the hosts' clocks; `None`: random, by the seed.
    pub clocks: Option<[Clocks; 2]>,
    /// Time that the user looks at the preceding page, if the scenario's connection is warm.
    pub think: Duration,
    /// Whether connections use TCP Fast Open, where the protocol has no shortcut of its own.
    pub fast_open: bool,
    /// Behaviour of client and server under DHTTP; `None`: as in the paper.
    pub dhttp: Option<Dhttp>,
}

impl Hosts {
    /// Applies a scenario's programs: times are added, everything else replaces the present value.
    fn with(self, programs: &Programs) -> Self {
        let Programs {
            // Part of the plan.
            client_pages: _,
            client_pause: _,
            client_idle: _,
            client_dns: _,
            client_defect: _,
            client_first_bytes: _,
            browser: _,
            http2_client: _,
            http3_client: _,
            http2_server: _,
            http3_server: _,
            client_setup,
            client_think,
            client_reading,
            client_file,
            client_buffer: _,
            client_flush: _,
            client_flush_explicit: _,
            client_validation,
            // Part of the served objects: `Serving`.
            client_codings: _,
            server_compression: _,
            server_changed: _,
            client_stack,
            server_idle,
            server_connections,
            server_setup,
            server_write,
            server_head: _,
            server_buffer: _,
            server_requests,
            server_close,
            dhttp,
            // Part of the stack: `Programs::sockets`, and of TCP's configuration: `Experiment::host`.
            nagle: _,
            send_buffer: _,
            unsent_limit: _,
            receive_buffer: _,
            initial_window: _,
            idle: _,
            rto_min: _,
            rto_initial: _,
            idle_after: _,
        } = *programs;
        let add = |time: &mut Duration, added: Option<Duration>| *time += added.unwrap_or_default();
        let Self { mut client, mut server, .. } = self;
        add(&mut client.connection, client_setup);
        add(&mut client.request, client_think);
        add(&mut client.kilobyte, client_reading);
        add(&mut client.file, client_file);
        add(&mut server.connection, server_setup);
        add(&mut server.write, server_write);
        Self {
            client,
            server,
            writes: programs.writes(self.writes),
            pipelining: programs.pipelining(self.pipelining),
            requests: server_requests.or(self.requests),
            closing: server_close.unwrap_or(self.closing),
            validation: client_validation.or(self.validation),
            client_stack: client_stack.map(ClientStack::profile).or(self.client_stack),
            idle: server_idle.or(self.idle),
            connections: server_connections.or(self.connections),
            dhttp: dhttp.map(DhttpProfile::ends).or(self.dhttp),
            ..self
        }
    }
}

/// Contents of a real page: its objects, and where its document references them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// Objects as sent, each of the size in the scenario's page (deflated, if the protocol is).
    pub objects: Vec<Arc<[u8]>>,
    /// Bytes of the document after which the client knows each object; objects beyond the end need all of it.
    pub named_at: Vec<Bytes>,
}

/// Result of one run.
#[derive(Clone, Debug)]
pub struct PageResult {
    /// Time at which the page was requested; later than zero if another page was fetched before it.
    pub began: Time,
    /// Time from the first packet of the first request to the last byte of the last response; `None` if
    /// something did not arrive.
    pub elapsed: Option<Duration>,
    /// Packets and bytes sent by the client.
    pub up: Counters,
    /// Packets and bytes sent by the servers.
    pub down: Counters,
    /// Packets lost on the link or dropped by its queue, both ways.
    pub lost: u64,
    /// Reason why the run ended; [`RunEnd::Quiet`] if no event was left.
    pub ended: RunEnd,
    /// Number of events.
    pub events: u64,
    /// The fetcher's reports.
    pub reports: Vec<Report>,
    /// Transport of requests and responses, if by DHTTP; includes a preceding page.
    pub channels: Option<TransportCounts>,
    /// Every packet, if packets were recorded.
    pub records: Vec<Record>,
    /// State of the connections at either end, each change in order of time, if packets were recorded.
    pub probes: Vec<Probe>,
    /// The same of QUIC's recovery.
    pub quic_probes: Vec<QuicProbe>,
}

impl PageResult {
    fn probes(&self) -> Probes<'_> {
        Probes { tcp: &self.probes, quic: &self.quic_probes }
    }

    /// Ends of the page's objects since the visit began, with their indexes.
    pub fn ends(&self, page: &::page::Page) -> impl Iterator<Item = (usize, Duration)> {
        let objects = page.objects.len().max(1);
        let of_visit = self.reports.iter().filter(|report| report.at >= self.began);
        of_visit.filter_map(move |report| match report.event {
            PageEvent::ObjectComplete { object, .. } => Some((object % objects, report.at.since(self.began))),
            _ => None,
        })
    }

    /// Statistics of the visit, without the preceding page.
    pub fn visit_stats(&self) -> VisitStats {
        let before = self.reports.partition_point(|report| report.at < self.began);
        VisitStats::of(self.reports.get(before..).unwrap_or_default())
    }
}

/// A scenario that has been checked for this engine.
#[derive(Clone, Debug)]
pub struct Experiment {
    network: Network,
    stack: Stack,
    site: Site,
    plan: Plan,
    /// Hosts of the page, the document's first.
    origins: Vec<Host>,
    hosts: Hosts,
    handshake: Handshake,
    idle_after: Option<Duration>,
    warm_up: WarmUp,
    dhttp: Option<Dhttp>,
    /// TLS and HTTP/2 of the hosts, if any has them.
    web: Option<WebConfig>,
    /// Traits of the responses, by the request's target.
    traits: Arc<BTreeMap<String, ResponseTraits>>,
    seed: Seed,
    /// Deviations of this engine from the scenario.
    remarks: Vec<Remark>,
}

/// The stack with a send buffer that grows with the congestion window, if it is Linux's and its size is not set. It decides
/// which of a connection's responses are still in HTTP/2's hands when an urgent one comes. Elsewhere the order of responses
/// does not depend on it.
fn with_tuned_buffer(mut stack: Stack) -> Stack {
    if stack.packets.send_buffer == Stack::LINUX.packets.send_buffer {
        stack.packets.occupancy = BufferOccupancy::Tuned;
    }
    stack
}

/// Maximum number of events; more than a page of 10,000 objects takes, each of which is lost a few times.
const MAX_EVENTS: u64 = 100_000_000;

impl Experiment {
    /// Checks that this engine can run the scenario.
    ///
    /// # Errors
    /// The part that cannot be honoured, and the alternative.
    pub fn new(scenario: &Scenario, hosts: Hosts) -> Result<Self, Error> {
        let Scenario {
            network,
            page,
            visit: _,
            protocol,
            tls: _,
            stack,
            client,
            server,
            programs,
            runs: _,
            seed,
        } = scenario;
        let mut hosts = hosts.with(programs);
        network.check().map_err(Error::Network)?;
        let mut serving = Serving::of(scenario)?;
        if let Some(Contents { objects, named_at: _ }) = &hosts.contents {
            serving.site = plan::site(page, objects)?;
        }
        let shape = client.shape(*protocol, hosts.pipelining)?;
        serving.validate(scenario, shape.version(), hosts.validation);
        let (mut plan, mut remarks) = plan::plan(page, shape, &serving, client, programs)?;
        remarks.extend(programs.described().map(Remark::Programs));
        remarks.extend(shared(stack.packets.sharing));
        plan::name(&mut plan, hosts.contents.as_ref());
        let warm_up = WarmUp { objects: plan.begins_at, think: hosts.think, pause: plan.pause };
        if let Shape::Http11Pipelined(_) = plan.shape {
            hosts.writes.gather = hosts.writes.gather.or(WritePolicy::gathering().gather);
        }
        hosts.server.request += server.processing;
        let (dhttp, remark) = dhttp(plan.shape, &hosts, network, *seed, &mut serving);
        remarks.extend(remark);
        plan.list_references(|request| serving.site.respond(request));
        let web = serving::web(scenario)?;
        remarks.extend(serving::without_offer(scenario).map(Remark::WithoutOffer));
        let sockets = programs.of_web(web.is_some());
        hosts.client_stack = hosts.client_stack.map(|stack| client_stack(&stack, &sockets));
        plan.prepare().map_err(Error::Plan)?;
        let experiment = Self {
            network: network.clone(),
            stack: match web {
                Some(_) => with_tuned_buffer(sockets.sockets(stack)),
                None => sockets.sockets(stack),
            },
            web,
            traits: Arc::new(serving::traits(page)),
            site: serving.site,
            plan,
            origins: page.hosts.clone(),
            handshake: handshake(*protocol, hosts.fast_open),
            idle_after: programs.idle_after,
            hosts,
            warm_up,
            dhttp,
            seed: *seed,
            remarks,
        };
        for stack in experiment.stacks() {
            experiment.host(stack, Clocks::random(*seed, 0)).tcp.check().map_err(Error::Stack)?;
        }
        Ok(experiment)
    }

    /// Deviations of this engine from the scenario.
    pub fn remarks(&self) -> &[Remark] {
        &self.remarks
    }

    /// Whether runs may differ: by packets lost or delayed at random, phases of clocks, or ids from the seed (DHTTP, QUIC).
    pub(crate) fn is_random(&self) -> bool {
        let Network { up, down, traces, modem, .. } = &self.network;
        let has_chance = |direction: &Direction| {
            *direction != Direction { queue: direction.queue, ..Direction::default() }
        };
        let clocks = [1, 2].map(|seed| Clocks::random(Seed::new(seed), 0));
        let has_phase = |stack: &Stack| self.host(stack, clocks[0]) != self.host(stack, clocks[1]);
        let has_ids = self.dhttp.is_some() || self.web.as_ref().is_some_and(|web| web.http3.is_some());
        has_ids
            || traces.is_some()
            || modem.is_some()
            || [up, down].into_iter().any(has_chance)
            || self.stacks().into_iter().any(has_phase)
    }

    /// Runs the scenario once; `number` selects an independent random stream.
    ///
    /// # Errors
    /// If link or plan are not possible.
    pub fn run(&self, number: u32, keeps_packets: bool) -> Result<PageResult, Error> {
        let seed = Seed::new(self.seed.stream("run", u64::from(number)).next_u64());
        let mut world = World::new(seed);
        let access = add_access(&mut world, &self.network)?;
        let topology = self.add_hosts(&mut world, access, CLIENT, seed)?;
        let bounds = Bounds { until: Time::MAX, events: MAX_EVENTS };
        let (mut before, mut lost_before) = ([Counters::default(); 2], 0);
        if self.warm_up.objects > 0 && world.run(bounds) == RunEnd::Finished {
            before = topology.counters(&world);
            lost_before = topology.lost(&world);
        }
        if keeps_packets {
            world.record();
            for host in topology.hosts() {
                world.probe(host);
                world.application_mut(host).record();
            }
        }
        let ended = world.run(bounds);
        let lost = topology.lost(&world) - lost_before;
        Ok(account(&world, &topology, before, ended, lost, self.may_lose()))
    }

    /// Adds the client, which has this identifier and begins now, and its servers.
    fn add_hosts(
        &self,
        world: &mut World<Web>,
        access: [LinkId; 2],
        client: HostId,
        seed: Seed,
    ) -> Result<Topology, Error> {
        let clocks = self.hosts.clocks.unwrap_or_else(|| [Clocks::random(seed, 0), Clocks::random(seed, 1)]);
        let browser = (self.host(self.stacks()[0], clocks[0]), self.browser(world.now(), client, seed)?);
        let servers = self.origins.iter().enumerate();
        let servers = servers
            .map(|(index, origin)| self.server(seed, index, origin, clocks[1]))
            .collect::<Result<_, _>>()?;
        Topology::build(world, access, browser, servers)
    }

    /// The client, which fetches the page from the hosts after it.
    fn browser(&self, start: Time, client: HostId, seed: Seed) -> Result<Web, Error> {
        let (times, warm_up) = (self.hosts.client, self.warm_up);
        let dhttp = self.dhttp.map(|Dhttp { client, server: _ }| DhttpClient { config: client, seed });
        let web = self.web(seed);
        let config = BrowserConfig { times, is_transaction: self.is_transaction(), warm_up, dhttp, web };
        let hosts = (client.0 + 1..).map(HostId).zip(0..self.origins.len());
        let servers = hosts.map(|(host, index)| Address { host, port: self.port(index) }).collect();
        let browser = Browser::new(start, self.plan.clone(), servers, config).map_err(Error::Plan)?;
        Ok(Web::Browser(Box::new(browser)))
    }

    /// TLS, HTTP/2 and HTTP/3 of the hosts in a run.
    fn web(&self, seed: Seed) -> Option<WebConfig> {
        let mut web = self.web.clone()?;
        if let Some(http3) = &mut web.http3 {
            http3.seed = seed;
        }
        Some(web)
    }

    /// Port of a host's server.
    fn port(&self, index: usize) -> u16 {
        let tls = self.web.as_ref().and_then(|web| web.origins.get(index)?.tls);
        tls.map_or(PORT, |_| SECURE_PORT)
    }

    /// The server of one of the page's hosts. The first has these clocks.
    fn server(&self, seed: Seed, index: usize, origin: &Host, clocks: Clocks) -> Result<Server, Error> {
        let deadline = self.plan.deadline;
        let timeout = ConnectionTimeouts {
            idle: self.hosts.idle.unwrap_or(deadline),
            request: deadline,
            linger: deadline,
            ..ConnectionTimeouts::default()
        };
        let (writes, requests, closing) = (self.hosts.writes, self.hosts.requests, self.hosts.closing);
        let config = ServerConfig { limits: Limits::default(), writes, requests, closing, timeout };
        let fin_with_data = self.is_transaction() || self.hosts.fin_with_data;
        let protocols = self.web(seed).map(|web| web.server(index, origin)).unwrap_or_default();
        let http3 = protocols.http3;
        let server =
            WebServer::new(self.site.clone(), config, self.hosts.server, self.hosts.heads, fin_with_data)
                .with_protocols(protocols, Arc::clone(&self.traits))
                .with_processes(self.hosts.connections.map(|limit| limit.get() as usize), usize::MAX);
        let server = match http3 {
            Some(config) => server.with_http3(
                Http3Server::new(config).map_err(|reason| Error::Plan(PlanError::Http3(Some(reason))))?,
            ),
            None => server,
        };
        let (seed, clocks) = match index as u64 {
            0 => (seed, clocks),
            index => (Seed::new(seed.stream("server", index).next_u64()), Clocks::random(seed, 1 + index)),
        };
        let server = match self.dhttp {
            Some(Dhttp { client: _, server: config }) => server.with_dhttp(DhttpServer { config, seed }),
            None => server,
        };
        let config = self.host(&self.stack, clocks);
        Ok(Server { config, application: Web::Server(Box::new(server)), extra_rtt: origin.extra_rtt })
    }

    /// Whether connections carry one request each, without a handshake.
    const fn is_transaction(&self) -> bool {
        match self.handshake {
            Handshake::ThreeWay | Handshake::FastOpen => false,
            Handshake::Ttcp | Handshake::Ardp => true,
        }
    }

    /// Account of a run's time, if its packets were recorded.
    pub fn spent(&self, fetched: &PageResult) -> TimeAccount {
        stalls::spent(useful(fetched), fetched.probes(), fetched.began, &self.path_facts())
    }

    /// The stalls of [`Experiment::spent`], each with the index of the record that ended it.
    pub fn stalls_by_record(&self, fetched: &PageResult) -> Vec<(usize, Stall)> {
        stalls::ended_by(useful(fetched), fetched.probes(), fetched.began, &self.path_facts())
    }

    fn path_facts(&self) -> PathFacts {
        let network = &self.network;
        // Timestamps take 12 bytes of a full segment's payload (RFC 7323).
        let is_stamped = self.stacks().iter().all(|stack| stack.timestamps);
        let mss = Bytes::new(network.mss.get().saturating_sub(12 * u64::from(is_stamped)));
        let wake_up = self.stacks().iter().map(|stack| stack.packets.wake_up).max().unwrap_or_default();
        PathFacts { up: network.rate_up.unwrap_or(network.rate), down: network.rate, mss, wake_up }
    }

    /// Whether responses may be destroyed by the server's close: a page without them is over, too.
    pub(crate) fn may_lose(&self) -> bool {
        self.hosts.closing == Closing::Naive
    }

    /// Time of each page of a run's session, from its first request to its last object; empty where a page is
    /// incomplete.
    pub fn page_times(&self, fetched: &PageResult) -> Vec<Duration> {
        let Plan { begins_at, pages_before, pause, .. } = self.plan;
        if begins_at == 0 {
            return Vec::new();
        }
        let length = (begins_at / pages_before.max(1)).max(1);
        let completed = fetched.reports.iter().filter(
            |report| matches!(report.event, PageEvent::ObjectComplete { object, .. } if object < begins_at),
        );
        let ends: Vec<Time> = completed.skip(length - 1).step_by(length).map(|report| report.at).collect();
        if ends.len() != pages_before {
            return Vec::new();
        }
        let begins = [Time::ZERO].into_iter().chain(ends.iter().map(|end| *end + pause));
        begins.zip(&ends).map(|(begin, end)| end.since(begin)).chain(fetched.elapsed).collect()
    }

    /// Stacks of the client and the server.
    fn stacks(&self) -> [&Stack; 2] {
        [self.hosts.client_stack.as_ref().unwrap_or(&self.stack), &self.stack]
    }

    fn host(&self, stack: &Stack, clocks: Clocks) -> HostConfig {
        let mss = self.network.mss;
        let mut host = profile::host(stack, mss, self.network.rate.time_for(mss), clocks);
        let config = &mut host.tcp;
        config.handshake = self.handshake;
        config.idle_after = self.idle_after;
        match self.handshake {
            Handshake::ThreeWay | Handshake::FastOpen => {}
            Handshake::Ttcp => {
                config.sharing = match config.sharing {
                    Sharing::None | Sharing::Temporal => Sharing::Temporal,
                    Sharing::Ensemble => Sharing::Ensemble,
                };
                config.termination.time_wait = TTCP_TIME_WAIT;
            }
            // No handshake opens its window: it begins where a handshake would have left it.
            Handshake::Ardp => {
                config.congestion.initial_window = stack.initial_window;
                config.termination.time_wait = TTCP_TIME_WAIT;
                // Its header holds neither.
                config.timestamps = false;
                config.window_scaling = false;
            }
        }
        host
    }
}

/// "reducing the duration that per-connection state is retained": 12 s (`papers/heidemann-model`, section II-B).
const TTCP_TIME_WAIT: Duration = Duration::from_secs(12);

/// Settings of both ends under DHTTP, and a remark on them; `None` under other protocols.
fn dhttp(
    shape: Shape,
    hosts: &Hosts,
    network: &Network,
    seed: Seed,
    serving: &mut Serving,
) -> (Option<Dhttp>, Option<Remark>) {
    match shape {
        Shape::Dhttp => {
            let (dhttp, remark) = hosts.dhttp.unwrap_or_else(Dhttp::paper).on(network);
            if dhttp.server.parts > 1 {
                // With validators, lost objects can be requested again.
                serving.site = serving.site.clone().with_validators(seed);
            }
            (Some(dhttp), remark)
        }
        Shape::Http10 { parallel: _ }
        | Shape::Http10KeepAlive
        | Shape::Http11
        | Shape::Http11Parallel { parallel: _ }
        | Shape::Http11Pipelined(_)
        | Shape::Http2
        | Shape::Http3(_) => (None, None),
    }
}

/// The client's stack with the settings of its sockets.
fn client_stack(stack: &Stack, programs: &Programs) -> Stack {
    let stack = programs.sockets(stack);
    programs.client_stack.map_or_else(|| stack.clone(), |client| client.applied_to(&stack))
}

/// Note on connections that share state.
const fn shared(sharing: Sharing) -> Option<Remark> {
    match sharing {
        Sharing::None => None,
        Sharing::Temporal => Some(Remark::SharedInSequence),
        Sharing::Ensemble => Some(Remark::SharedConcurrently),
    }
}

const fn handshake(protocol: Protocol, is_fast_open: bool) -> Handshake {
    match protocol {
        Protocol::Ttcp => Handshake::Ttcp,
        Protocol::Ardp => Handshake::Ardp,
        Protocol::Minimum
        | Protocol::Http10
        | Protocol::Http10KeepAlive
        | Protocol::Http11
        | Protocol::Http11Parallel
        | Protocol::Http11Pipelined
        | Protocol::Http11PipelinedDeflate
        | Protocol::Dhttp
        | Protocol::Http2
        | Protocol::Http3
        | Protocol::Http3Upgrade => match is_fast_open {
            true => Handshake::FastOpen,
            false => Handshake::ThreeWay,
        },
    }
}

/// The packets until everything had arrived: later ones cost no time.
fn useful(fetched: &PageResult) -> &[Record] {
    let end = fetched.elapsed.map_or(Time::MAX, |elapsed| fetched.began + elapsed);
    let until = fetched.records.partition_point(|record| record.at <= end);
    fetched.records.get(..until).unwrap_or_default()
}

fn account(
    world: &World<Web>,
    topology: &Topology,
    before: [Counters; 2],
    ended: RunEnd,
    lost: u64,
    may_lose: bool,
) -> PageResult {
    let (reports, began, elapsed, channels, quic_connections) = match world.application(topology.client) {
        Web::Browser(browser) => {
            let began = browser.began();
            let elapsed = browser.finished(may_lose).map(|finished| finished.since(began));
            (browser.reports().to_vec(), began, elapsed, browser.counts(), browser.quic_connections())
        }
        Web::Server(_) => (Vec::new(), Time::ZERO, None, None, 0),
    };
    let [mut up, down] = topology.counters(world);
    up.connections += quic_connections;
    let mut probes: Vec<Probe> =
        topology.hosts().flat_map(|host| world.probes(host).iter().cloned()).collect();
    probes.sort_by_key(|probe| probe.at);
    let mut quic_probes: Vec<QuicProbe> =
        topology.hosts().flat_map(|host| world.application(host).quic_probes(host)).collect();
    quic_probes.sort_by_key(|probe| probe.recovery.at);
    PageResult {
        began,
        elapsed,
        up: up.since(&before[0]),
        down: down.since(&before[1]),
        lost,
        ended,
        events: world.events(),
        reports,
        channels,
        records: world.records().to_vec(),
        probes,
        quic_probes,
    }
}
