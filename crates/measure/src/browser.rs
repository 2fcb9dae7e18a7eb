//! Whole pages in a browser: a page graph is served so that Chromium plays it, over the emulated link, and its visit recorded.
//!
//! A scenario flows in; the time of the event `load`, that of the last response, and a HAR flow out. Read in this order:
//!
//! | module | contents |
//! | --- | --- |
//! | (here) | which scenarios suit a browser; one visit in a laboratory of its own |
//! | `contents` | bodies that name what the graph's edges name |
//! | `authority` | the laboratory's certificates |
//! | `driver::tls_server` | the server for HTTP/1.1 and HTTP/2 |
//! | `driver::quic_server` | the server for HTTP/3 |
//! | `peers::chromium` | the browser |
//!
//! TLS is real (rustls), with an authority that is made for the scenario; chains have the page's sizes. The browser decides what
//! a browser decides: connections, priorities, when it parses and runs what has arrived. A visit in which a request fails, comes by
//! another protocol, or is missing is an error and never a row.

mod authority;
mod contents;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
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
use tls::session::SessionConfig;
use wire::{Bytes, Duration, Seed};

use crate::driver::quic_server::QuicServer;
use crate::driver::tls_server::{TimedResponse, TlsServer, TlsServerResult, TlsService};
use crate::laboratory::{Laboratory, server_address};
use crate::peers::chromium::recording::{BrowserRecord, Recording};
use crate::peers::chromium::{self, Visit};
use crate::peers::{ClientProgram, InstalledProgram, ServerProgram};
use crate::profile::Profile;
use crate::run::plan::{config, deadline, refuse_unsupported, require_own_client};
use crate::run::{Outcome, Run, SETTLING_TIME};
use crate::{Error, Peers, fidelity};
use authority::Authority;
use contents::{ServedPage, TooManyDependencies};

/// Whether a scenario is a whole page for a browser with our server: TLS, HTTP/2 or a graph. Other visits of a browser are
/// [`crate::run`]'s.
pub(crate) fn suits(scenario: &Scenario, peers: Peers) -> bool {
    let Scenario { page, protocol, tls, visit, .. } = scenario;
    let is_browser = peers == Peers { server: ServerProgram::Ours, client: ClientProgram::Chromium };
    let is_of_today = matches!(protocol, Protocol::Http11Parallel | Protocol::Http2 | Protocol::Http3);
    let is_whole_page = *tls != Tls::None || *protocol != Protocol::Http11Parallel || !page.is_plain();
    is_browser && is_of_today && is_whole_page && *visit == VisitKind::First && page.contents.is_none()
}

/// A scenario in the terms of a browser and a server: checked once, run repeatedly.
#[derive(Debug)]
pub(crate) struct BrowserExperiment {
    scenario: Scenario,
    profile: Profile,
    installed: InstalledProgram,
    origins: Vec<Origin>,
    served: ServedPage,
    /// Fingerprint of the authority, if any host has TLS.
    fingerprint: Option<[u8; 32]>,
    deadline: Duration,
    pub(crate) remarks: Vec<Remark>,
}

/// A server's address with its certificates.
#[derive(Clone, Debug)]
struct Origin {
    name: String,
    port: u16,
    address: IpAddr,
    tls: Option<Arc<rustls::ServerConfig>>,
}

