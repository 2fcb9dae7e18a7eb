//! Wake-up time of a sleeping process: data that arrives meanwhile is read together, and TCP has acknowledged
//! it.

use scenario::{Network, Page, Protocol, Scenario, Stack};
use simulate::page::SERVER;
use simulate::world::ObservationPoint;
use simulate::{Experiment, Hosts, PageResult};
use wire::Duration;

fn fetched(network: &str, protocol: Protocol, wake_up: Duration) -> PageResult {
    let mut stack = Stack::named("linux").unwrap();
    stack.packets.wake_up = wake_up;
    let network = Network::named(network).unwrap();
    let page = Page::named("small-cluster").unwrap();
    let scenario = Scenario::new(network, page, protocol, stack);
    Experiment::new(&scenario, Hosts::default()).unwrap().run(0, true).unwrap()
}

/// Number of segments shorter than those before them that the server sends while others follow.
fn short_segments(fetched: &PageResult) -> usize {
    let sent = fetched.records.iter().filter(|record| {
        record.seen == ObservationPoint::Sent
            && record.from.host == SERVER
            && !record.segment.payload.is_empty()
    });
    let sizes: Vec<usize> = sent.map(|record| record.segment.payload.len()).collect();
    let largest = sizes.iter().max().copied().unwrap_or_default();
    sizes.iter().filter(|size| **size < largest).count()
}

#[test]
fn regress_requests_within_a_wake_up_are_served_in_one_write() {
    // Two pipelined requests are a full segment and one of 12 bytes, 31 us behind it on this path.
    let asleep = fetched("adsl", Protocol::Http11Pipelined, Duration::from_micros(50));
    let immediate = fetched("adsl", Protocol::Http11Pipelined, Duration::ZERO);
    assert_eq!([&asleep, &immediate].map(short_segments), [2, 3]);
    let [asleep, immediate] = [asleep, immediate].map(|fetched| fetched.elapsed.unwrap());
    // Nagle's algorithm holds the end of the second response until the end of the first is acknowledged.
    assert!(asleep + Duration::from_millis(20) < immediate, "{asleep} {immediate}");
}

#[test]
fn requests_further_apart_than_a_wake_up_are_served_one_by_one() {
    let [asleep, immediate] =
        [50, 0].map(|micros| fetched("isdn", Protocol::Http11Pipelined, Duration::from_micros(micros)));
    assert_eq!(short_segments(&asleep), short_segments(&immediate));
}

#[test]
fn each_reaction_to_an_arrival_takes_a_wake_up() {
    let wake_up = Duration::from_micros(50);
    let [asleep, immediate] = [wake_up, Duration::ZERO]
        .map(|wake_up| fetched("ethernet", Protocol::Http11, wake_up).elapsed.unwrap());
    let added = asleep - immediate;
    // The client wakes for the handshake and two responses, the server for three requests.
    assert!((wake_up * 6..wake_up * 12).contains(&added), "{added}");
}
