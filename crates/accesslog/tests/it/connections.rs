//! The single pass against a brute-force simulation that stores every connection in a list, and against itself
//! on a split log. Requests are synthetic; log parsers have their own tests.

use proptest::prelude::*;
use roundtrip_accesslog::connections::{
    ConnectionLoads, Counter, Counts, LoadCounter, PriorFacts, Query, Rule, RuleCounter, TimeUnit,
};
use roundtrip_accesslog::{Client, Request};
use wire::{Bytes, Duration, Time};

const TIMEOUTS_S: [u64; 6] = [0, 1, 2, 5, 15, 60];
const LIMITS: [usize; 3] = [1, 2, 3];
const THRESHOLDS: [u64; 3] = [0, 1_460, 4_096];

fn query() -> Query {
    let timeouts = TIMEOUTS_S.map(Duration::from_secs);
    Query::new(&timeouts, &LIMITS, &THRESHOLDS.map(Bytes::new), Duration::from_secs(15)).unwrap()
}

/// The paper's rule verbatim, for one timeout, limit and threshold: connections opened, maximum open, and its
/// time.
fn brute_force(requests: &[Request], timeout_ms: u64, limit: usize, threshold: u64) -> (u64, u64, Time) {
    let mut connections: Vec<(Client, u64)> = Vec::new();
    let (mut opened, mut peak, mut at) = (0, 0, Time::ZERO);
    for request in requests.iter().filter(|request| request.bytes.get() >= threshold) {
        let now = request.time.as_nanos() / 1_000_000;
        connections.retain(|(_, used)| used + timeout_ms >= now);
        let own = connections.iter().filter(|(client, _)| *client == request.client).count();
        if own < limit {
            opened += 1;
        } else {
            // In order of use: the client's first is its oldest.
            let oldest = connections.iter().position(|(client, _)| *client == request.client).unwrap();
            connections.remove(oldest);
        }
        connections.push((request.client, now));
        if connections.len() as u64 > peak {
            (peak, at) = (connections.len() as u64, request.time);
        }
    }
    (opened, peak, at)
}

fn assert_as_brute_force(counts: &Counts, requests: &[Request]) {
    assert_eq!(counts.requests, requests.len() as u64);
    for stream in &counts.streams {
        for line in &stream.lines {
            for opened in &line.opened {
                let timeout_ms = opened.timeout.as_nanos() / 1_000_000;
                let expected = brute_force(requests, timeout_ms, line.limit, stream.threshold.get());
                let found = (opened.total, opened.peak.connections, opened.peak.at);
                assert_eq!(
                    found, expected,
                    "{timeout_ms} ms, {} per client, {}",
                    line.limit, stream.threshold
                );
            }
        }
    }
}

fn in_one_pass(requests: &[Request]) -> Counts {
    counted_with(TimeUnit::Milliseconds, requests)
}

fn counted_with(clock: TimeUnit, requests: &[Request]) -> Counts {
    let mut counter = Counter::with_prior_facts(&query(), &PriorFacts::default(), clock);
    counter.count(requests);
    counter.finish()
}

fn by_rule(requests: &[Request], rule: Rule) -> Counts {
    let mut counter = RuleCounter::new(&query().under(rule, false));
    counter.count(requests);
    counter.finish()
}

fn loads(requests: &[Request]) -> ConnectionLoads {
    let mut loads = LoadCounter::new(&query());
    loads.count(requests);
    loads.finish()
}

/// Counts each piece separately, after a warm-up of the longest timeout. The last piece comes first: peaks
/// known from later pieces must not hide an earlier one.
fn in_pieces(clock: TimeUnit, requests: &[Request], cuts: &[usize]) -> Counts {
    let mut known = PriorFacts::default();
    let mut pieces = Vec::new();
    let mut cuts: Vec<usize> =
        cuts.iter().map(|cut| cut % (requests.len() + 1)).chain([0, requests.len()]).collect();
    cuts.sort_unstable();
    for piece in cuts.windows(2).rev() {
        let Some(first) = requests[piece[0]..piece[1]].first() else { continue };
        let longest = query().longest();
        let warm = requests[..piece[0]].partition_point(|request| request.time + longest < first.time);
        let mut counter = Counter::with_prior_facts(&query(), &known, clock);
        counter.warm_up(&requests[warm..piece[0]]);
        counter.count(&requests[piece[0]..piece[1]]);
        let counts = counter.finish();
        known.record(&counts);
        pieces.push(counts);
    }
    let mut counts = Counts::new(&query());
    pieces.iter().rev().for_each(|piece| counts.append(piece));
    counts
}

