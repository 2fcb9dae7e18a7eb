//! The emulator between two real kernels: deliveries, their times, and its own report. Its lateness on an
//! idle host is measured by `benches/emulator.rs`; no test here depends on other load.

use crate::two_hosts;

use std::fs;
use std::net::UdpSocket;

use testbed::Error;
use testbed::emulator::{Options, Report, Running};
use two_hosts::TwoHosts;
use wire::link::{Config, Loss, QueueLimit};
use wire::{Bytes, Duration, Rate, Time};

/// Two hosts with a socket each, joined by the link.
fn joined(up: &Config, down: &Config, options: &Options) -> (TwoHosts, Running, [UdpSocket; 2]) {
    let (hosts, running) = TwoHosts::joined(up, down, options).unwrap();
    let sockets = hosts.sockets().unwrap();
    for socket in &sockets {
        socket.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
    }
    (hosts, running, sockets)
}

fn delayed_by(delay: Duration) -> Config {
    Config { delay, ..Config::default() }
}

#[test]
fn datagram_and_its_reply_each_take_the_link_delay() {
    if !test_fixture::has_laboratory() {
        return;
    }
    let (up, down) = (delayed_by(Duration::from_millis(20)), delayed_by(Duration::from_millis(5)));
    let (_hosts, running, [client, server]) = joined(&up, &down, &Options::default());
    let clock = running.clock();
    let mut buffer = [0; 100];

    let sent_at = clock.now();
    client.send(b"hello").unwrap();
    let length = server.recv(&mut buffer).unwrap();
    let received_at = clock.now();
    server.send(&buffer[..length]).unwrap();
    client.recv(&mut buffer).unwrap();
    let replied_at = clock.now();

    assert_eq!(&buffer[..5], b"hello");
    assert!(received_at.since(sent_at) >= up.delay, "early: {}", received_at.since(sent_at));
    assert!(replied_at.since(received_at) >= down.delay, "early: {}", replied_at.since(received_at));
    let report = running.stop().unwrap();
    let Report { up, down, lateness, .. } = &report;
    for traffic in [up, down] {
        assert_eq!((traffic.link.delivered.packets, traffic.link.delivered.bytes.get()), (1, 33));
        assert_eq!((traffic.payload, traffic.lost_in_device), (Bytes::new(5), 0));
    }
    assert_eq!(lateness.count(), 2);
}

#[test]
fn the_second_of_two_datagrams_waits_for_the_first_to_be_sent() {
    if !test_fixture::has_laboratory() {
        return;
    }
    // 128 bytes with headers: 10.24 ms each.
    let up = Config { rate: Rate::from_bits_per_second(100_000), ..Config::default() };
    let (_hosts, running, [client, server]) = joined(&up, &Config::default(), &Options::default());
    let clock = running.clock();
    let sent = clock.now();
    for _ in 0..2 {
        client.send(&[7; 100]).unwrap();
    }
    let mut arrived = [Time::ZERO; 2];
    for time in &mut arrived {
        server.recv(&mut [0; 200]).unwrap();
        *time = clock.now();
    }
    assert!(arrived[0].since(sent) >= Duration::from_micros(10_240));
    assert!(arrived[1].since(sent) >= Duration::from_micros(20_480));
    running.stop().unwrap();
}

#[test]
fn capture_shows_both_ends_and_the_losses_between() {
    if !test_fixture::has_laboratory() {
        return;
    }
    let up = Config {
        loss: Loss::Exactly([2].into()),
        queue: QueueLimit { packets: Some(10), ..QueueLimit::default() },
        ..Config::default()
    };
    let options = Options { capture: Some(Bytes::new(1 << 20)), ..Options::default() };
    let (_hosts, running, [client, server]) = joined(&up, &Config::default(), &options);
    for number in 1..=3 {
        client.send(&[number]).unwrap();
    }
    let mut buffer = [0; 10];
    for expected in [1, 3] {
        server.recv(&mut buffer).unwrap();
        assert_eq!(buffer[0], expected);
    }
    let report = running.stop().unwrap();
    assert_eq!((report.up.link.lost.packets, report.up.link.delivered.packets), (1, 2));
    let capture = report.capture.expect("a capture was requested");
    assert_eq!((capture.len(), capture.missed()), (5, 0));

    let path = std::env::temp_dir().join(format!("roundtrip-emulator-{}.pcapng", std::process::id()));
    capture.save(&path, "three datagrams, the second lost").unwrap();
    let written = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let contains = |text: &str| written.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(
        contains("lost on the link")
            && contains("client")
            && contains("server")
            && contains("three datagrams")
    );
}

#[test]
fn an_interface_that_goes_down_ends_the_run_with_an_error() {
    if !test_fixture::has_laboratory() {
        return;
    }
    let (hosts, running, [client, _server]) =
        joined(&Config::default(), &Config::default(), &Options::default());
    drop(hosts.server);
    client.send(b"anyone?").unwrap();
    // Whether the kernel has removed the interface by then is undefined: an error, or a report.
    match running.stop() {
        Ok(report) => assert!(report.up.link.offered.packets <= 1),
        Err(error) => assert!(matches!(error, Error::Kernel { .. }), "{error}"),
    }
}

#[test]
fn dropped_emulator_removes_its_interfaces() {
    if !test_fixture::has_laboratory() {
        return;
    }
    let (hosts, running) =
        TwoHosts::joined(&Config::default(), &Config::default(), &Options::default()).unwrap();
    let count = || fs::read_to_string("/proc/thread-self/net/dev").unwrap().lines().count();
    let before = hosts.client.start(count).wait().unwrap();
    drop(running);
    assert_eq!(hosts.client.start(count).wait().unwrap(), before - 1);
}

#[test]
fn an_impossible_link_is_refused_before_anything_starts() {
    if !test_fixture::has_laboratory() {
        return;
    }
    let impossible = Config { framing: 1_000_000, ..Config::default() };
    let refused = TwoHosts::joined(&impossible, &Config::default(), &Options::default());
    let reported = refused.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(reported.contains("framing of 1000000 bytes"), "{reported}");
}
