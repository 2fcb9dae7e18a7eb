//! What an attacker would try, and what must hold: reflection, loops, forged answers, stolen tokens, smuggling, bounce,
//! floods, slow servers. Not the kernel's part: that needs sockets.

use core::net::SocketAddr;

use http1::message::{Limits, Method};
use proptest::prelude::*;
use roundtrip_dhttp_proto::client::{Answerers, ConnectionId, Discard, Input, Output};
use roundtrip_dhttp_proto::message::Request;
use roundtrip_dhttp_proto::parts::Divisible;
use roundtrip_dhttp_proto::prefix::Prefixes;
use roundtrip_dhttp_proto::server::{Channel, Ignored, Server, Tries, Verdict};
use roundtrip_dhttp_proto::{Client, ClientConfig, Extension, Id, Malformed, ServerConfig};
use wire::Duration;

use crate::setting::{answer, at, client, client_at, datagram, drain, get, head, server, server_at, ticket};

fn internet() -> Server {
    server(ServerConfig::internet())
}

/// A request with a token that is worth something there.
fn validated(server: &mut Server, id: u64, from: SocketAddr, is_resend: bool) -> Vec<u8> {
    let first = ticket(server.receive(at(0), from, &get(u64::MAX - id, false)));
    let token = server.token(at(0), &first).expect("who has none gets one");
    server.abandon(first);
    datagram(id, is_resend, &head(Method::Get, "/", &[("DHTTP-Token", token.as_str())]))
}

/// An answer of so many bytes that may be divided.
fn divisible(size: u64) -> Option<Divisible> {
    Divisible::of(200, [(&b"ETag"[..], &b"\"t\""[..])].into_iter(), size.saturating_sub(60))
}

/// What a server sends for a datagram, in bytes of UDP payload; a connection that is tried counts as two SYNs.
fn cost(server: &mut Server, from: SocketAddr, datagram: &[u8], size: u64) -> u64 {
    match server.receive(at(0), from, datagram) {
        Verdict::Serve(ticket, _) => match server.answer_in_parts(at(0), ticket, size, || divisible(size)) {
            Channel::Datagram => size,
            Channel::Parts(division) => division.bytes(),
            Channel::Refer(eight) => eight.len() as u64,
            Channel::Open { connection: _, client: _, tries } => {
                assert_eq!(tries, Tries::Few);
                128
            }
            Channel::Connection(_) => 0,
        },
        Verdict::Refer(eight) => eight.len() as u64,
        Verdict::Ignore(_) => 0,
    }
}

proptest! {
    #[test]
    fn nobody_gets_more_than_three_bytes_for_one_without_a_token(
        asked in prop::collection::vec((0_usize..1_200, 0_u64..30_000, any::<bool>(), any::<u16>()), 1..50)
    ) {
        // Also in parts: all of them count.
        let mut server = server(ServerConfig::internet().with(Extension::Parts, true));
        let (mut sent, mut received) = (0, 0);
        for (id, (padding, size, is_resend, cut)) in asked.into_iter().enumerate() {
            let head = head(Method::Get, "/", &[("DHTTP-Parts", "10"), ("DHTTP-Fill", &"0".repeat(padding))]);
            let mut datagram = datagram(id as u64, is_resend, &head);
            datagram.truncate(usize::from(cut).max(12));
            received += datagram.len() as u64;
            sent += cost(&mut server, client_at(50_000), &datagram, size);
            prop_assert!(sent <= 3 * received, "{sent} for {received}");
        }
    }

    #[test]
    fn two_machines_back_to_back_fall_silent(bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0_u8..4) {
        let datagram = match kind {
            0 => bytes,
            1 => answer(7, "", bytes.len()),
            2 => Id(7).to_bytes().to_vec(),
            _ => [&get(7, false)[..], &bytes].concat(),
        };
        // Server against server: what one says the other does not answer.
        let (mut one, mut other) = (server(ServerConfig::paper()), server(ServerConfig::paper()));
        let mut exchanged = 0;
        let mut said = reply(&mut one, &datagram);
        while let Some(datagram) = said {
            exchanged += 1;
            prop_assert!(exchanged <= 1, "a server answers an answer");
            said = reply(&mut other, &datagram);
        }
        // A client says nothing to whatever comes in.
        let mut client = client(ClientConfig::paper());
        client.handle(at(0), Input::Datagram(server_at(), &datagram));
        let (outputs, _) = drain(&mut client, at(0));
        prop_assert!(outputs.iter().all(|output| matches!(output, Output::Discarded(..))), "{outputs:?}");
    }
}

