//! Round trips of first and later contacts, over a path of 50 ms: those that docs/dhttp.md states.
//!
//! Not the simulator's: here the kernel's TCP opens the connections.

use std::sync::Arc;

use dhttp::client::{KnownServers, Via};
use dhttp::{Client, ClientConfig, Server};
use testbed::clock::Clock;
use wire::Duration;

use super::host::{Host, allowed};
use super::network::{Network, NetworkFaults};
use super::weather::CLIENT;
use super::{Handler, PORT, SERVER, address, serve};

const RTT: Duration = Duration::from_millis(50);
const SMALL: usize = 100;
/// Too large for a datagram, and not for TCP's initial window.
const LARGE: usize = 9_000;
/// Attempts per figure: a busy host may be late once.
const ATTEMPTS: usize = 5;

const DOCUMENT: &str = include_str!("../../../../docs/dhttp.md");

/// Client and server that have never met.
struct FirstContact {
    clock: Clock,
    client: Arc<Client>,
    // Values that the client needs, dropped after it.
    rest: (Server<Handler>, Network, [Host; 2]),
}

fn strangers(races: bool, loses_udp: bool) -> FirstContact {
    let hosts = [Host::new("client", CLIENT), Host::new("server", SERVER)];
    // The server does not connect by TCP Fast Open, which would save a round trip.
    hosts[0].does(|| std::fs::write("/proc/sys/net/ipv4/tcp_fastopen", "1")).unwrap();
    let faults = NetworkFaults { delay: RTT / 2, loses_udp, ..NetworkFaults::FINE };
    let network = Network::between(&hosts[0], &hosts[1], faults);
    let server = serve(&hosts[1]);
    let config = ClientConfig { races, ..ClientConfig::internet() };
    let client = hosts[0].does(|| Client::start(config, KnownServers::default(), None).unwrap());
    FirstContact { clock: Clock::start(), client: Arc::new(client), rest: (server, network, hosts) }
}

impl FirstContact {
    /// Fetches a response of this size, and returns its round trips.
    fn fetch(&self, scheme: &str, size: usize, via: Via) -> f64 {
        let url = format!("{scheme}://{}/{size}", address(SERVER, PORT)).parse().unwrap();
        let (clock, client) = (self.clock, Arc::clone(&self.client));
        // Plain HTTP connects in the caller's thread, which must be on the client's host.
        let (took, came_by, body) = self.rest.2[0].does(move || {
            let began = clock.now();
            let (came_by, _, body) = client.get(&url).unwrap().whole().unwrap();
            (clock.now().since(began), came_by, body)
        });
        assert_eq!((came_by, body.len()), (via, size));
        took.as_secs_f64() / RTT.as_secs_f64()
    }

    /// The same strangers, after a contact by plain HTTP.
    fn after_contact(self) -> Self {
        self.fetch("http", SMALL, Via::TcpClient);
        self
    }
}

/// The figures of a row of the document's table: for a small and for a large response.
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
            .scan(false, |is_over, took| {
                let goes_on = !std::mem::replace(is_over, (took - expected).abs() < 0.4);
                goes_on.then_some(took)
            })
            .collect();
        println!("{contact}: {expected} round trips documented, {attempts:.2?} measured");
        assert!(attempts.last().is_some_and(|took| (took - expected).abs() < 0.4), "{contact}: {attempts:?}");
        // No attempt is faster than the path permits.
        assert!(attempts.iter().all(|took| *took > expected - 0.1), "{contact}: {attempts:?}");
    }
}

#[test]
fn first_contacts_take_the_documented_round_trips() {
    if !allowed() {
        return;
    }
    check(
        "first, server found by plain HTTP",
        [&|| strangers(true, false).fetch("http", SMALL, Via::TcpClient), &|| {
            strangers(true, false).fetch("http", LARGE, Via::TcpClient)
        }],
    );
    check(
        "first, server known (`dhttp://`)",
        [&|| strangers(true, false).fetch("dhttp", SMALL, Via::Udp), &|| {
            strangers(true, false).fetch("dhttp", LARGE, Via::TcpClient)
        }],
    );
    check(
        "the same, without the race",
        [&|| strangers(false, false).fetch("dhttp", SMALL, Via::Udp), &|| {
            strangers(false, false).fetch("dhttp", LARGE, Via::TcpClient)
        }],
    );
}

#[test]
fn fallback_that_never_arrives_costs_at_most_a_round_trip_more_than_plain_http() {
    if !allowed() {
        return;
    }
    let lost = |size| strangers(true, true).fetch("dhttp", size, Via::TcpClient);
    check("the same, UDP blocked", [&|| lost(SMALL), &|| lost(LARGE)]);
    let [plain, blocked] = ["first, server found by plain HTTP", "the same, UDP blocked"].map(documented);
    assert!(plain.iter().zip(blocked).all(|(plain, blocked)| blocked <= plain + 1.0));
}

#[test]
fn later_contacts_take_the_documented_round_trips() {
    if !allowed() {
        return;
    }
    let met = || strangers(true, false).after_contact();
    check(
        "later, no connection open",
        [&|| met().fetch("dhttp", SMALL, Via::Udp), &|| met().fetch("dhttp", LARGE, Via::TcpOpened)],
    );
    let connected = || {
        let met = met();
        met.fetch("dhttp", LARGE, Via::TcpOpened);
        met
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
    if !allowed() {
        return;
    }
    let met = strangers(true, false).after_contact();
    let known = met.client.known();
    let FirstContact { clock, client, rest } = met;
    drop(client);
    let client = rest.2[0].does(move || Client::start(ClientConfig::internet(), known, None).unwrap());
    let again = FirstContact { clock, client: Arc::new(client), rest };
    // Without a token it would come over plain HTTP.
    again.fetch("dhttp", LARGE, Via::TcpOpened);
}
