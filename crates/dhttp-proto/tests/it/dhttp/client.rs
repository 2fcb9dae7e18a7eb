//! The client by itself: ids, channels, resends, and every way in which a request can end.
//!
//! Hostile servers are in `attacks`.

use http1::message::{Limits, Method};
use roundtrip_dhttp_proto::client::{ConnectionId, Discard, Failure, Input, Output, Reason, Refusal, Source};
use roundtrip_dhttp_proto::message::Request;
use roundtrip_dhttp_proto::{Client, ClientConfig, Extension, Id};
use wire::{Duration, Time};

use super::setting::{CLIENT_PORT, at, client, drain, head, respond, server_at};

const CONNECTION: ConnectionId = ConnectionId(0);

fn paper() -> Client {
    client(ClientConfig::paper())
}

fn send_request(client: &mut Client, now: Time, id: u64) {
    client.request(now, Id(id), server_at(), &head(Method::Get, "/", &[])).expect("it goes over UDP");
}

/// Returns the requests sent, as (id, whether it is a resend).
fn sent(outputs: &[Output]) -> Vec<(u64, bool)> {
    let read = |output: &Output| match output {
        Output::Send(to, datagram) => {
            let request = Request::read(datagram, &Limits::default()).expect("it can be read");
            assert_eq!((*to, request.header.port), (server_at(), CLIENT_PORT));
            Some((request.header.id.0, request.header.is_resend))
        }
        _ => None,
    };
    outputs.iter().filter_map(read).collect()
}

/// Returns the events of a response, as one line each.
fn reported(outputs: &[Output]) -> Vec<String> {
    let line = |output: &Output| match output {
        Output::Head(Id(id), Source::Datagram(_), head) => format!("{id}: {} by UDP", head.status),
        Output::Head(Id(id), Source::Connection(_), head) => format!("{id}: {} by TCP", head.status),
        Output::Body(Id(id), part) => format!("{id}: {} bytes", part.len()),
        Output::End(Id(id)) => format!("{id}: end"),
        other => format!("{other:?}"),
    };
    outputs.iter().map(line).collect()
}

#[test]
fn paper_a_request_is_sent_three_times_and_then_goes_over_plain_http() {
    let mut client = paper();
    send_request(&mut client, at(0), 1);
    let (outputs, wake) = drain(&mut client, at(0));
    assert_eq!((sent(&outputs), wake), (vec![(1, false)], Some(at(5_000))));
    let (outputs, wake) = drain(&mut client, at(5_000));
    assert_eq!((sent(&outputs), wake), (vec![(1, true)], Some(at(15_000))));
    let (outputs, wake) = drain(&mut client, at(15_000));
    assert_eq!((sent(&outputs), wake), (vec![(1, true)], Some(at(25_000))));
    let ended = (vec![Output::Fallback(Id(1), Reason::Silence)], None);
    assert_eq!(drain(&mut client, at(25_000)), ended);
    assert_eq!(client.outstanding(), 0);
}

#[test]
fn responses_are_matched_on_any_channel_in_any_order() {
    let mut client = paper();
    (1..=3).for_each(|id| send_request(&mut client, at(0), id));
    drain(&mut client, at(0));
    client.handle(at(1), Input::Datagram(server_at(), &respond(3, "", 5)));
    client.handle(at(1), Input::Accepted(CONNECTION, server_at()));
    client.handle(at(2), Input::Received(CONNECTION, &[respond(2, "", 3_000), respond(1, "", 0)].concat()));
    let expected = ["3: 200 by UDP", "3: 5 bytes", "3: end", "2: 200 by TCP", "2: 3000 bytes", "2: end"];
    let (outputs, _) = drain(&mut client, at(2));
    assert_eq!(reported(&outputs), [&expected[..], &["1: 200 by TCP", "1: end"]].concat());
    assert_eq!(client.outstanding(), 0);
}

#[test]
fn responses_on_a_connection_read_the_same_at_every_cut() {
    let bytes = [respond(2, "", 30), respond(1, "", 4)].concat();
    let read = |cut: usize| {
        let mut client = paper();
        (1..=2).for_each(|id| send_request(&mut client, at(0), id));
        drain(&mut client, at(0));
        client.handle(at(1), Input::Accepted(CONNECTION, server_at()));
        bytes.chunks(cut).for_each(|piece| client.handle(at(1), Input::Received(CONNECTION, piece)));
        let (outputs, _) = drain(&mut client, at(1));
        let mut bodies = [0, 0];
        let rest: Vec<Output> = outputs
            .into_iter()
            .filter(|output| match output {
                Output::Body(Id(id), part) => {
                    bodies[usize::try_from(*id).unwrap() - 1] += part.len();
                    false
                }
                _ => true,
            })
            .collect();
        (reported(&rest), bodies)
    };
    let whole = read(bytes.len());
    assert_eq!(whole.1, [4, 30]);
    (1..bytes.len()).for_each(|cut| assert_eq!(read(cut), whole, "cut {cut}"));
}