fn reply(server: &mut Server, datagram: &[u8]) -> Option<Vec<u8>> {
    match server.receive(at(0), client_at(50_000), datagram) {
        Verdict::Serve(ticket, _) => {
            let bytes = answer(ticket.id.0, "", 10);
            matches!(server.answer(at(0), ticket, bytes.len() as u64), Channel::Datagram).then_some(bytes)
        }
        Verdict::Refer(eight) => Some(eight.to_vec()),
        Verdict::Ignore(_) => None,
    }
}

#[test]
fn a_request_that_is_filled_up_has_its_small_answer_in_one_round_trip() {
    let mut client = client(ClientConfig::internet());
    client.request(at(0), Id(1), server_at(), &head(Method::Get, "/", &[])).unwrap();
    let (outputs, _) = drain(&mut client, at(0));
    let [Output::Send(_, datagram)] = outputs.as_slice() else { panic!("{outputs:?}") };
    let mut server = internet();
    let ticket = ticket(server.receive(at(0), client_at(50_000), datagram));
    assert_eq!(server.answer(at(0), ticket, 1_232), Channel::Datagram);
}

#[test]
fn a_token_lifts_the_budget_and_holds_for_its_address_alone() {
    let mut server = internet();
    let request = validated(&mut server, 1, client_at(50_000), false);
    let mine = ticket(server.receive(at(0), client_at(50_001), &request));
    assert_eq!(server.answer(at(0), mine, 1_232), Channel::Datagram, "another port is the same client");
    let thief = SocketAddr::from(([8, 8, 4, 5], 50_000));
    assert!(cost(&mut server, thief, &request, 1_232) <= 3 * request.len() as u64);
    let late = at(0) + Duration::from_secs(3_601);
    let expired = ticket(server.receive(late, client_at(50_000), &request));
    assert_ne!(server.answer(late, expired, 1_232), Channel::Datagram);
}

#[test]
fn what_is_printed_of_machines_holds_no_key() {
    // The keys of these tests are bytes of 1, 2 and 3.
    for printed in [format!("{:?}", internet()), format!("{:?}", client(ClientConfig::internet()))] {
        for key in ["1, 1, 1", "2, 2, 2", "3, 3, 3"] {
            assert!(!printed.contains(key));
        }
    }
}

#[test]
fn connections_do_not_bounce() {
    let mut internet = internet();
    for (port, address) in [
        (25, [8, 8, 4, 4]),
        (0, [8, 8, 4, 4]),
        (6_000, [8, 8, 4, 4]),
        (40_001, [127, 0, 0, 1]),
        (40_001, [10, 0, 0, 1]),
    ] {
        let from = SocketAddr::from((address, 50_000));
        let mut request = validated(&mut internet, 1, from, false);
        request[8..10].copy_from_slice(&u16::to_be_bytes(port));
        let ticket = ticket(internet.receive(at(0), from, &request));
        assert!(matches!(internet.answer(at(0), ticket, 9_000), Channel::Refer(_)), "{from} port {port}");
    }
    assert_eq!(internet.connections(), 0);
}

#[test]
fn who_has_proved_nothing_is_tried_once_and_gently() {
    let mut server = internet();
    let fill = "0".repeat(300);
    let request = |id| datagram(id, false, &head(Method::Get, "/", &[("DHTTP-Fill", &fill)]));
    let first = ticket(server.receive(at(0), client_at(50_000), &request(1)));
    assert!(matches!(server.answer(at(0), first, 9_000), Channel::Open { tries: Tries::Few, .. }));
    let second = ticket(server.receive(at(0), client_at(50_000), &request(2)));
    assert!(matches!(server.answer(at(0), second, 9_000), Channel::Refer(_) | Channel::Connection(_)));
    assert_eq!(server.connections(), 1);
    let small = ticket(server.receive(at(0), SocketAddr::from(([8, 8, 4, 6], 50_000)), &get(3, false)[..]));
    // 38 bytes would be allowed 114, and two SYNs with what follows them are 128.
    let expected = if 3 * get(3, false).len() < 128 { 1 } else { 2 };
    let _ = server.answer(at(0), small, 9_000);
    assert_eq!(server.connections(), expected);
}

#[test]
fn a_flood_from_spoofed_addresses_is_limited_and_leaves_no_state() {
    let mut server = internet();
    let request = get(1, false);
    let answered = (0..10_000_u32)
        .filter(|n| {
            let [_, _, third, fourth] = n.to_be_bytes();
            let from = SocketAddr::from(([100, 200, third, fourth], 50_000));
            cost(&mut server, from, &request, 60) == 60
        })
        .count();
    assert!(answered <= 2_000, "{answered} answers into one network");
    assert_eq!(server.connections(), 0);
}

