//! Round trips of first and later contacts, over a path of 150 ms: those that docs/dhttp.md states.
//!
//! The kernel's TCP opens the connections.

use std::sync::Arc;

use dhttp::client::{KnownServers, Via};
use dhttp::{Client, ClientConfig, Server};
use linux::clock::Clock;
use wire::Duration;

use super::faulty_network::CLIENT;
use test_fixture::has_laboratory;

use super::host::Host;
use super::network::{Network, NetworkFaults};
use super::{Handler, PORT, SERVER, address, serve};

/// Long, because the delays of a busy host do not grow with it.
const RTT: Duration = Duration::from_millis(150);
const SMALL: usize = 100;
/// Too large for a datagram, and not for TCP's initial window.
const LARGE: usize = 9_000;
/// Attempts per figure: a busy host may be late once.
const ATTEMPTS: usize = 5;

const DOCUMENT: &str = include_str!("../../../../../docs/dhttp.md");

/// Client and server that have never met.
struct FirstContact {
    clock: Clock,
    client: Arc<Client>,
    // Values that the client needs, dropped after it.
    environment: (Server<Handler>, Network, [Host; 2]),
}

fn first_contact(races: bool, drops_udp: bool) -> FirstContact {
    let hosts = [Host::new("client", CLIENT), Host::new("server", SERVER)];
    // The server does not connect by TCP Fast Open, which would save a round trip.
    hosts[0].run(|| std::fs::write("/proc/sys/net/ipv4/tcp_fastopen", "1")).unwrap();
    let faults = NetworkFaults { delay: RTT / 2, drops_udp, ..NetworkFaults::FAULTLESS };
    let network = Network::between(&hosts[0], &hosts[1], faults);
    let server = serve(&hosts[1]);
    let config = ClientConfig { races, ..ClientConfig::internet() };
    let client = hosts[0].run(|| Client::start(config, KnownServers::default(), None).unwrap());
    FirstContact { clock: Clock::start(), client: Arc::new(client), environment: (server, network, hosts) }
}

impl FirstContact {
    /// Fetches a response of this size, and returns its round trips: infinite if it came by another transport, as it may where a
    /// late host decides the race.
    fn fetch(&self, scheme: &str, size: usize, via: Via) -> f64 {
        let url = format!("{scheme}://{}/{size}", address(SERVER, PORT)).parse().unwrap();
        let (clock, client) = (self.clock, Arc::clone(&self.client));
        // Plain HTTP connects in the caller's thread, which must be on the client's host.
        let (elapsed, channel, body) = self.environment.2[0].run(move || {
            let began = clock.now();
            let (channel, _, body) = client.get(&url).unwrap().whole().unwrap();
            (clock.now().since(began), channel, body)
        });
        assert_eq!(body.len(), size);
        if channel == via { elapsed.as_secs_f64() / RTT.as_secs_f64() } else { f64::INFINITY }
    }

    /// Makes a contact by plain HTTP.
    fn after_plain_http(self) -> Self {
        self.fetch("http", SMALL, Via::TcpClient);
        self
    }

    /// Makes a contact by UDP, which brings a token.
    fn after_contact(self) -> Self {
        self.fetch("dhttp", SMALL, Via::Udp);
        self
    }
}

/// Returns the figures of a row of the document's table: for a small and for a large response.
fn documented(contact: &str) -> [f64; 2] {
    let row = DOCUMENT.lines().find(|line| line.starts_with(&format!("| {contact} |")));
    let row = row.unwrap_or_else(|| panic!("docs/dhttp.md has no row `{contact}`"));
    let figures: Vec<f64> = row.split('|').skip(2).take(2).map(|cell| cell.trim().parse().unwrap()).collect();
    figures.try_into().unwrap()
}

