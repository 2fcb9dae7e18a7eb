//! Datagrams from outside at a router: neither the helper nor an intercepting cache serves their senders.
//!
//! Attacks, in namespaces, over both families; each with the request from inside that must still be served.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::lab::{Lab, ROUTER, RunningProgram, SERVER, SERVER6, available, inside, sh};
use super::translation;

/// A DHTTP request for `/`, as the specification defines it.
pub(super) fn request(id: u64, host: &str) -> Vec<u8> {
    let head = [&id.to_be_bytes()[..], &40_000_u16.to_be_bytes(), &[0]].concat();
    [&head[..], format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes()].concat()
}

/// Sends requests from the world, each from a port of its own; returns the number of replies within a second.
fn send_from_outside(lab: &Lab, from: &'static str, to: String, count: u64) -> usize {
    inside(&lab.world, move || {
        let sockets: Vec<UdpSocket> = (0..count).map(|_| UdpSocket::bind((from, 0)).unwrap()).collect();
        for (id, socket) in (1..).zip(&sockets) {
            // A router's ICMP error for a closed port is not a failure of the attack.
            let _ = socket.send_to(&request(id, "h"), &to);
        }
        pause();
        let is_answered = |socket: &&UdpSocket| {
            socket.set_nonblocking(true).unwrap();
            socket.recv(&mut [0; 2_048]).is_ok()
        };
        sockets.iter().filter(is_answered).count()
    })
}

#[expect(clippy::disallowed_methods, reason = "a reply that must not come is waited for")]
fn pause() {
    std::thread::sleep(Duration::from_secs(1));
}

/// A web server on an inside host, and its number of connections.
fn internal_server(lab: &Lab, address: &'static str) -> Arc<AtomicUsize> {
    let connections = Arc::new(AtomicUsize::new(0));
    let (counted, listener) =
        (Arc::clone(&connections), inside(&lab.client, move || TcpListener::bind((address, 80)).unwrap()));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            counted.fetch_add(1, Ordering::SeqCst);
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 2_048]);
            let _ = stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\nConnection: close\r\n\r\ninternal");
        }
    });
    connections
}

/// Value of a counter of a program at the router.
pub(super) fn counter(lab: &Lab, port: u16, name: &str) -> u64 {
    let text = inside(&lab.router, move || {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    });
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("{name}: {text}")).parse().unwrap()
}

const FORWARD: &str = "table inet filter {
  chain forward { type filter hook forward priority filter; policy accept
    iifname \"wan\" oifname \"lan\" ct state new drop
  }
}";

#[test]
fn a_cache_on_the_path_fetches_nothing_from_inside_for_clients_outside() {
    if !available() {
        return;
    }
    let lab = Lab::dual_stack();
    lab.rules(FORWARD);
    sh(&lab.world, "ip route add 10.0.0.0/24 via 11.0.100.1");
    let pages = [internal_server(&lab, "10.0.0.2"), internal_server(&lab, "2600:db8:2::2")];
    let flags = ["cache", "--intercept", "80", "--inside", "lan", "--listen", "[::]:3129", "--reach-private"];
    let store = lab.directory.join("cache-of-router");
    let cache = RunningProgram::start_with(&lab.router, &flags, &[("XDG_CACHE_HOME", store.clone())]);
    assert!(cache.first.contains("of lan to UDP 80"), "{}", cache.first);
    assert_eq!(send_from_outside(&lab, "11.0.100.2", "10.0.0.2:80".to_owned(), 10), 0);
    assert_eq!(send_from_outside(&lab, "2600:db8:1::2", "[2600:db8:2::2]:80".to_owned(), 10), 0);
    // Nor to the cache's own port, to which no intercepted request goes.
    send_from_outside(&lab, "11.0.100.2", format!("{ROUTER}:3129"), 10);
    assert_eq!(pages.map(|count| count.load(Ordering::SeqCst)), [0, 0]);
    // Requests from inside are intercepted, of both families.
    for (server, listen) in [(SERVER, SERVER), (SERVER6, SERVER6)] {
        let _server = lab.serve_at(listen, &[]);
        let got = lab.get_at(server, "small", &["--caches", "any"]);
        assert!(got.body == b"small" && got.printed.contains(":3129: response"), "{}", got.printed);
    }
    // The servers' tokens are stored for the next run.
    let (ended, rest) = cache.stop();
    assert!(ended, "{rest}");
    let path = store.join("roundtrip/dhttp-servers-of-cache");
    let stored = std::fs::read_to_string(&path).unwrap();
    for server in [format!("{SERVER}:80"), format!("{SERVER6}:80")] {
        assert!(
            stored.lines().any(|line| line.starts_with(&format!("@token {server} "))),
            "{server}: {stored}"
        );
    }
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn floods_from_outside_take_no_mapping() {
    if !available() {
        return;
    }
    let lab = Lab::new();
    lab.rules(&translation("port-restricted"));
    let _server = lab.serve(&[]);
    let _nat = lab.nat(&["--metrics", "127.0.0.1:9107"]);
    assert_eq!(send_from_outside(&lab, "11.0.100.3", format!("{ROUTER}:80"), 500), 0);
    assert_eq!(counter(&lab, 9_107, "roundtrip_nat_mappings"), 0);
    assert_eq!(lab.channels(), ("udp".to_owned(), "tcp-opened".to_owned()));
}

#[test]
fn a_flood_from_outside_over_ipv6_takes_no_mapping_of_the_helper() {
    if !available() {
        return;
    }
    let lab = Lab::dual_stack();
    let _server = lab.serve_at(SERVER6, &[]);
    let _nat = lab.nat(&["--ipv6", "--firewall", "--metrics", "127.0.0.1:9107"]);
    assert_eq!(send_from_outside(&lab, "2600:db8:1::3", "[2600:db8:1::1]:80".to_owned(), 500), 0);
    assert_eq!(counter(&lab, 9_107, "roundtrip_nat_mappings"), 0);
    assert_eq!(lab.channels_at(SERVER6), ("udp".to_owned(), "tcp-opened".to_owned()));
}
