//! TCP Fast Open in the reverse direction (RFC 7413): a server's connection to a known client carries the first bytes
//! in its SYN. A small response then arrives after one round trip, without an open connection.
//!
//! Round trips are shown, not judged: the kernel's state of the connection is.

use std::sync::{Arc, Mutex};

use dhttp::client::{KnownServers, Note, Via};
use dhttp::{Client, ClientConfig, Request, Response, Server, ServerConfig};
use linux::clock::Clock;
use wire::Duration;

use super::faulty_network::CLIENT;
use test_fixture::has_laboratory;

use super::host::Host;
use super::network::{Network, NetworkFaults};
use super::{PORT, SERVER, address};

/// Round-trip time.
const RTT: Duration = Duration::from_millis(50);
/// Too large for a datagram, including the header section, and small enough for a SYN.
const FITTING: usize = 1_150;
/// Too large for both.
const LARGE: usize = 9_000;

struct Setting {
    clock: Clock,
    client: Client,
    notes: Arc<Mutex<Vec<Note>>>,
    // Values that the others need, dropped after them.
    _environment: (Server<super::Handler>, Network),
    hosts: [Host; 2],
}

/// Starts a client with this Fast Open setting of its host, and a server without keep-alive.
fn setting(fast_open: &'static str) -> Setting {
    let hosts = [Host::new("client", CLIENT), Host::new("server", SERVER)];
    hosts[0].run(move || std::fs::write("/proc/sys/net/ipv4/tcp_fastopen", fast_open)).unwrap();
    hosts[1].run(|| std::fs::write("/proc/sys/net/ipv4/tcp_fastopen", "1")).unwrap();
    let network =
        Network::between(&hosts[0], &hosts[1], NetworkFaults { delay: RTT / 2, ..NetworkFaults::FAULTLESS });
    let address = hosts[1].socket(PORT);
    let server = hosts[1].run(move || {
        let handler: super::Handler = |request: &Request<'_>| {
            let length = request.target.trim_start_matches('/').parse().unwrap_or(0);
            Response::whole(200, "text/plain", vec![b'x'; length])
        };
        let mut config = ServerConfig { threads: 1, ..ServerConfig::internet() };
        config.dhttp.timeout.idle = Duration::from_millis(100);
        Server::start(address, config, handler, None).unwrap()
    });
    let notes = Arc::new(Mutex::new(Vec::new()));
    let reported = Arc::clone(&notes);
    let observer: dhttp::client::Observer = Arc::new(move |note: &Note| reported.lock().unwrap().push(*note));
    let client = hosts[0]
        .run(|| Client::start(ClientConfig::internet(), KnownServers::default(), Some(observer)).unwrap());
    Setting { clock: Clock::start(), client, notes, _environment: (server, network), hosts }
}

impl Setting {
    /// Requests `size` bytes without an open connection; returns round trips, and whether the SYN carried data.
    fn fetch_without_connection(&self, size: usize) -> (f64, bool) {
        // The server closed the last one after its timeout, and the client has seen that by now.
        while self.is_open() {
            std::thread::yield_now();
        }
        self.notes.lock().unwrap().clear();
        let began = self.clock.now();
        let url = format!("dhttp://{}/{size}", address(SERVER, PORT)).parse().unwrap();
        let (via, _, body) = self.client.get(&url).unwrap().whole().unwrap();
        let round_trips = self.clock.now().since(began).as_secs_f64() / RTT.as_secs_f64();
        assert_eq!((via, body.len()), (Via::TcpOpened, size));
        let notes = self.notes.lock().unwrap();
        let with_data = notes.iter().any(|note| matches!(note, Note::Connected(_, true)));
        println!(
            "{size} bytes, no connection open: {round_trips:.2} round trips, data in the SYN: {with_data}"
        );
        for (host, name) in self.hosts.iter().zip(["client", "server"]) {
            println!("  the {name}'s kernel: {}", host.run(fast_open_counters));
        }
        (round_trips, with_data)
    }

    fn is_open(&self) -> bool {
        let notes = self.notes.lock().unwrap();
        let count = |is_wanted: fn(&Note) -> bool| notes.iter().filter(|note| is_wanted(note)).count();
        count(|note| matches!(note, Note::Connected(..))) > count(|note| matches!(note, Note::Ended(_)))
    }

    /// Requests a small response, by which the server learns the client's address.
    fn make_known(&self) {
        let url = format!("dhttp://{}/10", address(SERVER, PORT)).parse().unwrap();
        assert_eq!(self.client.get(&url).unwrap().whole().unwrap().0, Via::Udp);
    }
}

/// The kernel's counters of Fast Open and of timeouts that are not zero (`TcpExt` in `/proc/net/netstat`): why a SYN had no data.
fn fast_open_counters() -> String {
    let text = std::fs::read_to_string("/proc/thread-self/net/netstat").unwrap_or_default();
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("TcpExt: ")).map(str::split_whitespace);
    let (names, values) = (lines.next().into_iter().flatten(), lines.next().into_iter().flatten());
    let is_relevant = |name: &str| name.contains("FastOpen") || name.contains("Timeout");
    let relevant = names.zip(values).filter(|(name, value)| is_relevant(name) && *value != "0");
    relevant.map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ")
}

#[test]
fn a_known_client_gets_the_first_bytes_with_the_syn() {
    if !has_laboratory() {
        return;
    }
    let setting = setting("3");
    setting.make_known();
    assert!(!setting.fetch_without_connection(FITTING).1, "the first connection requests a cookie");
    assert!(setting.fetch_without_connection(FITTING).1);
    assert!(setting.fetch_without_connection(LARGE).1);
    assert!(!setting.notes.lock().unwrap().iter().any(|note| matches!(note, Note::NoFastOpen(_))));
}

#[test]
fn without_kernel_support_there_is_a_handshake_and_it_is_reported() {
    if !has_laboratory() {
        return;
    }
    let setting = setting("1");
    setting.make_known();
    assert!(!setting.fetch_without_connection(FITTING).1);
    assert!(setting.notes.lock().unwrap().contains(&Note::NoFastOpen(1)));
    assert!(!setting.fetch_without_connection(FITTING).1);
    assert!(!setting.notes.lock().unwrap().contains(&Note::NoFastOpen(1)), "it is reported once");
}
