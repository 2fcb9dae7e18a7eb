//! Formulas for a page as a graph, over HTTP/1.1 with parallel connections, HTTP/2 and HTTP/3 (no published formula).
//!
//! Each object is known when its dependencies are met, and its time is a sum as in [`crate::transaction`]:
//!
//! ```text
//! known   = max over its dependencies (moment + delay)
//! sent    = max(known + c, a connection is usable)        usable = opened + rtt + TLS + the server's flight
//! first   = sent + rtt(host) + req / up + processing
//! end     = max(first + slow start over the connection's bytes,  the link is free + reply / bw) + c
//! S       = max of all ends
//! ```
//!
//! where c is the time of a recorded client's threads for a message, which takes them one after another.
//! Slow start counts over the sum of the bytes of a connection, without a stall between responses that follow each other.
//! Responses cross the link one after another, in the order of their first bytes, in whatever time others leave free; so none
//! is faster than the bandwidth allows for all. Over HTTP/1.1 a request waits for one of six connections, by priority. What
//! the formulas cannot know: shares of concurrent connections, losses, full queues, delayed ACKs, and cryptography.

mod connection;
mod link;
mod loading;
mod quic;
mod revalidation;
mod setup;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use page::{Dependency, Moment, Object};
use scenario::{Protocol, Requests, Scenario};
use trace::Cause;
use wire::{Bytes, Duration};

pub(crate) use revalidation::revalidated;

use crate::transaction::Wait;
use crate::{Path, SlowStart};

/// Times of an object at the client, in order, from the page's beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObjectTimes {
    /// Its dependencies are met.
    pub known: Duration,
    /// A connection for it begins to open; `None` if it uses an open one.
    pub connecting: Option<Duration>,
    /// TCP's handshake has ended, and that of TLS begins; `None` without a new connection.
    pub securing: Option<Duration>,
    /// Whether its connection is one of QUIC, whose handshake is also that of TLS.
    pub is_quic: bool,
    /// Its request leaves.
    pub sent: Duration,
    /// The first byte of its response arrives.
    pub first_byte: Duration,
    /// Its last byte arrives.
    pub end: Duration,
    /// Part between the first and the last byte in which slow start lets the connection idle.
    pub slow_start: Duration,
    /// Round trip to its host.
    pub rtt: Duration,
    /// The object whose moment makes it known: the last of its dependencies.
    pub because_of: Option<usize>,
    /// The object whose response keeps its connection, the link or the browser from it: until then its request is not sent, or
    /// its first byte not received.
    pub behind: Option<usize>,
}

/// A loaded page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Load {
    /// Times by object.
    pub(crate) objects: Vec<ObjectTimes>,
    /// Connections opened.
    pub(crate) connections: u64,
    /// Payload of requests and responses.
    pub(crate) payload: Bytes,
    /// Transmission, processing and think times on the critical path.
    pub(crate) working: Duration,
    /// Waits on the critical path, in order.
    pub(crate) waits: Vec<Wait>,
    /// Maximum of connections that transfer at the same time.
    pub(crate) concurrent: u64,
}

impl Load {
    /// Returns the time of the last byte.
    pub(crate) fn elapsed(&self) -> Duration {
        self.objects.iter().map(|times| times.end).max().unwrap_or(Duration::ZERO)
    }
}

/// Whether a protocol is predicted for graphs: HTTP over connections of the client's.
pub(crate) const fn is_predicted(protocol: Protocol) -> bool {
    match protocol {
        Protocol::Http10
        | Protocol::Http10KeepAlive
        | Protocol::Http11
        | Protocol::Http11Parallel
        | Protocol::Http11Pipelined
        | Protocol::Http2
        | Protocol::Http3
        | Protocol::Http3Upgrade => true,
        Protocol::Minimum
        | Protocol::Http11PipelinedDeflate
        | Protocol::Ttcp
        | Protocol::Ardp
        | Protocol::Dhttp => false,
    }
}

