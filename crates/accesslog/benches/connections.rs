//! Speed of counting connections from an access log: `cargo bench -p roundtrip-accesslog --bench connections`.
//!
//! One thread, from memory: a synthetic hour of a busy server in Common Log Format, three thresholds, two
//! limits. Prints medians of CPU time, so that other load on the host matters less. Not a test: no test fails
//! by its timings.

use std::hint::black_box;

use roundtrip_accesslog::connections::{Counter, PriorFacts, Query, Rule, RuleCounter, TimeUnit};
use roundtrip_accesslog::{Client, ClientDefinition, Format, Reader, Request, Sizing};
use wire::{Bytes, Duration, Seed, Time};

const LINES: u32 = 2_000_000;
const SECONDS: u64 = 3_600;
const ROUNDS: usize = 7;
/// Bytes that are parsed and counted in one step, so that parsed requests are still in the CPU's cache when
/// counted.
const PIECE: usize = 256 << 10;

fn main() {
    let log = log();
    let requests = read(&log);
    println!("{} lines, {} bytes each", LINES, log.len() / requests.len());
    print("read alone", LINES, || {
        let mut bytes = 0;
        Reader::new(Format::Clf, ClientDefinition::default())
            .read(&log, |record| bytes += record.size.map_or(0, Bytes::get));
        black_box(bytes);
    });
    for timeouts in [1, 20, 100] {
        let query = query(timeouts);
        print(&format!("count alone, {timeouts} time-outs"), LINES, || {
            let mut counter = counter(&query, &requests);
            counter.count(&requests);
            black_box(counter.finish());
        });
        print(&format!("read and count, {timeouts} time-outs"), LINES, || {
            black_box(read_and_count(&log, &query));
        });
    }
    let thin = thin();
    for timeouts in [1, 20, 100] {
        let query = query(timeouts);
        print(&format!("count alone, thin, {timeouts} time-outs"), LINES, || {
            let mut counter = counter(&query, &thin);
            counter.count(&thin);
            black_box(counter.finish());
        });
    }
    let few = &requests[..20_000];
    let query = query(20).under(Rule::FirstCreated, false);
    print("count by rule, 20 time-outs", 20_000, || {
        let mut counter = RuleCounter::new(&query);
        counter.count(few);
        black_box(counter.finish());
    });
}

fn query(timeouts: u64) -> Query {
    let timeouts: Vec<Duration> =
        (1..=timeouts).map(|number| Duration::from_millis(number * 60_000 / timeouts)).collect();
    let thresholds = [0, 1_460, 4_096].map(Bytes::new);
    Query::new(&timeouts, &[1, 3], &thresholds, Duration::from_secs(15)).expect("a valid query")
}

fn read(log: &[u8]) -> Vec<Request> {
    let mut requests = Vec::new();
    let sizing = Sizing::default();
    Reader::new(Format::Clf, ClientDefinition::default())
        .read(log, |record| requests.extend(sizing.request(&record)));
    requests
}

fn read_and_count(log: &[u8], query: &Query) -> u64 {
    let mut reader = Reader::new(Format::Clf, ClientDefinition::default());
    let mut counter = None;
    let mut requests = Vec::new();
    let mut rest = log;
    let sizing = Sizing::default();
    while !rest.is_empty() {
        let end =
            rest.iter().skip(PIECE).position(|byte| *byte == b'\n').map_or(rest.len(), |end| PIECE + end + 1);
        let (piece, after) = rest.split_at(end);
        rest = after;
        requests.clear();
        reader.read(piece, |record| {
            if let Some(request) = sizing.request(&record) {
                requests.push(request);
            }
        });
        counter.get_or_insert_with(|| self::counter(query, &requests)).count(&requests);
    }
    counter.expect("there are lines").finish().requests
}

fn counter(query: &Query, requests: &[Request]) -> Counter {
    Counter::with_prior_facts(query, &PriorFacts::default(), TimeUnit::of(std::iter::once(requests), query))
}

/// A log in order of time. Each client sends bursts of requests and leaves. Sizes are around 3 kB, a quarter
/// are 0.
fn log() -> Vec<u8> {
    let mut random = Seed::default().stream("bench", 0);
    let mut text = String::new();
    for number in 0..u64::from(LINES) {
        let second = number * SECONDS / u64::from(LINES);
        let visitor = number / 40 + random.up_to(2_000);
        let size = if random.up_to(3) == 0 { 0 } else { 1 << random.up_to(15) | random.up_to(500) };
        text += &format!(
            "10.{}.{}.{} - - [01/Aug/1995:14:{:02}:{:02} -0400] \"GET /shuttle/missions/{}.html HTTP/1.0\" {} {size}\n",
            visitor >> 16,
            visitor >> 8 & 255,
            visitor & 255,
            second / 60,
            second % 60,
            random.up_to(1 << 40),
            if size == 0 { 304 } else { 200 },
        );
    }
    text.into_bytes()
}

/// Thirteen requests a second on average, more by day than by night: visits of eight requests within 20 s.
fn thin() -> Vec<Request> {
    let mut random = Seed::default().stream("thin", 0);
    let mut requests = Vec::new();
    for second in 0_u64.. {
        let busy = 1 + (second / 3_600).abs_diff(36) / 3;
        for _ in 0..random.up_to(busy / 2) {
            let client = Client::from_bits(random.next_u64());
            for _ in 0..8 {
                let time = Time::from_nanos((second + random.up_to(20)) * 1_000_000_000);
                let size = if random.up_to(3) == 0 { 0 } else { 1 << random.up_to(15) | random.up_to(500) };
                requests.push(Request { time, client, bytes: Bytes::new(size), taken: Duration::ZERO });
            }
        }
        if requests.len() >= LINES as usize {
            break;
        }
    }
    requests.sort_by_key(|request| request.time);
    requests.truncate(LINES as usize);
    requests
}

fn print(name: &str, lines: u32, mut work: impl FnMut()) {
    let mut nanos: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let started = spent_nanos();
            work();
            (spent_nanos() - started) / f64::from(lines)
        })
        .collect();
    nanos.sort_by(f64::total_cmp);
    let median = nanos[ROUNDS / 2];
    println!("{name:32} {median:8.1} ns a line {:7.2} M lines/s", 1e3 / median);
}

/// CPU time of this thread in nanoseconds (Linux: proc(5), `schedstat`).
fn spent_nanos() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux reports it");
    text.split(' ').next().and_then(|nanos| nanos.parse().ok()).expect("a number first")
}
