//! Whole pages fetched by Chromium or curl, over TLS with real keys: a page graph is served over the emulated link so that a
//! browser plays it, and the visit is recorded.
//!
//! A scenario flows in; its time flows out, and of a browser the event `load` and a HAR. Read in this order:
//!
//! | module | contents |
//! | --- | --- |
//! | (here) | which scenarios suit these programs; one visit in a laboratory of its own |
//! | `origins` | the page's hosts as servers: addresses, names, certificates |
//! | `contents` | bodies that name what the graph's edges name |
//! | `authority` | the laboratory's certificates |
//! | `driver::tls_server` | our server for HTTP/1.1 and HTTP/2 |
//! | `driver::quic_server` | our server for HTTP/3 |
//! | `peers::server` | the servers of others |
//! | `peers::chromium`, `peers::curl` | the clients |
//!
//! Certificates are of an authority that is made for the scenario; chains have the page's sizes. The browser decides what
//! a browser decides: connections, priorities, when it parses and runs what has arrived. A visit in which a request fails, comes by
//! another protocol, or is missing is an error and never a row.

pub(crate) mod authority;
mod contents;
mod origins;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http1::server::ConnectionTimeouts;
use linux::clock::Clock;
use linux::namespace::Pending;
use nix::sys::eventfd::{EfdFlags, EventFd};
use page::{Host, Page};
use scenario::{Connection, Protocol, Remark, Scenario, Tls, Visit as VisitKind};
use testbed::emulator::Report;
use testbed::{End, Namespace};
use wire::{Bytes, Duration, Seed};

use crate::driver::client::FetchedPage;
use crate::driver::quic_server::QuicServer;
use crate::driver::tls_server::{TimedResponse, TlsServer, TlsServerResult, TlsService};
use crate::laboratory::Laboratory;
use crate::peers::chromium::recording::{BrowserRecord, Recording};
use crate::peers::server::{HostTls, RunningServer, ServedHost, ServerSettings};
use crate::peers::{
    ClientProgram, InstalledProgram, ServerProgram, TrustedAuthority, Visit, chromium, client, curl,
};
use crate::profile::Profile;
use crate::run::plan::{config, deadline, longest_rtt, refuse_unsupported, require_own_client};
use crate::run::{CAPTURE_BYTES, Outcome, Run, SETTLING_TIME};
use crate::{Error, Peers, fidelity};
use contents::{ServedPage, TooManyDependencies};
#[cfg(test)]
pub(crate) use origins::test_identity;
use origins::{Origin, Origins, origins};

/// Whether a scenario is a whole page for Chromium or curl: TLS, HTTP/2 or a graph, and a server that has TLS. Other visits of
/// third-party programs are [`crate::run`]'s.
pub(crate) fn suits(scenario: &Scenario, peers: Peers) -> bool {
    let Scenario { page, protocol, tls, visit, .. } = scenario;
    let Peers { server, client } = peers;
    let suits_client = match client {
        ClientProgram::Chromium => {
            matches!(protocol, Protocol::Http11Parallel | Protocol::Http2 | Protocol::Http3)
        }
        ClientProgram::Curl => {
            matches!(protocol, Protocol::Http11 | Protocol::Http11Parallel | Protocol::Http2)
        }
        ClientProgram::Ours | ClientProgram::Wget => false,
    };
    let is_http1 = !matches!(protocol, Protocol::Http2 | Protocol::Http3);
    let is_whole_page = *tls != Tls::None || !is_http1 || !page.is_plain();
    let is_first = *visit == VisitKind::First && page.contents.is_none();
    suits_client && server.has_tls() && is_whole_page && is_first
}

/// A scenario in the terms of these programs: checked once, run repeatedly.
#[derive(Debug)]
pub(crate) struct WholePage {
    scenario: Scenario,
    profile: Profile,
    server: (ServerProgram, Option<InstalledProgram>),
    client: (ClientProgram, InstalledProgram),
    origins: Vec<Origin>,
    served: ServedPage,
    trusted: Option<TrustedAuthority>,
    deadline: Duration,
    /// Whether Chromium records a trace, too. Default: no.
    pub(crate) has_trace: bool,
    pub(crate) remarks: Vec<Remark>,
}

