//! How long a server takes that has nothing else to do, beside one that only reflects. Not the network's time.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

use super::datagrams::{padding, request, token};
use super::now;
use super::server::{Kind, Running};

const REQUESTS: usize = 20_000;

/// Prints percentiles of both.
pub(crate) fn compare(servers: &Running, rounds: usize) {
    let both = [Kind::Reflector, Kind::Ours].map(|kind| servers.get(kind));
    let [Some(reflector), Some(ours)] = both else { return };
    let (mut theirs, mut mine) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        theirs.push(percentiles(reflector.address));
        mine.push(percentiles(ours.address));
    }
    for (name, mut all) in [("reflector", theirs), ("ours, DHTTP", mine)] {
        let mut median = |index: usize| {
            all.sort_by(|one, other| one[index].total_cmp(&other[index]));
            (all[all.len() / 2][index], all[0][index], all[all.len() - 1][index])
        };
        let [half, most] = [median(0), median(1)];
        println!(
            "unloaded, microseconds, {name}: p50 {:.1} ({:.1} to {:.1}), p99.9 {:.1} ({:.1} to {:.1})",
            half.0, half.1, half.2, most.0, most.1, most.2
        );
    }
}

/// The median and the 99.9th, in microseconds.
fn percentiles(server: SocketAddr) -> [f64; 2] {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a free port");
    socket.connect(server).expect("it is an address");
    socket.set_nonblocking(true).expect("it is a socket");
    let mut room = [0; 2_048];
    let first = request(b"small.txt", &padding());
    let (_, length) = ask(&socket, &first, &mut room);
    let mut request = token(&room[..length]).map_or(first, |token| request(b"small.txt", &token));
    let mut times: Vec<f64> = (0..REQUESTS as u64)
        .map(|number| {
            request[..8].copy_from_slice(&(number << 8).to_be_bytes());
            ask(&socket, &request, &mut room).0
        })
        .collect();
    times.sort_by(f64::total_cmp);
    [times[REQUESTS / 2], times[REQUESTS - REQUESTS / 1_000]]
}

fn ask(socket: &UdpSocket, request: &[u8], room: &mut [u8]) -> (f64, usize) {
    let started = now();
    loop {
        socket.send(request).expect("it is connected");
        // A lost one is asked for again.
        for _ in 0..1_000_000 {
            if let Ok(length) = socket.recv(room) {
                return (started.elapsed().as_secs_f64() * 1e6, length);
            }
        }
    }
}