/// Compares a row with measurements of a small and a large response.
fn check(contact: &str, measure: [&dyn Fn() -> f64; 2]) {
    for (expected, measure) in documented(contact).into_iter().zip(measure) {
        let attempts: Vec<f64> = (0..ATTEMPTS)
            .map(|_| measure())
            .scan(false, |is_over, elapsed| {
                let goes_on = !std::mem::replace(is_over, (elapsed - expected).abs() < 0.4);
                goes_on.then_some(elapsed)
            })
            .collect();
        println!("{contact}: {expected} round trips documented, {attempts:.2?} measured");
        assert!(
            attempts.last().is_some_and(|elapsed| (elapsed - expected).abs() < 0.4),
            "{contact}: {attempts:?}"
        );
        // No attempt is faster than the path permits.
        assert!(attempts.iter().all(|elapsed| *elapsed > expected - 0.1), "{contact}: {attempts:?}");
    }
}

#[test]
fn first_contacts_take_the_documented_round_trips() {
    if !has_laboratory() {
        return;
    }
    check(
        "first, server found by plain HTTP",
        [&|| first_contact(true, false).fetch("http", SMALL, Via::TcpClient), &|| {
            first_contact(true, false).fetch("http", LARGE, Via::TcpClient)
        }],
    );
    check(
        "first, server known (`dhttp://`)",
        [&|| first_contact(true, false).fetch("dhttp", SMALL, Via::Udp), &|| {
            first_contact(true, false).fetch("dhttp", LARGE, Via::TcpClient)
        }],
    );
    let found = || first_contact(true, false).after_plain_http();
    check(
        "first by DHTTP, after plain HTTP",
        [&|| found().fetch("dhttp", SMALL, Via::Udp), &|| found().fetch("dhttp", LARGE, Via::TcpClient)],
    );
    check(
        "the same, without the race",
        [&|| first_contact(false, false).fetch("dhttp", SMALL, Via::Udp), &|| {
            first_contact(false, false).fetch("dhttp", LARGE, Via::TcpClient)
        }],
    );
}

#[test]
fn fallback_that_never_arrives_costs_at_most_a_round_trip_more_than_plain_http() {
    if !has_laboratory() {
        return;
    }
    let lost = |size| first_contact(true, true).fetch("dhttp", size, Via::TcpClient);
    check("the same, UDP blocked", [&|| lost(SMALL), &|| lost(LARGE)]);
    let [plain, blocked] = ["first, server found by plain HTTP", "the same, UDP blocked"].map(documented);
    assert!(plain.iter().zip(blocked).all(|(plain, blocked)| blocked <= plain + 1.0));
}

#[test]
fn later_contacts_take_the_documented_round_trips() {
    if !has_laboratory() {
        return;
    }
    let known_client = || first_contact(true, false).after_contact();
    check(
        "later, no connection open",
        [&|| known_client().fetch("dhttp", SMALL, Via::Udp), &|| {
            known_client().fetch("dhttp", LARGE, Via::TcpOpened)
        }],
    );
    let connected = || {
        let known_client = known_client();
        known_client.fetch("dhttp", LARGE, Via::TcpOpened);
        known_client
    };
    check(
        "later, connection open",
        [&|| connected().fetch("dhttp", SMALL, Via::Udp), &|| {
            connected().fetch("dhttp", LARGE, Via::TcpOpened)
        }],
    );
}

#[test]
fn token_of_an_earlier_client_spares_the_first_contact() {
    if !has_laboratory() {
        return;
    }
    // Without a token it would come over plain HTTP.
    assert!((0..ATTEMPTS).any(|_| second_contact().is_finite()), "by plain HTTP in each attempt");
}

/// Round trips of a large response by a connection that the server opens, to a client that has another client's token.
fn second_contact() -> f64 {
    let known_client = first_contact(true, false).after_contact();
    let known = known_client.client.known();
    let FirstContact { clock, client, environment } = known_client;
    drop(client);
    let client = environment.2[0].run(move || Client::start(ClientConfig::internet(), known, None).unwrap());
    FirstContact { clock, client: Arc::new(client), environment }.fetch("dhttp", LARGE, Via::TcpOpened)
}
