//! Effects of a scenario's parts on its prediction, and the notes. The papers' numbers are in `papers.rs`.

use model::{Assumptions, Note, Path, Prediction, Refusal, predict};
use proptest::prelude::*;
use scenario::programs::ProgramKey;
use scenario::{Client, Connection, Network, Object, Page, Protocol, Requests, Scenario, Stack, Visit};
use tcp::stack::Acks;
use tcp::stack::packets::Sharing;
use trace::Cause;
use wire::link::Loss;
use wire::{Bytes, Duration, Rate};

fn scenario(protocol: Protocol) -> Scenario {
    Scenario {
        client: Client { requests: Requests::Independent, ..Client::default() },
        ..Scenario::new(
            Network::named("fast-internet").unwrap(),
            Page::named("small-cluster").unwrap(),
            protocol,
            Stack::named("period").unwrap(),
        )
    }
}

fn sizes(sizes: &[u64]) -> Page {
    let objects = sizes.iter().map(|size| Object::sized(Bytes::new(*size))).collect();
    Page::of("custom", objects)
}

fn predicted(scenario: &Scenario) -> Prediction<'_> {
    predict(scenario, &Assumptions::default()).unwrap()
}

fn elapsed(scenario: &Scenario) -> Duration {
    predicted(scenario).elapsed
}

fn has_note(scenario: &Scenario, predicate: impl Fn(&Note) -> bool) -> bool {
    predicted(scenario).notes.iter().any(predicate)
}

#[test]
fn paper_warm_start_costs_the_minimum_with_caching_protocols() {
    let minimum = elapsed(&scenario(Protocol::Minimum));
    for protocol in [Protocol::Http10KeepAlive, Protocol::Http11, Protocol::Http11Pipelined, Protocol::Ttcp] {
        let mut warm = scenario(protocol);
        warm.client.connection = Connection::Warm;
        assert_eq!(elapsed(&warm), minimum, "{protocol:?}");
        assert_eq!(predicted(&warm).overhead(), Some(1.0));
    }
}

/// "If we assumed that no additional requests could be made until the first was completed [...] we would add one
/// additional rtt" (`papers/heidemann-model#section-iv-a`).
#[test]
fn paper_requests_after_the_document_cost_one_round_trip() {
    for protocol in [Protocol::Minimum, Protocol::Http10, Protocol::Http11, Protocol::Ardp] {
        let independent = scenario(protocol);
        let mut after = independent.clone();
        after.client.requests = Requests::AfterDocument;
        assert_eq!(elapsed(&after), elapsed(&independent) + independent.network.rtt, "{protocol:?}");
        after.page = sizes(&[6_651]);
        assert_eq!(elapsed(&after), elapsed(&Scenario { page: after.page.clone(), ..independent }));
    }
}

/// "We plan to provide simple congestion-information caching in a future version of ARDP"
/// (`papers/heidemann-model#section-iv-f`).
#[test]
fn paper_ardp_with_cached_congestion_information_slow_starts_once() {
    let plain = scenario(Protocol::Ardp);
    let mut cached = plain.clone();
    cached.stack.packets.sharing = Sharing::Temporal;
    let cluster = elapsed(&plain) - elapsed(&cached);
    let later = [3_883, 1_866].map(|size| {
        let alone = |protocol| elapsed(&Scenario { page: sizes(&[size]), ..scenario(protocol) });
        alone(Protocol::Ardp) - alone(Protocol::Minimum)
    });
    assert_eq!(cluster, later[0] + later[1]);
    cached.client.connection = Connection::Warm;
    assert_eq!(elapsed(&cached), elapsed(&scenario(Protocol::Minimum)));
    assert!(!has_note(&cached, |note| matches!(note, Note::NothingCached { .. })));
}

#[test]
fn an_initial_window_that_is_set_counts_and_a_session_is_refused() {
    let mut wide = scenario(Protocol::Http10);
    wide.programs.set(ProgramKey::InitialWindow, "64").unwrap();
    assert!(predicted(&wide).stalls.iter().all(|stall| stall.cause == Cause::ConnectionSetup));
    assert!(!has_note(&wide, |note| matches!(note, Note::Programs { .. })));
    let mut session = scenario(Protocol::Http11);
    session.programs.set(ProgramKey::ClientPages, "3").unwrap();
    assert_eq!(predict(&session, &Assumptions::default()), Err(Refusal::Session { pages: 3 }));
    session.protocol = Protocol::Minimum;
    assert_eq!(elapsed(&session), elapsed(&scenario(Protocol::Minimum)));
}

