//! Live sockets under a watch: a server that writes headers and body separately with Nagle's algorithm, its fixed
//! counterpart, and other causes that delay sending. Only the peer that vanishes needs privileges.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use diagnose::{Cause, Side};
use linux::Namespace;
use linux::netlink::{Link, Netlink, Route};
use linux::tun::Tun;
use report::watched::Row;
use roundtrip_capture::watch::guard::{assert_no_stalls, stalls_during};
use roundtrip_capture::watch::{Scope, Watch};
use socket2::SockRef;
use wire::Duration;
use wire::packet::{Flags, Packet, TcpBuilder};

const HEADERS: usize = 60;
const BODY: usize = 600;
const REQUESTS: usize = 12;

/// Writes one response.
type Respond = fn(&mut TcpStream);

/// Writes in two pieces, the second of which waits for the acknowledgement of the first.
fn write_separately(stream: &mut TcpStream) {
    stream.write_all(&[b'h'; HEADERS]).unwrap();
    stream.write_all(&[b'b'; BODY]).unwrap();
}

fn write_together(stream: &mut TcpStream) {
    stream.write_all(&[b'x'; HEADERS + BODY]).unwrap();
}

/// Settings of a connection's server end.
type SetUp = fn(&TcpStream);

#[expect(clippy::disallowed_methods, reason = "peers in threads of their own")]
fn pause(millis: u64) {
    thread::sleep(std::time::Duration::from_millis(millis));
}

/// A server of one connection.
fn serve(respond: Respond, set_up: SetUp) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        set_up(&stream);
        while stream.read(&mut [0; 64]).is_ok_and(|length| length > 0) {
            respond(&mut stream);
        }
    });
    address
}

/// Sends sequential requests over one connection.
fn fetch(server: SocketAddr) -> usize {
    let mut stream = TcpStream::connect(server).unwrap();
    for _ in 0..REQUESTS {
        stream.write_all(b"GET").unwrap();
        stream.read_exact(&mut [0; HEADERS + BODY]).unwrap();
    }
    REQUESTS
}

fn causes(rows: &[Row]) -> Vec<Cause> {
    rows.iter().map(|row| row.cause).collect()
}

fn is_held(rows: &[Row]) -> bool {
    rows.iter().any(|row| matches!(row.cause, Cause::Nagle | Cause::NagleDelayedAck))
}

#[test]
fn a_server_that_writes_headers_and_body_apart_is_named_with_its_process() {
    let server = serve(write_separately, |_| ());
    let (done, rows) = stalls_during(server.port(), || fetch(server)).unwrap();
    assert_eq!(done, REQUESTS);
    assert_eq!(causes(&rows), [Cause::NagleDelayedAck], "{rows:#?}");
    assert_eq!((rows[0].side, rows[0].server, rows[0].connections), (Side::Server, server, 1));
    assert!(rows[0].severity.is_worth_fixing() && rows[0].times > 1, "{rows:#?}");
    assert_eq!(rows[0].owner.as_ref().unwrap().pid, std::process::id());
}

#[test]
fn fixed_servers_have_no_stalls() {
    let fixed: [(Respond, SetUp); 2] =
        [(write_together, |_| ()), (write_separately, |stream| stream.set_nodelay(true).unwrap())];
    for (respond, set_up) in fixed {
        let server = serve(respond, set_up);
        let (_, rows) = stalls_during(server.port(), || fetch(server)).unwrap();
        assert_eq!(rows, []);
    }
}

#[test]
fn holds_after_a_pause_are_found_although_idle_sockets_are_not_sampled_each_time() {
    let server = serve(write_separately, |_| ());
    let mut stream = TcpStream::connect(server).unwrap();
    let mut watch = Watch::begin(Scope::Port(server.port())).unwrap();
    let mut sample_for = |rounds: u32| {
        let mut longest = Duration::ZERO;
        for _ in 0..rounds {
            watch.sample().unwrap();
            longest = longest.max(watch.idle());
            pause(10);
        }
        (longest, watch.rows())
    };
    let (idle, rows) = sample_for(10);
    assert!(idle > Duration::from_millis(20) && rows.is_empty(), "{idle:?} {rows:#?}");
    let client = thread::spawn(move || {
        for _ in 0..REQUESTS {
            stream.write_all(b"GET").unwrap();
            stream.read_exact(&mut [0; HEADERS + BODY]).unwrap();
        }
        stream
    });
    let (_, rows) = sample_for(70);
    assert_eq!(causes(&rows), [Cause::NagleDelayedAck], "{rows:#?}");
    drop(client.join().unwrap());
}

#[test]
fn the_guard_fails_a_test_of_the_faulty_server_and_passes_its_twin() {
    let server = serve(write_together, |_| ());
    assert_eq!(assert_no_stalls(server.port(), || fetch(server)), REQUESTS);
    let server = serve(write_separately, |_| ());
    let failed = panic::catch_unwind(|| assert_no_stalls(server.port(), || fetch(server))).unwrap_err();
    let reported = failed.downcast::<String>().unwrap();
    assert!(reported.contains("nagle-delayed-ack: the server"), "{reported}");
}

#[test]
fn a_slow_reader_is_a_limit_by_its_window_and_no_hold() {
    const LENGTH: usize = 4 << 20;
    let server = serve(|stream| stream.write_all(&vec![7; LENGTH]).unwrap(), |_| ());
    let read_slowly = || {
        let mut stream = TcpStream::connect(server).unwrap();
        SockRef::from(&stream).set_recv_buffer_size(64 << 10).unwrap();
        stream.write_all(b"GET").unwrap();
        let mut piece = vec![0; 64 << 10];
        for _ in 0..LENGTH / piece.len() {
            pause(3);
            stream.read_exact(&mut piece).unwrap();
        }
    };
    let ((), rows) = stalls_during(server.port(), read_slowly).unwrap();
    assert!(!is_held(&rows), "{rows:#?}");
    let limits = [Cause::ReceiveWindowLimited, Cause::ZeroWindow];
    assert!(rows.iter().any(|row| limits.contains(&row.cause) && row.side == Side::Server), "{rows:#?}");
}

