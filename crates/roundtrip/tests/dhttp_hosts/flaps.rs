//! Links and routes that fail and return under a gateway: no wrong bytes, nothing hangs, and all works afterwards.
//!
//! Losses meanwhile are not judged: a request without a route to the server may fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use testbed::netlink::{Netlink, Route, Subnet};

use super::gateway::{RequestOutcome, TimeoutSetting, ask, gateway};
use super::host::{Host, allowed};
use super::network::{Network, NetworkFaults};
use super::weather::{CLIENT, PerformedRequests, SHORT, counting};
use super::{PORT, SERVER, address};

/// Component that fails for a while.
#[derive(Clone, Copy, Debug)]
enum FailingPart {
    /// The link: all packets are lost in flight.
    TheLink,
    /// The route: the client's own kernel reports an error to senders.
    TheRoute,
}

/// A failed component, with the duration of its failures in milliseconds; it works briefly in between.
type FlapCase = (FailingPart, u64);

const SHORT_OUTAGE: Duration = Duration::from_millis(300);

/// Outcomes of all requests meanwhile, by eight concurrent programs: complete, refused, truncated.
fn through(flaps: &[FlapCase], timeout: TimeoutSetting) -> [usize; 3] {
    let [here, there] = [Host::new("client", CLIENT), Host::new("server", SERVER)];
    let network = Network::between(&here, &there, NetworkFaults::FINE);
    let short = (timeout == TimeoutSetting::Short).then_some(SHORT);
    let server = counting(&there, &PerformedRequests::default(), short);
    let gateway = gateway(&here, timeout);
    let at = gateway.address();
    let (is_over, next) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let asking = (0..8).map(|_| {
        let (is_over, next) = (Arc::clone(&is_over), Arc::clone(&next));
        here.does(move || {
            thread::spawn(move || {
                let mut fates = Vec::new();
                while !is_over.load(Ordering::Relaxed) {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    fates.push(ask(at, &path(number)));
                    thread::park_timeout(Duration::from_millis(20));
                }
                fates
            })
        })
    });
    let asking: Vec<_> = asking.collect();
    for (gone, millis) in flaps {
        thread::park_timeout(SHORT_OUTAGE);
        flap(&here, &network, *gone, Duration::from_millis(*millis));
    }
    is_over.store(true, Ordering::Relaxed);
    let fates: Vec<RequestOutcome> =
        asking.into_iter().flat_map(|one| one.join().expect("nothing hangs")).collect();
    let afterwards = here.does(move || (0..12).map(|number| ask(at, &path(number))).collect::<Vec<_>>());
    assert_eq!(afterwards, [RequestOutcome::Whole; 12]);
    let is_known = gateway.known().port(&address(SERVER, PORT).to_string());
    assert_eq!(is_known, Some(PORT), "whoever was silent for a while is asked by DHTTP again");
    drop((gateway, server, network));
    [RequestOutcome::Whole, RequestOutcome::Refused, RequestOutcome::BrokenOff]
        .map(|fate| fates.iter().filter(|one| **one == fate).count())
}

fn path(number: usize) -> String {
    format!("/{}/{number}", [10, 700, 1_100, 3_000, 20_000, 60_000][number % 6])
}

fn flap(client: &Host, network: &Network, gone: FailingPart, away: Duration) {
    match gone {
        FailingPart::TheLink => {
            network.set_disconnected(true);
            thread::park_timeout(away);
            network.set_disconnected(false);
        }
        FailingPart::TheRoute => {
            client.does(|| Netlink::open().and_then(|mut netlink| netlink.remove_default_route()).unwrap());
            thread::park_timeout(away);
            let back = |mut netlink: Netlink| netlink.set_route("client", &Route::new(Subnet::IPV4, CLIENT));
            client.does(move || Netlink::open().and_then(back).unwrap());
        }
    }
}

#[test]
fn a_gateway_survives_links_and_routes_that_fail_and_return() {
    if allowed() {
        let [whole, ..] =
            through(&[(FailingPart::TheLink, 1_000), (FailingPart::TheRoute, 1_000)], TimeoutSetting::Short);
        assert!(whole > 0, "not one came");
    }
}

/// Takes a minute or two; the figures are in studies/proxies.
#[test]
#[ignore = "long evidence: cargo test -p roundtrip --test dhttp_hosts -- --ignored --nocapture goes_and_comes"]
fn no_response_has_wrong_bytes_while_a_link_or_a_route_fails_and_returns() {
    if allowed() {
        println!("| gone | whole | refused | broken off |\n| --- | --- | --- | --- |");
        for gone in [FailingPart::TheLink, FailingPart::TheRoute] {
            let flaps: Vec<FlapCase> = (1..=5).chain(1..=5).map(|seconds| (gone, seconds * 1_000)).collect();
            let [whole, refused, broken] = through(&flaps, TimeoutSetting::Usual);
            println!("| {gone:?} | {whole} | {refused} | {broken} |");
        }
    }
}
