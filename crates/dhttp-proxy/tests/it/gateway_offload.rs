//! Segmentation offload in both directions (`UDP_SEGMENT`, `UDP_GRO`; udp(7)), observed by a relay. Many clients send
//! concurrent requests; one system call passes many datagrams.
//!
//! The savings are measured in studies/speed.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use dhttp::batch::{self, Endpoints, Inbox, Outbox};
use dhttp::client::KnownServers;
use dhttp::{ClientConfig, Request, Response, Server, ServerConfig};
use roundtrip_dhttp_proxy::{Gateway, GatewayConfig};

const PROGRAMS: usize = 64;
const ROUNDS: usize = 20;

/// Traffic of one direction.
#[derive(Clone, Copy, Debug, Default)]
struct SentTraffic {
    pieces: usize,
    datagrams: usize,
}

/// Relays from one socket to another, until it is stopped.
fn carry(
    from: &Arc<UdpSocket>,
    by: &Arc<UdpSocket>,
    to: Arc<Mutex<SocketAddr>>,
    backward: Arc<Mutex<SocketAddr>>,
    stop: &Arc<AtomicBool>,
) -> JoinHandle<SentTraffic> {
    let (from, by, stop) = (Arc::clone(from), Arc::clone(by), Arc::clone(stop));
    thread::spawn(move || {
        let (mut inbox, mut outbox, mut total) =
            (Inbox::default(), Outbox::default(), SentTraffic::default());
        while !stop.load(Ordering::SeqCst) {
            if from.peek_from(&mut [0]).is_err() {
                continue;
            }
            let Ok(pieces) = inbox.receive(&from) else { continue };
            total.pieces += pieces;
            total.datagrams += inbox.len();
            for (ends, bytes) in (0..inbox.len()).filter_map(|index| inbox.datagram(index)) {
                *backward.lock().unwrap() = ends.peer;
                let peer = *to.lock().unwrap();
                outbox.slot(Endpoints { peer, local: None }).extend_from_slice(bytes);
            }
            outbox.send(&by);
        }
        total
    })
}

fn socket() -> Arc<UdpSocket> {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    batch::prepare(&socket);
    Arc::new(socket)
}

#[test]
fn requests_and_responses_are_batched_by_segmentation_offload() {
    let config = ServerConfig { threads: 1, ..ServerConfig::internet().reaching_anywhere() };
    let response = |_: &Request<'_>| Response::text(200, "answer");
    let server = Server::start("127.0.0.1:0".parse().unwrap(), config, response, None).unwrap();
    let (front, behind, stop) = (socket(), socket(), Arc::default());
    let (forward, backward) =
        (Arc::new(Mutex::new(server.address())), Arc::new(Mutex::new(server.address())));
    let unused = Arc::new(Mutex::new(server.address()));
    let requested = carry(&front, &behind, forward, Arc::clone(&backward), &stop);
    let responses_thread = carry(&behind, &front, backward, unused, &stop);

    let config = GatewayConfig::new(ClientConfig::internet());
    let gateway =
        Gateway::start("127.0.0.1:0".parse().unwrap(), config, KnownServers::default(), None, None).unwrap();
    let connect = |_| {
        let program = TcpStream::connect(gateway.address()).unwrap();
        program.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        program
    };
    let mut programs: Vec<_> = (0..PROGRAMS).map(connect).collect();
    let request = format!("GET http://{}/_dhttp_/ HTTP/1.1\r\nHost: a\r\n\r\n", front.local_addr().unwrap());
    for _ in 0..ROUNDS {
        for program in &mut programs {
            program.write_all(request.as_bytes()).unwrap();
        }
        for program in &mut programs {
            let (mut come, mut buffer) = (Vec::new(), [0; 1_024]);
            while !come.ends_with(b"answer\n") {
                let length = program.read(&mut buffer).unwrap();
                assert!(length > 0, "ended in {:?}", String::from_utf8_lossy(&come));
                come.extend_from_slice(&buffer[..length]);
            }
        }
    }
    stop.store(true, Ordering::SeqCst);
    for (name, traffic) in
        [("requests", requested.join().unwrap()), ("responses", responses_thread.join().unwrap())]
    {
        println!("{name}: {} datagrams in {} pieces", traffic.datagrams, traffic.pieces);
        assert!(traffic.datagrams >= PROGRAMS * ROUNDS, "{name}: {traffic:?}");
        assert!(traffic.pieces < traffic.datagrams, "{name}: {traffic:?}");
    }
}
