//! TCP Fast Open in the reverse direction (RFC 7413): a server's connection to a known client carries the first bytes
//! in its SYN. A small response then arrives after one round trip, without an open connection.
//!
//! Round trips are shown, not judged: the kernel's state of the connection is.

use std::sync::{Arc, Mutex};

use dhttp::client::{KnownServers, Note, Via};
use dhttp::{Client, ClientConfig, Request, Response, Server, ServerConfig};
use testbed::clock::Clock;
use wire::Duration;

use super::host::{Host, allowed};
use super::network::{Network, NetworkFaults};
use super::weather::CLIENT;
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
    _rest: (Server<super::Handler>, Network, [Host; 2]),
}

/// A client whose host has this setting of Fast Open, and a server without keep-alive.
fn setting(fast_open: &'static str) -> Setting {
    let hosts = [Host::new("client", CLIENT), Host::new("server", SERVER)];
    hosts[0].does(move || std::fs::write("/proc/sys/net/ipv4/tcp_fastopen", fast_open)).unwrap();
    hosts[1].does(|| std::fs::write("/proc/sys/net/ipv4/tcp_fastopen", "1")).unwrap();
    let network =
        Network::between(&hosts[0], &hosts[1], NetworkFaults { delay: RTT / 2, ..NetworkFaults::FINE });
    let address = hosts[1].socket(PORT);
    let server = hosts[1].does(move || {
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
    let watch: dhttp::client::Observer = Arc::new(move |note: &Note| reported.lock().unwrap().push(*note));
    let client = hosts[0]
        .does(|| Client::start(ClientConfig::internet(), KnownServers::default(), Some(watch)).unwrap());
    Setting { clock: Clock::start(), client, notes, _rest: (server, network, hosts) }
}

impl Setting {
    /// Requests `size` bytes without an open connection; round trips, and whether the SYN carried data.
    fn cold(&self, size: usize) -> (f64, bool) {
        // The server closed the last one after its timeout, and the client has seen that by now.
        while self.is_open() {
            std::thread::yield_now();
        }
        self.notes.lock().unwrap().clear();
        let began = self.clock.now();
        let url = format!("dhttp://{}/{size}", address(SERVER, PORT)).parse().unwrap();
        let (via, _, body) = self.client.get(&url).unwrap().whole().unwrap();
        let took = self.clock.now().since(began).as_secs_f64() / RTT.as_secs_f64();
        assert_eq!((via, body.len()), (Via::TcpOpened, size));
        let notes = self.notes.lock().unwrap();
        let with_data = notes.iter().any(|note| matches!(note, Note::Connected(_, true)));
        println!("{size} bytes, no connection open: {took:.2} round trips, data in the SYN: {with_data}");
        (took, with_data)
    }

    fn is_open(&self) -> bool {
        let notes = self.notes.lock().unwrap();
        let count = |wanted: fn(&Note) -> bool| notes.iter().filter(|note| wanted(note)).count();
        count(|note| matches!(note, Note::Connected(..))) > count(|note| matches!(note, Note::Ended(_)))
    }

    /// Requests a small response, by which the server learns the client's address.
    fn met(&self) {
        let url = format!("dhttp://{}/10", address(SERVER, PORT)).parse().unwrap();
        assert_eq!(self.client.get(&url).unwrap().whole().unwrap().0, Via::Udp);
    }
}

#[test]
fn a_known_client_gets_the_first_bytes_with_the_syn() {
    if !allowed() {
        return;
    }
    let setting = setting("3");
    setting.met();
    assert!(!setting.cold(FITTING).1, "the first connection asks for a cookie");
    assert!(setting.cold(FITTING).1);
    assert!(setting.cold(LARGE).1);
    assert!(!setting.notes.lock().unwrap().iter().any(|note| matches!(note, Note::NoFastOpen(_))));
}

#[test]
fn without_kernel_support_there_is_a_handshake_and_it_is_reported() {
    if !allowed() {
        return;
    }
    let setting = setting("1");
    setting.met();
    assert!(!setting.cold(FITTING).1);
    assert!(setting.notes.lock().unwrap().contains(&Note::NoFastOpen(1)));
    assert!(!setting.cold(FITTING).1);
    assert!(!setting.notes.lock().unwrap().contains(&Note::NoFastOpen(1)), "it is said once");
}