#[test]
fn whoever_shows_a_token_is_not_limited() {
    let mut server = internet();
    let request = validated(&mut server, 1, client_at(50_000), false);
    let answered =
        (0..10_000).filter(|_| cost(&mut server, client_at(50_000), &request, 1_000) == 1_000).count();
    assert_eq!(answered, 10_000);
}

#[test]
fn who_has_proved_nothing_cannot_say_that_a_path_loses() {
    let mut server = internet();
    for id in 0..100 {
        if let Verdict::Serve(ticket, _) = server.receive(at(0), client_at(50_000), &get(id, true)) {
            server.abandon(ticket);
        }
    }
    let request = validated(&mut server, 1_000, SocketAddr::from(([8, 8, 4, 9], 50_000)), false);
    let ticket = ticket(server.receive(at(0), SocketAddr::from(([8, 8, 4, 9], 50_000)), &request));
    assert_eq!(server.answer(at(0), ticket, 100), Channel::Datagram);
}

#[test]
fn servers_and_reflectors_are_not_answered() {
    for port in [0, 7, 19, 53, 80, 123, 443, 1_900, 5_353, 11_211] {
        let request = get(1, false);
        let verdict = server(ServerConfig::paper()).receive(at(0), client_at(port), &request);
        assert_eq!(verdict, Verdict::Ignore(Ignored::Source), "port {port}");
    }
}

#[test]
fn credentials_do_not_travel_in_the_clear() {
    let mut server = internet();
    for field in ["Authorization", "Cookie"] {
        let request = datagram(1, false, &head(Method::Get, "/", &[(field, "secret")]));
        assert_eq!(server.receive(at(0), client_at(50_000), &request), Verdict::Refer(Id(1).to_bytes()));
    }
}

/// One more request hidden behind a request, in the ways that have been published.
#[test]
fn nothing_is_smuggled_in_a_datagram() {
    let hidden = "GET /hidden HTTP/1.1\r\nHost: h\r\n\r\n";
    for fields in [
        "Content-Length: 33\r\n",
        "Content-Length: 0\r\n",
        "Content-Length: +33\r\n",
        "Content-Length: 33, 0\r\n",
        "Content-Length: 0\r\nContent-Length: 33\r\n",
        "Content-Length : 33\r\n",
        "Content-Length:\n 33\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding:\tchunked\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 33\r\n",
        "X: y\rTransfer-Encoding: chunked\r\n",
        "X: y\nTransfer-Encoding: chunked\r\n",
        " Transfer-Encoding: chunked\r\n",
        "X: y\0\r\n",
        "",
    ] {
        let mut request = get(1, false)[..11].to_vec();
        request.extend_from_slice(format!("GET / HTTP/1.1\r\nHost: h\r\n{fields}\r\n{hidden}").as_bytes());
        let read = Request::read(&request, &Limits::default());
        assert!(read.is_err(), "{fields:?}");
        assert!(matches!(
            internet().receive(at(0), client_at(50_000), &request),
            Verdict::Ignore(Ignored::Malformed(_))
        ));
    }
}

fn waiting(config: ClientConfig) -> Client {
    let mut client = client(config);
    client.request(at(0), Id(1), server_at(), &head(Method::Get, "/", &[])).unwrap();
    drain(&mut client, at(0));
    client
}

#[test]
fn a_forged_answer_is_not_taken() {
    let mut client = waiting(ClientConfig::internet());
    let stranger = SocketAddr::from(([8, 8, 8, 8], 80));
    let passes_caches = |output: &Output| match output {
        Output::Send(to, datagram) => {
            *to == server_at()
                && datagram[10] == 1
                && String::from_utf8_lossy(datagram).contains("DHTTP-Past:")
        }
        _ => false,
    };
    let mut asked_again = 0;
    for (from, datagram, why) in [
        (server_at(), answer(2, "", 5), Discard::Unknown),
        (stranger, answer(1, "", 5), Discard::Stranger),
        (stranger, Id(1).to_bytes().to_vec(), Discard::Stranger),
        (server_at(), vec![0; 7], Discard::Malformed(Malformed::Short)),
        (server_at(), [&answer(1, "", 5)[..], b"more"].concat(), Discard::Malformed(Malformed::Body)),
    ] {
        client.handle(at(1), Input::Datagram(from, &datagram));
        let mut outputs = drain(&mut client, at(1)).0;
        // Who knows the id is on the way: the server is asked again, once, past whoever takes first requests.
        asked_again += outputs.extract_if(.., |output| passes_caches(output)).count();
        assert_eq!(outputs, [Output::Discarded(from, why)]);
    }
    assert_eq!(asked_again, 1);
    client.handle(at(1), Input::Unreachable(stranger));
    assert_eq!((drain(&mut client, at(1)).0, client.outstanding()), (vec![], 1));
}

