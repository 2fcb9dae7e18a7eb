//! Speed of parsing log lines: `cargo bench -p roundtrip-accesslog --bench lines`.
//!
//! One thread, from memory, a synthetic hour of a busy server. Prints medians of CPU time, so that other
//! load on the host matters less. Not a test: no test fails by its timings.

use std::hint::black_box;

use roundtrip_accesslog::{ClientDefinition, Reader, Sizing, recognise};
use wire::Seed;

const LINES: u32 = 1_000_000;
const ROUNDS: usize = 7;

fn main() {
    let tail = r#" "http://www.example.com/" "Mozilla/5.0 (X11; Linux x86_64; rv:109.0) Gecko/20100101 Firefox/115.0""#;
    print(
        "Common",
        &log(|client, clock, path, size| {
            format!(
                "{client} - - [01/Aug/1995:{clock} -0400] \"GET /shuttle/missions/{path}.html HTTP/1.0\" 200 {size}\n"
            )
        }),
    );
    print(
        "Combined",
        &log(|client, clock, path, size| {
            format!(
                "{client} - - [01/Aug/1995:{clock} -0400] \"GET /shuttle/{path}.html HTTP/1.0\" 200 {size}{tail}\n"
            )
        }),
    );
    print(
        "JSON lines",
        &log(|client, clock, path, size| {
            format!(
                "{{\"remote_addr\":\"{client}\",\"time_iso8601\":\"1995-08-01T{clock}-04:00\",\"request\":\"GET /{path} HTTP/1.1\",\"status\":200,\"body_bytes_sent\":{size}}}\n"
            )
        }),
    );
}

/// Lines in order of time, from a few thousand clients.
fn log(line: impl Fn(String, String, u64, u64) -> String) -> Vec<u8> {
    let mut random = Seed::default().stream("bench", 0);
    let mut text = String::new();
    for number in 0..LINES {
        let second = u64::from(number) * 3_600 / u64::from(LINES);
        let client = format!("10.{}.{}.{}", random.up_to(3), random.up_to(31), random.up_to(31));
        let clock = format!("14:{:02}:{:02}", second / 60, second % 60);
        text += &line(client, clock, random.up_to(1 << 40), random.up_to(1 << 16));
    }
    text.into_bytes()
}

fn print(name: &str, log: &[u8]) {
    let format = recognise(log, &ClientDefinition::default()).expect("a log");
    let mut nanos: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let mut reader = Reader::new(format.clone(), ClientDefinition::default());
            let mut bytes = 0_u64;
            let started = spent_nanos();
            let tally = reader.read(log, |record| {
                let request = Sizing::default().request(&record).expect("every line has a size");
                bytes = bytes.wrapping_add(request.bytes.get() ^ request.client.bits());
            });
            let spent = spent_nanos() - started;
            black_box(bytes);
            assert_eq!(tally.records, u64::from(LINES), "every line is read");
            spent / f64::from(LINES)
        })
        .collect();
    nanos.sort_by(f64::total_cmp);
    let median = nanos[ROUNDS / 2];
    let length = log.len() / usize::try_from(LINES).expect("a million");
    println!("{name:12} {length:4} bytes a line {median:7.1} ns a line {:7.1} M lines/s", 1e3 / median);
}

/// CPU time of this thread in nanoseconds (Linux: proc(5), `schedstat`).
fn spent_nanos() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux reports it");
    text.split(' ').next().and_then(|nanos| nanos.parse().ok()).expect("a number first")
}
