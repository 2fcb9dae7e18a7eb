//! Timeout of a client while responses queue: as long as data that may precede its response keeps coming, and no longer.
//!
//! Each test sends a request at 0 that never gets a response, and delivers other data every 200 ms for four seconds. It
//! checks when the request is resent. Without other data that is after a second. Not a network: `simulate` has one.

use http1::message::{Limits, Method};
use roundtrip_dhttp_proto::client::{Client, ConnectionId, Input, Output, Reason};
use roundtrip_dhttp_proto::message::Request;
use roundtrip_dhttp_proto::{ClientConfig, Id};
use wire::Time;

use super::setting::{at, client, drain, head, respond, server_at};

const LOST: Id = Id(1);
const OTHER: Id = Id(2);
const CONNECTION: ConnectionId = ConnectionId(0);
const EACH: u64 = 200;
const UNTIL: u64 = 4_000;

fn send_request(client: &mut Client, now: u64, id: Id) {
    client.request(at(now), id, server_at(), &head(Method::Get, "/", &[])).expect("it goes over UDP");
}

/// When the lost request is resent.
fn resend_time(config: ClientConfig, mut arrives: impl FnMut(&mut Client, u64)) -> Time {
    let mut client = client(config);
    [LOST, OTHER].into_iter().for_each(|id| send_request(&mut client, 0, id));
    let (_, mut wake) = drain(&mut client, at(0));
    let mut next = EACH;
    loop {
        let now =
            if next <= UNTIL { wake.map_or(at(next), |wake| wake.min(at(next))) } else { wake.unwrap() };
        let (mut outputs, _) = drain(&mut client, now);
        if next <= UNTIL && now == at(next) {
            arrives(&mut client, next);
            next += EACH;
        }
        let (more, after) = drain(&mut client, now);
        outputs.extend(more);
        if outputs.iter().any(is_resend_of_what_is_lost) {
            return now;
        }
        wake = after;
    }
}

fn is_resend_of_what_is_lost(output: &Output) -> bool {
    let Output::Send(_, datagram) = output else { return false };
    let header = Request::read(datagram, &Limits::default()).expect("it can be read").header;
    header.is_resend && header.id == LOST
}

/// Delivers a long response to another request on the server's connection, this number of bytes each time.
fn on_a_connection(bytes: usize) -> impl FnMut(&mut Client, u64) {
    let long = respond(OTHER.0, "", 1 << 24);
    let mut read = 0;
    move |client, now| {
        if read == 0 {
            client.handle(at(now), Input::Accepted(CONNECTION, server_at()));
        }
        client.handle(at(now), Input::Received(CONNECTION, &long[read..read + bytes]));
        read += bytes;
    }
}

/// Reports this number of bytes each time, on a connection outside the client.
fn by_plain_http(bytes: usize) -> impl FnMut(&mut Client, u64) {
    move |client, now| client.handle(at(now), Input::Heard(server_at().ip(), bytes))
}

#[test]
fn a_resend_waits_for_data_that_may_precede_the_response_and_for_a_second_of_silence() {
    let internet = ClientConfig::internet();
    assert_eq!(resend_time(internet, |_, _| ()), at(1_000));
    assert_eq!(resend_time(internet, by_plain_http(1_448)), at(UNTIL + 1_000));
    // The connection was accepted 200 ms after the request: no round trip takes longer.
    assert_eq!(resend_time(internet, on_a_connection(1_448)), at(UNTIL + 2 * 200 + 4 * 100));
}

#[test]
fn paper_a_client_of_the_papers_waits_five_seconds_whatever_comes() {
    assert_eq!(resend_time(ClientConfig::paper(), by_plain_http(1_448)), at(5_000));
}

#[test]
fn little_events_of_a_stream_are_no_queue() {
    assert_eq!(resend_time(ClientConfig::internet(), by_plain_http(100)), at(1_000));
}

#[test]
fn no_queue_holds_more_than_a_quarter_of_a_megabyte() {
    assert_eq!(resend_time(ClientConfig::internet(), by_plain_http(70_000)), at(1_000));
    assert_eq!(resend_time(ClientConfig::internet(), by_plain_http(14_000)), at(4_000));
}

#[test]
fn a_response_to_a_later_datagram_shows_that_no_network_queue_holds_the_earlier_one() {
    let overtaken = |arrives: &mut dyn FnMut(&mut Client, u64)| {
        resend_time(ClientConfig::internet(), |client, now| {
            arrives(client, now);
            if now == 600 {
                send_request(client, 400, Id(now));
                drain(client, at(now));
                client.handle(at(now), Input::Datagram(server_at(), &respond(now, "", 5)));
            }
        })
    };
    assert_eq!(overtaken(&mut by_plain_http(1_448)), at(1_000));
    // But it may be behind others on the server's connection. Two samples of 200 ms were taken by then.
    assert_eq!(overtaken(&mut on_a_connection(1_448)), at(UNTIL + 2 * 200 + 4 * 75));
}

#[test]
fn a_response_on_a_connection_postpones_the_resend_too() {
    let mut connections = 1..;
    let mut arrives = on_a_connection(1_448);
    let resent = resend_time(ClientConfig::internet(), |client, now| {
        arrives(client, now);
        if now == 2_000 {
            send_request(client, now, Id(now));
            drain(client, at(now));
            let connection = ConnectionId(connections.next().expect("there are more"));
            client.handle(at(now), Input::Accepted(connection, server_at()));
            client.handle(at(now), Input::Received(connection, &respond(now, "", 5_000)));
        }
    });
    assert_eq!(resent, at(2_200));
}

/// A request waits while another's response is not taken by its caller: it may be queued behind.
#[test]
fn a_paused_connection_has_no_timeout_and_a_request_that_waits_for_its_server_uses_plain_http() {
    let mut client = client(ClientConfig::internet());
    [LOST, OTHER].into_iter().for_each(|id| send_request(&mut client, 0, id));
    let long = respond(OTHER.0, "", 1_000);
    client.handle(at(100), Input::Accepted(CONNECTION, server_at()));
    client.handle(at(100), Input::Received(CONNECTION, &long[..500]));
    assert_eq!(client.arriving_on(CONNECTION), Some(OTHER));
    client.handle(at(100), Input::Paused(CONNECTION));
    let (_, wake) = drain(&mut client, at(100));
    let (outputs, wake) = drain(&mut client, wake.unwrap());
    assert_eq!((outputs, wake), (vec![Output::Fallback(LOST, Reason::Paused)], None));
    // An hour later its caller goes on.
    client.handle(at(3_600_000), Input::Resumed(CONNECTION));
    let stall = ClientConfig::internet().stall;
    assert_eq!(drain(&mut client, at(3_600_000)), (Vec::new(), Some(at(3_600_000) + stall)));
    client.handle(at(3_600_001), Input::Received(CONNECTION, &long[500..]));
    let (outputs, _) = drain(&mut client, at(3_600_001));
    assert!(matches!(outputs[..], [Output::Body(OTHER, _), Output::End(OTHER)]), "{outputs:?}");
}
