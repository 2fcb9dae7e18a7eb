//! Objects that a scenario serves, and those that its client knows: the same for every engine that runs
//! programs.
//!
//! Of a page with real contents the client knows the document and discovers the rest in it. Of a page
//! with sizes only it knows everything.

use std::collections::{BTreeMap, BTreeSet};

use fetch::RequestClass;
use fetch::serving::ResponseTraits;
use fetch::web::Handshake;
use fetch::{Browser, Discovery, EmbeddedObjects, Http3Config, PlannedObject, Release, WebConfig};
use http1::content::{AcceptedCodings, Coding};
use http1::message::{Method, Validator, Version};
use http1::site::{Compression, Site};
use http3::MIN_DATAGRAM;
use page::{Contents, Hints, Kind, Object};
use wire::{Bytes, Duration, Probability};

use crate::programs::{Http2Server, ProgramKey, Validation};
use crate::{Page, Programs, Protocol, Scenario, Tls, Visit};

/// Served objects, and the client's knowledge of them.
#[derive(Clone, Debug)]
pub struct Serving {
    /// The server's site.
    pub site: Site,
    /// Every object of the page, in order, the document first.
    pub objects: Vec<PlannedObject>,
    /// Whether the client knows them, or discovers them in the document.
    pub embedded: EmbeddedObjects,
    /// Content codings that the client accepts.
    pub accepted: Vec<Coding>,
    /// Whether the objects wait for what the page's graph says, and not for what the client's requests say.
    pub is_graph: bool,
    /// The browser whose policy the client has.
    pub browser: Browser,
    /// Time in which the name of each host is looked up.
    pub lookups: Vec<Duration>,
    /// Time of the client's threads for each request and each response.
    pub client_time: Duration,
    /// Whether the server compresses on the fly: then the processing time of a response is unpredictable.
    pub is_busy: bool,
}

/// Maximum size of a page: its bytes are held in memory.
pub const MAX_PAGE_BYTES: Bytes = Bytes::new(1 << 28);

/// Part of a scenario that cannot be served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServingError {
    /// The part.
    pub what: String,
    /// Alternative for the user.
    pub remedy: &'static str,
}

impl Serving {
    /// The scenario's page, for server and client. A client with a cached copy has no conditional requests
    /// yet ([`Serving::validate`]).
    ///
    /// # Errors
    /// A page that is too large, deflate without sizes after it, codings of unknown contents, or compression
    /// that no client accepts.
    pub fn of(scenario: &Scenario) -> Result<Self, ServingError> {
        let (page, protocol, programs) = (&scenario.page, scenario.protocol, &scenario.programs);
        Self::refuse_browser(scenario)?;
        Self::refuse_hints(scenario)?;
        if programs.server_changed.is_some_and(|share| share != Probability::NEVER) {
            refuse_changed(scenario)?;
        }
        let uploaded =
            page.objects.iter().fold(0, |sum: u64, object| sum.saturating_add(object.request_body.get()));
        if page.size() > MAX_PAGE_BYTES || uploaded > MAX_PAGE_BYTES.get() {
            let what = match page.size() > MAX_PAGE_BYTES {
                true => format!("a page of {}", page.size()),
                false => format!("a page that uploads {}", Bytes::new(uploaded)),
            };
            return Err(ServingError { what, remedy: "use one of at most 256 MiB" });
        }
        let codings = programs.client_codings;
        match &page.contents {
            Some(contents) => {
                let accepted: Vec<Coding> = match codings {
                    Some(codings) => codings.iter().collect(),
                    None if protocol == Protocol::Http11PipelinedDeflate => vec![Coding::Deflate],
                    None => Vec::new(),
                };
                let unaccepted = ServingError {
                    what: "a compression that no client accepts".to_owned(),
                    remedy: "set the accepted ones, as client-codings = \"gzip\"",
                };
                let compression = match programs.server_compression {
                    Some(Compression::Beforehand | Compression::OnTheFly) if accepted.is_empty() => {
                        return Err(unaccepted);
                    }
                    Some(compression) => compression,
                    None if accepted.is_empty() => Compression::None,
                    None => Compression::Beforehand,
                };
                Ok(Self {
                    lookups: scenario.lookups(),
                    ..Self::real(contents, scenario.visit, accepted, compression)
                })
            }
            None if codings.is_some() || programs.server_compression.is_some() => Err(ServingError {
                what: format!("codings of {}, of which only sizes are known", page.name),
                remedy: "name microscape, or a directory",
            }),
            None => {
                let serving = Self::sized(&sizes(page, protocol)?, scenario)?;
                Ok(Self { lookups: scenario.lookups(), ..serving })
            }
        }
    }