#[test]
fn a_pacer_is_no_hold() {
    /// Pacing rate in bytes per second.
    const RATE: u32 = 400_000;
    let set_up = |stream: &TcpStream| {
        stream.set_nodelay(true).unwrap();
        // Smaller than the device's MTU, so that the sender's gaps appear in the samples.
        SockRef::from(stream).set_tcp_mss(1_000).unwrap();
        pace(stream, RATE);
    };
    let respond: Respond = |stream| (0..60).for_each(|_| stream.write_all(&[7; 700]).unwrap());
    let server = serve(respond, set_up);
    let fetch = || {
        let mut stream = TcpStream::connect(server).unwrap();
        for _ in 0..3 {
            stream.write_all(b"GET").unwrap();
            stream.read_exact(&mut [0; 60 * 700]).unwrap();
        }
    };
    let ((), rows) = stalls_during(server.port(), fetch).unwrap();
    assert!(!is_held(&rows), "{rows:#?}");
}

/// Sets SO_MAX_PACING_RATE.
fn pace(stream: &TcpStream, rate: u32) {
    use std::os::fd::AsRawFd as _;
    let length = u32::try_from(size_of::<u32>()).unwrap();
    // SAFETY: the option's value is an integer that lives for the call, of the length that is given.
    let done = unsafe {
        let value = (&raw const rate).cast();
        libc::setsockopt(stream.as_raw_fd(), libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, value, length)
    };
    assert_eq!(done, 0);
}

#[test]
fn a_corked_response_is_no_hold() {
    let respond: Respond = |stream| {
        let socket = SockRef::from(&*stream);
        socket.set_tcp_cork(true).unwrap();
        (&*stream).write_all(&[b'h'; HEADERS]).unwrap();
        pause(8);
        (&*stream).write_all(&[b'b'; BODY]).unwrap();
        socket.set_tcp_cork(false).unwrap();
    };
    let server = serve(respond, |_| ());
    let (_, rows) = stalls_during(server.port(), || fetch(server)).unwrap();
    assert_eq!(rows, []);
}

/// A peer behind a TUN device that completes the handshake, and acknowledges data if it is `up`.
fn run_peer(tun: &Tun, is_up: bool, is_over: &AtomicBool) {
    let mut buffer = [0; 2_000];
    while !is_over.load(Ordering::Acquire) {
        let Some(length) = tun.read(&mut buffer).unwrap() else {
            pause(1);
            continue;
        };
        let Ok(packet) = Packet::read(&buffer[..length]) else { continue };
        let (Some((near, far)), Some(segment)) = (packet.sockets(), packet.tcp()) else { continue };
        let opens = segment.flags.contains(Flags::SYN);
        let carried = u32::try_from(segment.payload.len()).unwrap() + u32::from(opens);
        if carried == 0 || !(opens || is_up) {
            continue;
        }
        let flags = if opens { Flags::SYN | Flags::ACK } else { Flags::ACK };
        let (seq, ack) = (if opens { 0 } else { 1 }, segment.seq.wrapping_add(carried));
        let reply =
            TcpBuilder { source: far, destination: near, seq, ack, flags, window: 65_535, options: &[] };
        let mut bytes = Vec::new();
        reply.write(&[], &mut bytes).unwrap();
        tun.write(&bytes).unwrap();
    }
}

/// Watches a connection for 1.5 s after it has sent a request to such a peer; `None`, with a message, where devices are not
/// permitted.
fn stalls_to_peer(is_up: bool) -> Option<Vec<Row>> {
    if let Err(missing) = linux::available() {
        skip::refused(&missing.to_string());
        return None;
    }
    let watched = move || {
        let (own, peer) = (Ipv4Addr::new(10, 9, 0, 1), Ipv4Addr::new(10, 9, 0, 2));
        let tun = Tun::open("peer").unwrap();
        let mut netlink = Netlink::open().unwrap();
        netlink.bring_up("peer", Link { mtu: 1_500, tx_queue_length: 100, gso_max_segments: 1 }).unwrap();
        netlink.add_address("peer", own).unwrap();
        netlink.set_route("peer", &Route::new(peer, own)).unwrap();
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| run_peer(&tun, is_up, &is_over));
            let mut stream = TcpStream::connect((peer, 80)).unwrap();
            let ((), rows) = stalls_during(80, || {
                stream.write_all(b"GET").unwrap();
                pause(1_500);
            })
            .unwrap();
            is_over.store(true, Ordering::Release);
            rows
        })
    };
    Some(Namespace::new("outage").unwrap().start(watched).wait().unwrap())
}

#[test]
fn an_outage_is_reported_while_it_lasts_and_its_healthy_twin_is_silent() {
    let Some(rows) = stalls_to_peer(false) else { return };
    assert_eq!(causes(&rows), [Cause::RetransmissionTimeout], "{rows:#?}");
    let Row { side, severity, lost, evidence, .. } = &rows[0];
    assert_eq!(*side, Side::Client, "{rows:#?}");
    assert!(severity.is_worth_fixing() && lost.as_millis_f64() > 1_000.0, "{rows:#?}");
    assert!(evidence.contains("it lasts"), "{rows:#?}");
    assert_eq!(stalls_to_peer(true), Some(Vec::new()));
}