impl BrowserExperiment {
    /// Checks that a browser can visit the page.
    pub(crate) fn of(scenario: &Scenario) -> Result<Self, Error> {
        let Scenario { network, page, protocol, tls, stack, client, programs, .. } = scenario;
        let peers = Peers { server: ServerProgram::Ours, client: ClientProgram::Chromium };
        refuse_unsupported(programs)?;
        require_own_client(programs, peers.client)?;
        fidelity::check(scenario, peers)?;
        refuse(scenario)?;
        let installed = peers.client.find_program(*protocol, VisitKind::First, client)?;
        let mut profile = Profile::of(&programs.of_web(true).sockets(stack), network.mss, End::Client)?;
        profile.send_buffer = programs.send_buffer;
        let has_tls = |host: usize| page.hosts.get(host).is_some_and(|host| has_tls(host, *tls));
        let served = contents::serve(page, has_tls).map_err(|TooManyDependencies| {
            Error::unsuited("dependencies of these numbers", "give objects fewer of them")
        })?;
        let (origins, fingerprint) = origins(page, *tls, *protocol)?;
        let mut remarks = vec![Remark::GraphDecides];
        remarks.extend(programs.described().map(Remark::Programs));
        let version = installed.version.clone();
        remarks.push(Remark::Version { program: peers.client.name(), version });
        let farthest = page.hosts.iter().map(|host| host.extra_rtt).max().unwrap_or_default();
        if farthest > Duration::ZERO {
            remarks.push(Remark::NearHosts(farthest.as_millis_f64()));
        }
        if served.excess > 0 {
            remarks.push(Remark::LargerBodies(served.excess));
        }
        let delays = served.objects.iter().enumerate().map(|(index, _)| delay(scenario, index));
        let deadline =
            deadline(scenario) + delays.fold(Duration::ZERO, |sum, delay| sum + delay) + thinking(page);
        let scenario = scenario.clone();
        Ok(Self { scenario, profile, installed, origins, served, fingerprint, deadline, remarks })
    }

