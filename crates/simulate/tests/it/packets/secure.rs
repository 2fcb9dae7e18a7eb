//! TLS and HTTP/2: round trips by hand, connections, priorities, loss.

use fetch::PageEvent;
use page::{Dependency, Host, Kind, Moment, Object, OfferedProtocols, Priority};
use scenario::{Network, Page, Protocol, Scenario, Stack, Tls};
use simulate::{Experiment, Hosts, PageResult};
use wire::{Bytes, Duration, Rate, Time};

const RTT: Duration = Duration::from_millis(50);

fn network(megabits: u64) -> Network {
    let rate = Rate::from_bits_per_second(megabits * 1_000_000).unwrap();
    Network::new("custom".to_owned(), RTT, rate, Bytes::new(1_460))
}

fn fetched(page: Page, network: Network, protocol: Protocol, tls: Tls) -> PageResult {
    page.check().unwrap();
    let scenario = Scenario { tls, ..Scenario::new(network, page, protocol, Stack::named("linux").unwrap()) };
    Experiment::new(&scenario, Hosts::default()).unwrap().run(0, true).unwrap()
}

/// A document, and objects of this size after it.
fn document_and(objects: usize, size: u64) -> Page {
    let sizes = std::iter::once(1_000).chain(std::iter::repeat_n(size, objects));
    Page::from_sizes("sizes", sizes.map(Bytes::new)).unwrap()
}

/// Time at which an object was complete.
fn completed(fetched: &PageResult, object: usize) -> Time {
    let is_it = |event: &PageEvent| matches!(event, PageEvent::ObjectComplete { object: done, .. } if *done == object);
    fetched.reports.iter().find(|report| is_it(&report.event)).unwrap().at
}

/// Round trips of a page whose transmission takes next to no time.
fn round_trips(page: Page, protocol: Protocol, tls: Tls) -> f64 {
    let elapsed = fetched(page, network(10_000), protocol, tls).elapsed.unwrap();
    let trips = elapsed.as_secs_f64() / RTT.as_secs_f64();
    // The stack's wake-ups and the transmission take less than a hundredth of a round trip each.
    assert!(trips - trips.floor() < 0.05, "{protocol:?} {tls:?}: {trips}");
    trips.floor()
}

/// TCP's handshake, TLS's, and one for the request (RFC 8446, section 2; RFC 5246, section 7.3).
#[test]
fn small_object_takes_the_round_trips_of_its_handshakes_and_one() {
    for protocol in [Protocol::Http11, Protocol::Http11Parallel, Protocol::Http2] {
        for tls in Tls::ALL {
            let expected = 1.0 + f64::from(tls.round_trips()) + 1.0;
            assert_eq!(round_trips(document_and(0, 1), protocol, tls), expected, "{protocol:?} {tls:?}");
        }
    }
}

/// 20 small objects: one round trip by HTTP/2. Over HTTP/1.1 the document's connection fetches five in the time in which five
/// others are opened, and fetch three each.
#[test]
fn objects_of_http2_leave_together() {
    assert_eq!(round_trips(document_and(20, 500), Protocol::Http2, Tls::V13), 4.0);
    assert_eq!(round_trips(document_and(20, 500), Protocol::Http11Parallel, Tls::V13), 3.0 + 5.0);
}

/// A flight of 16 kB of certificates exceeds the initial window of ten segments of 1,448 bytes.
#[test]
fn certificates_beyond_the_initial_window_cost_a_round_trip() {
    let chain = |bytes| {
        let hosts = vec![Host { certificate_chain: Some(Bytes::new(bytes)), ..Host::new("www") }];
        Page { hosts, ..document_and(0, 1) }
    };
    assert_eq!(round_trips(chain(10_000), Protocol::Http2, Tls::V13), 3.0);
    assert_eq!(round_trips(chain(16_000), Protocol::Http2, Tls::V13), 4.0);
    assert_eq!(round_trips(chain(16_000), Protocol::Http2, Tls::V13Resumed), 3.0);
}

fn on_hosts(hosts: Vec<Host>) -> Page {
    let object =
        |host| Object { host, after: vec![Dependency::on_end(0)], ..Object::sized(Bytes::new(2_000)) };
    let objects = std::iter::once(Object::sized(Bytes::new(2_000)));
    let objects =
        objects.chain((0..hosts.len()).flat_map(|host| std::iter::repeat_n(object(host), 8))).collect();
    Page { hosts, ..Page::of("hosts", objects) }
}