impl WholePage {
    /// Checks that these programs can fetch and serve the page.
    pub(crate) fn of(scenario: &Scenario, peers: Peers) -> Result<Self, Error> {
        let Scenario { network, page, protocol, tls, stack, client: requested, programs, .. } = scenario;
        let Peers { server, client } = peers;
        refuse_unsupported(programs)?;
        require_own_client(programs, client)?;
        fidelity::check(scenario, peers == Peers::default())?;
        refuse(scenario, client)?;
        let installed = client.find_program(*protocol, VisitKind::First, requested)?;
        let mut profile = Profile::of(&programs.of_web(true).sockets(stack), network.mss, End::Client)?;
        profile.send_buffer = programs.send_buffer;
        let has_tls = |host: usize| page.hosts.get(host).is_some_and(|host| has_tls(host, *tls));
        let (installed_server, served) = if server == ServerProgram::Ours {
            (None, contents::serve(page, has_tls))
        } else {
            refuse_for_server(scenario, server)?;
            let processing = scenario.server.processing;
            (Some(server.find_program(programs, processing)?), contents::serve_as_files(page, has_tls))
        };
        let served = served.map_err(|TooManyDependencies| {
            Error::unsuited("dependencies of these numbers", "give objects fewer of them")
        })?;
        let Origins { all: origins, trusted } = origins(page, *tls, *protocol)?;
        let is_browser = client == ClientProgram::Chromium;
        let mut remarks =
            vec![if is_browser { Remark::GraphDecides } else { Remark::AllAtOnce(client.name()) }];
        remarks.extend(programs.described().map(Remark::Programs));
        let found = [(server.name(), installed_server.as_ref()), (client.name(), Some(&installed))];
        let versions = found.into_iter().filter_map(|(program, installed)| installed.zip(Some(program)));
        remarks.extend(
            versions
                .map(|(installed, program)| Remark::Version { program, version: installed.version.clone() }),
        );
        if installed_server.is_some() && page.objects.iter().any(|object| object.response_head.is_some()) {
            remarks.push(Remark::OwnHeads(server.name()));
        }
        if served.excess > 0 {
            remarks.push(Remark::LargerBodies(served.excess));
        }
        let delays = served.objects.iter().enumerate().map(|(index, _)| delay(scenario, index));
        let deadline =
            deadline(scenario) + delays.fold(Duration::ZERO, |sum, delay| sum + delay) + thinking(page);
        let (server, client) = ((server, installed_server), (client, installed));
        let scenario = scenario.clone();
        Ok(Self {
            scenario,
            profile,
            server,
            client,
            origins,
            served,
            trusted,
            deadline,
            has_trace: false,
            remarks,
        })
    }

    /// Visits the page once; `number` selects an independent random stream.
    pub(crate) fn run(&self, number: u32, capture: Option<Bytes>) -> Result<Outcome, Error> {
        let Self { scenario, profile, server: server_program, client: client_program, .. } = self;
        let seed = Seed::new(scenario.seed.stream("run", u64::from(number)).next_u64());
        let is_browser = client_program.0 == ClientProgram::Chromium;
        // What neither the browser nor our own server reports follows from packets.
        let needs_packets = !is_browser || server_program.1.is_some();
        let capture = capture.or(needs_packets.then_some(CAPTURE_BYTES));
        let Laboratory { client, server, link, settings } =
            Laboratory::build(&scenario.network, &scenario.page.hosts, profile, seed, capture)?;
        let clock = link.clock();
        let (visit, installed) = (self.visit(), client_program.1.clone());
        let visited = || {
            client.start(move || match is_browser {
                true => chromium::visit(&installed, &visit, clock).map(Some),
                false => curl::visit(&installed, &visit, clock).map(|()| None),
            })
        };
        let settling = longest_rtt(scenario) + SETTLING_TIME;
        let (visited, served) = match (&server_program.1, scenario.protocol) {
            (None, Protocol::Http3) => serve_quic(&server, self.service(), visited, settling)?,
            (None, _) => serve_tls(&server, self.service(), clock, visited, settling)?,
            (Some(installed), _) => {
                let (program, installed, hosts) = (server_program.0, installed.clone(), self.hosts());
                let settings =
                    ServerSettings { programs: scenario.programs, is_revalidated: false, is_shared: true };
                let start = move || RunningServer::start(program, &installed, &hosts, settings, clock);
                let running = server.run(start)?;
                let visited = visited().wait()?;
                server.run(move || running.stop(settling, clock))?;
                (visited, TlsServerResult::default())
            }
        };
        let mut report = link.stop()?;
        report.reactions.retain_first();
        let recording = visited.map_err(|error| with_fault(error, number, &served))?;
        let void_reason = report.void().map(|void| void.to_string());
        let (scheduling, began) = (report.scheduling, clock.zero_since_1970());
        let packets = report.capture.take();
        let fetched = packets.as_ref().filter(|_| needs_packets).map(client::fetched);
        let run = self.summary(number, recording.as_ref(), fetched, &served, report)?;
        Ok(Outcome { void_reason, run, settings, scheduling, capture: packets, began })
    }