/// Loads a page.
pub(crate) fn load(scenario: &Scenario, path: &Path, start: &SlowStart) -> Load {
    let (objects, totals) = loading::load(scenario, path, start);
    let (working, waits) = critical_path(&objects);
    let loading::Totals { connections, concurrent, payload } = totals;
    Load { objects, connections, payload, working, waits, concurrent }
}

/// Returns the lower bound: no connection set-up, no window, and a link that carries every byte once.
pub(crate) fn minimum(scenario: &Scenario, path: &Path) -> Duration {
    let mut longest = Duration::ZERO;
    in_order_of_discovery(scenario, |object, known| {
        let Object { host, size, .. } = &scenario.page.objects[object];
        let rtt = path.rtt + scenario.page.hosts[*host].extra_rtt;
        let request = path.rate_up.time_for(request_size(scenario, object));
        let first_byte = known + rtt + request + processing(scenario, object) + scenario.server.processing;
        let end = first_byte + path.rate.time_for(*size);
        longest = longest.max(end);
        ObjectTimes { known, sent: known, first_byte, end, rtt, ..ObjectTimes::default() }
    });
    longest.max(path.rtt + path.rate.time_for(scenario.page.size()))
}

/// Calls `fetch` with each object and the time at which it is known, in that order; it returns the object's times.
fn in_order_of_discovery(scenario: &Scenario, mut fetch: impl FnMut(usize, Duration) -> ObjectTimes) {
    let objects = &scenario.page.objects;
    let after = dependencies(scenario);
    let mut waiting: Vec<usize> = after.iter().map(Vec::len).collect();
    let mut dependents = vec![Vec::new(); objects.len()];
    for (object, dependencies) in after.iter().enumerate() {
        for dependency in dependencies {
            dependents[dependency.on].push((object, *dependency));
        }
    }
    let mut known = vec![Duration::ZERO; objects.len()];
    let ready = (0..waiting.len()).filter(|object| waiting[*object] == 0);
    let mut next: BinaryHeap<_> = ready.map(|object| Reverse((Duration::ZERO, object))).collect();
    while let Some(Reverse((now, object))) = next.pop() {
        let times = fetch(object, now);
        for (dependent, dependency) in std::mem::take(&mut dependents[object]) {
            let met = moment(&times, dependency.at, objects[object].size) + dependency.plus;
            known[dependent] = known[dependent].max(met);
            waiting[dependent] -= 1;
            if waiting[dependent] == 0 {
                next.push(Reverse((known[dependent], dependent)));
            }
        }
    }
}

/// Returns what each object waits for: its own dependencies, unless the client's requests are independent, or depend on
/// one another, which a plain page leaves open. A client with several requests in flight waits for the document only.
fn dependencies(scenario: &Scenario) -> Vec<Vec<Dependency>> {
    let Scenario { page, protocol, client, .. } = scenario;
    let has_one_in_flight = match protocol {
        Protocol::Http10 | Protocol::Http10KeepAlive | Protocol::Http11 => true,
        Protocol::Minimum
        | Protocol::Http11Parallel
        | Protocol::Http11Pipelined
        | Protocol::Http11PipelinedDeflate
        | Protocol::Ttcp
        | Protocol::Ardp
        | Protocol::Dhttp
        | Protocol::Http2
        | Protocol::Http3
        | Protocol::Http3Upgrade => false,
    };
    match client.requests {
        Requests::Independent if page.is_plain() => vec![Vec::new(); page.objects.len()],
        Requests::Dependent if page.is_plain() && has_one_in_flight => {
            let before = |object: usize| object.checked_sub(1).map(Dependency::on_end);
            (0..page.objects.len()).map(|object| before(object).into_iter().collect()).collect()
        }
        Requests::Independent | Requests::AfterDocument | Requests::Dependent => {
            page.objects.iter().map(|object| object.after.clone()).collect()
        }
    }
}

/// Returns the time of a moment of a transfer; bytes arrive evenly.
fn moment(times: &ObjectTimes, at: Moment, size: Bytes) -> Duration {
    match at {
        Moment::Begun => times.sent,
        Moment::Ended => times.end,
        Moment::Delivered(bytes) => {
            let transfer = u128::from((times.end - times.first_byte).as_nanos());
            let part = transfer * u128::from(bytes.get()) / u128::from(size.get().max(1));
            times.first_byte + Duration::from_nanos(u64::try_from(part).unwrap_or(u64::MAX))
        }
    }
}