    /// Visits the page once; `number` selects an independent random stream.
    pub(crate) fn run(&self, number: u32, capture: Option<Bytes>) -> Result<Outcome, Error> {
        let Self { scenario, profile, installed, .. } = self;
        let seed = Seed::new(scenario.seed.stream("run", u64::from(number)).next_u64());
        let hosts = scenario.page.hosts.len();
        let Laboratory { client, server, link, settings } =
            Laboratory::build(&scenario.network, hosts, profile, seed, capture)?;
        let clock = link.clock();
        let (service, visit, installed) = (self.service(), self.visit(), installed.clone());
        let recorded = || client.start(move || chromium::visit(&installed, &visit, clock));
        let settling = scenario.network.rtt + SETTLING_TIME;
        let (recorded, served) = match scenario.protocol {
            Protocol::Http3 => serve_quic(&server, service, recorded, settling)?,
            _ => serve_tls(&server, service, clock, recorded, settling)?,
        };
        let mut report = link.stop()?;
        report.reactions.retain_first();
        let recording = recorded.map_err(|error| with_fault(error, number, &served))?;
        let void_reason = report.void().map(|void| void.to_string());
        let (scheduling, began) = (report.scheduling, clock.zero_since_1970());
        let packets = report.capture.take();
        let run = self.summary(number, &recording, &served, report)?;
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
            let offers_http3 =
                host.is_some_and(|host| has_tls(host, self.scenario.tls) && host.protocols.http3);
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
    fn listeners(&self) -> Vec<(std::net::SocketAddr, Option<Arc<rustls::ServerConfig>>)> {
        let mut seen = BTreeSet::new();
        let address = |origin: &Origin| std::net::SocketAddr::new(origin.address, origin.port);
        let once = self.origins.iter().filter(|origin| seen.insert(address(origin)));
        once.map(|origin| (address(origin), origin.tls.clone())).collect()
    }

    fn visit(&self) -> Visit {
        let addresses: BTreeMap<&String, IpAddr> =
            self.origins.iter().map(|origin| (&origin.name, origin.address)).collect();
        Visit {
            urls: self.served.objects.iter().map(|object| object.url.clone()).collect(),
            addresses: addresses.into_iter().map(|(name, address)| (name.clone(), address)).collect(),
            fingerprint: self.fingerprint,
            deadline: self.deadline,
            protocol: alpn(self.scenario.protocol),
            is_quic: self.scenario.protocol == Protocol::Http3,
        }
    }

    fn summary(
        &self,
        number: u32,
        recording: &Recording,
        served: &TlsServerResult,
        report: Report,
    ) -> Result<Run, Error> {
        let failed = |what: &str| Error::Run { number, what: format!("chromium: {what}") };
        let (Some(load), Some(last_end)) = (recording.load(), recording.last_end()) else {
            return Err(failed("the page did not load"));
        };
        let twice = self.served.objects.iter().find_map(|object| {
            let count = served.requests.get(&object.path).copied().unwrap_or(0);
            (count != 1).then(|| format!("{} was requested {count} times", object.url))
        });
        if let Some(fault) = served.faults.first().or(twice.as_ref()) {
            return Err(failed(fault));
        }
        let Report { up, down, lateness, reactions, .. } = report;
        if up.link.offered.packets < 3 * served.connections {
            return Err(failed("its packets did not cross the emulated link"));
        }
        let har = recording.har(&self.scenario.page.name);
        Ok(Run {
            elapsed: last_end.max(load),
            connections: served.connections,
            packets_up: up.link.offered.packets,
            packets_down: down.link.offered.packets,
            payload: up.payload + down.payload,
            lost: [&up, &down].map(|way| way.link.dropped.packets + way.link.lost.packets).iter().sum(),
            reactions,
            lateness,
            visit: None,
            channels: None,
            browser: Some(BrowserRecord { load, last_end, objects: recording.objects(), har }),
            destroyed: Vec::new(),
        })
    }
}

type Recorded = Result<Recording, Error>;

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

/// Refuses what a browser cannot do, or what is its own decision.
fn refuse(scenario: &Scenario) -> Result<(), Error> {
    let Scenario { page, protocol, tls, client, programs, .. } = scenario;
    if let Some(server) = programs.http3_server.filter(|server| server.0 != http3::Profile::QUINN) {
        let part = format!("{} as the server over HTTP/3 with chromium", server.0.name);
        return Err(Error::unsuited(&part, "use --http3-server quinn, which it is"));
    }
    match tls {
        Tls::V13Resumed | Tls::V13EarlyData => {
            let part = format!("TLS {} with chromium, whose profile is new", tls.name());
            return Err(Error::unsuited(&part, "use --tls 1.3 or 1.2"));
        }
        Tls::None if *protocol == Protocol::Http2 => {
            return Err(Error::unsuited(
                "http2 without TLS with chromium",
                "use --tls 1.3 or 1.2, or http11-parallel",
            ));
        }
        Tls::None | Tls::V12 | Tls::V13 => {}
    }
    if client.connection == Connection::Warm {
        return Err(Error::unsuited(
            "a connection that is open already with chromium",
            "use --connection cold",
        ));
    }
    if page.hosts.iter().any(|host| host.extra_rtt >= NEAR) {
        let remedy = "set extra-rtt to 0ms, as --host-rtt HOST=0ms does, or use --engine simulate";
        return Err(Error::unsuited("a host farther away than the network", remedy));
    }
    let methods = page.objects.iter().map(|object| object.method.name());
    if let Some(method) = methods.into_iter().find(|method| !["GET", "POST"].contains(method)) {
        let remedy = "leave it out, as --block does: a browser sends it itself where it is needed";
        return Err(Error::unsuited(&format!("a request by {method} with chromium"), remedy));
    }
    let offers = |host: &&Host| match protocol {
        Protocol::Http2 => host.protocols.tls && host.protocols.http2,
        Protocol::Http3 => host.protocols.tls && host.protocols.http3,
        _ => true,
    };
    if let Some(host) = page.hosts.iter().find(|host| !offers(host)) {
        let part = format!("{} with chromium: {} does not offer it", protocol.name(), host.name);
        return Err(Error::unsuited(&part, "use http11-parallel, or a page whose hosts offer it"));
    }
    Ok(())
}

/// Distance of a host that is that of the network: less than a recording on a busy host can tell apart.
const NEAR: Duration = Duration::from_millis(5);

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

type Origins = (Vec<Origin>, Option<[u8; 32]>);

/// The servers of the page's hosts. Hosts of a name, and those of an address group, have one address; a group has one
/// certificate for all of its names.
fn origins(page: &Page, tls: Tls, protocol: Protocol) -> Result<Origins, Error> {
    let failed = |error: rcgen::Error| Error::io("make a certificate")(std::io::Error::other(error));
    let authority = Authority::new().map_err(failed)?;
    let mut addresses: BTreeMap<String, IpAddr> = BTreeMap::new();
    let mut groups: BTreeMap<u32, (IpAddr, Vec<String>)> = BTreeMap::new();
    let mut names = Vec::new();
    for (index, host) in page.hosts.iter().enumerate() {
        let (name, port) = name_and_port(host, has_tls(host, tls))?;
        let own = server_address(index, true).ip();
        let group = host.address_group.map(|group| groups.entry(group).or_insert_with(|| (own, Vec::new())));
        let address = *addresses.entry(name.clone()).or_insert(group.as_ref().map_or(own, |group| group.0));
        if let Some((_, members)) = group
            && !members.contains(&name)
        {
            members.push(name.clone());
        }
        names.push((name, port, address));
    }
    let mut configs: BTreeMap<IpAddr, Arc<rustls::ServerConfig>> = BTreeMap::new();
    let mut origins = Vec::new();
    for (host, (name, port, address)) in page.hosts.iter().zip(names) {
        let mut of_host = None;
        if has_tls(host, tls) {
            let config = match configs.get(&address) {
                Some(config) => Arc::clone(config),
                None => {
                    let members = groups.values().find(|(group, _)| *group == address);
                    let members = members.map_or_else(|| vec![name.clone()], |(_, names)| names.clone());
                    let chain = host.certificate_chain.and_then(|bytes| usize::try_from(bytes.get()).ok());
                    let chain = chain.unwrap_or(SessionConfig::CERTIFICATE_CHAIN);
                    let identity = authority.identity(&members, chain).map_err(failed)?;
                    let config = Arc::new(server_config(identity, tls, protocol)?);
                    configs.insert(address, Arc::clone(&config));
                    config
                }
            };
            of_host = Some(config);
        }
        origins.push(Origin { name, port, address, tls: of_host });
    }
    let fingerprint = (!configs.is_empty()).then(|| authority.fingerprint());
    Ok((origins, fingerprint))
}

/// Name and port of a host.
fn name_and_port(host: &Host, has_tls: bool) -> Result<(String, u16), Error> {
    let default = if has_tls { 443 } else { 80 };
    let (name, port) = match host.name.rsplit_once(':') {
        Some((name, port)) => (name, port.parse().ok()),
        None => (host.name.as_str(), Some(default)),
    };
    let is_name = |name: &str| {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        !name.is_empty()
            && name.len() <= 253
            && name.bytes().all(is_letter)
            && name.parse::<IpAddr>().is_err()
    };
    match port.filter(|_| is_name(name)) {
        Some(port) => Ok((name.to_owned(), port)),
        None => Err(Error::unsuited(
            &format!("a host called {:?} with chromium", host.name),
            "give it a name of DNS",
        )),
    }
}

/// TLS of a server: one version, one protocol.
fn server_config(
    identity: authority::Identity,
    tls: Tls,
    protocol: Protocol,
) -> Result<rustls::ServerConfig, Error> {
    let failed = |error: rustls::Error| Error::io("set TLS up")(std::io::Error::other(error));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let version = if tls == Tls::V12 { &rustls::version::TLS12 } else { &rustls::version::TLS13 };
    let builder = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])
        .map_err(failed)?
        .with_no_client_auth();
    let mut config = builder.with_single_cert(identity.chain, identity.key).map_err(failed)?;
    config.alpn_protocols = vec![alpn(protocol).as_bytes().to_vec()];
    Ok(config)
}

