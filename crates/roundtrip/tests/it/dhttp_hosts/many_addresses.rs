//! Attackers with many addresses: a site of IPv6 with all networks of its /56, and hosts spread over thousands of networks.
//!
//! One host has all the addresses of the attackers, and the one of the client that must not be affected.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock};
use std::time::Duration as Timeout;

use dhttp::server::ClientLimits;
use dhttp::{Request, Response, Server, ServerConfig};
use socket2::{Domain, Socket, Type};

use super::faulty_network::CLIENT;
use super::host::Host;
use super::network::{Network, NetworkFaults};
use super::{Handler, PORT, SERVER, address};
use test_fixture::{KilledOnDrop, has_laboratory};

const SERVER6: Ipv6Addr = Ipv6Addr::new(0x2600, 0, 0, 0, 0, 0, 0, 1);
const CLIENT6: Ipv6Addr = Ipv6Addr::new(0x2600, 1, 0, 0, 0, 0, 0, 1);
/// Connections that the server accepts in total, a twentieth of the default; the attackers open twice as many.
const ACCEPTED: usize = 500;
/// Connections of the other client, one after the other, each with a request.
const OTHERS: usize = 40;

/// The attackers' host and the server's, with the network between them.
fn hosts() -> ([Host; 2], Network) {
    let hosts = [Host::dual_stack("many", CLIENT, CLIENT6), Host::dual_stack("limited", SERVER, SERVER6)];
    hosts[0].run(|| {
        std::fs::write("/proc/sys/net/ipv6/ip_nonlocal_bind", "1").unwrap();
        for route in ["-6 route add local 2a0f::/16 dev lo", "route add local 128.0.0.0/2 dev lo"] {
            assert!(
                Command::new("ip")
                    .env("PATH", skip::path())
                    .args(route.split(' '))
                    .status()
                    .unwrap()
                    .success(),
                "ip {route}"
            );
        }
    });
    let faults = NetworkFaults { delay: wire::Duration::from_micros(10), ..NetworkFaults::FAULTLESS };
    let network = Network::between(&hosts[0], &hosts[1], faults);
    (hosts, network)
}

fn start(host: &Host, at: SocketAddr) -> Server<Handler> {
    host.run(move || {
        let handler: Handler = |request: &Request<'_>| {
            let is_large = request.target == "/large";
            Response::whole(
                200,
                "text/plain",
                if is_large { Arc::clone(&LARGE) } else { Arc::from(&b"ok"[..]) },
            )
        };
        let clients = ClientLimits { connections: ACCEPTED / 40, ..ClientLimits::default() };
        let config = ServerConfig { threads: 1, accepted: ACCEPTED, clients, ..ServerConfig::internet() };
        Server::start(at, config, handler, None).unwrap()
    })
}

fn connect(from: IpAddr, to: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, None)?;
    socket.set_recv_buffer_size(2_048)?;
    socket.bind(&SocketAddr::new(from, 0).into())?;
    socket.connect_timeout(&to.into(), Timeout::from_secs(5))?;
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(Timeout::from_secs(10)))?;
    Ok(stream)
}

/// Opens connections from each of these addresses in turn, and writes the same to each; returns those that are open.
fn attack(host: &Host, to: SocketAddr, from: Vec<IpAddr>, request: &'static [u8]) -> Vec<TcpStream> {
    host.run(move || {
        let streams = from.into_iter().cycle().take(2 * ACCEPTED).filter_map(|from| {
            let mut stream = connect(from, to).ok()?;
            stream.write_all(request).ok().map(|()| stream)
        });
        streams.collect()
    })
}

/// Returns how many requests of another client are served.
fn served(host: &Host, from: IpAddr, to: SocketAddr, target: &'static str) -> usize {
    host.run(move || {
        let is_served = |number: usize| {
            let Ok(mut stream) = connect(from, to) else { return false };
            let request = format!("GET {target}{number} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
            let mut text = String::new();
            stream.write_all(request.as_bytes()).is_ok()
                && stream.read_to_string(&mut text).is_ok()
                && text.starts_with("HTTP/1.1 200")
        };
        (1..=OTHERS).filter(|number| is_served(*number)).count()
    })
}

/// Waits until the server has accepted this many connections: the kernel completes them before.
fn await_accepted(server: &Server<Handler>, connections: usize) {
    let accepted = || -> usize {
        let counts = server.counters();
        counts
            .iter()
            .map(|counters| counters.accepted.load(Ordering::Relaxed))
            .sum::<u64>()
            .try_into()
            .unwrap()
    };
    for _ in 0..600 {
        if accepted() >= connections {
            return;
        }
        std::thread::park_timeout(Timeout::from_millis(100));
    }
    panic!("{} of {connections} connections accepted in a minute", accepted());
}

fn still_open(streams: &[TcpStream]) -> usize {
    let is_open = |mut stream: &TcpStream| {
        stream.set_nonblocking(true).unwrap();
        loop {
            match stream.read(&mut [0; 65_536]) {
                Ok(0) => return false,
                Ok(_) => {}
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
        }
    };
    streams.iter().filter(|stream| is_open(stream)).count()
}

/// The /64s of a /56.
fn site() -> Vec<IpAddr> {
    (0..50).map(|number| Ipv6Addr::new(0x2a0f, 3, 0, 0x100 + number, 0, 0, 0, 7).into()).collect()
}

const OTHER6: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2a0f, 4, 0, 0, 0, 0, 0, 7));
/// A body that all responses share.
static LARGE: LazyLock<Arc<[u8]>> = LazyLock::new(|| vec![b'x'; 10_000_000].into());
const READ: &[u8] = b"GET /large HTTP/1.1\r\nHost: h\r\n\r\n";
const POST: &[u8] = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\nbegun";