#[test]
fn changed_objects_are_counted_whole() {
    let mut revised = Scenario { visit: Visit::Revalidate, ..scenario(Protocol::Http11) };
    revised.programs.set(ProgramKey::ServerChanged, "100%").unwrap();
    assert_eq!(elapsed(&revised), elapsed(&scenario(Protocol::Http11)));
    assert!(has_note(&revised, |note| matches!(note, Note::RevalidationHead { changed: 3, .. })));
}

#[test]
fn paper_persistent_connections_and_transaction_tcp_take_the_same_time() {
    assert_eq!(elapsed(&scenario(Protocol::Http10KeepAlive)), elapsed(&scenario(Protocol::Ttcp)));
    let connections = [Protocol::Http10KeepAlive, Protocol::Ttcp]
        .map(|protocol| predicted(&scenario(protocol)).connections);
    assert_eq!(connections, [Some(1), Some(3)]);
}

#[test]
fn waiting_client_adds_a_round_trip_per_object_and_pipelining_client_one() {
    let rtt = Network::named("fast-internet").unwrap().rtt;
    for (protocol, waits) in [
        (Protocol::Http10, 2),
        (Protocol::Http10KeepAlive, 2),
        (Protocol::Http11, 2),
        (Protocol::Ttcp, 2),
        (Protocol::Ardp, 2),
        (Protocol::Minimum, 1),
        (Protocol::Http11Pipelined, 1),
        (Protocol::Dhttp, 1),
    ] {
        let mut dependent = scenario(protocol);
        dependent.client.requests = Requests::Dependent;
        assert_eq!(elapsed(&dependent), elapsed(&scenario(protocol)) + rtt * waits, "{protocol:?}");
    }
}

#[test]
fn round_trips_are_the_time_without_transmission_and_processing() {
    let minimum = scenario(Protocol::Minimum);
    assert_eq!(predicted(&minimum).round_trips, Some(1.0));
    let mut busy = minimum.clone();
    busy.server.processing = Duration::from_secs(1);
    assert_eq!(predicted(&busy).round_trips, Some(1.0));
    let mut near = scenario(Protocol::Http10);
    near.network.rtt = Duration::ZERO;
    assert_eq!(predicted(&near).round_trips, None);
}

#[test]
fn handshakes_and_stalls_are_listed_in_order_and_account_for_the_time() {
    let scenario = scenario(Protocol::Http10);
    let prediction = predicted(&scenario);
    let setups = prediction.stalls.iter().filter(|stall| stall.cause.name() == "connection-setup").count();
    assert_eq!(setups, 3);
    let lost: Duration = prediction.stalls.iter().map(|stall| stall.lost).sum();
    let trips = prediction.round_trips.unwrap() * scenario.network.rtt.as_secs_f64();
    let all = (lost + scenario.network.rtt).as_secs_f64();
    assert!((trips - all).abs() < 1e-6, "{trips} {all}");
    let stalls = prediction.named_stalls();
    assert_eq!((prediction.metrics().runs, stalls.len()), (1, prediction.stalls.len()));
    assert_eq!(stalls[0].at_ms, 0.0);
}

/// Returns the scenario on a network that carries the papers' datagrams unfragmented.
fn wide(mut scenario: Scenario) -> Scenario {
    scenario.network.mtu = Some(Bytes::new(1_500));
    scenario
}

#[test]
fn small_dhttp_responses_take_one_round_trip_no_connection_and_a_datagram_each_way() {
    let mut small = wide(scenario(Protocol::Dhttp));
    small.page = sizes(&[1200, 800, 40]);
    let prediction = predicted(&small);
    assert_eq!(prediction.elapsed, prediction.minimum);
    assert_eq!((prediction.connections, prediction.packets), (Some(0), Some((3, 3))));
    let metrics = prediction.metrics();
    let percent = 100.0 * 40.0 * 6.0 / (2040.0 + 3.0 * 256.0 + 40.0 * 6.0);
    assert!((metrics.overhead_percent().unwrap() - percent).abs() < 1e-9);
}

