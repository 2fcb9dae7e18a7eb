//! Extreme scenarios: each gets a result or an error.

use scenario::{Network, Page, Protocol, Scenario, Stack};
use simulate::{Experiment, Hosts, simulate};
use wire::link::Loss;
use wire::{Bytes, Probability};

fn scenario(network: Network, page: Page, protocol: Protocol) -> Scenario {
    Scenario { runs: 2, ..Scenario::new(network, page, protocol, Stack::named("linux").unwrap()) }
}

#[test]
fn failure_is_reported_on_a_link_that_drops_everything() {
    let mut network = Network::named("fast-internet").unwrap();
    network.down.loss = Loss::Independent(Probability::ALWAYS);
    let page = Page::named("small-page").unwrap();
    let simulation = simulate(&scenario(network, page, Protocol::Http11), Hosts::default()).unwrap();
    assert_eq!(simulation.metrics.elapsed_ms, None);
    assert_eq!(
        simulation.remarks.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["2 of 2 runs failed after 381 s: object 1 did not arrive: the server could not be reached"]
    );
}

#[test]
fn ten_thousand_objects_are_fetched() {
    let page = Page::from_sizes("many", vec![Bytes::new(1); 10_000]).unwrap();
    for protocol in [Protocol::Http10, Protocol::Http11, Protocol::Ttcp] {
        let network = Network::named("ethernet").unwrap();
        let experiment =
            Experiment::new(&scenario(network, page.clone(), protocol), Hosts::default()).unwrap();
        let fetched = experiment.run(0, false).unwrap();
        assert!(fetched.elapsed.is_some(), "{protocol:?}: {:?}", fetched.ended);
    }
}

#[test]
fn a_buffer_below_a_segment_is_refused() {
    let mut scenario =
        scenario(Network::named("ethernet").unwrap(), Page::named("small-page").unwrap(), Protocol::Http11);
    scenario.stack.receive_buffer = Some(Bytes::new(1_000));
    let error = simulate(&scenario, Hosts::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "receive buffer of 1000 bytes: smaller than a segment; give at least the mss, 1460"
    );
}
