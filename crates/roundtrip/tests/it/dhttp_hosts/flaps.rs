//! Links and routes that fail and return under a gateway: no wrong bytes, nothing hangs, and all works afterwards.
//!
//! Losses meanwhile are not judged: a request without a route to the server may fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use linux::netlink::{Netlink, Route, Subnet};

use super::faulty_network::{CLIENT, PerformedRequests, SHORT, counting_server};
use super::gateway::{RequestOutcome, TimeoutSetting, gateway, send_request};
use test_fixture::has_laboratory;

use super::host::Host;
use super::network::{Network, NetworkFaults};
use super::{PORT, SERVER, address};

/// Component that fails for a while.
#[derive(Clone, Copy, Debug)]
enum FailingPart {
    /// The link: all packets are lost in flight.
    Link,
    /// The route: the client's own kernel reports an error to senders.
    Route,
}

/// A failed component, with the duration of its failures in milliseconds; it works briefly in between.
type FlapCase = (FailingPart, u64);

const SHORT_OUTAGE: Duration = Duration::from_millis(300);

/// Outcomes of all requests meanwhile, by eight concurrent programs: complete, refused, truncated.
fn run_requests(flaps: &[FlapCase], timeout: TimeoutSetting) -> [usize; 3] {
    let [client_host, server_host] = [Host::new("client", CLIENT), Host::new("server", SERVER)];
    let network = Network::between(&client_host, &server_host, NetworkFaults::FAULTLESS);
    let short = (timeout == TimeoutSetting::Short).then_some(SHORT);
    let server = counting_server(&server_host, &PerformedRequests::default(), short);
    let gateway = gateway(&client_host, timeout);
    let at = gateway.address();
    let (is_over, next) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let threads = (0..8).map(|_| {
        let (is_over, next) = (Arc::clone(&is_over), Arc::clone(&next));
        client_host.run(move || {
            thread::spawn(move || {
                let mut outcomes = Vec::new();
                while !is_over.load(Ordering::Relaxed) {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    outcomes.push(send_request(at, &path(number)));
                    thread::park_timeout(Duration::from_millis(20));
                }
                outcomes
            })
        })
    });
    let threads: Vec<_> = threads.collect();
    for (part, millis) in flaps {
        thread::park_timeout(SHORT_OUTAGE);
        flap(&client_host, &network, *part, Duration::from_millis(*millis));
    }
    is_over.store(true, Ordering::Relaxed);
    let outcomes: Vec<RequestOutcome> =
        threads.into_iter().flat_map(|thread| thread.join().expect("nothing hangs")).collect();
    let afterwards =
        client_host.run(move || (0..12).map(|number| send_request(at, &path(number))).collect::<Vec<_>>());
    assert_eq!(afterwards, [RequestOutcome::Whole; 12]);
    let is_known = gateway.known().port(&address(SERVER, PORT).to_string());
    assert_eq!(is_known, Some(PORT), "after an outage the server is used over DHTTP again");
    drop((gateway, server, network));
    [RequestOutcome::Whole, RequestOutcome::Refused, RequestOutcome::Truncated]
        .map(|outcome| outcomes.iter().filter(|other| **other == outcome).count())
}

fn path(number: usize) -> String {
    format!("/{}/{number}", [10, 700, 1_100, 3_000, 20_000, 60_000][number % 6])
}

fn flap(client: &Host, network: &Network, part: FailingPart, duration: Duration) {
    match part {
        FailingPart::Link => {
            network.set_disconnected(true);
            thread::park_timeout(duration);
            network.set_disconnected(false);
        }
        FailingPart::Route => {
            client.run(|| Netlink::open().and_then(|mut netlink| netlink.remove_default_route()).unwrap());
            thread::park_timeout(duration);
            let back = |mut netlink: Netlink| netlink.set_route("client", &Route::new(Subnet::IPV4, CLIENT));
            client.run(move || Netlink::open().and_then(back).unwrap());
        }
    }
}

#[test]
fn a_gateway_survives_links_and_routes_that_fail_and_return() {
    if has_laboratory() {
        let [whole, ..] =
            run_requests(&[(FailingPart::Link, 1_000), (FailingPart::Route, 1_000)], TimeoutSetting::Short);
        assert!(whole > 0, "no response arrived");
    }
}

/// Takes a minute or two; the figures are in studies/proxies.
#[test]
#[ignore = "long evidence: cargo test -p roundtrip --test it -- --ignored --nocapture goes_and_comes"]
fn no_response_has_wrong_bytes_while_a_link_or_a_route_fails_and_returns() {
    if has_laboratory() {
        println!("| part | whole | refused | truncated |\n| --- | --- | --- | --- |");
        for part in [FailingPart::Link, FailingPart::Route] {
            let flaps: Vec<FlapCase> = (1..=5).chain(1..=5).map(|seconds| (part, seconds * 1_000)).collect();
            let [whole, refused, broken] = run_requests(&flaps, TimeoutSetting::Default);
            println!("| {part:?} | {whole} | {refused} | {broken} |");
        }
    }
}