    /// Refuses a browser's policy where it has nothing to decide.
    fn refuse_browser(scenario: &Scenario) -> Result<(), ServingError> {
        match scenario.programs.browser {
            Some(browser) if scenario.page.is_plain() => Err(ServingError {
                what: format!("{}'s policy for a page without dependencies", browser.0.name),
                remedy: "give a recording (--page FILE.har), or leave --browser out",
            }),
            Some(_) | None => Ok(()),
        }
    }

    /// Refuses hints where no connection is opened for a host.
    fn refuse_hints(scenario: &Scenario) -> Result<(), ServingError> {
        match scenario.page.hosts.iter().find(|host| host.hints != Hints::NONE) {
            Some(host) if scenario.protocol == Protocol::Dhttp => Err(ServingError {
                what: format!("a connection to {} before its first request, over DHTTP", host.name),
                remedy: "leave preconnect and dns-prefetch out, or use --protocol http2",
            }),
            Some(_) | None => Ok(()),
        }
    }

    fn real(contents: &Contents, visit: Visit, accepted: Vec<Coding>, compression: Compression) -> Self {
        let body_size = |body: &[u8]| accepted.is_empty().then(|| Bytes::new(body.len() as u64));
        let objects = contents.files.iter().map(|file| PlannedObject::get(&file.path, body_size(&file.body)));
        let embedded = match visit {
            Visit::First if contents.is_html() => EmbeddedObjects::DISCOVERED,
            // A client with a cached copy knows the page's objects.
            Visit::First | Visit::Revalidate => EmbeddedObjects::Planned,
        };
        let site = Site::of_files(contents.files.iter().cloned()).with_compression(compression, &accepted);
        let is_busy = compression == Compression::OnTheFly;
        let browser = Browser::CHROMIUM;
        let lookups = Vec::new();
        Self {
            objects: objects.collect(),
            site,
            embedded,
            accepted,
            is_graph: false,
            browser,
            lookups,
            client_time: Duration::ZERO,
            is_busy,
        }
    }

    fn sized(sizes: &[Bytes], scenario: &Scenario) -> Result<Self, ServingError> {
        let page = &scenario.page;
        let objects = page.objects.iter().zip(scenario.request_classes()).zip(sizes).enumerate();
        let objects = objects.map(|(index, ((object, class), size))| {
            let RequestClass { priority, is_before_body, is_delayable, is_boosted } = class;
            PlannedObject {
                origin: object.host,
                priority,
                is_incremental: is_incremental(object.kind),
                is_before_body,
                is_delayable,
                is_boosted,
                request_size: object.request_head.filter(|_| !page.is_plain()),
                request_body: object.request_body,
                after: object.after.clone(),
                ..PlannedObject::get(&Site::path(index), Some(*size))
            }
        });
        let site = Site::new(sizes, scenario.seed).ok_or_else(|| ServingError {
            what: format!("a page of {} on this host", scenario.page.size()),
            remedy: "use a smaller one",
        })?;
        let (embedded, accepted) = (EmbeddedObjects::Planned, Vec::new());
        let (objects, is_graph) = (objects.collect(), !page.is_plain());
        let (browser, lookups, is_busy) = (scenario.browser(), Vec::new(), false);
        let client_time = page.recorded.and_then(|recorded| recorded.client_time).unwrap_or_default();
        Ok(Self { site, objects, embedded, accepted, is_graph, browser, lookups, client_time, is_busy })
    }

