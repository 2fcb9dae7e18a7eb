//! Third-party servers and clients in the laboratory: each installed one fetches or serves a page.
//!
//! As root in the project's checks all of them are installed except Chromium and Caddy; elsewhere a test
//! reports the ones it skipped. Not a benchmark: durations are only compared with the network's limits.

extern crate roundtrip_measure as measure;

use std::env;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use measure::peers::{ClientProgram, Peers, ServerProgram};
use measure::{Error, Measurement, Options, measure};
use page::{Dependency, Host, Kind, Moment, Object};
use scenario::{Network, Page, Protocol, Scenario, Stack, Tls, Visit};
use wire::{Bytes, Duration};

/// Servers of others.
const SERVERS: [ServerProgram; 6] = [
    ServerProgram::Nginx,
    ServerProgram::Apache,
    ServerProgram::Caddy,
    ServerProgram::Haproxy,
    ServerProgram::Node,
    ServerProgram::Python,
];

/// Groups of measurements, the longest first: each in a process of its own, several of which wait concurrently.
const GROUPS: [(&str, fn()); 8] = [
    ("servers", servers_serve_a_page),
    ("whole-pages-curl", || whole_pages_are_served_and_fetched_over_tls(ClientProgram::Curl)),
    ("whole-pages-chromium", || whole_pages_are_served_and_fetched_over_tls(ClientProgram::Chromium)),
    ("real-page", real_page_is_served_by_every_server_and_loaded_by_a_browser),
    ("graph", browser_loads_a_graph_over_tls),
    ("revalidation", servers_and_a_browser_revalidate),
    ("clients", clients_fetch_a_page),
    ("refusals", regress_unsupported_server_settings_are_refused),
];

/// Processes that run concurrently, where the environment has no number of test threads.
const DEFAULT_PROCESSES: usize = 3;