#[test]
fn a_browser_opens_six_connections_to_each_group_over_http2_and_to_each_host_over_http1() {
    let grouped = |name: &str| Host { address_group: Some(1), ..Host::new(name) };
    let old = Host { protocols: OfferedProtocols::HTTP1, ..Host::new("old") };
    let clear = Host { protocols: OfferedProtocols::PLAINTEXT, ..Host::new("clear") };
    let hosts = vec![Host::new("www"), grouped("a"), grouped("b"), old, clear];
    let connections = |protocol| {
        let mut page = on_hosts(hosts.clone());
        page.objects.iter_mut().for_each(|object| object.priority = Priority::High);
        let fetched = fetched(page, network(10), protocol, Tls::V13);
        assert!(fetched.elapsed.is_some());
        fetched.up.connections
    };
    // The document's host has an open connection, and a second one, when the others are requested.
    assert_eq!(connections(Protocol::Http2), 2 + 6 + 6 + 6);
    assert_eq!(connections(Protocol::Http11Parallel), 5 * 6);
}

#[test]
fn ten_delayable_requests_are_in_flight_at_most_over_http1_and_any_number_over_http2() {
    let hosts: Vec<Host> = ["a", "b", "c", "d"].map(Host::new).into();
    let in_flight = |priority, protocol| {
        let mut page = on_hosts(hosts.clone());
        page.objects.iter_mut().for_each(|object| object.priority = priority);
        let fetched = fetched(page, network(10), protocol, Tls::None);
        let (mut now, mut most) = (0_i32, 0);
        for report in &fetched.reports {
            now += match report.event {
                PageEvent::RequestSent { .. } => 1,
                PageEvent::ObjectComplete { .. } => -1,
                _ => 0,
            };
            most = most.max(now);
        }
        most
    };
    assert_eq!(in_flight(Priority::Low, Protocol::Http11Parallel), 10);
    assert_eq!(in_flight(Priority::High, Protocol::Http11Parallel), 24);
    assert_eq!(in_flight(Priority::Low, Protocol::Http2), 32);
}

/// Objects of two types: one that blocks rendering, and four others. Of the others, one leaves with it, or two images, which are of
/// medium priority, and the rest when these have arrived.
#[test]
fn images_are_held_back_for_the_scripts_before_the_body() {
    let with = |kind| {
        let mut page = Page { hosts: vec![Host::new("www"), Host::new("elsewhere")], ..document_and(5, 500) };
        page.objects[2..].iter_mut().for_each(|object| object.kind = Kind::Image);
        (page.objects[1].kind, page.objects[1].is_render_blocking) = (kind, true);
        page
    };
    assert_eq!(round_trips(with(Kind::Script), Protocol::Http2, Tls::None), 4.0);
    assert_eq!(round_trips(with(Kind::StyleSheet), Protocol::Http2, Tls::None), 3.0);
    let mut two = with(Kind::Script);
    two.objects.truncate(4);
    assert_eq!(round_trips(two, Protocol::Http2, Tls::None), 3.0);
}

#[test]
fn urgent_response_overtakes_what_is_not_in_the_send_buffer() {
    let image = |priority, kind, size| Object {
        priority,
        kind,
        after: vec![Dependency::on_end(0)],
        ..Object::sized(Bytes::new(size))
    };
    let objects = vec![
        Object::sized(Bytes::new(1_000)),
        image(Priority::Low, Kind::Image, 400_000),
        image(Priority::Highest, Kind::StyleSheet, 30_000),
    ];
    let page = Page::of("priorities", objects);
    let mut stack = Stack::named("linux").unwrap();
    let complete = |stack: &Stack| {
        let mut scenario = Scenario::new(network(4), page.clone(), Protocol::Http2, stack.clone());
        scenario.tls = Tls::V13;
        let fetched = Experiment::new(&scenario, Hosts::default()).unwrap().run(0, false).unwrap();
        [1, 2].map(|object| completed(&fetched, object))
    };
    stack.packets.send_buffer = Bytes::new(32_768);
    let [large, urgent] = complete(&stack);
    // 30 kB at 4 Mbit/s take 60 ms; the whole takes 860.
    assert!(large.since(urgent) > Duration::from_millis(700), "{urgent:?} before {large:?}");
}

#[test]
fn urgent_response_waits_for_less_where_unsent_bytes_are_limited() {
    let after = |plus| vec![Dependency { plus: Duration::from_millis(plus), ..Dependency::on_end(0) }];
    let objects = vec![
        Object::sized(Bytes::new(20_000)),
        Object {
            priority: Priority::Lowest,
            kind: Kind::Image,
            after: after(0),
            ..Object::sized(Bytes::new(3_000_000))
        },
        Object {
            priority: Priority::Highest,
            kind: Kind::StyleSheet,
            after: after(800),
            ..Object::sized(Bytes::new(30_000))
        },
    ];
    let page = Page::of("late", objects);
    let ends = |unsent_limit| {
        let mut stack = Stack::named("linux").unwrap();
        stack.packets.unsent_limit = unsent_limit;
        let mut scenario = Scenario::new(network(20), page.clone(), Protocol::Http2, stack);
        scenario.tls = Tls::V13;
        let fetched = Experiment::new(&scenario, Hosts::default()).unwrap().run(0, false).unwrap();
        [1, 2].map(|object| completed(&fetched, object))
    };
    let ([large, urgent], [same, earlier]) = (ends(None), ends(Some(Bytes::new(16_384))));
    // The link is as busy: they differ by a frame.
    assert!(large.since(same) < Duration::from_millis(1), "{large:?}, {same:?}");
    assert!(urgent.since(earlier) > Duration::from_millis(150), "{urgent:?}, {earlier:?}");
}