    fn service(&self) -> TlsService {
        let timeout = ConnectionTimeouts {
            idle: self.deadline,
            request: self.deadline,
            linger: self.deadline,
            ..ConnectionTimeouts::default()
        };
        let responses = self.served.objects.iter().zip(&self.scenario.page.objects).enumerate();
        let responses = responses.map(|(index, (served, object))| {
            let head = object.response_head.and_then(|head| usize::try_from(head.get()).ok());
            let delay = delay(&self.scenario, index);
            let (media_type, body) = (served.media_type, Arc::clone(&served.body));
            let host = self.scenario.page.hosts.get(object.host);
            let offers_http3 = host.is_some_and(|host| {
                has_tls(host, self.scenario.tls) && host.carries_http3(&self.scenario.page.hosts)
            });
            (served.path.clone(), TimedResponse { media_type, body, head, delay, offers_http3 })
        });
        let shape = fetch::Shape::Http11;
        TlsService {
            origins: self.listeners(),
            responses: responses.collect(),
            config: config(&self.scenario.programs, shape, timeout),
            http2: self.scenario.programs.http2_server.map_or(http2::Profile::NGINX, |server| server.0),
            profile: self.profile.clone(),
        }
    }

    /// Addresses to listen at, each once.
    fn listeners(&self) -> Vec<(SocketAddr, Option<Arc<rustls::ServerConfig>>)> {
        let mut seen = BTreeSet::new();
        let once = self.origins.iter().filter(|origin| seen.insert(origin.socket()));
        once.map(|origin| (origin.socket(), origin.tls.as_ref().map(|tls| Arc::clone(&tls.server)))).collect()
    }

    /// Addresses for a third-party server, each with the objects of all hosts there.
    fn hosts(&self) -> Vec<ServedHost> {
        let Scenario { page, tls: version, protocol, .. } = &self.scenario;
        let mut hosts: BTreeMap<SocketAddr, ServedHost> = BTreeMap::new();
        for (index, Origin { name, port: _, address: _, tls }) in self.origins.iter().enumerate() {
            let tls = tls.as_ref().map(|tls| HostTls {
                files: Arc::clone(&tls.files),
                version: *version,
                protocol: *protocol,
            });
            let address = self.origins[index].socket();
            let host = hosts.entry(address).or_insert(ServedHost {
                address,
                names: Vec::new(),
                tls,
                files: Vec::new(),
            });
            if !host.names.contains(name) {
                host.names.push(name.clone());
            }
            let served = self.served.objects.iter().zip(&page.objects);
            let own = served.filter(|(_, object)| object.host == index);
            host.files.extend(own.map(|(served, _)| (served.path.clone(), Arc::clone(&served.body))));
        }
        hosts.into_values().collect()
    }

    fn visit(&self) -> Visit {
        let addresses: BTreeMap<&String, IpAddr> =
            self.origins.iter().map(|origin| (&origin.name, origin.address)).collect();
        Visit {
            urls: self.served.objects.iter().map(|object| object.url.clone()).collect(),
            addresses: addresses.into_iter().map(|(name, address)| (name.clone(), address)).collect(),
            trusted: self.trusted.clone(),
            deadline: self.deadline,
            protocol: alpn(self.scenario.protocol),
            is_quic: self.scenario.protocol == Protocol::Http3,
            has_trace: self.has_trace,
            parallel: match self.scenario.protocol {
                Protocol::Http2 => MAX_CONCURRENT,
                _ => self.scenario.client.parallel,
            },
        }
    }

