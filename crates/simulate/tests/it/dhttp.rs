//! DHTTP on simulated hosts: round trips, channels, loss, and reproducibility.
//!
//! The state machines are `dhttp-proto`'s and have their own tests; here they are on a network.

use std::collections::BTreeSet;

use dhttp_proto::Extension;
use dhttp_proto::server::Validation;
use fetch::TransportCounts;
use scenario::dhttp::Dhttp;
use scenario::{Client, Connection, Network, Page, Protocol, Requests, Scenario, Stack, Visit};
use simulate::page::{CLIENT, Flow};
use simulate::world::ObservationPoint;
use simulate::{Experiment, Hosts, PageResult, capture};
use wire::link::{Loss, Reordering};
use wire::{Bytes, Duration, Probability, Rate, Seed};

/// Network with a round trip of 50 ms, at a rate at which transmission takes no time.
fn path() -> Network {
    let rate = Rate::from_bits_per_second(1_000_000_000).unwrap();
    Network::new("path".to_owned(), Duration::from_millis(50), rate, Bytes::new(1_460))
}

fn scenario(network: Network, sizes: &[u64]) -> Scenario {
    let page = Page::from_sizes("test", sizes.iter().copied().map(Bytes::new)).unwrap();
    let mut scenario = Scenario::new(network, page, Protocol::Dhttp, Stack::named("linux").unwrap());
    scenario.client.requests = Requests::Independent;
    scenario
}

fn run(scenario: &Scenario, hosts: Hosts) -> PageResult {
    let experiment = Experiment::new(scenario, hosts).unwrap();
    let fetched = experiment.run(0, true).unwrap();
    assert!(fetched.elapsed.is_some(), "{:?}", fetched.reports);
    fetched
}

fn round_trips(fetched: &PageResult) -> f64 {
    fetched.elapsed.unwrap().as_secs_f64() / 0.05
}

fn counts(fetched: &PageResult) -> [u64; 4] {
    let TransportCounts { by_datagram, by_connection, by_plain_http, resends } = fetched.channels.unwrap();
    [by_datagram, by_connection, by_plain_http, resends]
}

fn is_about(dhttp: f64, expected: f64) -> bool {
    (dhttp - expected).abs() < 0.02
}

#[test]
fn paper_figure_1_small_response_takes_a_round_trip_and_two_packets() {
    let fetched = run(&scenario(path(), &[1_000]), Hosts::default());
    assert!(is_about(round_trips(&fetched), 1.0), "{}", round_trips(&fetched));
    assert_eq!((fetched.up.packets, fetched.down.packets, fetched.up.connections), (1, 1, 0));
    assert_eq!(counts(&fetched), [1, 0, 0, 0]);
}

#[test]
fn paper_figure_1_large_response_takes_two_round_trips_and_one_with_an_open_connection() {
    let mut large = scenario(path(), &[10_000]);
    let cold = run(&large, Hosts::default());
    assert!(is_about(round_trips(&cold), 2.0), "{}", round_trips(&cold));
    assert_eq!(counts(&cold), [0, 1, 0, 0]);
    large.client.connection = Connection::Warm;
    let warm = run(&large, Hosts::default());
    assert!(is_about(round_trips(&warm), 1.0), "{}", round_trips(&warm));
}

#[test]
fn a_server_that_knows_the_client_sends_the_first_segment_with_its_syn() {
    // A server closes an idle connection after fifteen seconds.
    let think = Duration::from_secs(20);
    let whole = |size, fast_open| {
        let mut known = scenario(path(), &[size]);
        known.client.connection = Connection::Warm;
        // The first response comes on a connection, too, which provides the state that the second needs.
        let hosts = Hosts { think, fast_open, dhttp: Some(known_client()), ..Hosts::default() };
        let fetched = run(&known, hosts);
        assert_eq!(counts(&fetched)[1], 2, "both times on a connection");
        round_trips(&fetched)
    };
    // Too large for a modern datagram, small enough for a SYN.
    assert!(is_about(whole(1_200, false), 2.0) && is_about(whole(1_200, true), 1.0));
    assert!(is_about(whole(10_000, true), 2.0), "the rest waits until the client has answered");
}