    /// Makes the client's requests conditional, for this version of HTTP.
    pub fn validate(&mut self, scenario: &Scenario, version: Version, validation: Option<Validation>) {
        match scenario.visit {
            Visit::First => return,
            Visit::Revalidate => self.site = self.site.clone().with_validators(scenario.seed),
        }
        let version = match validation {
            None => version,
            Some(Validation::EntityTags) => Version::Http11,
            Some(Validation::Dates) => Version::Http10,
            Some(Validation::Heads) => {
                for object in self.objects.iter_mut().skip(1) {
                    (object.method, object.expected) = (Method::Head, None);
                }
                return;
            }
        };
        let accepted = AcceptedCodings::any_of(&self.accepted);
        let changed = changed_objects(scenario);
        for (index, object) in self.objects.iter_mut().enumerate() {
            object.validator = self.site.validator(index, version, &accepted);
            if let Some(validator) = object.validator.as_mut().filter(|_| changed.contains(&index)) {
                outdate(validator);
            }
        }
    }

    /// Objects that the client knows when it begins.
    pub fn known(&self) -> &[PlannedObject] {
        match self.embedded {
            EmbeddedObjects::Planned => &self.objects,
            EmbeddedObjects::Discovered { .. } | EmbeddedObjects::Listed { .. } => {
                self.objects.get(..1).unwrap_or_default()
            }
        }
    }

    /// Condition under which requests may leave, given that for known objects: an undiscovered object cannot be
    /// requested.
    pub fn release(&self, release: Release) -> Release {
        match (&self.embedded, release) {
            _ if self.is_graph => Release::Graph,
            (EmbeddedObjects::Planned, _) | (_, Release::Dependent | Release::Graph) => release,
            (
                EmbeddedObjects::Discovered { .. } | EmbeddedObjects::Listed { .. },
                Release::Independent | Release::AfterFirst | Release::AsNamed,
            ) => Release::AsNamed,
        }
    }
}

/// Whether a response of this type is useful in parts, as Chromium signals it: all but style sheets, scripts and fonts
/// (third_party/blink, `PriorityIncremental`).
const fn is_incremental(kind: Kind) -> bool {
    match kind {
        Kind::Document | Kind::Image | Kind::Media | Kind::Data | Kind::Other => true,
        Kind::StyleSheet | Kind::Script | Kind::Font => false,
    }
}

/// Objects of the page that have changed since the client cached them, chosen by the seed: the scenario's share of
/// all, rounded, and at least one if it is above zero. Empty on a first visit.
pub fn changed_objects(scenario: &Scenario) -> BTreeSet<usize> {
    let share = scenario.programs.server_changed.unwrap_or(Probability::NEVER);
    let objects = match scenario.visit {
        Visit::First => 0,
        Visit::Revalidate => scenario.page.objects.len(),
    };
    if share == Probability::NEVER {
        return BTreeSet::new();
    }
    // At most the number of objects, which is at most 10,000.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let count = (share.get() * objects as f64).round().max(1.0) as usize;
    let rank = |index: usize| scenario.seed.stream("changed objects", index as u64).next_u64();
    let mut ranked: Vec<(u64, usize)> = (0..objects).map(|index| (rank(index), index)).collect();
    ranked.sort_unstable();
    ranked.into_iter().take(count).map(|(_, index)| index).collect()
}

/// Makes it the validator of an earlier version.
fn outdate(validator: &mut Validator) {
    match validator {
        Validator::EntityTag(tag) => *tag = tag.replacen('"', "\"earlier-", 1),
        // "Thu, 22 May 1997": before the date of every object of a site.
        Validator::LastModified(date) => *date = "Thu, 22 May 1997 00:00:00 GMT".to_owned(),
    }
}

/// Refuses a page of which objects have changed where nothing would show it.
fn refuse_changed(scenario: &Scenario) -> Result<(), ServingError> {
    let refused = |what: &str, remedy| Err(ServingError { what: what.to_owned(), remedy });
    match (scenario.visit, scenario.programs.client_validation) {
        (Visit::First, _) => refused("objects that have changed, on a first visit", "use --visit revalidate"),
        (Visit::Revalidate, Some(Validation::Heads)) => refused(
            "objects that have changed, found by HEAD, which transfers none",
            "use --client-validation entity-tags or dates",
        ),
        (Visit::Revalidate, Some(Validation::EntityTags | Validation::Dates) | None) => Ok(()),
    }
}

