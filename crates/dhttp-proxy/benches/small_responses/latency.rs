//! Response time of an otherwise idle server, compared with a datagram reflector, over the loopback interface. The network's
//! time is not included.
//!
//! Both get two thousand requests in turn, so that disturbances affect both. Both servers and the client run at real-time
//! priority where that is allowed, so that a busy host measures as an idle one; the remaining noise of other programs,
//! interrupts and the hypervisor is in both.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use super::datagrams::{padding, request, token};
use super::network::Network;
use super::server::{ServedDirectory, ServerKind, ServerProcess};
use super::{now, scheduling, spread};

/// Requests of a turn, to one server.
const TOGETHER: usize = 2_000;
/// Turns of a round, for each server.
const TURNS: usize = 10;
/// Timeout: a later response is retried, and not counted.
const LOST: Duration = Duration::from_millis(200);

/// Median and 99.9th percentile of one server in one round, in microseconds.
type Percentiles = [f64; 2];

/// Prints percentiles of both, and their differences.
pub(crate) fn compare(directory: &ServedDirectory, rounds: usize) {
    let is_first = scheduling::raise_priority();
    let [reflector, ours] = [ServerKind::Reflector, ServerKind::Ours]
        .map(|kind| ServerProcess::start(kind, &Network::Loopback, directory));
    let (Some(reflector), Some(ours)) = (reflector, ours) else { return };
    let mut clients = [ReturningClient::new(reflector.address), ReturningClient::new(ours.address)];
    let rounds: Vec<[Percentiles; 2]> = (0..rounds).map(|_| round(&mut clients)).collect();
    scheduling::restore_priority();
    let moment = if is_first { "before all other programs" } else { "among other programs" };
    println!("\nunloaded, microseconds, {moment}: medians of {} rounds, minimum and maximum\n", rounds.len());
    println!("| | p50 | min | max | p99.9 | min | max |");
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: |");
    for (name, which) in [("reflector", 0), ("ours, DHTTP", 1)] {
        print_row(name, |index| spread(rounds.iter().map(|round| round[which][index]).collect()));
    }
    let difference =
        |index: usize| spread(rounds.iter().map(|round| round[1][index] - round[0][index]).collect());
    print_row("more", difference);
    for (index, name, requested) in [(0, "p50", 2.0), (1, "p99.9", 15.0)] {
        let (measured, ..) = difference(index);
        let verdict = if measured <= requested { "reached" } else { "missed" };
        println!("{name}: target: at most {requested} microseconds more; measured: {measured:.1}: {verdict}");
    }
}

fn print_row(name: &str, of: impl Fn(usize) -> (f64, f64, f64)) {
    let ((half, half_least, half_most), (max, most_least, most_most)) = (of(0), of(1));
    println!(
        "| {name} | {half:.1} | {half_least:.1} | {half_most:.1} | {max:.1} | {most_least:.1} | {most_most:.1} |"
    );
}

fn round(clients: &mut [ReturningClient; 2]) -> [Percentiles; 2] {
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..TURNS {
        for (clients, times) in clients.iter_mut().zip(&mut times) {
            times.extend((0..TOGETHER).map(|_| clients.send_request()));
            pause_for_throttling();
        }
    }
    times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        [times[times.len() / 2], times[times.len() - 1 - times.len() / 1_000]]
    })
}

/// Pauses, so that real-time priority leaves CPU time to others, before the kernel throttles it.
#[expect(clippy::disallowed_methods, reason = "there is nothing to be waited for")]
fn pause_for_throttling() {
    std::thread::sleep(Duration::from_millis(10));
}

/// A returning client.
struct ReturningClient {
    socket: UdpSocket,
    request: Vec<u8>,
    buffer: [u8; 2_048],
    requested: u64,
}

impl ReturningClient {
    fn new(server: SocketAddr) -> Self {
        let socket = UdpSocket::bind((server.ip(), 0)).expect("a free port");
        socket.connect(server).expect("it is an address");
        socket.set_nonblocking(true).expect("it is a socket");
        let first = request(b"small.txt", &padding());
        let mut clients = Self { socket, request: first, buffer: [0; 2_048], requested: 0 };
        clients.send_request();
        if let Some(token) = token(&clients.buffer) {
            clients.request = request(b"small.txt", &token);
        }
        clients
    }

    /// Returns the response time of a request, in microseconds.
    fn send_request(&mut self) -> f64 {
        loop {
            self.requested += 1;
            self.request[..8].copy_from_slice(&self.requested.to_be_bytes());
            // A late response to an earlier request must not be taken for this one's.
            while self.socket.recv(&mut self.buffer).is_ok() {}
            let started = now();
            self.socket.send(&self.request).expect("it is connected");
            while started.elapsed() < LOST {
                if self.socket.recv(&mut self.buffer).is_ok() {
                    return started.elapsed().as_secs_f64() * 1e6;
                }
            }
        }
    }
}
