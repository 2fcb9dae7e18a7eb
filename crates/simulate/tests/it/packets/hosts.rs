//! A page of several hosts behind the client's access link.

use page::{Dependency, Host, Object};
use scenario::{Network, Page, Protocol, Scenario, Stack};
use simulate::{Experiment, Hosts, PageResult};
use wire::{Bytes, Duration, Rate};

/// A document and images on another host, at this distance and with this processing time.
fn fetched(protocol: Protocol, images: usize, extra_rtt: Duration, processing: Duration) -> PageResult {
    let image = Object { host: 1, after: vec![Dependency::on_end(0)], ..Object::sized(Bytes::new(700)) };
    let hosts = vec![Host::new("www"), Host { extra_rtt, processing, ..Host::new("images") }];
    let document = Object::sized(Bytes::new(900));
    let objects = std::iter::once(document).chain(std::iter::repeat_n(image, images)).collect();
    let page = Page { hosts, ..Page::of("two hosts", objects) };
    page.check().unwrap();
    let rate = Rate::from_bits_per_second(10_000_000).unwrap();
    let network = Network::new("custom".to_owned(), Duration::from_millis(50), rate, Bytes::new(1_460));
    let scenario = Scenario::new(network, page, protocol, Stack::named("linux").unwrap());
    Experiment::new(&scenario, Hosts::default()).unwrap().run(0, true).unwrap()
}

#[test]
fn distant_host_costs_its_round_trips_and_its_processing() {
    let (near, far) = (Duration::ZERO, Duration::from_millis(100));
    let elapsed =
        |extra_rtt, processing| fetched(Protocol::Http11Parallel, 1, extra_rtt, processing).elapsed.unwrap();
    let as_near = elapsed(near, near);
    // A handshake and a request.
    assert_eq!(elapsed(far, near) - as_near, Duration::from_millis(200));
    assert_eq!(elapsed(far, Duration::from_millis(20)) - as_near, Duration::from_millis(220));
}

#[test]
fn each_host_has_connections_of_its_own() {
    for (protocol, connections) in [
        (Protocol::Http11, 2),
        (Protocol::Http11Pipelined, 2),
        // A browser opens two to the document's host.
        (Protocol::Http11Parallel, 4),
        (Protocol::Http10, 3),
    ] {
        let fetched = fetched(protocol, 2, Duration::ZERO, Duration::ZERO);
        assert_eq!(fetched.up.connections, connections, "{protocol:?}");
        assert_eq!(fetched.down.connections, connections, "{protocol:?}");
    }
}

#[test]
fn dhttp_sends_each_request_to_its_host() {
    let fetched = fetched(Protocol::Dhttp, 2, Duration::from_millis(100), Duration::ZERO);
    let channels = fetched.channels.unwrap();
    assert_eq!((channels.by_datagram, channels.resends), (3, 0));
    // A round trip to the document's host, then one to the other.
    let elapsed = fetched.elapsed.unwrap().as_millis_f64();
    assert!((200.0..210.0).contains(&elapsed), "{elapsed}");
}