/// TLS and HTTP/2 of the page's hosts; `None` if none has either.
///
/// # Errors
/// TLS with a protocol that has none.
pub fn web(scenario: &Scenario) -> Result<Option<WebConfig>, ServingError> {
    let Scenario { page, protocol, tls, programs, .. } = scenario;
    if *tls != Tls::None && !protocol.can_be_secured() {
        let what = format!("{} with TLS {}", protocol.name(), tls.name());
        return Err(ServingError { what, remedy: "use --tls none" });
    }
    let handshake = match tls {
        Tls::None => None,
        Tls::V12 => Some(Handshake::Tls12),
        Tls::V13 => Some(Handshake::Full),
        Tls::V13Resumed => Some(Handshake::Resumed),
        Tls::V13EarlyData => Some(Handshake::EarlyData),
    };
    let mut config = WebConfig::of(&page.hosts, protocol.is_of_today(), handshake);
    config.profile = programs.http2_client.map_or(scenario.browser().http2, |client| client.0);
    let named = programs
        .http2_server
        .or_else(|| is_served_by_caddy(page).then_some(Http2Server(http2::Profile::GO_SERVER)));
    config.server_profile = named.map_or(config.server_profile, |server| server.0);
    if protocol.is_http3() {
        return Ok(Some(config.with_http3(&page.hosts, http3(scenario, handshake)?)));
    }
    Ok((!config.is_plain() || *protocol == Protocol::Http2).then_some(config))
}

/// Whether the document's host is known to be served by Caddy, which has the HTTP/2 of Go's standard library and the HTTP/3 of quic-go.
fn is_served_by_caddy(page: &Page) -> bool {
    let host = page.objects.first().and_then(|document| page.hosts.get(document.host));
    host.and_then(|host| host.software.as_deref()).is_some_and(|name| name.eq_ignore_ascii_case("caddy"))
}

/// Behaviour of the server over HTTP/3: nginx's, unless another is named or known, with the scenario's initial window.
pub fn http3_server(scenario: &Scenario) -> http3::Profile {
    let known =
        if is_served_by_caddy(&scenario.page) { http3::Profile::QUIC_GO } else { http3::Profile::NGINX };
    let mut server = scenario.programs.http3_server.map_or(known, |server| server.0);
    if let Some(window) = scenario.programs.initial_window {
        server.initial_window = u64::from(window.get()) * u64::from(MIN_DATAGRAM);
    }
    server
}

/// Settings of HTTP/3, over the datagrams that the network carries; the client is Chromium, unless another is named.
fn http3(scenario: &Scenario, handshake: Option<Handshake>) -> Result<Http3Config, ServingError> {
    let Scenario { network, protocol, tls, seed, .. } = scenario;
    let refused = |what, remedy| Err(ServingError { what, remedy });
    let (Some(handshake), false) = (handshake, *tls == Tls::V12) else {
        let what = format!("{} with TLS {}", protocol.name(), tls.name());
        return refused(what, "QUIC has TLS 1.3: use --tls 1.3, 1.3-resumed or 1.3-0rtt");
    };
    let max_datagram = network.mss.get().saturating_add(TCP_HEADER - UDP_HEADER);
    if max_datagram < u64::from(MIN_DATAGRAM) {
        let what = format!("{} over datagrams of at most {max_datagram} bytes", protocol.name());
        return refused(what, "QUIC needs 1,200: use --mss 1460, or http2");
    }
    refuse_sockets(&scenario.programs, *protocol)?;
    let server = http3_server(scenario);
    let client = scenario.programs.http3_client.map_or(http3::Profile::CHROMIUM, |client| client.0);
    Ok(Http3Config {
        discovery: if *protocol == Protocol::Http3Upgrade { Discovery::AltSvc } else { Discovery::Known },
        client,
        server,
        handshake,
        max_datagram: u16::try_from(max_datagram).unwrap_or(u16::MAX),
        seed: *seed,
    })
}