#[test]
fn late_copy_is_discarded_and_its_connection_is_unaffected() {
    let mut client = paper();
    (1..=2).for_each(|id| send_request(&mut client, at(0), id));
    client.handle(at(1), Input::Datagram(server_at(), &respond(1, "", 5)));
    drain(&mut client, at(1));
    client.handle(at(2), Input::Datagram(server_at(), &respond(1, "", 5)));
    assert_eq!(drain(&mut client, at(2)).0, [Output::Discarded(server_at(), Discard::Late)]);
    client.handle(at(3), Input::Accepted(CONNECTION, server_at()));
    client.handle(at(3), Input::Received(CONNECTION, &[respond(1, "", 3_000), respond(2, "", 1)].concat()));
    assert_eq!(reported(&drain(&mut client, at(3)).0), ["2: 200 by TCP", "2: 1 bytes", "2: end"]);
}

#[test]
fn every_fallback_to_plain_http_is_reported_once() {
    let refused = |input: Input<'_>| {
        let mut client = paper();
        send_request(&mut client, at(0), 1);
        drain(&mut client, at(0));
        client.handle(at(1), input);
        client.handle(at(1), input);
        let (mut outputs, wake) = drain(&mut client, at(1));
        outputs.retain(|output| !matches!(output, Output::Discarded(..)));
        assert_eq!((wake, client.outstanding()), (None, 0));
        outputs
    };
    let eight = Id(1).to_bytes();
    assert_eq!(refused(Input::Datagram(server_at(), &eight)), [Output::Fallback(Id(1), Reason::Referred)]);
    assert_eq!(refused(Input::Unreachable(server_at())), [Output::Fallback(Id(1), Reason::Unreachable)]);
}

#[test]
fn a_truncated_response_is_retried_before_its_header_section_and_fails_after_it() {
    for (bytes, expected) in [(12, None), (60, Some(Output::Failed(Id(1), Failure::Ended)))] {
        let mut client = paper();
        send_request(&mut client, at(0), 1);
        drain(&mut client, at(0));
        client.handle(at(1), Input::Accepted(CONNECTION, server_at()));
        client.handle(at(1), Input::Received(CONNECTION, &respond(1, "", 3_000)[..bytes]));
        drain(&mut client, at(1));
        client.handle(at(2), Input::Ended(CONNECTION));
        let (outputs, _) = drain(&mut client, at(2));
        match expected {
            Some(failed) => assert_eq!((outputs.as_slice(), client.outstanding()), (&[failed][..], 0)),
            None => assert_eq!((sent(&outputs), client.outstanding()), (vec![(1, true)], 1)),
        }
    }
}

#[test]
fn round_trips_set_the_wait_and_tokens_are_given_back() {
    let mut client = client(ClientConfig::internet());
    send_request(&mut client, at(0), 1);
    let (outputs, wake) = drain(&mut client, at(0));
    let Output::Send(_, datagram) = &outputs[0] else { panic!("{outputs:?}") };
    assert_eq!((datagram.len(), wake), (411, Some(at(1_000))), "filled up");
    client.handle(at(200), Input::Datagram(server_at(), &respond(1, "DHTTP-Token: 00ff\r\n", 5)));
    drain(&mut client, at(200));
    send_request(&mut client, at(200), 2);
    let (outputs, wake) = drain(&mut client, at(200));
    let Output::Send(_, datagram) = &outputs[0] else { panic!("{outputs:?}") };
    let request = Request::read(datagram, &Limits::default()).unwrap();
    assert_eq!(request.head.fields.get("DHTTP-Token"), Some(&b"00ff"[..]));
    assert!(datagram.len() < 100, "no longer filled up");
    assert_eq!(wake, Some(at(200) + Duration::from_millis(2 * 200 + 4 * 100)));
    client.handle(at(300), Input::Datagram(server_at(), &Id(2).to_bytes()));
    drain(&mut client, at(300));
    send_request(&mut client, at(300), 3);
    let Output::Send(_, datagram) = &drain(&mut client, at(300)).0[0] else { panic!() };
    assert_eq!(datagram.len(), 411, "an invalid token is not sent again");
}