#[test]
fn a_first_contact_costs_a_large_response_three_round_trips_and_a_small_one_one() {
    let hosts = || Hosts { dhttp: Some(Dhttp::internet()), ..Hosts::default() };
    let contact = |size, connection| {
        let mut contact = scenario(path(), &[size]);
        contact.client.connection = connection;
        let fetched = run(&contact, hosts());
        (round_trips(&fetched), counts(&fetched))
    };
    let (small, transports) = contact(300, Connection::Cold);
    assert!(is_about(small, 1.0), "{small}");
    assert_eq!(transports, [1, 0, 0, 0]);
    // The bare id; then a connection that the client opens, and the response, which carries a token.
    let (first, transports) = contact(10_000, Connection::Cold);
    assert!(is_about(first, 3.0), "{first}");
    assert_eq!(transports, [0, 0, 1, 0]);
    // The server opens the connection.
    let (later, transports) = contact(10_000, Connection::Warm);
    assert!(is_about(later, 2.0), "{later}");
    assert_eq!(transports, [0, 1, 1, 0]);
}

/// Fetches one object, in parts if possible; `more` are further extensions beyond the paper.
fn in_parts(network: Network, size: u64, more: &[Extension]) -> PageResult {
    let scenario = scenario(network, &[size]);
    let dhttp = Dhttp::paper().with(Extension::Parts, true);
    let dhttp = more.iter().fold(dhttp, |dhttp, extension| dhttp.with(*extension, true));
    run(&scenario, Hosts { dhttp: Some(dhttp), ..Hosts::default() })
}

#[test]
fn response_in_parts_takes_one_round_trip_cold_and_lost_parts_take_another() {
    let fetched = in_parts(path(), 8_192, &[]);
    assert_eq!((counts(&fetched), fetched.down.connections), ([1, 0, 0, 0], 0));
    assert!(is_about(round_trips(&fetched), 1.0), "{}", round_trips(&fetched));
    for lost in 1..=6 {
        let mut lossy = path();
        lossy.down.loss = Loss::Exactly([lost].into());
        let fetched = in_parts(lossy.clone(), 8_192, &[Extension::LossByPrefix]);
        assert_eq!((lost, counts(&fetched)), (lost, [1, 0, 0, 1]));
        let took = round_trips(&fetched);
        assert!((2.2..2.5).contains(&took), "the part {lost}: {took}");
        // Counted in aggregate, the one loss exceeds the threshold: the rest comes on a connection.
        let fetched = in_parts(lossy, 8_192, &[]);
        assert_eq!((lost, counts(&fetched)), (lost, [0, 1, 0, 1]));
        let took = round_trips(&fetched);
        assert!((3.2..3.5).contains(&took), "the part {lost}: {took}");
    }
}

#[test]
fn request_too_large_for_a_datagram_goes_over_plain_http() {
    let mut large = scenario(path(), &[1_000]);
    large.client.request = Bytes::new(1_450);
    let fetched = run(&large, Hosts::default());
    assert_eq!((counts(&fetched), fetched.down.connections), ([0, 0, 1, 0], 1));
    assert!(is_about(round_trips(&fetched), 2.0), "{}", round_trips(&fetched));
}

#[test]
fn paper_section_iii_lost_request_is_resent_after_five_seconds_and_served_by_tcp() {
    let mut lossy = path();
    lossy.up.loss = Loss::Exactly([1].into());
    let scenario = scenario(lossy, &[1_000]);
    let experiment = Experiment::new(&scenario, Hosts::default()).unwrap();
    let fetched = experiment.run(0, true).unwrap();
    assert_eq!(counts(&fetched), [0, 1, 0, 1]);
    let elapsed = fetched.elapsed.unwrap().as_millis_f64();
    assert!((elapsed - 5_100.0).abs() < 1.0, "{elapsed}");
    let stalls = experiment.spent(&fetched).stalls;
    let named: Vec<_> = stalls.iter().map(|stall| (stall.cause.name(), stall.lost_ms.round())).collect();
    assert_eq!(named, [("datagram-resend", 5_000.0), ("connection-setup", 50.0)]);
}

