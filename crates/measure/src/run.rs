//! One run: builds a laboratory, fetches a page, and summarises the observations.
//!
//! A void run does not count ([`crate::series`]). The programs' settings are in `plan`.

pub(crate) mod plan;

use std::sync::Arc;

use fetch::TransportCounts;
use fetch::{Flush, Pipelining, Plan, Shape, WebConfig};
use http1::server::{Closing, ConnectionTimeouts};
use http1::site::Site;
use linux::clock::Clock;
use nix::sys::eventfd::{EfdFlags, EventFd};
use page::Host;
use scenario::dhttp::{Dhttp, DhttpProfile};
use scenario::{Network, Protocol, Remark, Scenario, Serving, Visit, serving};
use testbed::Namespace;
use testbed::emulator::{Capture, Report, Scheduling};
use testbed::lateness::Lateness;
use testbed::reactions::Reactions;
use testbed::{End, PerEnd};
use wire::{Bytes, Duration, Rate, Seed, Time};

use crate::driver::client::{ClientProtocols, DhttpClient, FetchedPage};
use crate::driver::dhttp_endpoint::DhttpServer;
use crate::driver::server::{Server, ServerResult};
use crate::driver::service::{ServedOrigin, Service};
use crate::fidelity::{StackPart, Unreproducible};
use crate::laboratory::{Laboratory, server_address};
use crate::peers::chromium::recording::BrowserRecord;
use crate::peers::server::{RunningServer, ServedHost, ServerSettings};
use crate::peers::{self, ClientProgram, InstalledProgram, RunDirectory, ServerProgram};
use crate::profile::{Profile, Setting};
use crate::{Error, Peers, driver, fidelity};
use plan::{config, deadline, refuse_unsupported, require_own_client, shape, validate};

/// Observations of one run.
#[derive(Debug)]
pub struct Run {
    /// From before the first `connect` to after the `read` of the last byte ([`crate::driver::client`]).
    pub elapsed: Duration,
    /// Connections opened.
    pub connections: u64,
    /// Packets the client sent.
    pub packets_up: u64,
    /// Packets the server sent.
    pub packets_down: u64,
    /// TCP payload both ways, including retransmissions.
    pub payload: Bytes,
    /// Packets dropped or lost by the link.
    pub lost: u64,
    /// Actual times of the server for each response, and of the client before each request ([`Reactions`]).
    pub reactions: Reactions,
    /// Lateness of the emulator.
    pub lateness: Lateness,
    /// Outcome of each object; `None` for a third-party client.
    pub visit: Option<ClientRecord>,
    /// Transport of requests and responses, if by DHTTP.
    pub channels: Option<TransportCounts>,
    /// A browser's record of a whole page.
    pub browser: Option<BrowserRecord>,
    /// Responses destroyed by a naive close, in sentences; any other missing response is an error.
    pub destroyed: Vec<String>,
}

/// Our client's record of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientRecord {
    /// Start time, by the emulator's clock.
    pub began: Time,
    /// Time at which each connection was opened, in order.
    pub opened: Vec<Time>,
    /// Reports of the client.
    pub reports: Vec<fetch::Report>,
}

/// A run and its context.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Reason why it is void, if it is.
    pub(crate) void_reason: Option<String>,
    pub(crate) run: Run,
    pub(crate) settings: Vec<Setting>,
    pub(crate) scheduling: Scheduling,
    pub(crate) capture: Option<Capture>,
    /// Start of the run, since 1 January 1970, UTC.
    pub(crate) began: Duration,
}

/// A scenario in the terms of programs and kernels: checked once, run repeatedly.
#[derive(Debug)]
pub(crate) struct Experiment {
    scenario: Scenario,
    profile: Profile,
    site: Site,
    plan: Plan,
    dhttp: Option<Dhttp>,
    /// TLS and HTTP/2 of the hosts, if any has them.
    web: Option<WebConfig>,
    /// Whether the server takes processing time of its own for each response.
    is_busy: bool,
    server: (ServerProgram, Option<InstalledProgram>),
    client: (ClientProgram, Option<InstalledProgram>),
    /// Deviations of these engines from the scenario, in sentences.
    pub(crate) remarks: Vec<Remark>,
}