#[test]
fn a_udp_response_to_a_resent_request_is_that_to_the_first_copy() {
    let mut client = client(ClientConfig::internet());
    send_request(&mut client, at(0), 1);
    drain(&mut client, at(0));
    drain(&mut client, at(1_000));
    client.handle(at(1_200), Input::Datagram(server_at(), &respond(1, "", 5)));
    send_request(&mut client, at(1_200), 2);
    let wait = 2 * 1_200 + 4 * 600;
    assert_eq!(drain(&mut client, at(1_200)).1, Some(at(1_200 + wait)), "resends are answered by TCP");
}

#[test]
fn unwanted_cache_is_bypassed_immediately_and_from_then_on() {
    let mut client = client(ClientConfig::internet());
    // The flags, and whether the request is marked as without loss.
    let sent = |outputs: &[Output]| -> Vec<(u8, bool)> {
        let flag = |output: &Output| match output {
            Output::Send(_, datagram) => {
                let marks = Request::read(datagram, &Limits::default()).unwrap().marks;
                Some((datagram[10], marks.is_past_caches))
            }
            _ => None,
        };
        outputs.iter().filter_map(flag).collect()
    };
    let cache = "9.9.9.1:3129".parse().unwrap();
    send_request(&mut client, at(0), 1);
    assert_eq!(sent(&drain(&mut client, at(0)).0), [(0, false)]);
    for now in [100, 110] {
        client.handle(at(now), Input::Datagram(cache, &respond(1, "", 5)));
    }
    let (outputs, wake) = drain(&mut client, at(110));
    assert_eq!((sent(&outputs), wake), (vec![(1, true)], Some(at(1_100))), "once");
    client.handle(at(300), Input::Datagram(server_at(), &respond(1, "", 5)));
    assert_eq!(reported(&drain(&mut client, at(300)).0), ["1: 200 by UDP", "1: 5 bytes", "1: end"]);
    send_request(&mut client, at(400), 2);
    let (outputs, wake) = drain(&mut client, at(400));
    assert_eq!(
        (sent(&outputs), wake),
        (vec![(1, true)], Some(at(400 + 2 * 200 + 4 * 100))),
        "a round trip is 200 ms"
    );
    assert_eq!(sent(&drain(&mut client, at(1_200)).0), [(1, false)], "now something was lost");
}

#[test]
fn requests_unfit_for_udp_are_refused_with_a_remedy() {
    let mut client = client(ClientConfig::internet());
    let long = "x".repeat(1_200);
    for (method, target, field, why) in [
        (Method::Other("POST".into()), "/", None, Refusal::Unsafe),
        (Method::Get, "/", Some(("Content-Length", "3")), Refusal::NotAlone),
        (Method::Get, "/", Some(("Expect", "100-continue")), Refusal::NotAlone),
        (Method::Get, "/", Some(("Cookie", "a=b")), Refusal::Credentials),
        (Method::Get, "/", Some(("authorization", "x")), Refusal::Credentials),
        (Method::Get, long.as_str(), None, Refusal::TooLarge),
    ] {
        let head = head(method, target, field.as_slice());
        assert_eq!(client.request(at(0), Id(1), server_at(), &head), Err(why), "{head:?}");
    }
    send_request(&mut client, at(0), 1);
    let resent = client.request(at(0), Id(1), server_at(), &head(Method::Get, "/", &[]));
    assert_eq!(resent, Err(Refusal::IdInUse));
}

#[test]
fn number_of_pending_requests_is_limited() {
    let mut client = client(ClientConfig { outstanding: 2, remembered: 1, ..ClientConfig::paper() });
    (1..=2).for_each(|id| send_request(&mut client, at(0), id));
    let third = client.request(at(0), Id(3), server_at(), &head(Method::Get, "/", &[]));
    assert_eq!(third, Err(Refusal::Crowded));
    client.cancel(Id(1));
    client.cancel(Id(2));
    assert_eq!(client.outstanding(), 0);
    send_request(&mut client, at(0), 3);
    // The client remembers one finished request; the other's id is unknown again.
    client.handle(at(1), Input::Datagram(server_at(), &respond(1, "", 1)));
    client.handle(at(1), Input::Datagram(server_at(), &respond(2, "", 1)));
    let (mut outputs, _) = drain(&mut client, at(1));
    outputs.retain(|output| matches!(output, Output::Discarded(..)));
    let discarded = [Discard::Unknown, Discard::Late].map(|why| Output::Discarded(server_at(), why));
    assert_eq!(outputs, discarded);
}

