//! Two clients behind one access link.

use scenario::{Network, Page, Protocol, Scenario, Stack};
use simulate::{Experiment, Hosts, PageResult};
use wire::{Bytes, Duration};

fn download(protocol: Protocol, bytes: u64) -> Experiment {
    let page = Page::from_sizes("download", [Bytes::new(bytes)]).unwrap();
    let scenario =
        Scenario::new(Network::named("4g").unwrap(), page, protocol, Stack::named("linux").unwrap());
    Experiment::new(&scenario, Hosts::default()).unwrap()
}

fn alone(experiment: &Experiment) -> Duration {
    experiment.run(0, false).unwrap().elapsed.unwrap()
}

fn times(results: &[PageResult; 2]) -> [Duration; 2] {
    [0, 1].map(|index: usize| results[index].elapsed.unwrap())
}

#[test]
fn two_downloads_share_the_link() {
    for protocol in [Protocol::Http11, Protocol::Http2] {
        let download = download(protocol, 3_000_000);
        let both = download.run_beside(&download, Duration::ZERO, 0).unwrap();
        let ratio = |elapsed: Duration| elapsed.as_secs_f64() / alone(&download).as_secs_f64();
        let [first, second] = times(&both).map(ratio);
        // The link carries twice as much; which of the two loses packets in its full queue is chance.
        let (sooner, later) = (first.min(second), first.max(second));
        assert!((1.7..2.2).contains(&later) && sooner > 1.2, "{protocol:?}: {sooner} and {later} times");
        assert_eq!(both[0].down.payload_bytes, both[1].down.payload_bytes);
    }
}

#[test]
fn a_neighbour_after_the_page_costs_nothing_and_waits_for_nothing() {
    let [page, other] = [(Protocol::Http2, 300_000), (Protocol::Http11, 50_000)]
        .map(|(protocol, bytes)| download(protocol, bytes));
    let results = page.run_beside(&other, Duration::from_secs(30), 0).unwrap();
    assert_eq!(times(&results), [alone(&page), alone(&other)]);
    // In the middle of the page, the packets of both wait in one queue.
    let [page_beside, other_beside] = times(&page.run_beside(&other, Duration::from_millis(300), 0).unwrap());
    assert!(page_beside > alone(&page) && other_beside > alone(&other), "{page_beside} {other_beside}");
}

#[test]
fn a_page_before_those_of_two_clients_is_refused() {
    let mut warm = Scenario::new(
        Network::named("4g").unwrap(),
        Page::named("small-page").unwrap(),
        Protocol::Http11,
        Stack::named("linux").unwrap(),
    );
    warm.client.connection = scenario::Connection::Warm;
    let warm = Experiment::new(&warm, Hosts::default()).unwrap();
    let refused = warm.run_beside(&download(Protocol::Http11, 1), Duration::ZERO, 0).unwrap_err();
    assert!(refused.to_string().contains("begin without an open connection"), "{refused}");
}