impl Experiment {
    /// Checks that the scenario can be run on a kernel.
    pub(crate) fn of(scenario: &Scenario, peers: Peers) -> Result<Self, Error> {
        let Scenario {
            network,
            page,
            visit,
            protocol,
            tls,
            stack,
            client: requested,
            server: _,
            programs,
            runs: _,
            seed,
        } = scenario;
        refuse_unsupported(programs)?;
        let web = serving::web(scenario)?;
        if web.is_some() && peers != Peers::default() {
            let part = format!("{} with TLS {} and other programs", protocol.name(), tls.name());
            return Err(Error::unsuited(
                &part,
                "use our own server and client, --client chromium or curl, or http11-parallel with --tls none",
            ));
        }
        let (server, client) = find_programs(scenario, peers)?;
        require_own_client(programs, peers.client)?;
        fidelity::check(scenario, peers == Peers::default())?;
        let opener = if *protocol == Protocol::Dhttp { End::Server } else { End::Client };
        let sockets = programs.of_web(web.is_some()).sockets(stack);
        let mut profile = Profile::of(&sockets, network.mss, opener)?;
        profile.send_buffer = programs.send_buffer;
        let mut serving = Serving::of(scenario)?;
        let shape = shape(*protocol, requested, programs.pipelining(Pipelining::default()))?;
        serving.validate(scenario, shape.version(), programs.client_validation);
        let (mut plan, remark) = serving.plan(page, shape, requested, programs);
        let mut remarks = Vec::from_iter(remark);
        remarks.extend(fidelity::send_buffer_note(scenario));
        remarks.extend(programs.described().map(Remark::Programs));
        plan.deadline = deadline(scenario);
        if peers.server != ServerProgram::Ours {
            if !serving.accepted.is_empty() {
                return Err(Error::unsuited(&format!("codings with {}", peers.server), "use our own server"));
            }
            validate(&mut plan, peers.server, *visit, programs.client_validation)?;
        }
        let needs_document = page.contents.is_none() && peers.client == ClientProgram::Chromium;
        let site = match (needs_document, visit) {
            (false, _) => serving.site,
            (true, Visit::First) => with_document(serving.site)?,
            (true, Visit::Revalidate) => with_document(serving.site)?.with_validators(*seed),
        };
        let is_busy = serving.is_busy;
        for (program, installed) in [(peers.server.name(), &server), (peers.client.name(), &client)] {
            let version = installed.as_ref().map(|installed| installed.version.clone());
            remarks.extend(version.map(|version| Remark::Version { program, version }));
        }
        let ends = programs.dhttp.map_or_else(Dhttp::paper, DhttpProfile::ends);
        let dhttp = (*protocol == Protocol::Dhttp).then(|| ends.on(network));
        remarks.extend(dhttp.iter().flat_map(|(_, remark)| remark.clone()));
        let dhttp = dhttp.map(|(dhttp, _)| dhttp);
        // With validators, lost parts of a response can be requested again.
        let has_parts = dhttp.is_some_and(|dhttp| dhttp.server.parts > 1);
        let site = if has_parts { site.with_validators(*seed) } else { site };
        let (server, client) = ((peers.server, server), (peers.client, client));
        let scenario = scenario.clone();
        Ok(Self { scenario, profile, site, plan, dhttp, web, is_busy, server, client, remarks })
    }

