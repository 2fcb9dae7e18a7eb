//! Behaviour of a translator towards its clients, and protection from everyone else.

use proptest::prelude::*;
use wire::Duration;

use super::*;
use crate::message::Request;
use crate::prefix::Prefixes;

const CLIENT: &str = "10.0.0.2:40000";
const SERVER: &str = "192.0.2.1:80";
const OUTSIDE: &str = "198.51.100.1";

fn socket(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn seconds(count: u64) -> Time {
    Time::ZERO + Duration::from_secs(count)
}

fn translating() -> TranslatorConfig {
    TranslatorConfig::new(Translation::To(OUTSIDE.parse().unwrap(), 61_000..=61_099))
}

fn request(id: u64, port: u16) -> Vec<u8> {
    let header = RequestHeader { id: Id(id), port, is_resend: false };
    [&header.to_bytes()[..], b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"].concat()
}

fn drain(translator: &mut Translator, now: Time) -> Vec<Output> {
    std::iter::from_fn(|| Some(translator.poll(now)).filter(|one| !matches!(one, Output::Timeout(_))))
        .collect()
}

fn send_request(
    translator: &mut Translator,
    now: Time,
    from: &str,
    to: &str,
    datagram: &[u8],
) -> Vec<Output> {
    translator.handle(now, Input::Request { from: socket(from), to: socket(to), datagram });
    drain(translator, now)
}

fn respond(translator: &mut Translator, at: SocketAddr, from: &str, id: u64) -> Vec<Output> {
    let datagram = [&Id(id).to_bytes()[..], b"HTTP/1.1 200 OK\r\n\r\n"].concat();
    translator.handle(Time::ZERO, Input::Response { at, from: socket(from), datagram: &datagram });
    drain(translator, Time::ZERO)
}

fn opened(outputs: &[Output]) -> Vec<Pinhole> {
    outputs.iter().filter_map(|one| if let Output::Open(hole) = one { Some(*hole) } else { None }).collect()
}

#[test]
fn a_request_leaves_with_the_port_at_which_its_connection_is_expected() {
    let mut translator = Translator::new(translating(), [7; 16]);
    let outputs = send_request(&mut translator, Time::ZERO, CLIENT, SERVER, &request(1, 50_000));
    let [Output::Begin(mapping), Output::Open(hole), Output::Request { outside, to, datagram }] = &*outputs
    else {
        panic!("{outputs:?}");
    };
    assert_eq!((mapping.inside, mapping.tcp_port), (socket(CLIENT), 50_000));
    assert_eq!((hole.inside, hole.server), (socket("10.0.0.2:50000"), Some(socket(SERVER).ip())));
    assert_eq!((hole.outside, *outside, *to), (mapping.outside, mapping.outside, socket(SERVER)));
    assert_eq!(hole.lifetime, Duration::from_secs(30));
    let read = Request::read(datagram, &Limits::default()).unwrap();
    assert_eq!(read.header, RequestHeader { id: Id(1), port: outside.port(), is_resend: false });
    // The next request uses the same mapping, so that the server sees the same client.
    let resent = send_request(&mut translator, Time::ZERO, CLIENT, SERVER, &request(2, 50_000));
    assert!(matches!(&*resent, [Output::Open(_), Output::Request { outside: same, .. }] if same == outside));
}

#[test]
fn a_response_reaches_its_client_once_and_closes_the_pinhole() {
    let mut translator = Translator::new(translating(), [7; 16]);
    let hole = opened(&send_request(&mut translator, Time::ZERO, CLIENT, SERVER, &request(1, 50_000)))[0];
    let outputs = respond(&mut translator, hole.outside, SERVER, 1);
    assert_eq!(outputs[0], Output::Close(hole));
    assert!(
        matches!(outputs[1], Output::Response { from, to, .. } if from == socket(SERVER) && to == socket(CLIENT))
    );
    let resent = respond(&mut translator, hole.outside, SERVER, 1);
    assert_eq!(resent, [Output::Refused(socket(SERVER), Refusal::Unsolicited)]);
}

#[test]
fn shared_pinhole_stays_open() {
    let mut translator = Translator::new(translating(), [7; 16]);
    let first = opened(&send_request(&mut translator, Time::ZERO, CLIENT, SERVER, &request(1, 50_000)))[0];
    let slots: Vec<u8> = (2..=5)
        .flat_map(|id| {
            opened(&send_request(&mut translator, Time::ZERO, CLIENT, SERVER, &request(id, 50_000)))
        })
        .map(|hole| hole.slot)
        .collect();
    assert_eq!((first.slot, slots), (0, vec![1, 2, 3, 0]));
    assert!(matches!(&*respond(&mut translator, first.outside, SERVER, 1), [Output::Response { .. }]));
    assert!(matches!(
        &*respond(&mut translator, first.outside, SERVER, 5),
        [Output::Close(_), Output::Response { .. }]
    ));
}

#[test]
fn pinholes_never_lead_to_service_ports() {
    for config in [translating(), TranslatorConfig::new(Translation::None)] {
        for port in [1, 22, 23, 80, 1_023, 2_049, 6_000, 6_667] {
            let mut translator = Translator::new(config.clone(), [7; 16]);
            let outputs = send_request(&mut translator, Time::ZERO, CLIENT, SERVER, &request(1, port));
            assert_eq!(outputs, [Output::Refused(socket(CLIENT), Refusal::Port(port))]);
            assert_eq!(translator.mappings(), 0);
        }
    }
}

#[test]
fn ports_of_servers_and_reflectors_are_rejected_as_clients() {
    let mut translator = Translator::new(translating(), [7; 16]);
    for from in ["10.0.0.2:53", "10.0.0.2:1900", "10.0.0.2:11211", "224.0.0.1:40000", "0.0.0.0:40000"] {
        let outputs = send_request(&mut translator, Time::ZERO, from, SERVER, &request(1, 50_000));
        assert_eq!(outputs, [Output::Refused(socket(from), Refusal::Source)]);
    }
    assert_eq!(translator.mappings(), 0);
}

#[test]
fn only_the_port_of_a_request_is_rewritten_and_invalid_requests_open_nothing() {
    let mut translator = Translator::new(translating(), [7; 16]);
    let requested = request(1, 50_000);
    let outputs = send_request(&mut translator, Time::ZERO, CLIENT, SERVER, &requested);
    let Some(Output::Request { datagram, .. }) = outputs.last() else { panic!("{outputs:?}") };
    assert_eq!((&datagram[..8], &datagram[10..]), (&requested[..8], &requested[10..]));
    let smuggled = [&requested[..], b"GET /other HTTP/1.1\r\nHost: b\r\n\r\n"].concat();
    for broken in [&requested[..requested.len() - 1], &smuggled, &requested[..10]] {
        let outputs = send_request(&mut translator, Time::ZERO, "10.0.0.2:40001", SERVER, broken);
        assert!(opened(&outputs).is_empty(), "{outputs:?}");
        assert!(matches!(outputs.last(), Some(Output::Request { datagram, .. }) if datagram == broken));
    }
}

#[test]
fn client_without_port_gets_the_response_but_no_pinhole() {
    let mut translator = Translator::new(translating(), [7; 16]);
    let outputs = send_request(&mut translator, Time::ZERO, CLIENT, SERVER, &request(1, 0));
    let [Output::Begin(mapping), Output::Request { datagram, .. }] = &*outputs else { panic!("{outputs:?}") };
    assert_eq!(datagram, &request(1, 0));
    assert!(matches!(&*respond(&mut translator, mapping.outside, SERVER, 1), [Output::Response { .. }]));
}

#[test]
fn only_requested_servers_may_respond_unless_caches_may() {
    let cache = "203.0.113.9:80";
    let mut strict = Translator::new(translating(), [7; 16]);
    let hole = opened(&send_request(&mut strict, Time::ZERO, CLIENT, SERVER, &request(1, 50_000)))[0];
    for (from, id) in [(cache, 1), ("192.0.2.1:81", 1), (SERVER, 2)] {
        assert_eq!(
            respond(&mut strict, hole.outside, from, id),
            [Output::Refused(socket(from), Refusal::Unsolicited)]
        );
    }
    let mut open =
        Translator::new(TranslatorConfig { responders: Responders::AnyHost, ..translating() }, [7; 16]);
    let hole = opened(&send_request(&mut open, Time::ZERO, CLIENT, SERVER, &request(1, 50_000)))[0];
    assert_eq!(hole.server, None);
    assert!(matches!(&*respond(&mut open, hole.outside, cache, 2), [Output::Refused(..)]));
    assert!(matches!(
        &*respond(&mut open, hole.outside, cache, 1),
        [Output::Close(_), Output::Response { .. }]
    ));
}

#[test]
fn caches_of_given_networks_may_respond_besides_the_server() {
    let networks = Prefixes::new(&["203.0.113.0/24".parse().unwrap()]).unwrap();
    let config = TranslatorConfig { responders: Responders::Caches(networks), ..translating() };
    let mut translator = Translator::new(config, [7; 16]);
    for (id, from, is_taken) in [(1, SERVER, true), (2, "203.0.113.9:80", true), (3, "203.0.114.9:80", false)]
    {
        let hole =
            opened(&send_request(&mut translator, Time::ZERO, CLIENT, SERVER, &request(id, 50_000)))[0];
        assert_eq!(hole.server, Some(socket(SERVER).ip()));
        let outputs = respond(&mut translator, hole.outside, from, id);
        assert_eq!(matches!(&*outputs, [Output::Close(_), Output::Response { .. }]), is_taken, "{from}");
    }
}

#[test]
fn regress_a_response_closes_no_pinhole_that_another_server_may_use() {
    let config = TranslatorConfig { responders: Responders::AnyHost, ..translating() };
    let mut translator = Translator::new(config, [7; 16]);
    // The fifth request shares the pinhole of the first, and is for another server.
    let first = opened(&send_request(&mut translator, Time::ZERO, CLIENT, SERVER, &request(1, 50_000)))[0];
    for id in 2..=5 {
        send_request(&mut translator, Time::ZERO, CLIENT, "192.0.2.2:80", &request(id, 50_000));
    }
    assert!(matches!(&*respond(&mut translator, first.outside, SERVER, 1), [Output::Response { .. }]));
}

#[test]
fn unreachable_port_is_reported_to_its_client() {
    let mut translator = Translator::new(translating(), [7; 16]);
    let hole = opened(&send_request(&mut translator, Time::ZERO, CLIENT, SERVER, &request(1, 50_000)))[0];
    let (at, other) = (hole.outside, socket("192.0.2.2:80"));
    translator.handle(Time::ZERO, Input::Unreachable { at, server: socket(SERVER) });
    translator.handle(Time::ZERO, Input::Unreachable { at, server: other });
    assert_eq!(
        drain(&mut translator, Time::ZERO),
        [
            Output::Unreachable { server: socket(SERVER), to: socket(CLIENT) },
            Output::Refused(other, Refusal::Unsolicited)
        ]
    );
}

#[test]
fn other_datagrams_pass_unchanged_and_open_nothing() {
    let mut translator = Translator::new(translating(), [7; 16]);
    let outputs = send_request(&mut translator, Time::ZERO, CLIENT, SERVER, b"something else");
    let [Output::Begin(mapping), Output::Request { datagram, .. }] = &*outputs else { panic!("{outputs:?}") };
    assert_eq!(datagram, b"something else");
    assert!(matches!(&*respond(&mut translator, mapping.outside, SERVER, 9), [Output::Response { .. }]));
    assert!(matches!(&*respond(&mut translator, mapping.outside, "192.0.2.2:80", 9), [Output::Refused(..)]));
}

#[test]
fn a_firewall_changes_nothing_and_opens_the_port_that_was_named() {
    let mut translator = Translator::new(TranslatorConfig::new(Translation::None), [7; 16]);
    let outputs = send_request(&mut translator, Time::ZERO, CLIENT, SERVER, &request(1, 50_000));
    let [Output::Begin(_), Output::Open(hole), Output::Request { outside, datagram, .. }] = &*outputs else {
        panic!("{outputs:?}");
    };
    assert_eq!((hole.outside, hole.inside), (socket("10.0.0.2:50000"), socket("10.0.0.2:50000")));
    assert_eq!((*outside, datagram), (socket(CLIENT), &request(1, 50_000)));
}

#[test]
fn responses_are_waited_for_thirty_seconds_and_mappings_stay_for_two_minutes() {
    let mut translator = Translator::new(translating(), [7; 16]);
    let hole = opened(&send_request(&mut translator, Time::ZERO, CLIENT, SERVER, &request(1, 50_000)))[0];
    assert_eq!(translator.poll(Time::ZERO), Output::Timeout(Some(seconds(30))));
    assert!(drain(&mut translator, seconds(30)).is_empty());
    assert!(matches!(&*respond(&mut translator, hole.outside, SERVER, 1), [Output::Refused(..)]));
    // Another request refreshes the mapping.
    send_request(&mut translator, seconds(100), CLIENT, SERVER, &request(2, 50_000));
    assert!(drain(&mut translator, seconds(219)).is_empty());
    assert!(matches!(&*drain(&mut translator, seconds(220)), [Output::End(_)]));
    assert_eq!(translator.poll(seconds(220)), Output::Timeout(None), "nothing is left behind");
}

#[test]
fn one_host_cannot_take_all_ports() {
    let mut translator = Translator::new(translating(), [7; 16]);
    for port in 0..64 {
        send_request(
            &mut translator,
            Time::ZERO,
            &format!("10.0.0.2:{}", 2_000 + port),
            SERVER,
            &request(1, 0),
        );
    }
    let crowded = send_request(&mut translator, Time::ZERO, "10.0.0.2:3000", SERVER, &request(1, 0));
    assert_eq!(crowded, [Output::Refused(socket("10.0.0.2:3000"), Refusal::Crowded)]);
    assert!(matches!(
        &*send_request(&mut translator, Time::ZERO, "10.0.0.3:2000", SERVER, &request(1, 0)),
        [Output::Begin(_), Output::Request { .. }]
    ));
}

#[test]
fn ten_thousand_addresses_inside_leave_mappings_to_others() {
    let mut translator = Translator::new(TranslatorConfig::new(Translation::None), [7; 16]);
    let mut is_forwarded = |now: u64, from: String| {
        let outputs = send_request(&mut translator, seconds(now), &from, SERVER, &request(1, 0));
        let is_forwarded = outputs.iter().any(|output| matches!(output, Output::Request { .. }));
        (is_forwarded, translator.mappings())
    };
    let flood = |number: u32| format!("10.0.{}.{}:2000", number / 250, number % 250 + 1);
    let taken = (0..10_000).filter(|number| is_forwarded(0, flood(*number)).0).count();
    assert!((2_048..3_072).contains(&taken), "three quarters of 4,096, shrunk: {taken}");
    assert_eq!(is_forwarded(1, "10.1.0.1:2000".to_owned()), (true, taken + 1), "another network");
    assert!(!is_forwarded(1, "10.0.99.1:2000".to_owned()).0);
    // In the same network a mapping that is inactive for two seconds makes way.
    assert!(is_forwarded(1, flood(0)).0);
    assert_eq!(is_forwarded(2, "10.0.99.1:2000".to_owned()), (true, taken + 1));
    assert_eq!(is_forwarded(2, flood(0)), (true, taken + 1), "the active one stays");
    let second = (0..10_000).filter(|number| is_forwarded(4, flood(*number)).0).count();
    assert!(second >= taken - 2 && is_forwarded(4, "10.1.0.1:2000".to_owned()).0, "{second}");
}

#[test]
fn port_in_use_by_another_program_is_released() {
    let mut translator = Translator::new(translating(), [7; 16]);
    let outputs = send_request(&mut translator, Time::ZERO, CLIENT, SERVER, &request(1, 50_000));
    let Output::Begin(mapping) = outputs[0] else { panic!("{outputs:?}") };
    translator.handle(Time::ZERO, Input::Taken(mapping));
    assert!(matches!(&*drain(&mut translator, Time::ZERO), [Output::End(_)]));
    assert_eq!(translator.poll(Time::ZERO), Output::Timeout(None));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn pinholes_lead_only_to_the_sender_and_state_is_bounded(
        events in prop::collection::vec((0_u8..6, 1_024_u16..1_040, any::<u16>(), 0_u64..40, 0_u64..20), 1..200)
    ) {
        let mut translator = Translator::new(translating(), [3; 16]);
        let mut now = Time::ZERO;
        for (host, source, port, id, pause) in events {
            now += Duration::from_secs(pause);
            drain(&mut translator, now);
            let from = format!("10.0.0.{host}:{source}");
            let outputs = send_request(&mut translator, now, &from, SERVER, &request(id, port));
            for hole in opened(&outputs) {
                prop_assert_eq!(hole.inside, SocketAddr::new(socket(&from).ip(), port));
                prop_assert!(port >= 1_024 && (61_000..61_100).contains(&hole.outside.port()));
            }
            prop_assert!(translator.timers.len() <= translator.mappings() * (1 + OUTSTANDING));
            prop_assert_eq!(translator.outsides.len(), translator.mappings());
        }
        drain(&mut translator, now + Duration::from_secs(1_000));
        prop_assert_eq!((translator.mappings(), translator.timers.len()), (0, 0));
    }
}
