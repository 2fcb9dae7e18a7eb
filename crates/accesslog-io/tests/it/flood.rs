//! Logs with more requests in one second than are buffered: counted as by one counter, in bounded memory.

use std::fmt::Write;
use std::fs;

use accesslog::connections::{Counter, Counts, Query, Rule};
use accesslog::{ClientDefinition, Format, Reader, Sizing};
use roundtrip_accesslog_io::options::ConnectionsOptions;
use roundtrip_accesslog_io::{Error, count, input};
use wire::{Bytes, Duration};

fn query() -> Query {
    let timeouts = [1, 15, 3_600].map(Duration::from_secs);
    Query::new(&timeouts, &[1, 3], &[Bytes::ZERO, Bytes::new(1_000)], timeouts[1]).unwrap()
}

/// Appends requests of `clients` clients at this second after 10 o'clock.
fn append(log: &mut String, second: u64, requests: usize, clients: usize) {
    let (hour, minute, second) = (10 + second / 3_600, second / 60 % 60, second % 60);
    for number in 0..requests {
        let client = number * number % clients;
        let bytes = number % 3 * 800;
        writeln!(
            log,
            "10.{}.{}.{} - - [22/Nov/2026:{hour:02}:{minute:02}:{second:02} +0000] \"GET / HTTP/1.1\" 200 {bytes}",
            client >> 16,
            client >> 8 & 255,
            client & 255
        )
        .unwrap();
    }
}

fn whole(log: &str) -> Counts {
    let mut requests = Vec::new();
    let reader =
        Reader::new(Format::named("clf", &ClientDefinition::default()).unwrap(), ClientDefinition::default());
    reader.clone().read(log.as_bytes(), |record| requests.extend(Sizing::default().request(&record)));
    let mut counter = Counter::new(&query());
    counter.count(&requests);
    counter.finish()
}

fn counted(name: &str, log: &str) -> Result<Counts, Error> {
    counted_with(name, log, &ConnectionsOptions::of(query()))
}

fn counted_with(name: &str, log: &str, options: &ConnectionsOptions) -> Result<Counts, Error> {
    let path = std::env::temp_dir().join(format!("roundtrip-flood-{}-{name}.log", std::process::id()));
    fs::write(&path, log).unwrap();
    let result = count(input::named(std::slice::from_ref(&path)).unwrap(), options);
    fs::remove_file(&path).unwrap();
    Ok(result?.passed.counts)
}

#[test]
fn a_flood_in_one_second_is_counted_like_any_other_log() {
    let mut log = String::new();
    (0..50).for_each(|second| append(&mut log, second, 200, 90));
    append(&mut log, 50, 700_000, 70_000);
    (51..90).for_each(|second| append(&mut log, second, 200, 90));
    // After the longest timeout slices are counted independently again.
    (7_000..7_010).for_each(|second| append(&mut log, second, 30_000, 900));
    assert_eq!(counted("whole", &log).unwrap(), whole(&log));
}

#[test]
fn clients_beyond_the_memory_limit_end_the_count() {
    const LIMIT: usize = 1 << 20;
    let mut log = String::new();
    append(&mut log, 0, 60_000, 59_999);
    let counters = [(Rule::default(), false), (Rule::default(), true), (Rule::FirstCreated, false)];
    for (number, (rule, distribution)) in counters.into_iter().enumerate() {
        let options = |memory| ConnectionsOptions {
            memory,
            distribution,
            ..ConnectionsOptions::of(query().under(rule, false))
        };
        let name = format!("limit-{number}");
        let refused = counted_with(&name, &log, &options(LIMIT));
        assert!(matches!(refused, Err(Error::TooMuchMemory(_))), "{name}: {refused:?}");
        assert!(counted_with(&name, &log, &options(1 << 30)).is_ok(), "{name}");
    }
}

#[test]
fn fractions_of_seconds_after_such_a_flood_are_refused_by_name() {
    let mut json = String::new();
    for number in 0..700_000 {
        writeln!(
            json,
            "{{\"time\":1800000000,\"remote_addr\":\"10.0.0.{}\",\"status\":200,\"body_bytes_sent\":1}}",
            number % 200
        )
        .unwrap();
    }
    for _ in 0..150_000 {
        json.push_str(
            "{\"time\":1800000001.5,\"remote_addr\":\"10.0.0.1\",\"status\":200,\"body_bytes_sent\":1}\n",
        );
    }
    let refused = counted("mixed", &json);
    assert!(matches!(refused, Err(Error::MixedTimes)), "{refused:?}");
}