#[test]
fn internet_client_resends_after_a_second_and_validates_its_address_first() {
    let mut lossy = path();
    lossy.down.loss = Loss::Exactly([1].into());
    let scenario = scenario(lossy, &[1_000, 30_000]);
    let hosts = Hosts { dhttp: Some(Dhttp::internet()), ..Hosts::default() };
    let fetched = run(&scenario, hosts);
    let elapsed = fetched.elapsed.unwrap().as_millis_f64();
    assert!((1_000.0..1_400.0).contains(&elapsed), "{elapsed}");
    assert_eq!(counts(&fetched)[3], 1);
}

#[test]
fn revalidation_responses_arrive_in_datagrams() {
    let mut page = scenario(path(), &[10_000, 20_000, 30_000]);
    page.visit = Visit::Revalidate;
    let fetched = run(&page, Hosts::default());
    assert_eq!((counts(&fetched), fetched.down.packets), ([3, 0, 0, 0], 3));
    assert!(is_about(round_trips(&fetched), 1.0), "{}", round_trips(&fetched));
}

#[test]
fn every_network_and_stack_carries_dhttp_without_overlapping_stalls() {
    for network in Network::listings().map(|listing| listing.name) {
        for stack in ["period", "solaris-2.5", "linux"] {
            let page = Page::named("medium-page").unwrap();
            let network = Network::named(network).unwrap();
            let scenario = Scenario::new(network, page, Protocol::Dhttp, Stack::named(stack).unwrap());
            let experiment = Experiment::new(&scenario, Hosts::default()).unwrap();
            let fetched = experiment.run(0, true).unwrap();
            let elapsed = fetched.elapsed.expect("all arrives").as_millis_f64();
            let spent = experiment.spent(&fetched);
            let mut until = 0.0;
            for stall in &spent.stalls {
                assert!(stall.lost_ms > 0.0 && stall.at_ms >= until - 1e-6, "{stall:?} before {until}");
                until = stall.at_ms + stall.lost_ms;
            }
            let lost: f64 = spent.stalls.iter().map(|stall| stall.lost_ms).sum();
            assert!(lost + spent.working.as_millis_f64() <= elapsed + 1e-6, "{scenario:?}");
        }
    }
}

#[test]
fn regress_the_same_seed_gives_the_same_bytes() {
    let mut bad = path();
    let chance = |probability| Probability::new(probability).unwrap();
    bad.up.loss = Loss::Independent(chance(0.1));
    bad.down.loss = Loss::Independent(chance(0.1));
    bad.down.duplication = chance(0.1);
    bad.down.reordering = Some(Reordering { probability: chance(0.1), by: Duration::from_millis(30) });
    let file = |seed| {
        let scenario =
            Scenario { seed: Seed::new(seed), ..scenario(bad.clone(), &[300, 9_000, 900, 40_000]) };
        let mut file = Vec::new();
        capture::write(
            &run(&scenario, Hosts::default()).records,
            capture::CapturePoint::Both,
            &mut file,
            "a run",
        )
        .unwrap();
        file
    };
    assert_eq!(file(1), file(1));
    assert_ne!(file(1), file(2));
}

#[test]
fn each_connection_is_a_flow_and_datagrams_are_one() {
    let client = Client { requests: Requests::Independent, ..Client::default() };
    let scenario = Scenario { client, ..scenario(path(), &[300, 9_000, 9_000]) };
    let fetched = run(&scenario, Hosts::default());
    let sent = || fetched.records.iter().filter(|record| record.seen == ObservationPoint::Sent);
    let flows: BTreeSet<Flow> = sent().map(Flow::of).collect();
    let connections = flows.iter().filter(|flow| flow.is_opened_by_server()).count() as u64;
    assert_eq!((connections, flows.len() as u64), (fetched.down.connections, connections + 1));
    let requests = sent().filter(|record| record.from.host == CLIENT && Flow::of(record).is_datagrams());
    assert_eq!(requests.count(), 3);
}