#[test]
fn a_token_in_the_fallback_message_is_accepted_if_requested_and_presented_from_then_on() {
    let request = |client: &mut Client, id| {
        send_request(client, at(0), id);
        let outputs = drain(client, at(0)).0;
        let [Output::Send(_, datagram)] = outputs.as_slice() else { panic!("{outputs:?}") };
        let marks = Request::read(datagram, &Limits::default()).unwrap().marks;
        (marks.requests_token, marks.token.map(<[u8]>::to_vec))
    };
    let referred = |client: &mut Client, id: u64, token: &str| {
        let message = [&Id(id).to_bytes()[..], token.as_bytes()].concat();
        client.handle(at(1), Input::Datagram(server_at(), &message));
        drain(client, at(1)).0
    };
    let mut client = client(ClientConfig::internet());
    assert_eq!(request(&mut client, 1), (true, None));
    let long = "0".repeat(65);
    for invalid in ["?", "0 1", "00\r\n", &long] {
        assert!(matches!(referred(&mut client, 1, invalid)[..], [Output::Discarded(..)]), "{invalid:?}");
    }
    assert_eq!(referred(&mut client, 1, "00ff"), [Output::Fallback(Id(1), Reason::Referred)]);
    assert!(client.has_token(server_at()));
    assert_eq!(request(&mut client, 2), (false, Some(b"00ff".to_vec())));
    assert!(matches!(referred(&mut client, 2, "0100")[..], [Output::Discarded(..)]), "it requested none");
    referred(&mut client, 2, "");
    assert_eq!(request(&mut client, 3), (true, None), "the token was refused");
    // A token that arrived meanwhile was not refused by the response to a request without one.
    client.restore_token(at(1), server_at(), b"00ff");
    referred(&mut client, 3, "");
    assert!(client.has_token(server_at()));
    let mut paper = paper();
    assert_eq!(request(&mut paper, 1), (false, None));
}

#[test]
fn tokens_of_an_earlier_client_are_shown() {
    let mut earlier = client(ClientConfig::internet());
    send_request(&mut earlier, at(0), 1);
    earlier.handle(at(200), Input::Datagram(server_at(), &respond(1, "DHTTP-Token: 00ff\r\n", 5)));
    let stored: Vec<_> = earlier.tokens().map(|(server, token, at)| (server, token.to_vec(), at)).collect();
    assert_eq!(stored, [(server_at(), b"00ff".to_vec(), at(200))]);
    let mut later = client(ClientConfig::internet());
    later.restore_token(at(0), server_at(), b"not one");
    assert!(!later.has_token(server_at()));
    later.restore_token(at(0), server_at(), b"00ff");
    later.restore_token(at(0), server_at(), b"0100");
    send_request(&mut later, at(0), 1);
    let Output::Send(_, datagram) = later.poll(at(0)) else { panic!("it is sent") };
    assert!(String::from_utf8_lossy(&datagram).contains("DHTTP-Token: 00ff\r\n"), "the first one");
}

#[test]
fn parts_field_of_the_caller_is_not_forwarded() {
    let requested = |config: ClientConfig| {
        let mut client = client(config);
        let head = head(Method::Get, "/", &[("dhttp-parts", "7"), ("X", "y")]);
        client.request(at(0), Id(1), server_at(), &head).unwrap();
        let Output::Send(_, datagram) = client.poll(at(0)) else { panic!("it asks") };
        String::from_utf8_lossy(&datagram).into_owned()
    };
    let paper = requested(ClientConfig::paper());
    assert!(!paper.to_lowercase().contains("dhttp-parts") && paper.contains("X: y"), "{paper}");
    let takes_parts = requested(ClientConfig::paper().with(Extension::Parts, true));
    assert!(takes_parts.contains("DHTTP-Parts: 10\r\n") && !takes_parts.contains("dhttp-parts"));
}

#[test]
fn many_pending_requests_reduce_the_parts_offered() {
    let mut client = client(ClientConfig::paper().with(Extension::Parts, true));
    let takes_parts = |client: &mut Client, id| {
        send_request(client, at(0), id);
        let Output::Send(_, datagram) = client.poll(at(0)) else { panic!("it asks") };
        String::from_utf8_lossy(&datagram).contains("DHTTP-Parts: 10")
    };
    assert_eq!([0, 1, 2, 3].map(|id| takes_parts(&mut client, id)), [true, true, false, false]);
    [0, 1].into_iter().for_each(|id| client.cancel(Id(id)));
    assert!(takes_parts(&mut client, 4), "what is over gives back what it took");
}
