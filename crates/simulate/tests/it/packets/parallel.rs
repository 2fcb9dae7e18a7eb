//! HTTP/1.1 over several connections, as in browsers (RFC 9112, section 9.4).

use scenario::{Client, Network, Page, Protocol, Requests, Scenario, Stack};
use simulate::{Experiment, Hosts};
use wire::{Bytes, Duration};

fn page(network: &str, protocol: Protocol, parallel: u16, requests: Requests) -> Scenario {
    let network = Network::named(network).unwrap();
    let page = Page::from_sizes("a document and twelve images", [9_000; 13].map(Bytes::new)).unwrap();
    let mut scenario = Scenario::new(network, page, protocol, Stack::named("linux").unwrap());
    scenario.client = Client { parallel, requests, ..scenario.client };
    scenario
}

/// Elapsed time, and the connections opened.
fn fetched(scenario: &Scenario) -> (Duration, f64) {
    let simulation = simulate::simulate(scenario, Hosts::default()).unwrap();
    let fetched = Experiment::new(scenario, Hosts::default()).unwrap().run(0, false).unwrap();
    (fetched.elapsed.unwrap(), simulation.metrics.connections.unwrap())
}

#[test]
fn one_connection_of_several_is_http11() {
    for network in ["modem", "fast-internet", "adsl", "direcpc"] {
        for requests in Requests::ALL {
            let one = fetched(&page(network, Protocol::Http11, 1, requests));
            assert_eq!(fetched(&page(network, Protocol::Http11Parallel, 1, requests)), one, "{network}");
        }
    }
}

#[test]
fn six_persistent_connections_carry_thirteen_objects() {
    for (network, requests) in [("adsl", Requests::Dependent), ("direcpc", Requests::Independent)] {
        let (one, _) = fetched(&page(network, Protocol::Http11, 1, requests));
        let (six, connections) = fetched(&page(network, Protocol::Http11Parallel, 6, requests));
        assert!(six < one, "{network}: {six} {one}");
        assert_eq!(connections, 6.0, "{network}");
    }
}

#[test]
fn protocols_with_one_connection_refuse_more() {
    for protocol in Protocol::ALL.into_iter().filter(|protocol| *protocol != Protocol::Minimum) {
        let refusal = Experiment::new(&page("adsl", protocol, 4, Requests::Independent), Hosts::default())
            .err()
            .map(|error| error.to_string());
        let name = protocol.name();
        let expected = format!(
            "the simulator cannot do {name} over 4 concurrent connections; use http10 or http11-parallel, or leave --parallel \
             out"
        );
        match protocol {
            // Without sizes after deflate it is refused earlier.
            Protocol::Http11PipelinedDeflate => assert!(refusal.is_some()),
            _ if protocol.is_parallel() => assert_eq!(refusal, None, "{name}"),
            _ => assert_eq!(refusal, Some(expected)),
        }
    }
}