    /// Runs the scenario once; `number` selects an independent random stream.
    pub(crate) fn run(&self, number: u32, capture: Option<Bytes>) -> Result<Outcome, Error> {
        let Self {
            scenario,
            profile,
            site: _,
            plan,
            dhttp: _,
            web,
            is_busy,
            server: server_program,
            client: client_program,
            remarks: _,
        } = self;
        // The duration of a third-party client follows from its packets only.
        let capture = capture.or(client_program.1.as_ref().map(|_| CAPTURE_BYTES));
        let seed = Seed::new(scenario.seed.stream("run", u64::from(number)).next_u64());
        let cache_directory =
            client_program.1.as_ref().map(|_| RunDirectory::new().map(Arc::new)).transpose()?;
        if self.is_revalidated() {
            self.fill_cache(seed, cache_directory.as_ref())?;
        }
        let laboratory = Laboratory::build(&scenario.network, &scenario.page.hosts, profile, seed, capture)?;
        let Laboratory { client, server, link, settings } = laboratory;
        let clock = link.clock();
        // The last FIN and its ACK are still in flight, and belong to the run.
        let settling = plan::longest_rtt(scenario) + SETTLING_TIME;
        let (fetched, served) = self.fetch(&client, &server, clock, settling, cache_directory.as_ref())?;
        let mut report = link.stop()?;
        let from_capture = || report.capture.as_ref().map(peers::client::fetched).unwrap_or_default();
        let fetched = fetched.unwrap_or_else(from_capture);
        // With records and streams, packets do not show which response belongs to which request.
        let is_ambiguous = web.is_some() || !scenario.page.is_plain();
        match (plan.shape, fetched.ended) {
            _ if is_ambiguous => report.reactions.retain_first(),
            (Shape::Http11Pipelined(_) | Shape::Dhttp, _) => report.reactions.retain_first(),
            (
                Shape::Http10 { parallel: _ }
                | Shape::Http10KeepAlive
                | Shape::Http11
                | Shape::Http11Parallel { parallel: _ }
                | Shape::Http2
                | Shape::Http3(_),
                ended,
            ) => {
                if let Some(ended) = ended {
                    report.reactions.conclude(ended);
                }
            }
        }
        let is_own_pair = server_program.1.is_none() && client_program.1.is_none();
        // The reaction times of third-party programs are what is measured.
        let void_reason = if is_own_pair {
            let due = (!is_busy && !is_ambiguous).then_some(scenario.server.processing);
            void_reason(&report, due, flush_delay(plan.shape))
        } else {
            report.void().map(|void| void.to_string())
        };
        let (scheduling, began) = (report.scheduling, clock.zero_since_1970());
        let allows_losses = scenario.programs.server_close == Some(Closing::Naive);
        let (run, capture) = summarise(number, fetched, served, report, allows_losses)?;
        self.check_openings(&run)?;
        Ok(Outcome { void_reason, run, settings, scheduling, capture, began })
    }

    /// Refuses a run in which both ends opened connections, where the initial window depends on the opener.
    fn check_openings(&self, run: &Run) -> Result<(), Error> {
        let PerEnd { client, server } = &self.profile.metrics;
        let by_client = run.channels.is_some_and(|channels| channels.by_plain_http > 0);
        if by_client && client.initial_window != server.initial_window {
            let stack = self.scenario.stack.name;
            return Err(Unreproducible { stack, part: StackPart::MixedOpening }.into());
        }
        Ok(())
    }

    /// Lets a third-party client fetch the page over a fast link, so that it has something to validate.
    fn fill_cache(&self, seed: Seed, cache_directory: Option<&Arc<RunDirectory>>) -> Result<(), Error> {
        let network = Network::new("quick".to_owned(), FILL_RTT, FILL_RATE, self.scenario.network.mss);
        let Laboratory { client, server, link, settings: _ } =
            Laboratory::build(&network, &[Host::new(Host::UNNAMED)], &self.profile, seed, None)?;
        self.fetch(&client, &server, link.clock(), FILL_RTT, cache_directory)?;
        link.stop()?;
        Ok(())
    }

    /// Runs the two programs; the duration of a third-party client is unknown here. Its files stay in `retained`.
    fn fetch(
        &self,
        client: &Namespace,
        server: &Namespace,
        clock: Clock,
        settling: Duration,
        cache_directory: Option<&Arc<RunDirectory>>,
    ) -> Result<(Option<FetchedPage>, ServerResult), Error> {
        let Self {
            scenario,
            profile,
            site,
            plan,
            dhttp: _,
            web: _,
            is_busy: _,
            server: server_program,
            client: client_program,
            remarks: _,
        } = self;
        let page = peers::client::Page {
            server: server_address(0, false),
            served_by: server_program.0,
            paths: site.files().map(|(path, _)| path.to_owned()).collect(),
            protocol: scenario.protocol,
            parallel: scenario.client.parallel,
            deadline: plan.deadline,
        };
        let (plan, cache_directory, (program, installed)) =
            (plan.clone(), cache_directory.cloned(), client_program.clone());
        let pinned = profile.clone();
        let servers = self.origins().iter().map(|origin| origin.address).collect();
        let protocols = self.client_protocols();
        let fetch_page = move || match installed.zip(cache_directory) {
            None => driver::client::fetch(plan, servers, &pinned, clock, protocols).map(Some),
            Some((installed, cache_directory)) => {
                peers::client::fetch(program, &installed, &page, &cache_directory, clock).map(|()| None)
            }
        };
        match server_program {
            (_, None) => {
                let service = self.service();
                let open = server.run(move || Server::open(service, clock))?;
                let flags = EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC;
                let stop = EventFd::from_value_and_flags(0, flags)
                    .map_err(Error::kernel("make an event descriptor"))?;
                let stop = Arc::new(stop);
                let stopped = Arc::clone(&stop);
                let mut serving = server.start(move || open.serve(&stopped));
                let fetched = client.run(fetch_page);
                serving.give(settling);
                stop.write(1).map_err(Error::kernel("stop the server"))?;
                let served = serving.wait()??;
                Ok((fetched?, served))
            }
            (program, Some(installed)) => {
                let (program, installed, site) = (*program, installed.clone(), site.clone());
                let settings = ServerSettings {
                    programs: scenario.programs,
                    is_revalidated: self.is_revalidated(),
                    is_shared: false,
                };
                let serving = server.run(move || {
                    let host = ServedHost::of_site(server_address(0, false), &site);
                    RunningServer::start(program, &installed, &[host], settings, clock)
                })?;
                let fetched = client.run(fetch_page);
                server.run(move || serving.stop(settling, clock))?;
                Ok((fetched?, ServerResult::default()))
            }
        }
    }