#[test]
fn only_caches_of_the_networks_that_are_allowed_may_answer() {
    let networks = Prefixes::new(&["192.0.2.0/24".parse().unwrap()]).unwrap();
    for (from, is_taken) in [("192.0.2.9:80", true), ("192.0.3.1:80", false), ("[2001:db8::1]:80", false)] {
        let from = from.parse().unwrap();
        let config = ClientConfig { answerers: Answerers::Caches(networks), ..ClientConfig::internet() };
        let mut client = waiting(config);
        client.handle(at(1), Input::Accepted(ConnectionId(1), from));
        let closes = drain(&mut client, at(1)).0.contains(&Output::Close(ConnectionId(1)));
        client.handle(at(1), Input::Datagram(from, &answer(1, "", 5)));
        assert_eq!((closes, client.outstanding()), (!is_taken, usize::from(!is_taken)), "{from}");
    }
    let mut client =
        waiting(ClientConfig { answerers: Answerers::Caches(networks), ..ClientConfig::internet() });
    client.handle(at(1), Input::Datagram(server_at(), &answer(1, "", 5)));
    assert_eq!(client.outstanding(), 0, "the server itself may always");
}

#[test]
fn a_connection_that_says_something_else_is_closed_without_a_word() {
    let id = ConnectionId(5);
    for (bytes, why) in [
        (answer(2, "", 5), Some(Discard::Unknown)),
        (b"\0\0\0\0\0\0\0\x01SSH-2.0-x\r\n".to_vec(), None),
        (
            b"\0\0\0\0\0\0\0\x01HTTP/1.1 200 OK\r\n\r\n".to_vec(),
            Some(Discard::Malformed(Malformed::Unbounded)),
        ),
        (
            b"\0\0\0\0\0\0\0\x01HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n".to_vec(),
            None,
        ),
        ([&b"\0\0\0\0\0\0\0\x01"[..], &b"HTTP/1.1 102 x\r\n\r\n".repeat(9)].concat(), None),
        ([&b"\0\0\0\0\0\0\0\x01HTTP/1.1 200 OK\r\nX: "[..], &b"x".repeat(20_000)].concat(), None),
    ] {
        let mut client = waiting(ClientConfig::internet());
        client.handle(at(1), Input::Accepted(id, server_at()));
        client.handle(at(1), Input::Received(id, &bytes));
        let (outputs, _) = drain(&mut client, at(1));
        let [Output::Discarded(from, found), Output::Close(closed), rest @ ..] = outputs.as_slice() else {
            panic!("{outputs:?}")
        };
        assert_eq!((*from, *closed), (server_at(), id));
        assert!(why.is_none_or(|why| why == *found), "{found:?}");
        assert!(rest.iter().all(|output| matches!(output, Output::Send(..))), "{rest:?}");
        assert_eq!(client.outstanding(), 1, "it is asked for again");
    }
}

#[test]
fn strangers_and_crowds_cannot_connect() {
    let mut client = waiting(ClientConfig { connections: 1, ..ClientConfig::internet() });
    let stranger = SocketAddr::from(([8, 8, 8, 8], 5_000));
    for (id, from, why) in [
        (1, stranger, Some(Discard::Stranger)),
        (2, server_at(), None),
        (3, server_at(), Some(Discard::Crowded)),
    ] {
        let id = ConnectionId(id);
        client.handle(at(1), Input::Accepted(id, from));
        let expected = why.map(|why| vec![Output::Discarded(from, why), Output::Close(id)]);
        assert_eq!(drain(&mut client, at(1)).0, expected.unwrap_or_default());
    }
}

#[test]
fn a_connection_that_never_speaks_or_never_ends_its_head_is_closed() {
    let config = ClientConfig::internet();
    for drip in [None, Some(b'x')] {
        let mut client = waiting(config);
        let id = ConnectionId(1);
        client.handle(at(1), Input::Accepted(id, server_at()));
        if drip.is_some() {
            client.handle(at(1), Input::Received(id, b"\0\0\0\0\0\0\0\x01HTTP/1.1 200 OK\r\nX: "));
        }
        let mut closed = None;
        for second in 0..60 {
            let now = at(1_000 * second + 2);
            let (outputs, _) = drain(&mut client, now);
            if outputs.contains(&Output::Close(id)) {
                closed = Some(second);
                break;
            }
            drip.iter().for_each(|byte| client.handle(now, Input::Received(id, &[*byte])));
        }
        assert_eq!(closed, Some(30), "drip {drip:?}");
    }
}