/// Name of a protocol in TLS, and in Chromium.
const fn alpn(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Http3 => "h3",
        Protocol::Http2 => "h2",
        _ => "http/1.1",
    }
}

/// A server's TLS for `a.example`, and its authority.
#[cfg(test)]
pub(crate) fn test_identity(
    is_12: bool,
    protocol: Protocol,
) -> (Arc<rustls::ServerConfig>, rustls::pki_types::CertificateDer<'static>) {
    let authority = Authority::new().unwrap();
    let identity = authority.identity(&["a.example".to_owned()], SessionConfig::CERTIFICATE_CHAIN).unwrap();
    let tls = if is_12 { Tls::V12 } else { Tls::V13 };
    (Arc::new(server_config(identity, tls, protocol).unwrap()), authority.certificate())
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
    fn whole_pages_with_our_server_are_for_a_browser() {
        assert!(suits(&scenario(Protocol::Http2, Tls::V13), CHROMIUM));
        assert!(suits(&scenario(Protocol::Http11Parallel, Tls::V12), CHROMIUM));
        assert!(!suits(&scenario(Protocol::Http11Parallel, Tls::None), CHROMIUM), "a plain page, as before");
        assert!(!suits(&scenario(Protocol::Http2, Tls::V13), Peers::default()));
        let nginx = Peers { server: ServerProgram::Nginx, ..CHROMIUM };
        assert!(!suits(&scenario(Protocol::Http2, Tls::V13), nginx));
    }

    #[test]
    fn regress_what_a_browser_cannot_do_is_refused_by_name() {
        let reason = |scenario: &Scenario| refuse(scenario).unwrap_err().to_string();
        assert!(refuse(&scenario(Protocol::Http2, Tls::V13)).is_ok());
        assert!(
            reason(&scenario(Protocol::Http2, Tls::V13Resumed)).contains("TLS 1.3-resumed with chromium")
        );
        assert!(reason(&scenario(Protocol::Http2, Tls::None)).contains("http2 without TLS"));
        let mut far = scenario(Protocol::Http2, Tls::V13);
        far.page.hosts[0].extra_rtt = Duration::from_millis(1);
        assert!(refuse(&far).is_ok(), "a recording on a busy host");
        far.page.hosts[0].extra_rtt = Duration::from_millis(20);
        assert!(reason(&far).contains("farther away"));
        let mut old = scenario(Protocol::Http2, Tls::V13);
        old.page.hosts[0].protocols = OfferedProtocols::HTTP1;
        assert!(reason(&old).contains("http2 with chromium: server does not offer it"));
        let mut other = scenario(Protocol::Http3, Tls::V13);
        other.programs.set(ProgramKey::Http3Server, "quinn").unwrap();
        assert_eq!(refuse(&other).map_err(|error| error.to_string()), Ok(()));
        other.programs.set(ProgramKey::Http3Server, "nginx").unwrap();
        assert!(reason(&other).contains("nginx as the server over HTTP/3"));
        let mut preflight = scenario(Protocol::Http2, Tls::V13);
        preflight.page.objects[1].method = http1::message::Method::Options;
        assert!(reason(&preflight).contains("a request by OPTIONS"));
    }

    #[test]
    fn names_are_those_of_dns_with_ports() {
        let of = |name: &str| name_and_port(&Host::new(name), true).map_err(|error| error.to_string());
        assert_eq!(of("a.example"), Ok(("a.example".to_owned(), 443)));
        assert_eq!(of("a.example:8443"), Ok(("a.example".to_owned(), 8_443)));
        for name in ["", "a b", "a,MAP * 1.2.3.4", "a:x", "10.0.0.9", "[::1]"] {
            assert!(of(name).unwrap_err().contains("with chromium"), "{name}");
        }
    }

    #[test]
    fn hosts_of_a_group_have_one_address_and_one_certificate() {
        let mut page = scenario(Protocol::Http2, Tls::V13).page;
        let host = |name: &str, group| Host { address_group: group, ..Host::new(name) };
        page.hosts = vec![host("a.x", Some(1)), host("b.x", None), host("c.x", Some(1)), host("b.x", None)];
        let (origins, fingerprint) = origins(&page, Tls::V13, Protocol::Http2).unwrap();
        let address = |index: usize| origins[index].address;
        assert_eq!(address(0), address(2));
        assert_eq!(address(1), address(3), "one name, one server");
        assert_ne!(address(0), address(1));
        assert!(fingerprint.is_some());
        let same = [(0, 2), (1, 3)].map(|(one, other)| {
            let of = |index: usize| origins[index].tls.clone().unwrap();
            Arc::ptr_eq(&of(one), &of(other))
        });
        assert_eq!(same, [true, true]);
    }
}