    fn client_protocols(&self) -> ClientProtocols {
        let seed = self.scenario.seed;
        match (&self.web, self.dhttp) {
            (Some(web), _) => ClientProtocols::Web(Box::new(web.clone())),
            (None, Some(dhttp)) => {
                ClientProtocols::Dhttp(Box::new(DhttpClient { config: dhttp.client, seed }))
            }
            (None, None) => ClientProtocols::Plain,
        }
    }

    /// Our own server's settings. It outlasts the client.
    fn service(&self) -> Service {
        let (deadline, seed) = (self.plan.deadline, self.scenario.seed);
        let timeout = ConnectionTimeouts {
            idle: deadline,
            request: deadline,
            linger: deadline,
            ..ConnectionTimeouts::default()
        };
        Service {
            origins: self.origins(),
            site: self.site.clone(),
            traits: serving::traits(&self.scenario.page),
            processing: self.scenario.server.processing,
            config: config(&self.scenario.programs, self.plan.shape, timeout),
            profile: self.profile.clone(),
            dhttp: self.dhttp.map(|dhttp| DhttpServer { config: dhttp.server, seed }),
        }
    }

    /// The page's hosts, as the server listens for them.
    fn origins(&self) -> Vec<ServedOrigin> {
        let hosts = self.scenario.page.hosts.iter().enumerate();
        let origin = |(index, host)| {
            let protocols = self.web.as_ref().map(|web| web.server(index, host)).unwrap_or_default();
            ServedOrigin { address: server_address(index, protocols.tls.is_some()), protocols }
        };
        hosts.map(origin).collect()
    }

    /// Whether a browser revalidates, and must not consider its cached copy fresh.
    fn is_revalidated(&self) -> bool {
        self.scenario.visit == Visit::Revalidate && self.client.1.is_some()
    }
}

/// Round trip and rate of a link that is not a bottleneck.
const FILL_RTT: Duration = Duration::from_millis(1);
const FILL_RATE: Rate = Rate::from_bits_per_second(100_000_000).expect("above zero");

/// Finds the third-party programs, if any are used.
fn find_programs(
    scenario: &Scenario,
    peers: Peers,
) -> Result<(Option<InstalledProgram>, Option<InstalledProgram>), Error> {
    let Peers { server, client } = peers;
    if server != ServerProgram::Ours && scenario.protocol == Protocol::Dhttp {
        return Err(Error::unsuited(&format!("dhttp with {server}"), "use our own server"));
    }
    if server != ServerProgram::Ours && scenario.protocol == Protocol::Http11PipelinedDeflate {
        return Err(Error::unsuited(
            &format!("a deflated document with {server}"),
            "use http11-pipelined, or use our own server",
        ));
    }
    if client != ClientProgram::Ours
        && scenario.visit == Visit::Revalidate
        && !server.can_require_validation()
    {
        return Err(Error::unsuited(
            &format!("a page that {client} has seen before with {server}, whose files it takes for fresh"),
            "use nginx, apache or our own server",
        ));
    }
    let server = (server != ServerProgram::Ours)
        .then(|| server.find_program(&scenario.programs, scenario.server.processing))
        .transpose()?;
    let client = (client != ClientProgram::Ours)
        .then(|| client.find_program(scenario.protocol, scenario.visit, &scenario.client))
        .transpose()?;
    Ok((server, client))
}

