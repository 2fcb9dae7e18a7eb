//! HTTP/3: round trips by hand, the limit before the address is validated, streams, windows, loss.

use fetch::PageEvent;
use page::{Dependency, Host, Object, OfferedProtocols};
use scenario::network::Direction;
use scenario::{Network, Page, Protocol, Scenario, Stack, Tls};
use simulate::{Experiment, Hosts, PageResult};
use wire::link::Loss;
use wire::{Bytes, Duration, Rate, Seed, Time};

const RTT: Duration = Duration::from_millis(50);

fn network(megabits: u64) -> Network {
    let rate = Rate::from_bits_per_second(megabits * 1_000_000).unwrap();
    Network::new("custom".to_owned(), RTT, rate, Bytes::new(1_460))
}

fn scenario(page: Page, network: Network, protocol: Protocol, tls: Tls) -> Scenario {
    page.check().unwrap();
    Scenario { tls, ..Scenario::new(network, page, protocol, Stack::named("linux").unwrap()) }
}

fn fetched(page: Page, network: Network, protocol: Protocol, tls: Tls) -> PageResult {
    let scenario = scenario(page, network, protocol, tls);
    Experiment::new(&scenario, Hosts::default()).unwrap().run(0, true).unwrap()
}

/// A document, and objects of this size after it.
fn document_and(objects: usize, size: u64) -> Page {
    let sizes = std::iter::once(1_000).chain(std::iter::repeat_n(size, objects));
    Page::from_sizes("sizes", sizes.map(Bytes::new)).unwrap()
}

/// Round trips of a page whose transmission takes next to no time.
fn round_trips(page: Page, protocol: Protocol, tls: Tls) -> f64 {
    let elapsed = fetched(page, network(10_000), protocol, tls).elapsed.unwrap();
    let trips = elapsed.as_secs_f64() / RTT.as_secs_f64();
    assert!(trips - trips.floor() < 0.05, "{protocol:?} {tls:?}: {trips}");
    trips.floor()
}

fn with_chain(bytes: u64, page: Page) -> Page {
    let hosts = vec![Host { certificate_chain: Some(Bytes::new(bytes)), ..Host::new("www") }];
    Page { hosts, ..page }
}

/// RFC 9001, section 4: QUIC's handshake is TLS's.
#[test]
fn small_object_takes_one_round_trip_for_the_handshake_unless_it_is_early_data() {
    let of = |tls| round_trips(document_and(0, 1), Protocol::Http3, tls);
    assert_eq!([Tls::V13, Tls::V13Resumed, Tls::V13EarlyData].map(of), [2.0, 2.0, 1.0]);
}

/// 1,200 bytes at least in each of the client's two first datagrams, three times that before its address is validated
/// (RFC 9000, section 8.1).
#[test]
fn certificates_beyond_three_times_the_first_flight_cost_a_round_trip() {
    let of = |bytes, tls| round_trips(with_chain(bytes, document_and(0, 1)), Protocol::Http3, tls);
    assert_eq!(of(4_000, Tls::V13), 2.0);
    assert_eq!(of(8_000, Tls::V13), 3.0);
    assert_eq!(of(8_000, Tls::V13Resumed), 2.0, "without certificates");
    // TCP's handshake has validated the address, and the chain fits the initial window.
    assert_eq!(round_trips(with_chain(8_000, document_and(0, 1)), Protocol::Http2, Tls::V13), 3.0);
}

#[test]
fn objects_leave_together_on_one_connection_for_each_group_of_hosts() {
    assert_eq!(round_trips(document_and(20, 500), Protocol::Http3, Tls::V13), 3.0);
    let grouped = |name: &str| Host { address_group: Some(1), ..Host::new(name) };
    let old =
        Host { protocols: OfferedProtocols { http3: false, ..OfferedProtocols::ALL }, ..Host::new("old") };
    let object = |host| Object { host, after: vec![Dependency::on_end(0)], ..Object::sized(Bytes::new(500)) };
    let objects = [vec![Object::sized(Bytes::new(500))], (0..4).map(object).collect()].concat();
    let hosts = vec![grouped("a"), grouped("b"), Host::new("c"), old];
    let page = Page { hosts, ..Page::of("hosts", objects) };
    let fetched = fetched(page, network(10), Protocol::Http3, Tls::V13);
    assert_eq!(fetched.up.connections, 1 + 2, "TCP to the host without an offer");
    let servers: std::collections::BTreeSet<_> = fetched
        .records
        .iter()
        .filter(|record| record.to.port == 443 && record.segment.framing == tcp::segment::Framing::Datagram)
        .map(|record| record.to.host)
        .collect();
    assert_eq!(servers.len(), 2, "QUIC to the group and to the other host");
    assert!(fetched.elapsed.is_some());
}