#[test]
fn regress_queued_responses_cause_no_resends() {
    for network in ["n-ethernet", "n-fast-internet", "n-modem"] {
        let (network, page) = (Network::named(network).unwrap(), Page::named("microscape").unwrap());
        let mut scenario = Scenario::new(network, page, Protocol::Dhttp, Stack::named("linux").unwrap());
        let hosts = |dhttp| Hosts { dhttp: Some(dhttp), ..Hosts::default() };
        let fetched = run(&scenario, hosts(known_client()));
        // Over the modem, responses queue behind others for up to half a minute.
        assert_eq!(counts(&fetched), [20, 23, 0, 0], "{}", scenario.network.name);
        assert_eq!(fetched.down.connections, 1, "{}", scenario.network.name);
        let first = run(&scenario, hosts(Dhttp::internet()));
        scenario.protocol = Protocol::Http11Pipelined;
        let direct = run(&scenario, hosts(Dhttp::internet()));
        let transports = counts(&first);
        let [dhttp, first, http] =
            [fetched, first, direct].map(|fetched| fetched.elapsed.unwrap().as_millis_f64());
        assert!(dhttp < http * 1.01, "{}: {dhttp} and {http}", scenario.network.name);
        // A first contact: the document comes over plain HTTP, a round trip later, and brings the token for the rest. Over
        // the modem the connections that are then open concurrently delay one another.
        if scenario.network.name != "n-modem" {
            assert_eq!(transports, [20, 22, 1, 0], "{}", scenario.network.name);
            let rtt = scenario.network.rtt.as_millis_f64();
            assert!(first < http * 1.01 + rtt, "{}: {first}", scenario.network.name);
        }
    }
}

/// Settings for today's Internet, for a client that the server knows already.
fn known_client() -> Dhttp {
    let mut dhttp = Dhttp::internet();
    dhttp.server.validation = Validation::Trusting;
    dhttp
}

/// The table in docs/dhttp.md.
#[test]
#[ignore = "long evidence: cargo test -p roundtrip-simulate --test it -- --ignored --nocapture patience"]
fn waiting_for_queued_responses_under_loss() {
    println!("| link | lost | page, mean | 90th percentile | resent | incomplete |");
    println!("| --- | --- | --- | --- | --- | --- |");
    for (link, rtt_ms, rate) in [
        ("100 Mbit/s, 30 ms", 30, 100_000_000),
        ("10 Mbit/s, 50 ms", 50, 10_000_000),
        ("WAN: 1.2 Mbit/s, 80 ms", 80, 1_226_833),
        ("modem: 29 kbit/s, 150 ms", 150, 29_491),
    ] {
        for (loss, seeds) in [(0.0, 1), (0.01, 100), (0.05, 100)] {
            let rate = Rate::from_bits_per_second(rate).unwrap();
            let mut network =
                Network::new("link".to_owned(), Duration::from_millis(rtt_ms), rate, Bytes::new(1_460));
            let chance = Probability::new(loss).unwrap();
            (network.up.loss, network.down.loss) = (Loss::Independent(chance), Loss::Independent(chance));
            let page = Page::named("microscape").unwrap();
            let scenario = Scenario::new(network, page, Protocol::Dhttp, Stack::named("linux").unwrap());
            let fetched = (0..seeds).map(|seed| {
                let scenario = Scenario { seed: Seed::new(seed), ..scenario.clone() };
                let hosts = Hosts { dhttp: Some(known_client()), ..Hosts::default() };
                Experiment::new(&scenario, hosts).unwrap().run(0, true).unwrap()
            });
            let fetched: Vec<PageResult> = fetched.collect();
            let mut seconds: Vec<f64> =
                fetched.iter().filter_map(|one| Some(one.elapsed?.as_secs_f64())).collect();
            seconds.sort_by(f64::total_cmp);
            #[expect(clippy::cast_precision_loss, reason = "a hundred")]
            let [pages, all] = [seconds.len(), fetched.len()].map(|count| count as f64);
            let mean = seconds.iter().sum::<f64>() / pages;
            let resends: u64 = fetched.iter().map(|one| counts(one)[3]).sum();
            #[expect(clippy::cast_precision_loss, reason = "some thousands")]
            let resends = resends as f64 / all;
            println!(
                "| {link} | {}% | {mean:.2} s | {:.2} s | {resends:.1} | {} of {all} |",
                loss * 100.0,
                seconds[seconds.len() * 9 / 10],
                fetched.len() - seconds.len()
            );
        }
    }
}