#[test]
fn large_dhttp_responses_need_a_connection_when_cold_and_none_when_warm() {
    let mut large = wide(scenario(Protocol::Dhttp));
    large.page = sizes(&[500, 6651]);
    let mut tcp = scenario(Protocol::Http10);
    tcp.page = sizes(&[6651]);
    let alone = |page: &[u64]| {
        let mut minimum = scenario(Protocol::Minimum);
        minimum.page = sizes(page);
        elapsed(&minimum)
    };
    let first_object = alone(&[500, 6651]) - alone(&[6651]);
    assert_eq!(elapsed(&large), elapsed(&tcp) + first_object);
    assert_eq!(predicted(&large).connections, Some(1));
    large.client.connection = Connection::Warm;
    assert_eq!(elapsed(&large), alone(&[500, 6651]));
    assert_eq!(predicted(&large).connections, Some(0));
}

#[test]
fn datagram_limit_and_response_headers_decide_the_channel() {
    let mut page = scenario(Protocol::Dhttp);
    page.page = sizes(&[1460 - 226 - 8]);
    assert_eq!(predicted(&page).connections, Some(1), "a packet of this network holds 552 bytes");
    page = wide(page);
    assert_eq!(predicted(&page).connections, Some(0));
    let internet = Assumptions { datagram_limit: Bytes::new(1232), ..Assumptions::default() };
    assert_eq!(predict(&page, &internet).unwrap().connections, Some(1));
}

#[test]
fn parallel_connections_help_only_with_one_connection_per_object() {
    let one = elapsed(&scenario(Protocol::Http10));
    let mut four = scenario(Protocol::Http10);
    four.client.parallel = 4;
    assert!(elapsed(&four) < one);
    // Three objects: no more than three connections.
    assert!(has_note(&four, |note| *note == Note::ParallelApproximated { connections: 3 }));
    four.client.requests = Requests::Dependent;
    assert!(elapsed(&four) > one);
    assert!(has_note(&four, |note| matches!(note, Note::ParallelUnused { .. })));

    let mut many = scenario(Protocol::Http10);
    many.page = sizes(&[10; 200]);
    many.client.parallel = 1000;
    let prediction = predicted(&many);
    assert_eq!(prediction.elapsed, prediction.minimum + many.network.rtt / 200);
}

#[test]
fn several_persistent_connections_are_one_where_one_is_allowed() {
    let networks = ["modem", "fast-internet", "direcpc"].map(|name| Network::named(name).unwrap());
    for (network, requests) in networks.iter().flat_map(|network| Requests::ALL.map(|it| (network, it))) {
        let elapsed_of = |protocol, parallel| {
            let mut one = scenario(protocol);
            one.network = network.clone();
            one.page = sizes(&[9_000; 20]);
            one.client = Client { requests, parallel, ..one.client };
            elapsed(&one)
        };
        let one = elapsed_of(Protocol::Http11, 1);
        assert_eq!(elapsed_of(Protocol::Http11Parallel, 1), one, "{} {requests:?}", network.name);
        if requests == Requests::Dependent {
            assert!(elapsed_of(Protocol::Http11Parallel, 6) < one, "{}", network.name);
        }
    }
    // 20 dependent objects: the first and its handshake at the whole round trip, five handshakes and 19
    // responses at a sixth of it. Segments that fit the initial window cause no stall.
    let mut browser = scenario(Protocol::Http11Parallel);
    browser.page = sizes(&[100; 20]);
    browser.client = Client { requests: Requests::Dependent, parallel: 6, ..browser.client };
    let prediction = predicted(&browser);
    let share = Duration::from_nanos(browser.network.rtt.as_nanos().div_ceil(6));
    let path = Path::from(&browser.network);
    let sending = path.rate_up.time_for(browser.client.request) + path.rate.time_for(Bytes::new(100));
    assert_eq!(prediction.elapsed, browser.network.rtt * 2 + share * (5 + 19) + sending * 20);
    assert_eq!(prediction.connections, Some(6));
}