/// The site in a form that a browser can parse: a document that references the others, and images.
fn with_document(site: Site) -> Result<Site, Error> {
    let mut objects: Vec<_> = site.objects().cloned().collect();
    let count = objects.len();
    let document = objects.first().and_then(|first| peers::client::document(first.len(), count));
    let document = document.ok_or_else(|| {
        let part = format!("a document too small to name {} objects with chromium", count.saturating_sub(1));
        Error::unsuited(&part, "give the page a larger document")
    })?;
    if let Some(first) = objects.first_mut() {
        *first = document.into();
    }
    for object in objects.iter_mut().skip(1) {
        if let Some(image) = peers::client::image(object.len()) {
            *object = image.into();
        }
    }
    Ok(Site::of(objects))
}

/// Memory for the packets of a page fetched by a third-party client.
pub(crate) const CAPTURE_BYTES: Bytes = Bytes::new(64 << 20);

/// Longer than two hosts take to wake up and reply.
pub(crate) const SETTLING_TIME: Duration = Duration::from_millis(20);

/// Reason why a run is void: the emulator was late, or a host was.
fn void_reason(report: &Report, processing: Option<Duration>, flush_delay: Duration) -> Option<String> {
    let limit = report.late_limit;
    let slowest =
        |times: &[Duration], due: Duration| times.iter().map(|time| *time - due).max().unwrap_or_default();
    let (server, client) = (
        processing.map(|due| slowest(&report.reactions.response_times, due)),
        slowest(&report.reactions.think_times, flush_delay),
    );
    let late = |host: &str, late: Duration| {
        (late > limit).then(|| {
            let late = late.as_millis_f64();
            format!("the {host} reacted {late:.1} ms late and {limit} is allowed; stop other programs on this host")
        })
    };
    report
        .void()
        .map(|void| void.to_string())
        .or_else(|| late("server", server?))
        .or_else(|| late("client", client))
}

/// Time for which the first request waits for others that may follow.
const fn flush_delay(shape: Shape) -> Duration {
    match shape {
        Shape::Http11Pipelined(Pipelining { buffer: _, flush_after, flush: Flush::Never }) => flush_after,
        Shape::Http11Pipelined(Pipelining {
            buffer: _,
            flush_after: _,
            flush: Flush::First | Flush::Idle,
        })
        | Shape::Http10 { parallel: _ }
        | Shape::Http10KeepAlive
        | Shape::Http11
        | Shape::Http11Parallel { parallel: _ }
        | Shape::Http2
        | Shape::Http3(_)
        | Shape::Dhttp => Duration::ZERO,
    }
}

/// Observations of a run, or the reason why it failed.
fn summarise(
    number: u32,
    fetched: FetchedPage,
    served: ServerResult,
    report: Report,
    allows_losses: bool,
) -> Result<(Run, Option<Capture>), Error> {
    let FetchedPage { began, ended, connections, opened, reports, channels, failures, datagrams: _ } =
        fetched;
    let visit = began.filter(|_| !reports.is_empty()).map(|began| ClientRecord { began, opened, reports });
    let ServerResult { connections: _, faults } = served;
    let failed = |message: String| Error::Run { number, what: message };
    let (destroyed, failures) = if allows_losses { (failures, Vec::new()) } else { (Vec::new(), failures) };
    if let Some(first) = failures.into_iter().chain(faults).next() {
        return Err(failed(first));
    }
    let span = began.zip(ended).map(|(began, ended)| ended.since(began));
    let elapsed = span.ok_or_else(|| failed("the client opened no connection".to_owned()))?;
    let Report {
        up,
        down,
        acks_merged: _,
        lateness,
        late_limit: _,
        scheduling: _,
        elapsed: _,
        reactions,
        awake: _,
        capture,
    } = report;
    // Each connection takes at least a SYN, an ACK and a FIN, if it uses the link at all.
    if up.link.offered.packets < 3 * connections {
        return Err(failed("the packets did not cross the emulated link; is a route in the way?".to_owned()));
    }
    let lost =
        |traffic: &testbed::emulator::Traffic| traffic.link.dropped.packets + traffic.link.lost.packets;
    let run = Run {
        elapsed,
        connections,
        packets_up: up.link.offered.packets,
        packets_down: down.link.offered.packets,
        payload: up.payload + down.payload,
        lost: lost(&up) + lost(&down),
        reactions,
        lateness,
        visit,
        channels,
        browser: None,
        destroyed,
    };
    Ok((run, capture))
}
