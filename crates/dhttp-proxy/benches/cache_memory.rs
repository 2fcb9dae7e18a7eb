//! Memory that a cache needs for each of a million small responses beyond their contents: key, fields and body.
//!
//! `cargo bench -p roundtrip-dhttp-proxy --bench cache_memory`. It compares the resident memory of this process before and
//! after, which includes what the allocator and the kernel round up. Time is not measured.

mod origin;

use dhttp::{Handler, Request};
use http1::message::{Method, RequestHead, Version};
use origin::{Origin, fields};
use roundtrip_dhttp_proxy::{Cache, CacheConfig};
use wire::Time;

const OBJECTS: u64 = 1_000_000;
/// `1x1.gif` and the like.
const BODY_BYTES: usize = 100;
/// Number of concurrent requests.
const AT_ONCE: u64 = 1_000;
const LINES: [(&str, &str); 4] = [
    ("Date", "Sat, 21 Nov 2026 12:00:00 GMT"),
    ("Content-Type", "image/gif"),
    ("Cache-Control", "max-age=86400"),
    ("ETag", "\"0123456789abcdef\""),
];

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().expect("a runtime");
    let config = CacheConfig { memory: 4 << 30, ..CacheConfig::default() };
    let origin = Origin { lines: &LINES, body: vec![7; BODY_BYTES] };
    let mut cache = Cache::new(origin, config, runtime.handle().clone()).expect("random bytes");
    let metrics = cache.metrics();
    let stored = || {
        let text = metrics();
        let line = text.lines().find_map(|line| line.strip_prefix("roundtrip_cache_objects ")).unwrap_or("0");
        line.parse::<u64>().expect("a number")
    };
    // The first response pays for one-time allocations.
    send_request(&mut cache, 0);
    while stored() < 1 {
        std::thread::yield_now();
    }
    let before = resident();
    let mut content = 0;
    for number in 1..=OBJECTS {
        content += send_request(&mut cache, number);
        while number.is_multiple_of(AT_ONCE) && stored() <= number {
            std::thread::yield_now();
        }
    }
    let growth = resident() - before;
    let each = |bytes: u64| bytes as f64 / OBJECTS as f64;
    println!("{OBJECTS} responses: {:.1} bytes of content each", each(content));
    println!("resident memory: {:.1} bytes each", each(growth));
    let overhead = each(growth) - each(content);
    let verdict = if overhead <= 150.0 { "reached" } else { "missed" };
    println!("overhead: {overhead:.1} bytes each; target: at most 150: {verdict}");
}

/// Requests an object; returns the bytes of its key, fields and body.
fn send_request(cache: &mut Cache<Origin>, number: u64) -> u64 {
    let target = format!("/images/{number:07}.gif");
    let fields = fields(&[("Host", "www.example.org")]);
    let head = RequestHead { method: Method::Get, target, version: Version::Http11, fields };
    // The response itself is not needed.
    drop(cache.respond(Time::ZERO, &Request::of_connection(&head, &[])));
    let lines: usize = LINES.iter().map(|(name, value)| name.len() + value.len() + ": \r\n".len()).sum();
    ("www.example.org ".len() + head.target.len() + lines + BODY_BYTES) as u64
}

/// Resident memory of this process, in bytes (proc(5)).
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line VmRSS");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1_024
}