#[test]
fn several_connections_are_refused_where_there_is_one() {
    for protocol in Protocol::OF_THE_PAPERS {
        let mut four = scenario(protocol);
        four.page = Page::named("w3c-page").unwrap();
        four.client.parallel = 4;
        let refusal = matches!(predict(&four, &Assumptions::default()), Err(Refusal::Parallel { .. }));
        let has_formula = [Protocol::Minimum, Protocol::Http10, Protocol::Http11Parallel].contains(&protocol);
        assert_eq!(refusal, !has_formula, "{protocol:?}");
    }
}

#[test]
fn a_linux_sender_starts_with_ten_segments() {
    let mut linux = scenario(Protocol::Http10);
    linux.stack = Stack::named("linux").unwrap();
    // 13, 8 and 4 segments: the first reply stalls once, the others do not.
    let stalls = predicted(&linux).stalls;
    assert_eq!(stalls.iter().filter(|stall| stall.cause.name() == "slow-start").count(), 1);
    let delayed = Assumptions { acks: Some(Acks::Delayed), ..Assumptions::default() };
    // With delayed ACKs, the first acknowledgement waits for a second segment.
    assert!(predict(&linux, &delayed).unwrap().elapsed > elapsed(&linux));
}

#[test]
fn deflate_needs_sizes_and_uses_them() {
    let refusal = predict(&scenario(Protocol::Http11PipelinedDeflate), &Assumptions::default()).map(|_| ());
    assert_eq!(refusal, Err(Refusal::DeflatedSizesUnknown { page: "small-cluster".to_owned() }));
    let [plain, deflated] = [Protocol::Http11Pipelined, Protocol::Http11PipelinedDeflate].map(|protocol| {
        let mut scenario = scenario(protocol);
        scenario.page = Page::named("w3c-page").unwrap();
        predicted(&scenario).payload.get()
    });
    assert_eq!(plain - deflated, (42 - 11) * 1024);
}

#[test]
fn revalidation_transfers_one_header_section_per_object() {
    let mut revalidation = scenario(Protocol::Http11Pipelined);
    revalidation.visit = Visit::Revalidate;
    let prediction = predicted(&revalidation);
    assert_eq!(prediction.payload, Bytes::new(3 * (256 + 226)));
    assert!(prediction.notes.contains(&Note::RevalidationHead { head: Bytes::new(226), changed: 0 }));
}

#[test]
fn requests_use_the_upstream_rate() {
    let mut slow_up = scenario(Protocol::Minimum);
    slow_up.network.rate_up = Rate::from_bits_per_second(28_800);
    let more = Path::from(&slow_up.network).rate_up.time_for(Bytes::new(256)) * 3;
    let smaller = slow_up.network.rate.time_for(Bytes::new(256)) * 3;
    assert_eq!(elapsed(&slow_up), elapsed(&scenario(Protocol::Minimum)) + more - smaller);
    assert!(has_note(&slow_up, |note| matches!(note, Note::Asymmetric { .. })));
}

#[test]
fn broken_assumptions_are_noted_and_no_others() {
    type Breaks = fn(&mut Scenario);
    let cases: [(&str, Breaks); 9] = [
        ("one request in flight at a time", |_| {}),
        ("after the first exchange the window is 9 segments of the 24", |_| {}),
        ("packets are lost", |scenario| {
            scenario.network.down.loss = Loss::Exactly([3].into());
        }),
        ("a request of 600 B needs more than one segment", |scenario| {
            scenario.client.request = Bytes::new(600);
        }),
        ("the receive window of 16384 B", |scenario| {
            scenario.network = Network::named("adsl").unwrap();
            scenario.page = Page::named("medium-cluster").unwrap();
        }),
        ("slow start ends at 65536 B", |scenario| {
            scenario.network.rtt = Duration::from_secs(2);
            scenario.page = Page::named("large-page").unwrap();
        }),
        ("the queue is short", |scenario| {
            scenario.network.down.queue.packets = Some(1);
        }),
        ("caches nothing from an earlier page", |scenario| {
            scenario.protocol = Protocol::Http10;
            scenario.client.connection = Connection::Warm;
        }),
        ("this stack restarts it after idle", |scenario| {
            scenario.stack = Stack::named("linux").unwrap();
            scenario.client.connection = Connection::Warm;
        }),
    ];
    let sentences = |scenario: &Scenario| -> Vec<String> {
        predicted(scenario).notes.iter().map(Note::to_string).collect()
    };
    for (part, breaks) in cases {
        let mut broken = scenario(Protocol::Http10KeepAlive);
        breaks(&mut broken);
        let notes = sentences(&broken);
        assert!(notes.iter().any(|sentence| sentence.contains(part)), "{part}: {notes:?}");
    }
    let mut retained = scenario(Protocol::Http11Pipelined);
    retained.network = Network::named("modem").unwrap();
    assert_eq!(sentences(&retained), [] as [String; 0]);
}

