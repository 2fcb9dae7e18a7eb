//! Many hosts inside that send requests at a rate: a host of another network inside still gets its responses.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::lab::{Lab, SERVER, available, inside, sh};
use super::outside::{counter, request};
use super::translation;

/// Network of the attackers, inside behind the client's host, whose own addresses are in another /16.
const CROWD: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 0);
/// Addresses of the attackers, from which they send in turn.
const ATTACKERS: u32 = 10_000;
/// Requests that they send in a turn, and the pause after it: a thousand a second.
const TURN: (u32, Duration) = (10, Duration::from_millis(10));
/// Pause between two requests of the measured host.
const PAUSE: Duration = Duration::from_millis(50);
/// `Host` of its requests, the only ones to which the server responds.
const OTHER_HOST: &str = "other";

/// Responds to the measured host, and to no attacker: their mappings stay in use.
fn respond(stop: &AtomicBool) {
    let socket = UdpSocket::bind((SERVER, 80)).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let mut datagram = [0; 2_048];
    while !stop.load(Ordering::Acquire) {
        let Ok((length, from)) = socket.recv_from(&mut datagram) else { continue };
        let text = String::from_utf8_lossy(&datagram[..length]);
        if text.contains(&format!("Host: {OTHER_HOST}\r\n")) {
            let response = [&datagram[..8], b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"].concat();
            let _ = socket.send_to(&response, from);
        }
    }
}

/// Sends requests from one port, as a program does; returns the times until their responses.
#[expect(clippy::disallowed_methods, reason = "a measurement, run by hand")]
fn measure(from: &'static str, count: u64) -> Vec<Duration> {
    let socket = UdpSocket::bind((from, 0)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let latency = |id: u64| {
        std::thread::park_timeout(PAUSE);
        let sent = Instant::now();
        let _ = socket.send_to(&request(id, OTHER_HOST), (SERVER, 80));
        let mut response = [0; 64];
        while !response.starts_with(&id.to_be_bytes()) {
            // Those that came too late are not counted.
            socket.recv(&mut response).ok()?;
        }
        Some(sent.elapsed())
    };
    (1..=count).filter_map(latency).collect()
}

/// Sends requests from one address after the other until `stop`.
fn attack(stop: &AtomicBool) {
    let (turn, pause) = TURN;
    for first in (0..ATTACKERS).step_by(turn as usize).cycle() {
        for number in first..first + turn {
            let from = SocketAddr::from((Ipv4Addr::from_bits(CROWD.to_bits() + number), 0));
            let socket = UdpSocket::bind(from).unwrap();
            let _ = socket.send_to(&request(u64::from(number), "h"), (SERVER, 80));
        }
        if stop.load(Ordering::Acquire) {
            return;
        }
        std::thread::park_timeout(pause);
    }
}

fn median(mut latencies: Vec<Duration>) -> Option<Duration> {
    latencies.sort_unstable();
    latencies.get(latencies.len() / 2).copied()
}

/// Attacks for some time, and checks that nine of ten requests of the measured host get their responses meanwhile.
fn others_are_served(lead: Duration, count: u64) {
    if !available() {
        return;
    }
    let lab = Lab::new();
    lab.rules(&translation("port-restricted"));
    sh(&lab.client, &format!("ip route add local {CROWD}/16 dev lo"));
    sh(&lab.router, &format!("ip route add {CROWD}/16 via 10.0.0.2"));
    let _nat = lab.nat(&["--metrics", "127.0.0.1:9107"]);
    let stop = Arc::new(AtomicBool::new(false));
    let [server, attackers] = [&stop, &stop].map(Arc::clone);
    let server = lab.world.start(move || respond(&server));
    let alone = inside(&lab.client, move || measure("10.0.0.3", count));
    // A thread of its own: the namespace's runs one job after the other.
    let attackers = inside(&lab.client, || std::thread::spawn(move || attack(&attackers)));
    std::thread::park_timeout(lead);
    let attacked = inside(&lab.client, move || measure("10.0.0.3", count));
    let mappings = counter(&lab, 9_107, "roundtrip_nat_mappings");
    stop.store(true, Ordering::Release);
    attackers.join().unwrap();
    server.wait().unwrap();
    println!(
        "{mappings} mappings; another host: {} of {count} alone, median {:?}; {} of {count} under attack, median {:?}",
        alone.len(),
        median(alone.clone()),
        attacked.len(),
        median(attacked.clone()),
    );
    // Three quarters of 4,096 are what a /16 may have.
    assert!((500..=3_072 + count).contains(&mappings), "{mappings}");
    assert!(attacked.len() as u64 >= count * 9 / 10, "{} of {count}", attacked.len());
}

#[test]
fn a_crowd_inside_leaves_the_helper_to_a_host_of_another_network() {
    others_are_served(Duration::from_secs(2), 20);
}

#[test]
#[ignore = "a measurement, in docs/security.md: cargo test --release -p roundtrip --test it -- --ignored --nocapture a_crowd_inside"]
fn a_crowd_inside_that_has_all_its_mappings_leaves_some_to_a_host_of_another_network() {
    others_are_served(Duration::from_secs(6), 120);
}
