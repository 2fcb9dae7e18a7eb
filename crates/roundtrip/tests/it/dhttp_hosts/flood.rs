//! Many spoofed sources: the share of each network, service for all other clients, and the server's memory.
//!
//! Speeds are not judged.

use std::process::{Command, Stdio};

use linux::clock::Clock;
use wire::Time;

use test_fixture::has_laboratory;

use super::host::{Host, SentPacket};
use super::{PORT, SERVER, SOON, address, fill, request, serve, token};
use test_fixture::KilledOnDrop;

/// Full responses, and fallback messages of eight bytes.
fn count(sent: &[SentPacket]) -> (usize, usize) {
    let fallbacks =
        sent.iter().filter(|sent| sent.datagram().is_some_and(|datagram| datagram.len() == 8)).count();
    (sent.len() - fallbacks, fallbacks)
}

#[test]
fn responses_without_tokens_are_limited_by_network_and_half_of_the_rest_fall_back() {
    if !has_laboratory() {
        return;
    }
    let host = Host::new("shares", SERVER);
    let server = serve(&host);
    let own = address([23, 0, 0, 1], 40_000);
    let token_field = token(&host, own, 0);
    // (number of addresses, number of requests, the share: docs/dhttp.md)
    for (network, addresses, share) in [(1, 1, 100_u16), (2, 200, 500), (3, 50_000, 2_000)] {
        let (clock, mut responses, mut fallback_count) = (Clock::start(), 0, 0);
        for id in 0..6_000_u32 {
            let [_, _, high, low] = (id % addresses).to_be_bytes();
            let source = address([60, network, high, low], 40_000);
            host.deliver_datagram(source, PORT, &request(id.into(), 0, 10, &fill(200)));
            if id % 16 == 15 {
                let (more, fallbacks) = count(&host.until_silent(1));
                (responses, fallback_count) = (responses + more, fallback_count + fallbacks);
            }
        }
        let (more, fallbacks) = count(&host.until_silent(SOON));
        (responses, fallback_count) = (responses + more, fallback_count + fallbacks);
        // The limit decays while requests arrive, by half of it in a second, which adds to the share.
        let elapsed = clock.now().since(Time::ZERO).as_secs_f64();
        let limit = f64::from(share) * (1.0 + elapsed);
        assert!(
            responses >= usize::from(share) && responses as f64 <= limit,
            "{responses} responses in {elapsed} seconds"
        );
        let limited = 6_000 - responses;
        assert!(
            fallback_count.abs_diff(limited / 2) <= 100,
            "{fallback_count} of {limited} got the fallback message"
        );
    }
    // Clients with a validated address and clients elsewhere are not affected.
    for id in 0..300 {
        host.deliver_datagram(own, PORT, &request(id, 0, 10, &token_field));
    }
    assert_eq!(count(&host.until_silent(SOON)), (300, 0));
    host.deliver_datagram(address([77, 0, 0, 1], 40_000), PORT, &request(1, 0, 10, &fill(200)));
    assert_eq!(count(&host.until_silent(SOON)), (1, 0));
    drop(server);
}

#[test]
fn spoofed_sources_leave_no_state() {
    spoofed(100_000);
}

/// Takes some minutes; the figure is in docs/security.md.
#[test]
#[ignore = "long evidence: cargo test --release -p roundtrip --test it -- --ignored --nocapture ten_million"]
fn ten_million_spoofed_sources_leave_nothing_behind() {
    spoofed(10_000_000);
}

fn spoofed(number: u32) {
    if !has_laboratory() {
        return;
    }
    let host = Host::new("sources", SERVER);
    let directory = std::env::temp_dir().join(format!("roundtrip-sources-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("index.html"), "<p>small</p>").unwrap();
    let server = start_server(&host, &directory);
    // Memory of the first use is allocated already: every counter of the limiter's table, capacity for many requests.
    let mut responses = flood(&host, 0..20_000);
    let before = resident_kib(&server);
    responses += flood(&host, 20_000..20_000 + number);
    let after = resident_kib(&server);
    println!("{number} spoofed sources, {responses} responses: {before} KiB before, {after} KiB after");
    drop(server);
    std::fs::remove_dir_all(&directory).unwrap();
    assert!(responses > number as usize / 10 * 9, "{responses}");
    assert!(after <= before + 256, "{before} KiB before, {after} KiB after");
}

/// Requests, each from another address of another network.
fn flood(host: &Host, numbers: std::ops::Range<u32>) -> usize {
    let mut responses = 0;
    let datagram = request(1, 0, 0, &fill(300));
    // The id is no text.
    let (header, http) = datagram.split_at(11);
    let datagram = [header, String::from_utf8_lossy(http).replace("/0 ", "/ ").as_bytes()].concat();
    for number in numbers {
        // An odd factor, so that no address repeats; addresses below 1.0.0.0 and above 223 are not used.
        let mixed = number.wrapping_mul(0x9e37_79b1);
        let [a, b, c, d] = mixed.to_be_bytes();
        let source = address([20 + a % 70, b, c, d], 40_000);
        host.deliver_datagram(source, PORT, &datagram);
        // No more packets in flight than the socket buffers hold.
        if number % 32 == 31 {
            responses += (0..32).map_while(|_| host.next(SOON)).count();
        }
    }
    responses
}

/// `roundtrip serve`, in a process of its own, so that its memory is measurable.
pub(crate) fn start_server(host: &Host, directory: &std::path::Path) -> KilledOnDrop {
    let address = host.socket(PORT).to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_roundtrip"));
    command.args(["serve", "--threads", "1", "--listen", &address]).arg(directory);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = host.run(move || command.spawn()).unwrap();
    let mut line = String::new();
    let mut reported = std::io::BufReader::new(child.stderr.take().unwrap());
    std::io::BufRead::read_line(&mut reported, &mut line).unwrap();
    assert!(line.contains("serving"), "{line}");
    KilledOnDrop(child)
}

/// Resident memory: pages of its program, too, are mapped on first use.
fn resident_kib(KilledOnDrop(child): &KilledOnDrop) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