/// Two hosts' worth of requests after the document: those while the QUIC connection opens use HTTP/2, later ones do not.
#[test]
fn an_upgrade_carries_requests_by_http2_until_its_connection_is_ready() {
    let chain = |length: usize| {
        let after = |object: usize| object.checked_sub(1).map(Dependency::on_end).into_iter().collect();
        let object = |index| Object { after: after(index), ..Object::sized(Bytes::new(500)) };
        Page { hosts: vec![Host::new("www")], ..Page::of("chain", (0..length).map(object).collect()) }
    };
    let datagrams = |length| {
        let fetched = fetched(chain(length), network(10), Protocol::Http3Upgrade, Tls::V13);
        assert!(fetched.elapsed.is_some());
        let is_datagram =
            |record: &&simulate::world::Record| record.segment.framing == tcp::segment::Framing::Datagram;
        fetched.records.iter().filter(is_datagram).count()
    };
    assert_eq!(datagrams(1), 0, "nothing is requested after the field is known");
    assert!(datagrams(2) > 0, "the second request opens a connection");
    assert!(datagrams(6) > datagrams(2) + 8, "later ones use it");
    let of = |length, protocol| round_trips(chain(length), protocol, Tls::V13);
    assert_eq!(of(6, Protocol::Http3Upgrade), of(6, Protocol::Http2));
    assert_eq!(of(6, Protocol::Http3), of(6, Protocol::Http2) - 1.0);
}

fn lossy(network: Network) -> Network {
    let loss = |text| quantity::path::loss(text).unwrap();
    let up = Direction { loss: loss("2%"), ..network.up.clone() };
    let down = Direction { loss: loss("3%"), ..network.down.clone() };
    Network { up, down, ..network }
}

#[test]
fn pages_arrive_over_lossy_networks_and_the_same_seed_gives_the_same_packets() {
    for protocol in [Protocol::Http3, Protocol::Http3Upgrade] {
        for tls in [Tls::V13, Tls::V13Resumed, Tls::V13EarlyData] {
            let run = |seed| {
                let scenario = scenario(document_and(40, 9_000), lossy(network(10)), protocol, tls);
                let scenario = Scenario { seed: Seed::new(seed), ..scenario };
                Experiment::new(&scenario, Hosts::default()).unwrap().run(0, true).unwrap()
            };
            let (one, other) = (run(1), run(1));
            assert!(one.elapsed.is_some() && one.lost > 0, "{protocol:?} {tls:?}");
            assert!(one.records == other.records, "{protocol:?} {tls:?}");
            assert_ne!(one.elapsed, run(2).elapsed);
        }
    }
}

/// Two objects in one flight, of which one packet is lost: over HTTP/2 both wait for it, over HTTP/3 the one whose it was.
#[test]
fn a_lost_packet_stalls_one_stream_where_http2_stalls_all() {
    let completed = |protocol, lost: Option<u64>| {
        let mut network = network(100);
        network.down.loss = Loss::Exactly(lost.into_iter().collect());
        let fetched = fetched(document_and(2, 4_000), network, protocol, Tls::V13);
        let at = |object: usize| {
            let is_it = |report: &&fetch::Report| matches!(report.event, PageEvent::ObjectComplete { object: done, .. } if done == object);
            fetched.reports.iter().find(is_it).unwrap().at
        };
        [at(0), at(1), at(2)]
    };
    let stalls = |protocol| {
        let whole = completed(protocol, None);
        let delayed = |packet: u64| {
            let [document, a, b] = completed(protocol, Some(packet));
            let is_late = |at: Time, whole: Time| at.since(whole) > RTT / 2;
            // Packets of the handshake and of the document delay everything.
            (document == whole[0]).then(|| [is_late(a, whole[1]), is_late(b, whole[2])])
        };
        let results: Vec<_> = (1..40).filter_map(delayed).collect();
        let count = |which| results.iter().filter(|late| **late == which).count();
        (count([true, true]), count([true, false]) + count([false, true]))
    };
    let (both, one) = stalls(Protocol::Http2);
    assert!(both >= 3 && both > one, "HTTP/2: {both} packets stall both, {one} one");
    let (both, one) = stalls(Protocol::Http3);
    // Packets with both header sections, or with the end of one body and a part of the other, stall both.
    assert!(both <= 2 && one >= 3 * both, "HTTP/3: {both} packets stall both, {one} one");
}

/// A request of 500 bytes, of which the dynamic table remembers nearly all, as HPACK does.
#[test]
fn later_requests_are_small() {
    let up = |objects| {
        let page = document_and(objects, 10);
        let mut scenario = scenario(page, network(10), Protocol::Http3, Tls::V13);
        scenario.client.request = Bytes::new(500);
        let run = Experiment::new(&scenario, Hosts::default()).unwrap().run(0, false).unwrap();
        run.up.payload_bytes as f64
    };
    let each = (up(60) - up(10)) / 50.0;
    assert!(each < 100.0, "{each} bytes");
}

#[test]
fn what_quic_cannot_carry_is_refused_with_a_remedy() {
    let refused = |network: Network, tls| {
        let scenario = scenario(document_and(1, 1), network, Protocol::Http3, tls);
        Experiment::new(&scenario, Hosts::default()).unwrap_err().to_string()
    };
    for tls in [Tls::None, Tls::V12] {
        let message = refused(network(10), tls);
        assert!(message.contains("http3 with TLS") && message.contains("--tls 1.3"), "{message}");
    }
    let narrow = Network::new("narrow".to_owned(), RTT, network(10).rate, Bytes::new(536));
    let message = refused(narrow, Tls::V13);
    assert!(message.contains("datagrams of at most 548 bytes"), "{message}");
}