#[test]
fn dependencies_are_met_at_their_moments() {
    let after = |at, plus| vec![Dependency { on: 0, at, plus }];
    let late = Duration::from_millis(40);
    let objects = vec![
        Object::sized(Bytes::new(500_000)),
        Object { after: after(Moment::Begun, late), ..Object::sized(Bytes::new(100)) },
        Object {
            after: after(Moment::Delivered(Bytes::new(100_000)), late),
            ..Object::sized(Bytes::new(100))
        },
        Object { after: after(Moment::Ended, late), ..Object::sized(Bytes::new(100)) },
    ];
    let fetched =
        fetched(Page { objects, ..Page::of("graph", vec![]) }, network(10), Protocol::Http2, Tls::V13);
    let sent = |object| {
        let is_it = |event: &PageEvent| matches!(event, PageEvent::RequestSent { object: sent, .. } if *sent == object);
        fetched.reports.iter().find(|report| is_it(&report.event)).unwrap().at
    };
    let begun = sent(0);
    assert_eq!(sent(1), begun + late);
    // 69 segments are in the third flight: three round trips, and at most 80 ms at 10 Mbit/s.
    let delivered = sent(2).since(begun + late).as_millis_f64();
    assert!((150.0..230.0).contains(&delivered), "{delivered}");
    assert_eq!(sent(3), completed(&fetched, 0) + late);
}

#[test]
fn delays_of_responses_pass_together() {
    let delayed = Object {
        processing: Some(Duration::from_millis(100)),
        after: vec![Dependency::on_end(0)],
        ..Object::sized(Bytes::new(500))
    };
    let objects = std::iter::once(Object::sized(Bytes::new(500))).chain(std::iter::repeat_n(delayed, 10));
    let page = Page::of("delays", objects.collect());
    assert_eq!(round_trips(page, Protocol::Http2, Tls::V13), 4.0 + 2.0);
}

/// The flight of the server leaves at once; the round trips of the handshake are its cost.
#[test]
fn handshakes_of_tls_are_stalls_of_their_round_trips() {
    for tls in Tls::ALL {
        let page = document_and(0, 1);
        let scenario = Scenario::new(network(10_000), page, Protocol::Http2, Stack::named("linux").unwrap());
        let experiment = Experiment::new(&Scenario { tls, ..scenario }, Hosts::default()).unwrap();
        let account = experiment.spent(&experiment.run(0, true).unwrap());
        let handshake = account.stalls.iter().filter(|stall| stall.cause == trace::Cause::TlsHandshake);
        let lost_ms: f64 = handshake.map(|stall| stall.lost_ms).sum();
        let expected = f64::from(tls.round_trips()) * RTT.as_millis_f64();
        assert!((lost_ms - expected).abs() < 1.0, "{tls:?}: {lost_ms} ms");
    }
}

#[test]
fn pages_arrive_over_lossy_networks_and_the_same_seed_gives_the_same_packets() {
    for protocol in [Protocol::Http11Parallel, Protocol::Http2] {
        for tls in Tls::ALL {
            let mut lossy = network(10);
            lossy.down.loss = quantity::path::loss("3%").unwrap();
            lossy.up.loss = quantity::path::loss("2%").unwrap();
            let hosts: Vec<Host> = ["a", "b", "c"].map(Host::new).into();
            let one = fetched(on_hosts(hosts.clone()), lossy.clone(), protocol, tls);
            let other = fetched(on_hosts(hosts), lossy, protocol, tls);
            assert!(one.elapsed.is_some() && one.lost > 0, "{protocol:?} {tls:?}");
            assert_eq!((one.elapsed, one.records.len()), (other.elapsed, other.records.len()));
            assert!(one.records == other.records, "{protocol:?} {tls:?}");
        }
    }
}

#[test]
fn protocols_without_tls_refuse_it() {
    let page = Page::named("small-cluster").unwrap();
    for protocol in [Protocol::Ttcp, Protocol::Ardp, Protocol::Dhttp] {
        let stack = Stack::named("period").unwrap();
        let scenario = Scenario { tls: Tls::V13, ..Scenario::new(network(1), page.clone(), protocol, stack) };
        let error = Experiment::new(&scenario, Hosts::default()).unwrap_err().to_string();
        assert!(error.contains("TLS 1.3"), "{error}");
    }
}
