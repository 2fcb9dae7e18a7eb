//! Formulas of HTTP/3: round trips by hand, and what has none.

use page::{Dependency, Host, OfferedProtocols, RecordedTimes};
use scenario::{Network, Object, Page, Protocol, Scenario, Stack, Tls, Visit};
use wire::{Bytes, Duration, Probability, Rate};

const RTT: Duration = Duration::from_millis(100);

/// A page over a network with a rate that makes transmission times small.
fn scenario(page: Page, protocol: Protocol, tls: Tls) -> Scenario {
    let rate = Rate::from_bits_per_second(10_000_000_000).unwrap();
    let network = Network { rtt: RTT, rate, rate_up: None, ..Network::named("4g").unwrap() };
    Scenario { tls, ..Scenario::new(network, page, protocol, Stack::named("linux").unwrap()) }
}

fn round_trips(page: Page, protocol: Protocol, tls: Tls) -> u64 {
    let scenario = scenario(page, protocol, tls);
    let elapsed = model::predict(&scenario, &model::Assumptions::default()).unwrap().elapsed;
    assert!(elapsed.as_nanos() % RTT.as_nanos() < RTT.as_nanos() / 20, "{elapsed}");
    elapsed.as_nanos() / RTT.as_nanos()
}

fn page(sizes: &[u64], chain: u64) -> Page {
    let object = |(index, size): (usize, &u64)| Object {
        after: index.checked_sub(1).map(Dependency::on_end).into_iter().collect(),
        ..Object::sized(Bytes::new(*size))
    };
    let hosts = vec![Host { certificate_chain: Some(Bytes::new(chain)), ..Host::new("www") }];
    Page { hosts, ..Page::of("page", sizes.iter().enumerate().map(object).collect()) }
}

#[test]
fn set_up_takes_one_round_trip_none_with_early_data_and_one_more_beyond_the_limit() {
    let of = |tls, chain| round_trips(page(&[500], chain), Protocol::Http3, tls);
    assert_eq!([Tls::V13, Tls::V13Resumed, Tls::V13EarlyData].map(|tls| of(tls, 4_000)), [2, 2, 1]);
    assert_eq!([Tls::V13, Tls::V13Resumed].map(|tls| of(tls, 8_000)), [3, 2]);
    assert_eq!(round_trips(page(&[500], 4_000), Protocol::Http2, Tls::V13), 3);
}

#[test]
fn each_link_of_a_chain_costs_a_round_trip_and_slow_start_begins_with_ten_datagrams() {
    assert_eq!(round_trips(page(&[500, 500, 500], 4_000), Protocol::Http3, Tls::V13), 2 + 2);
    // One of the ten has the session tickets.
    assert_eq!(round_trips(page(&[9_000], 4_000), Protocol::Http3, Tls::V13), 2);
    assert_eq!(round_trips(page(&[30_000], 4_000), Protocol::Http3, Tls::V13), 3);
    let mut wide = scenario(page(&[30_000], 4_000), Protocol::Http3, Tls::V13);
    wide.page.hosts[0].software = Some("Caddy".to_owned());
    let elapsed = model::predict(&wide, &model::Assumptions::default()).unwrap().elapsed;
    assert_eq!(elapsed.as_nanos() / RTT.as_nanos(), 2, "quic-go begins with 32 packets");
}

#[test]
fn a_busy_clients_threads_take_requests_and_responses_one_after_another() {
    let busy = |page: Page, millis: u64| {
        let client_time = Some(Duration::from_millis(millis));
        let page = Page { recorded: Some(RecordedTimes { client_time, ..RecordedTimes::default() }), ..page };
        let scenario = scenario(page, Protocol::Http3, Tls::V13);
        model::predict(&scenario, &model::Assumptions::default()).unwrap().elapsed
    };
    let added = |page: Page, millis: u64| busy(page.clone(), millis) - busy(page, 0);
    // Each of a chain waits for its request and its response.
    assert_eq!(added(page(&[500, 500, 500], 4_000), 10), Duration::from_millis(60));
    // Of ten requests at once the last leaves after all others, and nine responses arrive while it is in flight.
    let mut burst = page(&[500; 11], 4_000);
    burst.objects.iter_mut().skip(1).for_each(|object| object.after = vec![Dependency::on_end(0)]);
    let wait = added(burst, 1).as_millis_f64();
    assert!((12.9..13.1).contains(&wait), "{wait}");
}

#[test]
fn hosts_without_an_offer_and_upgrades_are_counted_as_http2_with_a_note() {
    let mut old = page(&[500], 4_000);
    old.hosts[0].protocols = OfferedProtocols { http3: false, ..OfferedProtocols::ALL };
    let mut new = old.clone();
    old.hosts.push(page::Host::new("new"));
    new.hosts.push(new.hosts[0].clone());
    let scenario_of_new = scenario(new, Protocol::Http3, Tls::V13);
    let supposed = model::predict(&scenario_of_new, &model::Assumptions::default()).unwrap();
    assert_eq!(supposed.elapsed.as_nanos() / RTT.as_nanos(), 2);
    let note = "no host of the page offers HTTP/3: as if all with TLS did";
    assert!(supposed.notes.iter().any(|other| other.to_string() == note));
    for (page, protocol, note) in [
        (old, Protocol::Http3, "hosts that do not offer HTTP/3: 1 of 2"),
        (page(&[500], 4_000), Protocol::Http3Upgrade, "counted as HTTP/2's"),
    ] {
        let scenario = scenario(page, protocol, Tls::V13);
        let prediction = model::predict(&scenario, &model::Assumptions::default()).unwrap();
        assert_eq!(prediction.elapsed.as_nanos() / RTT.as_nanos(), 3);
        assert!(prediction.notes.iter().any(|other| other.to_string().contains(note)), "{note}");
    }
}

#[test]
fn what_quic_cannot_carry_is_refused_with_a_remedy() {
    let refused = |scenario: &Scenario| {
        model::predict(scenario, &model::Assumptions::default()).unwrap_err().to_string()
    };
    let plain = scenario(page(&[500], 4_000), Protocol::Http3, Tls::None);
    assert!(refused(&plain).contains("use --tls 1.3"), "{}", refused(&plain));
    let mut narrow = scenario(page(&[500], 4_000), Protocol::Http3, Tls::V13);
    narrow.network.mss = Bytes::new(512);
    assert!(refused(&narrow).contains("datagrams of at most 524 bytes"), "{}", refused(&narrow));
}

#[test]
fn revalidation_takes_a_round_trip_for_each_link_of_a_chain_and_no_bodies() {
    for (protocol, trips) in [(Protocol::Http11, 5), (Protocol::Http2, 5), (Protocol::Http3, 4)] {
        let first = scenario(page(&[500_000; 3], 4_000), protocol, Tls::V13);
        let mut again = Scenario { visit: Visit::Revalidate, ..first.clone() };
        let predicted = |scenario: &Scenario| {
            let prediction = model::predict(scenario, &model::Assumptions::default()).unwrap();
            (prediction.elapsed, prediction.minimum, prediction.payload)
        };
        let (elapsed, minimum, payload) = predicted(&again);
        assert_eq!(elapsed.as_nanos() / RTT.as_nanos(), trips, "{elapsed}");
        assert!(elapsed >= minimum && payload < Bytes::new(2_000), "{minimum} {payload}");
        again.programs.server_changed = Probability::new(1.0);
        assert_eq!(predicted(&again), predicted(&first), "everything has changed");
    }
}