/// Requests in order of time: milliseconds since the previous one, client, size.
fn requests(clients: u64) -> impl Strategy<Value = Vec<Request>> {
    let gap = prop_oneof![4 => Just(0), 4 => Just(1_000), 4 => 0..3_000_u64, 1 => 0..90_000_u64];
    requests_after(gap, clients)
}

/// The same, with a clock of whole seconds; some of them at the very beginning of 1970.
fn requests_in_seconds(clients: u64) -> impl Strategy<Value = Vec<Request>> {
    let gap = prop_oneof![9 => Just(0), 4 => Just(1), 2 => 0..6_u64, 1 => 0..200_u64];
    (requests_after(gap.prop_map(|seconds| seconds * 1_000), clients), any::<bool>()).prop_map(
        |(requests, early)| {
            let early = Duration::from_secs(if early { 1_000 } else { 0 });
            let earlier = |request: Request| Request {
                time: Time::ZERO + request.time.since(Time::ZERO + early),
                ..request
            };
            requests.into_iter().map(earlier).collect()
        },
    )
}

fn requests_after(gap: impl Strategy<Value = u64>, clients: u64) -> impl Strategy<Value = Vec<Request>> {
    let size = prop_oneof![0..8_000_u64, Just(1_459), Just(1_460), Just(4_096)];
    prop::collection::vec((gap, 0..clients, size), 0..300).prop_map(|steps| {
        let mut now = Time::from_nanos(1_000_000_000_000);
        steps
            .into_iter()
            .map(|(gap, client, size)| {
                now += Duration::from_millis(gap);
                let client = Client::from_bits(client);
                Request { time: now, client, bytes: Bytes::new(size), taken: Duration::ZERO }
            })
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn single_pass_agrees_with_brute_force(requests in prop_oneof![requests(4), requests(60)]) {
        assert_as_brute_force(&in_one_pass(&requests), &requests);
    }

    #[test]
    fn counting_by_the_second_agrees_with_brute_force(
        requests in prop_oneof![requests_in_seconds(4), requests_in_seconds(60)],
    ) {
        assert_as_brute_force(&counted_with(TimeUnit::Seconds, &requests), &requests);
    }

    #[test]
    fn counting_by_the_second_is_exact_wherever_the_log_is_split(
        requests in requests_in_seconds(9), cuts in prop::collection::vec(any::<usize>(), 0..4),
    ) {
        let whole = in_one_pass(&requests);
        prop_assert_eq!(&whole, &counted_with(TimeUnit::Seconds, &requests));
        prop_assert_eq!(&whole, &in_pieces(TimeUnit::Seconds, &requests, &cuts));
    }

    #[test]
    fn single_pass_agrees_with_the_reference_to_the_last_minute(requests in requests(9)) {
        prop_assert_eq!(in_one_pass(&requests), by_rule(&requests, Rule::LeastRecentlyUsed));
    }

    #[test]
    fn log_can_be_split_anywhere(requests in requests(9), cuts in prop::collection::vec(any::<usize>(), 0..4)) {
        let (whole, pieces) = (in_one_pass(&requests), in_pieces(TimeUnit::Milliseconds, &requests, &cuts));
        prop_assert_eq!(whole, pieces);
    }

    #[test]
    fn loads_by_chain_agree_with_the_reference(
        requests in prop_oneof![requests(4), requests(60)],
    ) {
        let mut by_rule = RuleCounter::new(&query());
        by_rule.count(&requests);
        let (counts, carried) = by_rule.finish_with_loads();
        prop_assert_eq!(&carried, &loads(&requests));
        for (threshold, stream) in counts.streams.iter().enumerate() {
            for (limit, line) in stream.lines.iter().enumerate() {
                for (timeout, opened) in line.opened.iter().enumerate() {
                    let load = carried.of(threshold, limit, timeout).unwrap();
                    prop_assert_eq!(load.requests.connections(), opened.total);
                    prop_assert_eq!(load.bytes.connections(), opened.total);
                }
            }
        }
    }

    #[test]
    fn longer_timeouts_open_fewer_connections_and_hold_more(requests in requests(20)) {
        for line in in_one_pass(&requests).streams.iter().flat_map(|stream| &stream.lines) {
            for pair in line.opened.windows(2) {
                prop_assert!(pair[0].total >= pair[1].total);
                prop_assert!(pair[0].peak.connections <= pair[1].peak.connections);
            }
        }
    }

    #[test]
    fn with_one_connection_every_rule_is_the_same(requests in requests(9)) {
        let first_line = |rule| by_rule(&requests, rule).streams[0].lines[0].clone();
        prop_assert_eq!(first_line(Rule::FirstCreated), first_line(Rule::LeastRecentlyUsed));
        prop_assert_eq!(first_line(Rule::IdleFirst), first_line(Rule::LeastRecentlyUsed));
    }
}

/// Enough requests that memory is released and tables are rebuilt many times.
#[test]
fn long_log_agrees_with_brute_force_as_memory_is_released() {
    let mut random = wire::Seed::default().stream("long-log", 0);
    let mut now = Time::from_nanos(0);
    let requests: Vec<Request> = (0..25_000_u64)
        .map(|number| {
            // Clients come and go: a sliding window of 400.
            now += Duration::from_millis(random.up_to(60));
            let client = Client::from_bits(number / 40 + random.up_to(400));
            Request { time: now, client, bytes: Bytes::new(random.up_to(9_000)), taken: Duration::ZERO }
        })
        .collect();
    let mut by_rule = RuleCounter::new(&query());
    by_rule.count(&requests);
    assert_eq!(by_rule.finish_with_loads().1, loads(&requests));
    let mut counter = Counter::new(&query());
    counter.count(&requests);
    assert!(counter.client_bytes() < 2_500 * 88, "{} bytes", counter.client_bytes());
    let counts = counter.finish();
    for (stream, threshold) in counts.streams.iter().zip(THRESHOLDS) {
        for (index, limit) in [(0, 1), (2, 3)] {
            let opened = stream.lines[index].opened[4];
            let expected = brute_force(&requests, 15_000, limit, threshold);
            assert_eq!((opened.total, opened.peak.connections, opened.peak.at), expected);
        }
    }
}

#[test]
fn the_two_readings_of_oldest_differ() {
    // Two connections; the older one is used last, so that the readings of "the oldest" differ.
    let at = |second: u64, client| Request {
        time: Time::from_nanos(second * 1_000_000_000),
        client: Client::from_bits(client),
        bytes: Bytes::new(9_000),
        taken: Duration::ZERO,
    };
    // The third request takes connection 1 over, by either reading; the fourth takes 2 (used at 2 s) or again
    // 1.
    let requests = [at(0, 7), at(2, 7), at(4, 7), at(6, 7), at(8, 7)];
    let total = |rule| {
        by_rule(&requests, rule).streams[0].lines[1].opened.iter().map(|o| o.total).collect::<Vec<_>>()
    };
    assert_eq!(total(Rule::LeastRecentlyUsed), [5, 5, 5, 2, 2, 2]);
    assert_eq!(total(Rule::FirstCreated), [5, 5, 5, 3, 2, 2]);
}

/// The single pass counts in milliseconds; the reference once reported a peak to the nanosecond.
#[test]
fn regress_both_methods_report_peaks_to_the_millisecond() {
    let time = Time::from_nanos(1_000_000_000_000_123);
    let one = Request { time, client: Client::from_bits(7), bytes: Bytes::new(9_000), taken: Duration::ZERO };
    assert_eq!(by_rule(&[one], Rule::LeastRecentlyUsed), in_one_pass(&[one]));
}