/// Size of a request with its headers, and its body.
fn request_size(scenario: &Scenario, object: usize) -> Bytes {
    let object = &scenario.page.objects[object];
    object.request_head.unwrap_or(scenario.client.request) + object.request_body
}

/// Time of the page's own server for a response, which passes while it serves others.
fn processing(scenario: &Scenario, object: usize) -> Duration {
    let object = &scenario.page.objects[object];
    object.processing.unwrap_or(scenario.page.hosts[object.host].processing)
}

/// Returns the time of work on the critical path, and its waits, in order.
fn critical_path(objects: &[ObjectTimes]) -> (Duration, Vec<Wait>) {
    let last = (0..objects.len()).max_by_key(|object| objects[*object].end);
    let before = |object: &usize| objects[*object].behind.or(objects[*object].because_of);
    let (mut waits, mut round_trips) = (Vec::new(), Duration::ZERO);
    for object in std::iter::successors(last, before).take(objects.len()) {
        let times = &objects[object];
        let mut push = |cause, at, lost| {
            if lost > Duration::ZERO {
                waits.push(Wait { cause, at, lost });
            }
        };
        push(Cause::SlowStart, times.first_byte, times.slow_start);
        // Behind a response that was on its way already, its own round trip and handshake have passed.
        if times.behind.is_some_and(|behind| objects[behind].end > times.sent) {
            continue;
        }
        round_trips += times.rtt;
        // A handshake costs what is left of it after the object before.
        let free = times.behind.map_or(Duration::ZERO, |behind| objects[behind].end);
        let handshakes = times.connecting.zip(times.securing);
        if let Some((connecting, securing)) = handshakes.map(|(tcp, tls)| (tcp.max(free), tls.max(free))) {
            let handshake = if times.is_quic { Cause::QuicHandshake } else { Cause::TlsHandshake };
            push(handshake, securing, times.sent - securing);
            push(Cause::ConnectionSetup, connecting, securing - connecting);
        }
    }
    waits.reverse();
    let lost: Duration = waits.iter().map(|wait| wait.lost).sum();
    let elapsed = last.map_or(Duration::ZERO, |last| objects[last].end);
    (elapsed - lost - round_trips, waits)
}

#[cfg(test)]
mod tests {
    use page::{Host, Kind, Page, Priority};
    use scenario::{Client, Network, Stack, Tls};
    use wire::Rate;

    use super::*;
    use crate::{Assumptions, predict};

    const RTT: Duration = Duration::from_millis(100);
    const SMALL: Bytes = Bytes::new(1_000);

    /// A scenario over a network with a rate that makes transmission times small.
    fn scenario(page: Page, protocol: Protocol, tls: Tls) -> Scenario {
        let rate = Rate::from_bits_per_second(10_000_000_000).unwrap();
        let network = Network { rtt: RTT, rate, rate_up: None, ..Network::named("4g").unwrap() };
        let scenario = Scenario::new(network, page, protocol, Stack::named("linux").unwrap());
        let client = Client { requests: Requests::Independent, ..scenario.client };
        Scenario { tls, client, ..scenario }
    }

    fn page(objects: &[(usize, &[usize])], hosts: &[u64]) -> Page {
        let object = |(host, after): &(usize, &[usize])| Object {
            host: *host,
            after: after.iter().copied().map(Dependency::on_end).collect(),
            ..Object::sized(SMALL)
        };
        let host = |extra: &u64| Host {
            extra_rtt: Duration::from_millis(*extra),
            ..Host::new(&format!("h{extra}"))
        };
        Page {
            objects: objects.iter().map(object).collect(),
            hosts: hosts.iter().map(host).collect(),
            ..Page::of("graph", Vec::new())
        }
    }