fn main() {
    if !test_fixture::has_laboratory() {
        return;
    }
    let mut words = env::args().skip(1);
    if words.next().as_deref() == Some("group") {
        let name = words.next();
        let (_, run) =
            GROUPS.iter().find(|(group, _)| name.as_deref() == Some(*group)).expect("one of the groups");
        return run();
    }
    let processes = env::var("RUST_TEST_THREADS").ok().and_then(|number| number.parse().ok());
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..processes.unwrap_or(DEFAULT_PROCESSES) {
            scope.spawn(|| {
                while let Some((group, _)) = GROUPS.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let program = env::current_exe().expect("the path of this program");
                    let status =
                        Command::new(program).args(["group", group]).status().expect("it runs again");
                    if !status.success() {
                        failed.lock().expect("no thread panics").push((*group, status));
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().expect("no thread panics");
    assert!(failed.is_empty(), "{failed:?}");
}

fn servers_serve_a_page() {
    for program in SERVERS {
        for protocol in [Protocol::Http10, Protocol::Http11, Protocol::Http11Pipelined] {
            let scenario = scenario(protocol);
            let Some(measured) = measure_with(&scenario, served_by(program)) else { continue };
            let connections = if protocol == Protocol::Http10 { 3 } else { 1 };
            assert!(measured.runs.iter().all(|run| run.connections == connections), "{program} {protocol:?}");
            assert_plausible(&measured);
        }
    }
}

fn served_by(server: ServerProgram) -> Peers {
    Peers { server, ..Peers::default() }
}

fn servers_and_a_browser_revalidate() {
    // Python supports HEAD and dates; the body is not transferred again.
    for program in SERVERS.into_iter().filter(|program| *program != ServerProgram::Caddy) {
        let repeated = Scenario { visit: Visit::Revalidate, ..scenario(Protocol::Http11) };
        if let Some(measured) = measure_with(&repeated, served_by(program)) {
            assert!(
                measured.runs.iter().all(|run| run.payload.get() < 3_000),
                "{program} sent the page again"
            );
        }
    }
    browser_revalidates_its_cache();
}

fn clients_fetch_a_page() {
    for client in [ClientProgram::Curl, ClientProgram::Wget, ClientProgram::Chromium] {
        let peers = Peers { client, ..Peers::default() };
        if let Some(measured) = measure_with(&scenario(Protocol::Http11), peers) {
            assert_plausible(&measured);
        }
    }
}

/// A page of two hosts: a script that fetches, a style sheet with a font.
fn graph() -> Page {
    let object = |host, kind, size, after: &[Dependency]| Object {
        host,
        kind,
        after: after.to_vec(),
        ..Object::sized(Bytes::new(size))
    };
    let named = |bytes| Dependency { at: Moment::Delivered(Bytes::new(bytes)), ..Dependency::on_end(0) };
    let later = Dependency { plus: Duration::from_millis(40), ..Dependency::on_end(2) };
    let objects = vec![
        object(0, Kind::Document, 20_000, &[]),
        object(1, Kind::StyleSheet, 5_000, &[named(900)]),
        object(1, Kind::Script, 30_000, &[named(1_000)]),
        object(1, Kind::Font, 9_000, &[Dependency::on_end(1)]),
        object(0, Kind::Data, 700, &[later]),
        object(0, Kind::Image, 40_000, &[named(8_000)]),
    ];
    let hosts = ["www.example.org", "static.example.org"].map(Host::new).to_vec();
    Page { hosts, ..Page::of("graph", objects) }
}

fn browser_loads_a_graph_over_tls() {
    let page = graph();
    for protocol in [Protocol::Http2, Protocol::Http11Parallel, Protocol::Http3] {
        let scenario = Scenario { page: page.clone(), tls: Tls::V13, ..scenario(protocol) };
        let peers = Peers { client: ClientProgram::Chromium, ..Peers::default() };
        let Some(measured) = measure_with(&scenario, peers) else { continue };
        assert!(measured.metrics().load_ms.is_some_and(|load| load > 60.0), "{protocol:?}");
        for run in &measured.runs {
            let browser = run.browser.as_ref().expect("Chromium reports it");
            assert!(run.elapsed >= browser.load && browser.last_end >= Duration::from_millis(120));
            let recorded = browser.har.to_string();
            let recorded = page::har::pages("graph", recorded.as_bytes()).expect("it is a HAR").remove(0);
            assert_eq!((recorded.objects.len(), recorded.size()), (6, page.size()));
        }
    }
}

/// Two addresses with certificates, by each server that has TLS, to a browser or to curl, which has no HTTP/3 here.
fn whole_pages_are_served_and_fetched_over_tls(client: ClientProgram) {
    let page = graph();
    let servers = [
        ServerProgram::Ours,
        ServerProgram::Nginx,
        ServerProgram::Apache,
        ServerProgram::Caddy,
        ServerProgram::Haproxy,
        ServerProgram::Node,
    ];
    let over_tcp = servers.into_iter().flat_map(|server| {
        [(Protocol::Http2, Tls::V13), (Protocol::Http11Parallel, Tls::V12)]
            .map(|(protocol, tls)| (server, protocol, tls))
    });
    let over_quic =
        (client == ClientProgram::Chromium).then_some((ServerProgram::Caddy, Protocol::Http3, Tls::V13));
    for (server, protocol, tls) in over_tcp.chain(over_quic) {
        let scenario = Scenario { page: page.clone(), tls, ..scenario(protocol) };
        let Some(measured) = measure_with(&scenario, Peers { server, client }) else { continue };
        for run in &measured.runs {
            // A browser opens one for each request that waits, before it knows the protocol.
            let shares = protocol == Protocol::Http2 && client == ClientProgram::Curl;
            let connections = if shares { 2..=2 } else { 2..=12 };
            assert!(
                connections.contains(&run.connections),
                "{server} {client} {protocol:?} {}",
                run.connections
            );
            // A TCP and a TLS handshake, the request; TLS 1.2 has one round trip more, and QUIC one less.
            let trips = match (protocol, tls) {
                (Protocol::Http3, _) => 2,
                (_, Tls::V12) => 4,
                _ => 3,
            };
            assert!(
                run.elapsed >= scenario.network.rtt * trips,
                "{server} {client} {protocol:?} {}",
                run.elapsed
            );
            assert!(run.payload > page.size(), "{server} {client} {protocol:?} {}", run.payload);
            assert_eq!(run.browser.is_some(), client == ClientProgram::Chromium);
        }
    }
}

fn browser_revalidates_its_cache() {
    let repeated = Scenario { visit: Visit::Revalidate, ..scenario(Protocol::Http11) };
    for server in [ServerProgram::Ours, ServerProgram::Nginx, ServerProgram::Apache] {
        let peers = Peers { server, client: ClientProgram::Chromium };
        let Some(measured) = measure_with(&repeated, peers) else { continue };
        // Three requests and three responses without bodies: Chromium's requests have about 350 bytes.
        assert!(measured.runs.iter().all(|run| (1_000..4_000).contains(&run.payload.get())), "{server}");
    }
}

fn real_page_is_served_by_every_server_and_loaded_by_a_browser() {
    let real = Scenario { page: Page::named("microscape").unwrap(), ..scenario(Protocol::Http11) };
    for server in SERVERS {
        let Some(measured) = measure_with(&real, served_by(server)) else { continue };
        assert!(measured.runs.iter().all(|run| run.payload > real.page.size()), "{server}");
        assert!(
            !measured.remarks.iter().any(|remark| remark.to_string().contains("does not have")),
            "{:?}",
            measured.remarks
        );
    }
    for server in [ServerProgram::Ours, ServerProgram::Nginx] {
        let peers = Peers { server, client: ClientProgram::Chromium };
        let Some(measured) = measure_with(&real, peers) else { continue };
        assert!(
            measured.runs.iter().all(|run| run.payload > real.page.size()),
            "{server}: {:?}",
            measured.runs
        );
    }
}

fn scenario(protocol: Protocol) -> Scenario {
    let network = Network { rtt: Duration::from_millis(20), ..Network::named("ethernet").unwrap() };
    let page = Page::from_sizes("test", [6_651, 3_883, 1_866].map(Bytes::new)).unwrap();
    Scenario::new(network, page, protocol, Stack::named("linux").unwrap())
}

/// `None`, and a message, where a program is not installed. If the link was late in every run, it is
/// repeated: lateness is not the program's fault.
fn measure_with(scenario: &Scenario, peers: Peers) -> Option<Measurement> {
    let options = Options { peers, ..Options::default() };
    let is_void = |measured: &Result<Measurement, Error>| {
        measured
            .as_ref()
            .is_err_and(|error| error.to_string().contains("was void, and so was every repetition"))
    };
    let mut measured = measure(scenario, &options, |_| ());
    for _ in 0..MAX_RETRIES {
        if is_void(&measured) {
            measured = measure(scenario, &options, |_| ());
        }
    }
    match measured {
        Ok(measured) => Some(measured),
        Err(error @ Error::Unsuited { .. }) if error.to_string().contains("not installed") => {
            let Peers { server, client } = peers;
            skip::missing(match (server, client) {
                (ServerProgram::Apache, ClientProgram::Ours) => "apache2",
                (ServerProgram::Python, ClientProgram::Ours) => "python3",
                (server, ClientProgram::Ours) => server.name(),
                (_, client) => client.name(),
            });
            None
        }
        Err(error) => panic!("{peers:?} {:?}: {error}", scenario.protocol),
    }
}

const MAX_RETRIES: usize = 4;

/// Asserts that the page is no faster than its round trips, and complete.
fn assert_plausible(measured: &Measurement) {
    let min_duration = measured.scenario.network.rtt * 2;
    for run in &measured.runs {
        assert!(run.elapsed >= min_duration, "{} {:?}", run.elapsed, measured.remarks);
        assert!(run.payload.get() >= 12_400, "{} {:?}", run.payload, measured.remarks);
    }
}

fn regress_unsupported_server_settings_are_refused() {
    let mut scenario = scenario(Protocol::Http11);
    scenario.server.processing = Duration::from_millis(5);
    let options =
        Options { peers: Peers { server: ServerProgram::Nginx, ..Peers::default() }, ..Options::default() };
    let sentence = measure(&scenario, &options, |_| ()).unwrap_err().to_string();
    assert!(sentence.contains("processing with nginx"), "{sentence}");
}