/// Sentence on hosts that do not offer the scenario's protocol, HTTP/2 or HTTP/3; `None` if all do.
pub fn without_offer(scenario: &Scenario) -> Option<String> {
    let hosts = &scenario.page.hosts;
    let is_http3 = scenario.protocol.is_http3();
    let name = if is_http3 { "HTTP/3" } else { "HTTP/2" };
    let offers = |host: &page::Host| match is_http3 {
        true => host.protocols.tls && host.protocols.http3,
        false => host.protocols.http2,
    };
    // By name: connections for anonymous requests are those of a host of the same name.
    let offers: BTreeMap<&str, bool> = hosts.iter().map(|host| (host.name.as_str(), offers(host))).collect();
    let (all, offered) = (offers.len(), offers.values().filter(|offers| **offers).count());
    let is_supposed = offered == 0 && hosts.iter().any(|host| host.protocols.tls);
    (offered < all && (is_http3 || scenario.protocol == Protocol::Http2)).then(|| match is_supposed {
        true => format!("no host of the page offers {name}: as if all with TLS did"),
        false => format!("hosts that do not offer {name}: {} of {all}", all - offered),
    })
}

/// Refuses settings of TCP's sockets and connections where HTTP/3 has none.
fn refuse_sockets(programs: &Programs, protocol: Protocol) -> Result<(), ServingError> {
    use ProgramKey::{
        ClientIdle, IdleAfter, Nagle, ReceiveBuffer, RtoInitial, RtoMin, SendBuffer, ServerConnections,
        ServerRequests, UnsentLimit,
    };
    let of_tcp = [
        ClientIdle,
        IdleAfter,
        Nagle,
        ReceiveBuffer,
        RtoInitial,
        RtoMin,
        SendBuffer,
        ServerConnections,
        ServerRequests,
        UnsentLimit,
    ];
    let set = programs.reported().map(|(key, _)| key).find(|key| of_tcp.contains(key));
    match set.filter(|_| protocol == Protocol::Http3) {
        Some(key) => Err(ServingError {
            what: format!("{} with --{}, a setting of TCP's connections", protocol.name(), key.name()),
            remedy: "leave it out, or use --protocol http2",
        }),
        None => Ok(()),
    }
}

/// Headers of a segment and of a datagram behind that of IP.
const TCP_HEADER: u64 = 20;
const UDP_HEADER: u64 = 8;

/// Least TCP segment of a path whose datagrams are as large as QUIC needs (RFC 9000, section 14).
pub(crate) const MIN_SEGMENT_OF_HTTP3: Bytes = Bytes::new(MIN_DATAGRAM as u64 - TCP_HEADER + UDP_HEADER);

/// Traits of the page's responses, by the request's target: the server's time and the size of the header section.
pub fn traits(page: &Page) -> BTreeMap<String, ResponseTraits> {
    let of = |(index, object): (usize, &Object)| {
        let host = page.hosts.get(object.host).map_or(Duration::ZERO, |host| host.processing);
        let delay = object.processing.unwrap_or(host);
        let head = object.response_head.and_then(|head| usize::try_from(head.get()).ok());
        (Site::path(index), ResponseTraits { delay, head })
    };
    match page.is_plain() {
        true => BTreeMap::new(),
        false => page.objects.iter().enumerate().map(of).collect(),
    }
}