    /// Round trips; transmission takes less than a twentieth, which is left out.
    fn round_trips(page: Page, protocol: Protocol, tls: Tls) -> u64 {
        let scenario = scenario(page, protocol, tls);
        let prediction = predict(&scenario, &Assumptions::default()).unwrap();
        let (whole, rest) =
            (prediction.elapsed.as_nanos() / RTT.as_nanos(), prediction.elapsed.as_nanos() % RTT.as_nanos());
        assert!(rest < RTT.as_nanos() / 20, "{}", prediction.elapsed);
        let counted = prediction.round_trips.unwrap();
        assert!(
            (counted - prediction.elapsed.as_secs_f64() / RTT.as_secs_f64()).abs() < 0.05,
            "{counted} of {whole}"
        );
        whole
    }

    #[test]
    fn handshakes_take_their_round_trips() {
        let one = || page(&[(0, &[])], &[0]);
        let of = |tls| round_trips(one(), Protocol::Http2, tls);
        assert_eq!(Tls::ALL.map(of), [2, 4, 3, 3, 2]);
        assert_eq!(round_trips(one(), Protocol::Http11Parallel, Tls::V13), 3);
    }

    #[test]
    fn each_link_of_a_chain_costs_a_round_trip_on_an_open_connection() {
        let chain = || page(&[(0, &[]), (0, &[0]), (0, &[1])], &[0]);
        assert_eq!(round_trips(chain(), Protocol::Http2, Tls::V13), 5);
        assert_eq!(round_trips(chain(), Protocol::Http11Parallel, Tls::V13), 5);
        // A connection for each.
        assert_eq!(round_trips(chain(), Protocol::Http10, Tls::V13), 9);
    }

    #[test]
    fn a_hint_overlaps_the_handshakes_with_a_host() {
        let page = |at: Option<Moment>| {
            let mut page = page(&[(0, &[]), (1, &[0])], &[0, 100]);
            page.hosts[1].hints.preconnect = at.map(|at| Dependency { at, ..Dependency::on_end(0) });
            page
        };
        let of = |at, protocol| round_trips(page(at), protocol, Tls::V13);
        // Handshakes of four round trips begin with the document's request, one before its end.
        assert_eq!(of(None, Protocol::Http2), 3 + 4 + 2);
        assert_eq!(of(Some(Moment::Begun), Protocol::Http2), 2 + 4 + 2);
        assert_eq!(of(Some(Moment::Begun), Protocol::Http11Parallel), 2 + 4 + 2);
        assert_eq!(of(None, Protocol::Http3), 2 + 2 + 2);
        assert_eq!(of(Some(Moment::Begun), Protocol::Http3), 1 + 2 + 2);
        let mut looked_up = page(None);
        looked_up.hosts[1].lookup = RTT * 3;
        let elapsed = |page: &Page| {
            let scenario = scenario(page.clone(), Protocol::Http2, Tls::V13);
            predict(&scenario, &Assumptions::default()).unwrap().elapsed
        };
        let without = elapsed(&looked_up);
        let at = Moment::Begun;
        looked_up.hosts[1].hints.dns_prefetch = Some(Dependency { at, ..Dependency::on_end(0) });
        let earlier = (without - elapsed(&looked_up)).as_secs_f64() / RTT.as_secs_f64();
        assert!((earlier - 1.0).abs() < 0.05, "{earlier}");
    }

    #[test]
    fn another_host_costs_a_handshake_at_its_distance() {
        let elsewhere = || page(&[(0, &[]), (1, &[0])], &[0, 100]);
        assert_eq!(round_trips(elsewhere(), Protocol::Http2, Tls::V13), 3 + 2 * 3);
        let mut near = elsewhere();
        near.hosts[0].address_group = Some(1);
        near.hosts[1].address_group = Some(1);
        assert_eq!(
            round_trips(near, Protocol::Http2, Tls::V13),
            3 + 1,
            "coalesced: at the first host's address"
        );
    }