    /// Observations of a run: `recording` is the browser's, and `fetched` what the packets show.
    fn summary(
        &self,
        number: u32,
        recording: Option<&Recording>,
        fetched: Option<FetchedPage>,
        served: &TlsServerResult,
        report: Report,
    ) -> Result<Run, Error> {
        let failed = |what: &str| Error::Run { number, what: format!("{}: {what}", self.client.0) };
        let browser = recording.map(|recording| self.browser_record(recording));
        let browser =
            browser.map(|record| record.ok_or_else(|| failed("the page did not load"))).transpose()?;
        let span =
            |fetched: &FetchedPage| fetched.began.zip(fetched.ended).map(|(began, ended)| ended.since(began));
        let elapsed = match &browser {
            Some(browser) => Some(browser.last_end.max(browser.load)),
            None => fetched.as_ref().and_then(span),
        };
        let elapsed = elapsed.ok_or_else(|| failed("it opened no connection"))?;
        if self.server.1.is_none() {
            let twice = self.served.objects.iter().find_map(|object| {
                let count = served.requests.get(&object.path).copied().unwrap_or(0);
                (count != 1).then(|| format!("{} was requested {count} times", object.url))
            });
            if let Some(fault) = served.faults.first().or(twice.as_ref()) {
                return Err(failed(fault));
            }
        }
        let connections = fetched.map_or(served.connections, |fetched| fetched.connections);
        let Report { up, down, lateness, reactions, .. } = report;
        if up.link.offered.packets < 3 * connections {
            return Err(failed("its packets did not cross the emulated link"));
        }
        Ok(Run {
            elapsed,
            connections,
            packets_up: up.link.offered.packets,
            packets_down: down.link.offered.packets,
            payload: up.payload + down.payload,
            lost: [&up, &down].map(|way| way.link.dropped.packets + way.link.lost.packets).iter().sum(),
            reactions,
            lateness,
            visit: None,
            channels: None,
            browser,
            destroyed: Vec::new(),
        })
    }

    /// The browser's record; `None` if the page did not load.
    fn browser_record(&self, recording: &Recording) -> Option<BrowserRecord> {
        let (load, last_end) = (recording.load()?, recording.last_end()?);
        let har = recording.har(&self.scenario.page.name);
        Some(BrowserRecord {
            load,
            last_end,
            objects: recording.objects(),
            har,
            trace: recording.trace.clone(),
        })
    }
}

/// Maximum number of concurrent requests that curl supports (`--parallel-max`): over HTTP/2 all of a page.
const MAX_CONCURRENT: u16 = 300;

/// A visit; of a program that records nothing, only whether it succeeded.
type Recorded = Result<Option<Recording>, Error>;

/// Serves over TCP while the page is visited.
fn serve_tls(
    server: &Namespace,
    service: TlsService,
    clock: Clock,
    visit: impl FnOnce() -> Pending<Recorded>,
    settling: Duration,
) -> Result<(Recorded, TlsServerResult), Error> {
    let open = server.run(move || TlsServer::open(service, clock))?;
    let stop = EventFd::from_value_and_flags(0, EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)
        .map_err(Error::kernel("make an event descriptor"))?;
    let stop = Arc::new(stop);
    let stopped = Arc::clone(&stop);
    let mut serving = server.start(move || open.serve(&stopped));
    let recorded = visit().wait()?;
    serving.give(settling);
    stop.write(1).map_err(Error::kernel("stop the server"))?;
    Ok((recorded, serving.wait()??))
}

/// Serves over UDP while the page is visited.
fn serve_quic(
    server: &Namespace,
    service: TlsService,
    visit: impl FnOnce() -> Pending<Recorded>,
    settling: Duration,
) -> Result<(Recorded, TlsServerResult), Error> {
    let open = server.run(move || QuicServer::open(service))?;
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let mut serving = server.start(move || open.serve(&stopped));
    let recorded = visit().wait()?;
    serving.give(settling);
    stop.store(true, Ordering::Release);
    Ok((recorded, serving.wait()?))
}

/// The error of a visit, with what the server has seen of the browser.
fn with_fault(error: Error, number: u32, served: &TlsServerResult) -> Error {
    match (error, served.faults.first()) {
        (Error::Run { number: _, what }, Some(fault)) => {
            Error::Run { number, what: format!("{what}; the server reports: {fault}") }
        }
        (Error::Run { number: _, what }, None) => Error::Run { number, what },
        (error, _) => error,
    }
}