#[test]
fn slow_readers_and_uploads_of_a_site_leave_connections_to_others() {
    if !skip::has("ip") {
        return;
    }
    if !has_laboratory() {
        return;
    }
    for (kind, request) in [("readers", READ), ("uploads", POST)] {
        let ([client, host], network) = hosts();
        let at = SocketAddr::from((SERVER6, PORT));
        let server = start(&host, at);
        let streams = attack(&client, at, site(), request);
        let served = served(&client, OTHER6, at, "/");
        let open = still_open(&streams);
        println!(
            "{} {kind} of a /56: {open} connected, {served} of {OTHERS} requests of another served",
            2 * ACCEPTED
        );
        assert_eq!(served, OTHERS, "{kind}: {}", server.metrics());
        assert!((1..=ACCEPTED * 3 / 16).contains(&open), "{kind}: {open}");
        drop((network, server));
    }
}

#[test]
fn slow_readers_of_a_thousand_networks_give_way_to_others() {
    if !skip::has("ip") {
        return;
    }
    if !has_laboratory() {
        return;
    }
    let ([client, host], network) = hosts();
    let at = address(SERVER, PORT);
    let server = start(&host, at);
    let from = (0..2 * ACCEPTED).map(|number| {
        let [.., a, b] = number.to_be_bytes();
        IpAddr::V4(Ipv4Addr::new(128 + a, b, 0, 7))
    });
    let streams = attack(&client, at, from.collect(), READ);
    await_accepted(&server, streams.len());
    // A connection is judged two seconds after its first check, which comes within a second.
    std::thread::park_timeout(Timeout::from_secs(4));
    let served = served(&client, IpAddr::V4(Ipv4Addr::new(191, 255, 0, 7)), at, "/");
    println!("{} readers of as many networks: {served} of {OTHERS} requests of another served", 2 * ACCEPTED);
    assert_eq!(served, OTHERS, "{}", server.metrics());
    drop((streams, network, server));
}

/// Starts an origin that responds to `/slow...` after a minute, and to everything else immediately.
fn origin(host: &Host) -> SocketAddr {
    let listener = host.run(|| TcpListener::bind("127.0.0.1:0").unwrap());
    let at = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || {
                let mut stream = stream;
                let mut head = [0; 4_096];
                while let Ok(length @ 1..) = stream.read(&mut head) {
                    if head[..length].starts_with(b"GET /slow") {
                        std::thread::park_timeout(Timeout::from_secs(60));
                    }
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
                }
            });
        }
    });
    at
}

#[test]
fn slow_paths_requested_by_a_site_leave_fetches_to_others() {
    if !skip::has("ip") {
        return;
    }
    if !has_laboratory() {
        return;
    }
    let ([client, host], network) = hosts();
    let (origin, at) = (origin(&host), SocketAddr::from((SERVER6, PORT)));
    let mut command = Command::new(env!("CARGO_BIN_EXE_roundtrip"));
    command.args(["cache", "--threads", "1", "--listen", &at.to_string(), "--limit", "fetches=160"]);
    command.args(["--origin", &format!("http://{origin}")]).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = host.run(move || command.spawn()).unwrap();
    let (mut line, mut reported) = (String::new(), BufReader::new(child.stderr.take().unwrap()));
    reported.read_line(&mut line).unwrap();
    assert!(line.contains("http://"), "{line}");
    let _program = KilledOnDrop(child);
    let attackers: Vec<TcpStream> = client.run(move || {
        let from = site().into_iter().cycle().take(400).enumerate();
        let requested = from.filter_map(|(number, from)| {
            let mut stream = connect(from, at).ok()?;
            write!(stream, "GET /slow{number} HTTP/1.1\r\nHost: h\r\n\r\n").ok().map(|()| stream)
        });
        requested.collect()
    });
    std::thread::park_timeout(Timeout::from_millis(500));
    let served = served(&client, OTHER6, at, "/quick");
    println!("400 slow paths by a /56: {served} of {OTHERS} misses of another served");
    assert_eq!(served, OTHERS);
    drop((attackers, network));
}