/// Sizes of the bodies sent of a page of which only sizes are known.
fn sizes(page: &Page, protocol: Protocol) -> Result<Vec<Bytes>, ServingError> {
    let sizes = |page: &Page| page.objects.iter().map(|object| object.size).collect();
    match protocol {
        Protocol::Http11PipelinedDeflate => {
            let deflated = page.deflated().ok_or_else(|| ServingError {
                what: format!(
                    "{} for {}, of which no object has a known size after deflate",
                    protocol.name(),
                    page.name
                ),
                remedy: "use http11-pipelined, or a page with deflated sizes",
            })?;
            Ok(sizes(&deflated))
        }
        Protocol::Minimum
        | Protocol::Http10
        | Protocol::Http10KeepAlive
        | Protocol::Http11
        | Protocol::Http11Parallel
        | Protocol::Http11Pipelined
        | Protocol::Ttcp
        | Protocol::Ardp
        | Protocol::Dhttp
        | Protocol::Http2
        | Protocol::Http3
        | Protocol::Http3Upgrade => Ok(sizes(page)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::ProgramKey;
    use crate::{Network, Stack};

    fn revisit(share: &str) -> Scenario {
        let (network, page) = (Network::named("isdn").unwrap(), Page::named("w3c-page").unwrap());
        let mut scenario = Scenario::new(network, page, Protocol::Http11, Stack::LINUX);
        scenario.visit = Visit::Revalidate;
        scenario.programs.set(ProgramKey::ServerChanged, share).unwrap();
        scenario
    }

    #[test]
    fn hosts_without_an_offer_are_counted_by_name() {
        let toml = "
            [[host]]
            name = 'www.example.com'
            protocols = ['http/1.1', 'h2', 'h3']
            [[host]]
            name = 'fonts.example.com'
            protocols = ['http/1.1', 'h2']
            [[object]]
            size = 900
            [[object]]
            host = 'fonts.example.com'
            size = 900
            after = ['1']
            [[object]]
            host = 'fonts.example.com'
            size = 900
            after = ['1']
            anonymous = true
        ";
        let page = page::file::read("shop", toml).unwrap().over_network();
        assert_eq!(page.hosts.len(), 3, "requests without credentials have a connection of their own");
        let scenario = Scenario::new(Network::named("4g").unwrap(), page, Protocol::Http3, Stack::LINUX);
        assert_eq!(without_offer(&scenario).as_deref(), Some("hosts that do not offer HTTP/3: 1 of 2"));
    }

    #[test]
    fn a_share_of_the_objects_has_an_earlier_validator() {
        for (share, count) in [("0%", 0), ("1%", 1), ("10%", 4), ("100%", 42)] {
            let scenario = revisit(share);
            for version in [Version::Http10, Version::Http11] {
                let mut serving = Serving::of(&scenario).unwrap();
                serving.validate(&scenario, version, None);
                let identity = AcceptedCodings::any_of(&[]);
                let current = |index| serving.site.validator(index, version, &identity);
                let outdated = serving.objects.iter().enumerate();
                let outdated = outdated.filter(|(index, object)| object.validator != current(*index));
                assert_eq!(outdated.count(), count, "{share}");
            }
            assert_eq!(changed_objects(&scenario).len(), count);
        }
    }

    #[test]
    fn a_page_that_caddy_serves_has_the_http3_of_quic_go_unless_another_is_named() {
        let mut scenario = revisit("0%");
        (scenario.protocol, scenario.tls, scenario.network.mss) =
            (Protocol::Http3, Tls::V13, Bytes::new(1_460));
        let server = |scenario: &Scenario| web(scenario).unwrap().unwrap().http3.unwrap().server.name;
        assert_eq!(server(&scenario), "nginx");
        scenario.page.hosts[0].software = Some("caddy".to_owned());
        assert_eq!(server(&scenario), "quic-go");
        scenario.programs.set(ProgramKey::Http3Server, "quinn").unwrap();
        assert_eq!(server(&scenario), "quinn");
    }

    #[test]
    fn pages_that_do_not_fit_in_memory_are_refused() {
        let of = |size, uploaded| {
            let mut scenario = revisit("0%");
            let objects = vec![page::Object::sized(Bytes::new(10)); 2];
            scenario.page = Page::of("large", objects);
            (scenario.page.objects[0].size, scenario.page.objects[1].request_body) =
                (Bytes::new(size), Bytes::new(uploaded));
            Serving::of(&scenario).map(drop).map_err(|error| error.what)
        };
        assert_eq!(of(10, 1 << 20), Ok(()));
        assert!(of(1 << 30, 0).unwrap_err().starts_with("a page of"));
        assert!(of(10, 50_000_000_000).unwrap_err().starts_with("a page that uploads"));
        assert!(of(10, u64::MAX).unwrap_err().starts_with("a page that uploads"));
    }

    #[test]
    fn changes_that_nothing_would_show_are_refused() {
        let first = Scenario { visit: Visit::First, ..revisit("10%") };
        assert_eq!(Serving::of(&first).unwrap_err().remedy, "use --visit revalidate");
        let mut heads = revisit("10%");
        heads.programs.set(ProgramKey::ClientValidation, "heads").unwrap();
        assert!(Serving::of(&heads).unwrap_err().what.contains("HEAD"));
    }
}