/// Refuses what the client cannot do, or what is its own decision.
fn refuse(scenario: &Scenario, program: ClientProgram) -> Result<(), Error> {
    let Scenario { page, protocol, tls, client, programs, .. } = scenario;
    let with = |part: &str| format!("{part} with {program}");
    if let Some(server) = programs.http3_server.filter(|server| server.0 != http3::Profile::QUINN) {
        let part = with(&format!("{} as the server over HTTP/3", server.0.name));
        return Err(Error::unsuited(&part, "use --http3-server quinn, which it is"));
    }
    match tls {
        Tls::V13Resumed | Tls::V13EarlyData => {
            let part = with(&format!("TLS {}", tls.name()));
            return Err(Error::unsuited(&format!("{part}, which has no ticket"), "use --tls 1.3 or 1.2"));
        }
        Tls::None if *protocol == Protocol::Http2 => {
            return Err(Error::unsuited(
                &with("http2 without TLS"),
                "use --tls 1.3 or 1.2, or http11-parallel",
            ));
        }
        Tls::None | Tls::V12 | Tls::V13 => {}
    }
    if client.connection == Connection::Warm {
        return Err(Error::unsuited(&with("a connection that is open already"), "use --connection cold"));
    }
    let methods = page.objects.iter().map(|object| object.method.name());
    let is_browser = program == ClientProgram::Chromium;
    let supported = if is_browser { &["GET", "POST"][..] } else { &["GET"] };
    if let Some(method) = methods.into_iter().find(|method| !supported.contains(method)) {
        let remedy = if is_browser {
            "leave it out, as --block does: a browser sends it itself where it is needed"
        } else {
            "leave it out, as --block does, or use --client chromium"
        };
        return Err(Error::unsuited(&with(&format!("a request by {method}")), remedy));
    }
    let offers = |host: &&Host| match protocol {
        Protocol::Http2 => host.protocols.tls && host.carries_http2(&page.hosts),
        Protocol::Http3 => host.carries_http3(&page.hosts),
        _ => true,
    };
    if let Some(host) = page.hosts.iter().find(|host| !offers(host)) {
        let part = format!("{}: {} does not offer it", with(protocol.name()), host.name);
        return Err(Error::unsuited(&part, "use http11-parallel, or a page whose hosts offer it"));
    }
    Ok(())
}

/// Refuses what a third-party server does not have.
fn refuse_for_server(scenario: &Scenario, server: ServerProgram) -> Result<(), Error> {
    let Scenario { page, protocol, programs, .. } = scenario;
    let has_delay = (0..page.objects.len()).any(|index| delay(scenario, index) > Duration::ZERO);
    let methods = page.objects.iter().map(|object| object.method.name());
    let unsupported = [
        (
            "http3",
            *protocol == Protocol::Http3 && !server.has_http3(),
            "use http2, --server caddy, or our own server",
        ),
        ("behaviour over HTTP/2", programs.http2_server.is_some(), "leave it out, or use our own server"),
        ("server times", has_delay, "set them to 0ms, as --server-time HOST=0ms does, or use our own server"),
        (
            "requests by other methods than GET",
            methods.into_iter().any(|method| method != "GET"),
            "leave them out, as --block does, or use our own server",
        ),
    ];
    match unsupported.iter().find(|(_, is_set, _)| *is_set) {
        Some((part, _, remedy)) => Err(Error::unsuited(&format!("{part} with {server}"), remedy)),
        None => Ok(()),
    }
}

fn has_tls(host: &Host, tls: Tls) -> bool {
    tls != Tls::None && host.protocols.tls
}

/// Server time of an object.
fn delay(scenario: &Scenario, index: usize) -> Duration {
    let Some(object) = scenario.page.objects.get(index) else { return Duration::ZERO };
    let host = scenario.page.hosts.get(object.host).map_or(Duration::ZERO, |host| host.processing);
    scenario.server.processing + object.processing.unwrap_or(host)
}

/// Delays of all dependencies: longer than any visit waits for them.
fn thinking(page: &Page) -> Duration {
    let delays = page.objects.iter().flat_map(|object| &object.after).map(|after| after.plus);
    delays.fold(Duration::ZERO, |sum, delay| sum + delay)
}

