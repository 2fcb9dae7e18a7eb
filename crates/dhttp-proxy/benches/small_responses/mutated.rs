//! A million mutated requests to a server: its responses, their size, and whether it is as fast as before.
//!
//! Half of them are still valid requests. The others carry a mark in their id, by which a response to one of them would be
//! detected. The fuzzer is `fuzz/`, without a server.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

use dhttp::batch::{BATCH, Endpoints, Inbox, Outbox};
use dhttp_proto::ServerConfig;
use dhttp_proto::message::Request;

use super::datagrams::{self, arrive, request};
use super::network::client;
use super::server::{ServerKind, ServerProcesses};
use super::{scheduling, spread};

const DATAGRAMS: u64 = 1_000_000;
/// Position of the mark in an id.
const MARK: u8 = 0x80;

/// Results of a run.
#[derive(Default)]
struct RunResult {
    sent_bytes: u64,
    requests: u64,
    responses: u64,
    response_bytes: u64,
    /// Responses to invalid requests.
    wrong: u64,
}

/// Prints the result.
pub(crate) fn compare(servers: &ServerProcesses) {
    let Some(server) = servers.get(ServerKind::Ours) else { return };
    let once = || {
        let look = || scheduling::time_of_server(server.process);
        let mut before = look();
        let responses = datagrams::run(datagrams::Load::Known, server.address, || before = look());
        responses as f64 / (look() - before).as_secs_f64()
    };
    let speed = || spread((0..5).map(|_| once()).collect()).0;
    let first = speed();
    let before = scheduling::time_of_server(server.process);
    let RunResult { sent_bytes, requests, responses, response_bytes, wrong } = mutate(server.address);
    let spent = scheduling::time_of_server(server.process) - before;
    println!(
        "{DATAGRAMS} mutated datagrams, {requests} of them still requests: {responses} answered, {wrong} of what is no \
         request, {:.2} bytes for each that came, {:.2} microseconds each",
        response_bytes as f64 / sent_bytes as f64,
        spent.as_secs_f64() * 1e6 / DATAGRAMS as f64
    );
    println!("responses per second of CPU time: {first:.0} before, {:.0} after", speed());
}

fn mutate(server: SocketAddr) -> RunResult {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a free port");
    socket.set_nonblocking(true).expect("it is a socket");
    dhttp::batch::prepare(&socket);
    let (mut inbox, mut outbox) = (Inbox::default(), Outbox::default());
    let (mut reported, mut draw) = (RunResult::default(), Xorshift(0x9e37_79b9_7f4a_7c15));
    let seed = request(b"small.txt", "DHTTP-Token: 00\r\nAccept-Encoding: br\r\nRange: bytes=0-9\r\n");
    let limits = ServerConfig::internet().limits;
    for number in 0..DATAGRAMS {
        let mut datagram = seed.clone();
        for _ in 0..1 + draw.below(3) {
            let index = draw.below(datagram.len());
            match draw.below(4) {
                0 => datagram[index] ^= 1 << draw.below(8),
                1 => datagram.truncate(index.max(1)),
                2 => datagram.insert(index, draw.byte()),
                _ => datagram[index] = b"\r\n: \0/"[draw.below(6)],
            }
        }
        let is_request = Request::read(&datagram, &limits).is_ok();
        if let Some(first) = datagram.first_mut() {
            *first = if is_request { *first & !MARK } else { *first | MARK };
        }
        reported.sent_bytes += datagram.len() as u64;
        reported.requests += u64::from(is_request);
        let [.., middle, low] = number.to_be_bytes();
        let local = client(server, [20 + draw.byte() % 180, middle, low.clamp(1, 254)]);
        outbox.slot(Endpoints { peer: server, local: Some(local) }).extend_from_slice(&datagram);
        if outbox.len() == BATCH {
            outbox.send(&socket);
            arrive(&socket);
            take(&socket, &mut inbox, &mut reported);
        }
    }
    outbox.send(&socket);
    arrive(&socket);
    take(&socket, &mut inbox, &mut reported);
    reported
}

fn take(socket: &UdpSocket, inbox: &mut Inbox, reported: &mut RunResult) {
    while inbox.receive(socket).is_ok() {
        for index in 0..inbox.len() {
            let Some((_, response)) = inbox.datagram(index) else { continue };
            reported.responses += 1;
            reported.response_bytes += response.len() as u64;
            reported.wrong += u64::from(response.first().is_none_or(|first| first & MARK != 0));
        }
    }
}

/// Random number generator (xorshift64): any reproducible sequence suffices.
struct Xorshift(u64);

impl Xorshift {
    fn below(&mut self, max: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap_or(0) % max.max(1)
    }

    fn byte(&mut self) -> u8 {
        u8::try_from(self.below(256)).unwrap_or(0)
    }
}
