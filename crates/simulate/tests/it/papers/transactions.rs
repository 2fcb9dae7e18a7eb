//! Transactions: savings of T/TCP, ARDP and shared control blocks (`papers/heidemann-model`, sections II and
//! IV).

use scenario::{Network, Page, Protocol, Requests, Scenario, Stack};
use simulate::world::{ObservationPoint, Record};
use simulate::{Experiment, Hosts, PageResult};
use tcp::stack::packets::Sharing;
use wire::{Bytes, Duration};

fn scenario(protocol: Protocol, network: &str, sizes: &[u64]) -> Scenario {
    Scenario::new(
        Network::named(network).unwrap(),
        Page::from_sizes("test", sizes.iter().copied().map(Bytes::new)).unwrap(),
        protocol,
        Stack::named("period").unwrap(),
    )
}

fn fetch(protocol: Protocol, network: &str, sizes: &[u64], hosts: Hosts) -> PageResult {
    run(&scenario(protocol, network, sizes), hosts)
}

fn run(scenario: &Scenario, hosts: Hosts) -> PageResult {
    let fetched = Experiment::new(scenario, hosts).unwrap().run(0, true).unwrap();
    assert!(fetched.elapsed.is_some(), "{:?}", fetched.reports);
    fetched
}

/// Segments of a client's connection, both ways, in order of sending: source port, flags, bytes.
fn dialogue(records: &[Record], port: u16) -> Vec<(u16, String, usize)> {
    records
        .iter()
        .filter(|record| {
            record.seen == ObservationPoint::Sent && [record.from.port, record.to.port].contains(&port)
        })
        .map(|record| {
            let flags = record.segment.flags;
            let letters = [(flags.syn, 'S'), (flags.fin, 'F'), (flags.rst, 'R')];
            let text = letters.iter().filter(|(is_set, _)| *is_set).map(|(_, letter)| letter).collect();
            (record.from.host.0, text, record.segment.payload.len())
        })
        .collect()
}

#[test]
fn a_transaction_with_a_known_server_takes_three_packets() {
    let fetched = fetch(Protocol::Ttcp, "fast-internet", &[100, 100], Hosts::default());
    let first = dialogue(&fetched.records, 49_152);
    assert_eq!(first[0], (0, "S".to_owned(), 0), "the server is not known yet");
    let second = dialogue(&fetched.records, 49_153);
    let head_and_body = second[1].2;
    assert_eq!(
        second,
        [(0, "SF".to_owned(), 256), (1, "SF".to_owned(), head_and_body), (0, String::new(), 0),]
    );
}

#[test]
fn ardp_saves_the_round_trip_of_every_handshake() {
    let sizes = [300, 300, 300];
    let round_trip = Network::named("fast-internet").unwrap().rtt;
    let [http, ttcp, ardp] = [Protocol::Http10, Protocol::Ttcp, Protocol::Ardp]
        .map(|protocol| fetch(protocol, "fast-internet", &sizes, Hosts::default()).elapsed.unwrap());
    let near = |simulated: Duration, expected: Duration| {
        (simulated.as_millis_f64() - expected.as_millis_f64()).abs() < 10.0
    };
    assert!(near(http - ardp, round_trip * 3), "{http} {ardp}");
    assert!(near(http - ttcp, round_trip * 2), "{http} {ttcp}");
}

#[test]
fn fast_open_saves_the_round_trip_of_every_handshake_but_the_first() {
    let round_trip = Network::named("fast-internet").unwrap().rtt;
    let [http, fast] = [false, true].map(|fast_open| {
        fetch(Protocol::Http10, "fast-internet", &[300, 300, 300], Hosts { fast_open, ..Hosts::default() })
    });
    let saved = (http.elapsed.unwrap() - fast.elapsed.unwrap()).as_millis_f64();
    assert!((saved - round_trip.as_millis_f64() * 2.0).abs() < 10.0, "{saved}");
    assert_eq!(dialogue(&fast.records, 49_152)[0], (0, "S".to_owned(), 0), "it asks for a cookie");
    let second = dialogue(&fast.records, 49_153);
    assert_eq!(second[..2], [(0, "S".to_owned(), 256), (1, "S".to_owned(), 0)]);
    assert_eq!(second[2].0, 1, "the answer does not wait for the handshake");
}

#[test]
fn cached_path_skips_slow_start() {
    let sizes = [25_600, 25_600, 25_600];
    let [forgetful, mindful] = [Sharing::None, Sharing::Temporal].map(|sharing| {
        let mut scenario = scenario(Protocol::Ardp, "adsl", &sizes);
        scenario.stack.packets.sharing = sharing;
        run(&scenario, Hosts::default()).elapsed.unwrap()
    });
    assert!(mindful.as_nanos() * 4 < forgetful.as_nanos() * 3, "{mindful} against {forgetful}");
}

#[test]
fn data_on_a_lost_syn_is_retransmitted() {
    let mut network = Network::named("fast-internet").unwrap();
    network.up.loss = wire::link::Loss::Exactly([5, 6, 7].into());
    for protocol in [Protocol::Ttcp, Protocol::Ardp] {
        let scenario = Scenario {
            network: network.clone(),
            stack: Stack::named("linux").unwrap(),
            ..scenario(protocol, "fast-internet", &[2_000, 2_000, 2_000])
        };
        let fetched = Experiment::new(&scenario, Hosts::default()).unwrap().run(0, true).unwrap();
        assert!(fetched.elapsed.is_some(), "{protocol:?}: {:?}", fetched.reports);
        assert_eq!(fetched.lost, 3);
    }
}

/// RFC 2140, section 4: four concurrent connections share one window instead of four.
#[test]
fn connections_that_share_a_window_burst_no_more_than_one_does() {
    let burst = |sharing, parallel| {
        let mut scenario = scenario(Protocol::Http10, "adsl", &[25_600; 8]);
        scenario.stack = Stack::named("linux").unwrap();
        scenario.client.parallel = parallel;
        scenario.client.requests = Requests::Independent;
        scenario.stack.packets.sharing = sharing;
        let fetched = run(&scenario, Hosts::default());
        (first_flight(&fetched), fetched.elapsed.unwrap())
    };
    let [(one, alone), (four, together), (shared, sharing)] =
        [burst(Sharing::None, 1), burst(Sharing::None, 4), burst(Sharing::Ensemble, 4)];
    assert!(four >= one * 3, "four have {four} bytes under way, one {one}");
    assert!(shared <= one + 4 * 512, "{shared} together, {one} alone");
    assert!(sharing < alone, "sharing {sharing}, alone {alone}, each for itself {together}");
}

/// Data that the server sent in the first round trip after its first byte, before any of it can have been
/// acknowledged.
fn first_flight(fetched: &PageResult) -> usize {
    let sent = |record: &&Record| record.from.host.0 == 1 && record.seen == ObservationPoint::Sent;
    let data = fetched.records.iter().filter(sent).filter(|record| !record.segment.payload.is_empty());
    let first = data.clone().next().unwrap().at;
    let within = first + Network::named("adsl").unwrap().rtt;
    data.take_while(|record| record.at < within).map(|record| record.segment.payload.len()).sum()
}