/// Name of a protocol in TLS, and in Chromium.
const fn alpn(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Http3 => "h3",
        Protocol::Http2 => "h2",
        _ => "http/1.1",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use page::{Object, OfferedProtocols};
    use scenario::programs::ProgramKey;
    use scenario::{Network, Stack};

    const CHROMIUM: Peers = Peers { server: ServerProgram::Ours, client: ClientProgram::Chromium };

    fn scenario(protocol: Protocol, tls: Tls) -> Scenario {
        let page = Page::of("page", [9_000, 100].map(|size| Object::sized(Bytes::new(size))).to_vec());
        Scenario { tls, ..Scenario::new(Network::named("cable").unwrap(), page, protocol, Stack::LINUX) }
    }

    #[test]
    fn whole_pages_are_for_clients_and_servers_with_tls() {
        assert!(suits(&scenario(Protocol::Http2, Tls::V13), CHROMIUM));
        assert!(suits(&scenario(Protocol::Http11Parallel, Tls::V12), CHROMIUM));
        assert!(!suits(&scenario(Protocol::Http11Parallel, Tls::None), CHROMIUM), "a plain page, as before");
        assert!(!suits(&scenario(Protocol::Http2, Tls::V13), Peers::default()));
        let with = |server, client| Peers { server, client };
        let http2 = scenario(Protocol::Http2, Tls::V13);
        assert!(suits(&http2, with(ServerProgram::Nginx, ClientProgram::Chromium)));
        assert!(suits(&http2, with(ServerProgram::Node, ClientProgram::Curl)));
        assert!(!suits(&http2, with(ServerProgram::Python, ClientProgram::Curl)), "it has no TLS");
        assert!(!suits(&http2, with(ServerProgram::Ours, ClientProgram::Wget)), "it has no HTTP/2");
        assert!(!suits(
            &scenario(Protocol::Http11, Tls::None),
            with(ServerProgram::Ours, ClientProgram::Curl)
        ));
    }

    #[test]
    fn what_a_server_of_others_lacks_is_refused_by_name() {
        let reason =
            |scenario: &Scenario| refuse_for_server(scenario, ServerProgram::Nginx).unwrap_err().to_string();
        assert!(refuse_for_server(&scenario(Protocol::Http2, Tls::V13), ServerProgram::Nginx).is_ok());
        assert!(reason(&scenario(Protocol::Http3, Tls::V13)).contains("http3 with nginx"));
        assert!(refuse_for_server(&scenario(Protocol::Http3, Tls::V13), ServerProgram::Caddy).is_ok());
        let mut slow = scenario(Protocol::Http2, Tls::V13);
        slow.page.objects[1].processing = Some(Duration::from_millis(1));
        assert!(reason(&slow).contains("server times with nginx"));
        let mut other = scenario(Protocol::Http2, Tls::V13);
        other.page.objects[1].method = http1::message::Method::Options;
        assert!(reason(&other).contains("other methods than GET with nginx"));
        let curl = refuse(&other, ClientProgram::Curl).unwrap_err().to_string();
        assert!(curl.contains("a request by OPTIONS with curl"), "{curl}");
    }

    #[test]
    fn regress_what_a_browser_cannot_do_is_refused_by_name() {
        let reason = |scenario: &Scenario| refuse(scenario, ClientProgram::Chromium).unwrap_err().to_string();
        assert!(refuse(&scenario(Protocol::Http2, Tls::V13), ClientProgram::Chromium).is_ok());
        assert!(
            reason(&scenario(Protocol::Http2, Tls::V13Resumed)).contains("TLS 1.3-resumed with chromium")
        );
        assert!(reason(&scenario(Protocol::Http2, Tls::None)).contains("http2 without TLS"));
        let mut old = scenario(Protocol::Http2, Tls::V13);
        old.page.hosts[0].protocols = OfferedProtocols::HTTP1;
        assert!(refuse(&old, ClientProgram::Chromium).is_ok(), "as if it did, since no host does");
        old.page.hosts.push(Host::new("new"));
        assert!(reason(&old).contains("http2 with chromium: server does not offer it"));
        let mut other = scenario(Protocol::Http3, Tls::V13);
        other.programs.set(ProgramKey::Http3Server, "quinn").unwrap();
        assert_eq!(refuse(&other, ClientProgram::Chromium).map_err(|error| error.to_string()), Ok(()));
        other.programs.set(ProgramKey::Http3Server, "nginx").unwrap();
        assert!(reason(&other).contains("nginx as the server over HTTP/3"));
        let mut preflight = scenario(Protocol::Http2, Tls::V13);
        preflight.page.objects[1].method = http1::message::Method::Options;
        assert!(reason(&preflight).contains("a request by OPTIONS"));
    }
}
