//! Tunnels through the gateway (CONNECT): the cost of idle ones, and much data in both directions concurrently.
//!
//! A test program of its own, so that the counted threads are those of one gateway.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use dhttp::ClientConfig;
use dhttp::client::KnownServers;
use roundtrip_dhttp_proxy::{Gateway, GatewayConfig};

/// Four open files each.
const TUNNELS: usize = 100;
/// More bytes than all buffers on the path hold.
const MUCH: usize = 12 << 20;

fn threads_of_gateways() -> usize {
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
    let names = tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|name| name.starts_with("gateway")).count()
}

/// An echo server, with a thread for each connection.
fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            thread::spawn(move || {
                let mut back = stream.try_clone().unwrap();
                let _ = std::io::copy(&mut stream, &mut back);
                let _ = back.shutdown(Shutdown::Write);
            });
        }
    });
    address
}

fn tunnel(gateway: SocketAddr, to: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(gateway).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream.write_all(format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n").as_bytes()).unwrap();
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    assert!(head.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&head));
    stream
}

#[test]
fn idle_tunnels_cost_no_threads_and_a_busy_one_carries_all_there_and_back() {
    let to = echo();
    let config = GatewayConfig::new(ClientConfig::internet());
    let gateway =
        Gateway::start("127.0.0.1:0".parse().unwrap(), config, KnownServers::default(), None, None).unwrap();
    let mut tunnels: Vec<_> = (0..TUNNELS).map(|_| tunnel(gateway.address(), to)).collect();
    // The event loop, and a thread that had connected; on a busy host two had to wait.
    let threads = threads_of_gateways();
    assert!((1..10).contains(&threads), "{threads} threads for {TUNNELS} tunnels");
    for tunnel in &mut tunnels {
        tunnel.write_all(b"ping").unwrap();
        let mut back = [0; 4];
        tunnel.read_exact(&mut back).unwrap();
        assert_eq!(&back, b"ping");
    }
    let mut busy = tunnels.pop().unwrap();
    let mut writer = busy.try_clone().unwrap();
    let sent: Vec<u8> = (0..=250).cycle().take(MUCH).collect();
    let expected = sent.clone();
    let (sender, receiver) = mpsc::channel();
    let sending = thread::spawn(move || {
        writer.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
        let mut unsent = &sent[..];
        while !unsent.is_empty() {
            match writer.write(unsent) {
                Ok(written) => unsent = &unsent[written..],
                // All buffers on the path are full: now the reader may begin.
                Err(_) => sender.send(()).unwrap_or_default(),
            }
        }
        writer.shutdown(Shutdown::Write).unwrap();
    });
    // The buffers may also hold everything.
    let _ = receiver.recv();
    let mut back = Vec::new();
    busy.read_to_end(&mut back).unwrap();
    sending.join().unwrap();
    assert!(back == expected, "{} bytes of {MUCH} came back", back.len());
    // The client hears of the end before the gateway has counted it.
    let expected_line = format!("roundtrip_gateway_tunnels_open {}", TUNNELS - 1);
    let has_counted = || gateway.metrics()().lines().any(|line| line == expected_line);
    let waited = (0..500).find(|_| {
        has_counted() || {
            thread::park_timeout(Duration::from_millis(10));
            false
        }
    });
    assert!(waited.is_some(), "{}", gateway.metrics()());
    drop(tunnels.split_off(1));
    gateway.stop(Duration::ZERO);
    // A tunnel that is open when the gateway stops is closed.
    assert_eq!(tunnels[0].read(&mut [0]).unwrap_or(0), 0);
}