    #[test]
    fn a_seventh_object_waits_for_one_of_six_connections() {
        let many = |embedded: usize| {
            let mut objects: Vec<(usize, &[usize])> = vec![(0, &[])];
            objects.extend((0..embedded).map(|_| (0, &[0][..])));
            page(&objects, &[0, 1])
        };
        let of = |embedded| round_trips(many(embedded), Protocol::Http11Parallel, Tls::None);
        // The document's connection is open, five others open while it transfers.
        assert_eq!([1, 6, 7].map(of), [3, 4, 4]);
        assert_eq!(of(60), 2 + 1 + 9 + 1);
        assert_eq!(round_trips(many(10), Protocol::Http2, Tls::None), 3);
    }

    #[test]
    fn slow_start_counts_over_all_responses_of_a_connection() {
        let sized = |sizes: &[u64]| {
            let mut page = Page::from_sizes("sizes", sizes.iter().copied().map(Bytes::new)).unwrap();
            page.objects.iter_mut().skip(1).for_each(|object| object.after = Vec::new());
            page
        };
        // 40 kB do not fit the ten segments of the initial window; one more flight does it.
        assert_eq!(round_trips(sized(&[40_000]), Protocol::Http2, Tls::None), 3);
        assert_eq!(round_trips(sized(&[10_000, 10_000, 10_000, 10_000]), Protocol::Http2, Tls::None), 3);
        assert_eq!(round_trips(sized(&[10_000]), Protocol::Http2, Tls::None), 2);
    }

    #[test]
    fn images_are_held_back_for_the_scripts_before_the_body() {
        let mut head = page(&[(0, &[]), (0, &[0]), (0, &[0]), (0, &[0]), (0, &[0])], &[0, 1]);
        let times = |page: &Page| round_trips(page.clone(), Protocol::Http2, Tls::None);
        assert_eq!(times(&head), 3);
        head.objects.iter_mut().skip(2).for_each(|object| object.kind = Kind::Image);
        (head.objects[1].kind, head.objects[1].is_render_blocking) = (Kind::Script, true);
        // Two images, which are of medium priority, leave with the script, the third after it.
        assert_eq!(times(&head), 4);
        head.objects[4].kind = Kind::Script;
        head.objects[4].priority = Priority::High;
        assert_eq!(times(&head), 3, "two images are not held back");
        head.objects[4].kind = Kind::Image;
        head.objects[1].kind = Kind::StyleSheet;
        assert_eq!(times(&head), 3, "a style sheet does not stop the parser");
    }

    #[test]
    fn regress_requests_in_sequence_wait_for_one_handshake() {
        let at_once = vec![(0, &[][..]); 20];
        let chain: Vec<(usize, &[usize])> = vec![(0, &[]), (0, &[0]), (0, &[1])];
        for (protocol, objects, handshakes) in [
            (Protocol::Http11, &at_once, 1.0),
            (Protocol::Http2, &at_once, 1.0),
            (Protocol::Http11, &chain, 1.0),
            (Protocol::Http10, &chain, 3.0),
        ] {
            let scenario = scenario(page(objects, &[0]), protocol, Tls::V13);
            let prediction = predict(&scenario, &Assumptions::default()).unwrap();
            for cause in [Cause::ConnectionSetup, Cause::TlsHandshake] {
                let waits = prediction.stalls.iter().filter(|wait| wait.cause == cause);
                let lost: f64 = waits.map(|wait| wait.lost.as_millis_f64()).sum();
                let expected = handshakes * RTT.as_millis_f64();
                assert!((lost - expected).abs() < expected / 50.0, "{protocol:?}: {lost} ms of {cause}");
            }
        }
    }

    #[test]
    fn no_page_is_faster_than_its_minimum() {
        let far = page(&[(0, &[]), (1, &[0]), (0, &[0]), (1, &[1, 2])], &[0, 30]);
        for protocol in [Protocol::Http10, Protocol::Http11, Protocol::Http11Parallel, Protocol::Http2] {
            for tls in Tls::ALL {
                let scenario = scenario(far.clone(), protocol, tls);
                let prediction = predict(&scenario, &Assumptions::default()).unwrap();
                assert!(prediction.minimum > RTT * 3 && prediction.elapsed >= prediction.minimum, "{tls:?}");
            }
        }
    }
}