#[test]
fn page_beyond_the_maximum_duration_is_refused() {
    let mut endless = scenario(Protocol::Minimum);
    endless.network.rate = Rate::from_bits_per_second(1).unwrap();
    endless.page = sizes(&[1 << 40; 1000]);
    let refusal = predict(&endless, &Assumptions::default()).unwrap_err();
    assert!(
        refusal
            .to_string()
            .starts_with("page `custom` over network `fast-internet` takes longer than 584 years")
    );
}

prop_compose! {
    fn any_scenario()(
        protocol in prop::sample::select(Protocol::OF_THE_PAPERS.to_vec()),
        stack in prop::sample::select(Stack::ALL.to_vec()),
        objects in prop::collection::vec(1_u64..=1 << 40, 1..20),
        deflated in any::<bool>(),
        (rtt, rate, mss) in (0_u64..=3_600_000_000_000, 1_000_u64..=1_000_000_000_000_000, 1_u64..=65_495),
        (request, parallel, processing) in (1_u64..100_000, 1_u16..100, 0_u64..1_000_000_000),
        (dependent, warm, revalidate) in any::<(bool, bool, bool)>(),
    ) -> Scenario {
        let mut scenario = scenario(protocol);
        scenario.stack = stack;
        scenario.page = sizes(&objects);
        scenario.page.objects[0].deflated = deflated.then_some(Bytes::new(1));
        scenario.network = Network::new(
            "any".to_owned(),
            Duration::from_nanos(rtt),
            Rate::from_millibits_per_second(rate).unwrap(),
            Bytes::new(mss),
        );
        scenario.client = Client {
            request: Bytes::new(request),
            requests: if dependent { Requests::Dependent } else { Requests::Independent },
            parallel,
            connection: if warm { Connection::Warm } else { Connection::Cold },
        };
        scenario.server.processing = Duration::from_nanos(processing);
        scenario.visit = if revalidate { Visit::Revalidate } else { Visit::First };
        scenario
    }
}

proptest! {
    #[test]
    fn no_prediction_is_below_the_minimum_or_infinite(scenario in any_scenario()) {
        if let Ok(prediction) = predict(&scenario, &Assumptions::default()) {
            let smaller = scenario.protocol == Protocol::Http11PipelinedDeflate;
            prop_assert!(smaller || prediction.elapsed >= prediction.minimum);
            let metrics = prediction.metrics();
            prop_assert!(metrics.elapsed_ms.unwrap().is_finite());
            prop_assert!(prediction.overhead().unwrap().is_finite());
            prop_assert!(metrics.round_trips.is_none_or(|trips| trips.is_finite() && trips >= 0.0));
            prop_assert!(prediction.stalls.iter().all(|stall| stall.lost > Duration::ZERO));
        }
    }

    #[test]
    fn the_same_scenario_has_the_same_prediction(scenario in any_scenario()) {
        let twice = [(); 2].map(|()| predict(&scenario, &Assumptions::paper()));
        prop_assert_eq!(&twice[0], &twice[1]);
    }

    #[test]
    fn a_larger_page_never_takes_less(scenario in any_scenario(), more in 1_u64..1 << 30) {
        let mut larger = scenario.clone();
        larger.page.objects.push(Object::sized(Bytes::new(more)));
        let [smaller, more] = [&scenario, &larger]
            .map(|scenario| predict(scenario, &Assumptions::paper()).map(|prediction| prediction.minimum));
        if let (Ok(smaller), Ok(more)) = (smaller, more) {
            prop_assert!(smaller <= more);
        }
    }
}
