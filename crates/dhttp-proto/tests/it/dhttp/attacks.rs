//! Attacks, and the properties that must hold: reflection, loops, forged responses, stolen tokens, smuggling, bounce,
//! floods, slow servers. Not the kernel's part: that needs sockets.

use core::net::SocketAddr;

use http1::message::{Limits, Method};
use proptest::prelude::*;
use roundtrip_dhttp_proto::client::{ConnectionId, Discard, Input, Output, Responders};
use roundtrip_dhttp_proto::message::{FallbackMessage, Request, RequestHeader};
use roundtrip_dhttp_proto::parts::DivisibleResponse;
use roundtrip_dhttp_proto::prefix::Prefixes;
use roundtrip_dhttp_proto::server::{Channel, IgnoreReason, Server, Verdict};
use roundtrip_dhttp_proto::{Client, ClientConfig, Extension, Id, Malformed, ServerConfig};
use wire::Duration;

use super::setting::{
    CLIENT_PORT, at, client, client_at, datagram, drain, get, head, respond, server, server_at, ticket,
};

fn internet() -> Server {
    server(ServerConfig::internet())
}

/// A request with a token that is valid at this server, and with the marked id of a number.
fn validated(server: &mut Server, number: u64, from: SocketAddr, is_resend: bool) -> Vec<u8> {
    let mut request = validated_for(server, number, SocketAddr::new(from.ip(), CLIENT_PORT));
    request[10] = u8::from(is_resend);
    request
}

/// The same, for a client that accepts connections on another port.
fn validated_for(server: &mut Server, number: u64, client: SocketAddr) -> Vec<u8> {
    let aimed = |mut request: Vec<u8>| {
        request[8..10].copy_from_slice(&client.port().to_be_bytes());
        request
    };
    let first = aimed(get(u64::MAX - number, false));
    let first = ticket(server.receive(at(0), SocketAddr::new(client.ip(), 50_000), &first));
    let token = server.token(at(0), &first, || 60).expect("a client without a token gets one");
    server.abandon(first);
    let shown = head(Method::Get, "/", &[("DHTTP-Token", token.as_str())]);
    aimed(datagram(Id::marked(number).0, false, &shown))
}

/// A response of `size` bytes that may be divided.
fn divisible(size: u64) -> Option<DivisibleResponse> {
    DivisibleResponse::of(200, [(&b"ETag"[..], &b"\"t\""[..])].into_iter(), size.saturating_sub(60))
}

/// Bytes of the IP and UDP headers.
fn headers(of: SocketAddr) -> u64 {
    if of.is_ipv4() { 28 } else { 48 }
}

/// The IP bytes that a server sends for a datagram without a token; its response has `size` bytes.
fn cost(server: &mut Server, from: SocketAddr, datagram: &[u8], size: u64) -> u64 {
    let one = |bytes| bytes + headers(from);
    match server.receive(at(0), from, datagram) {
        Verdict::Serve(ticket, _) => {
            let more = server.token(at(0), &ticket, || size).map_or(0, |_| 41);
            let size = size + more;
            match server.channel_in_parts(at(0), ticket, size, || divisible(size)) {
                Channel::Datagram => one(size),
                Channel::Parts(division) => division.bytes() + division.count() as u64 * headers(from),
                Channel::Refer(message) => one(message.as_bytes().len() as u64),
                channel @ (Channel::Open { .. } | Channel::Connection(_)) => panic!("{channel:?}"),
            }
        }
        Verdict::Refer(message) => one(message.as_bytes().len() as u64),
        Verdict::Ignore(_) => 0,
    }
}

proptest! {
    #[test]
    fn addresses_without_a_token_get_at_most_three_bytes_per_byte_and_no_tcp(
        requested in prop::collection::vec((0_usize..1_200, 0_u64..30_000, any::<[bool; 2]>(), any::<u16>()), 1..50),
        is_six: bool,
    ) {
        // Also in parts: all of them count.
        let mut server = server(ServerConfig::internet().with(Extension::Parts, true));
        let (mut sent, mut received) = (0, 0);
        let from = if is_six { SocketAddr::from(([0x2600, 0, 0, 0, 0, 0, 0, 7], 50_000)) } else { client_at(50_000) };
        for (id, (padding, size, [is_resend, requests_token], cut)) in requested.into_iter().enumerate() {
            let fill = "0".repeat(padding);
            let token = if requests_token { "?" } else { "0" };
            let fields = [("DHTTP-Parts", "10"), ("DHTTP-Token", token), ("DHTTP-Fill", &fill)];
            let head = head(Method::Get, "/", &fields);
            let mut datagram = datagram(id as u64, is_resend, &head);
            datagram.truncate(usize::from(cut).max(12));
            received += datagram.len() as u64 + headers(from);
            sent += cost(&mut server, from, &datagram, size);
            prop_assert!(sent <= 3 * received, "{sent} for {received}");
        }
    }

    #[test]
    fn two_state_machines_back_to_back_do_not_loop(bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0_u8..4) {
        let datagram = match kind {
            0 => bytes,
            1 => respond(7, "", bytes.len()),
            2 => Id(7).to_bytes().to_vec(),
            _ => [&get(7, false)[..], &bytes].concat(),
        };
        // Server against server: neither responds to the other's messages.
        let (mut one, mut other) = (server(ServerConfig::paper()), server(ServerConfig::paper()));
        let mut exchanged = 0;
        let mut printed = reply(&mut one, &datagram);
        while let Some(datagram) = printed {
            exchanged += 1;
            prop_assert!(exchanged <= 1, "a server answers an answer");
            printed = reply(&mut other, &datagram);
        }
        // A client never replies to what it receives.
        let mut client = client(ClientConfig::paper());
        client.handle(at(0), Input::Datagram(server_at(), &datagram));
        let (outputs, _) = drain(&mut client, at(0));
        prop_assert!(outputs.iter().all(|output| matches!(output, Output::Discarded(..))), "{outputs:?}");
    }
}

fn reply(server: &mut Server, datagram: &[u8]) -> Option<Vec<u8>> {
    match server.receive(at(0), client_at(50_000), datagram) {
        Verdict::Serve(ticket, _) => {
            let bytes = respond(ticket.id.0, "", 10);
            matches!(server.channel(at(0), ticket, bytes.len() as u64), Channel::Datagram).then_some(bytes)
        }
        Verdict::Refer(message) => Some(message.as_bytes().to_vec()),
        Verdict::Ignore(_) => None,
    }
}

#[test]
fn a_request_that_is_filled_up_has_its_small_response_in_one_round_trip() {
    let mut client = client(ClientConfig::internet());
    client.request(at(0), Id(1), server_at(), &head(Method::Get, "/", &[])).unwrap();
    let (outputs, _) = drain(&mut client, at(0));
    let [Output::Send(_, datagram)] = outputs.as_slice() else { panic!("{outputs:?}") };
    let mut server = internet();
    let ticket = ticket(server.receive(at(0), client_at(50_000), datagram));
    assert_eq!(server.channel(at(0), ticket, 1_232), Channel::Datagram);
}

#[test]
fn a_token_lifts_the_budget_of_its_own_address_only() {
    let mut server = internet();
    let request = validated(&mut server, 1, client_at(50_000), false);
    let own_ticket = ticket(server.receive(at(0), client_at(50_001), &request));
    assert_eq!(
        server.channel(at(0), own_ticket, 1_232),
        Channel::Datagram,
        "another UDP port is the same client"
    );
    let max = 3 * (request.len() as u64 + 28);
    let other_client = SocketAddr::from(([8, 8, 4, 5], 50_000));
    assert!(cost(&mut server, other_client, &request, 1_232) <= max);
    let mut aimed = request.clone();
    aimed[8..10].copy_from_slice(&41_000_u16.to_be_bytes());
    assert!(cost(&mut server, client_at(50_000), &aimed, 9_000) <= max, "another TCP port");
    let late = at(0) + Duration::from_secs(601);
    let expired = ticket(server.receive(late, client_at(50_000), &request));
    assert_ne!(server.channel(late, expired, 1_232), Channel::Datagram);
}

#[test]
fn debug_output_of_state_machines_has_no_key() {
    // The keys of these tests are bytes of 1, 2 and 3.
    for printed in [format!("{:?}", internet()), format!("{:?}", client(ClientConfig::internet()))] {
        for key in ["1, 1, 1", "2, 2, 2", "3, 3, 3"] {
            assert!(!printed.contains(key));
        }
    }
}

#[test]
fn no_connection_to_addresses_without_a_token() {
    let mut internet = internet();
    for (port, address, is_reached) in [
        (25, [8, 8, 4, 4], false),
        (0, [8, 8, 4, 4], false),
        (6_000, [8, 8, 4, 4], false),
        (32_767, [8, 8, 4, 4], false),
        (61_613, [8, 8, 4, 4], false),
        (40_001, [127, 0, 0, 1], false),
        (40_001, [10, 0, 0, 1], false),
        (40_001, [8, 8, 4, 4], true),
    ] {
        let from = SocketAddr::from((address, 50_000));
        let request = validated_for(&mut internet, 1, SocketAddr::from((address, port)));
        let ticket = ticket(internet.receive(at(0), from, &request));
        assert!(ticket.has_proved_its_address(), "{from}");
        let channel = internet.channel(at(0), ticket, 9_000);
        assert_eq!(matches!(channel, Channel::Open { .. }), is_reached, "{from} port {port}: {channel:?}");
    }
    assert_eq!(internet.connections(), 1);
}

/// The bytes that a requester chooses never begin a connection as a command.
#[test]
fn no_response_on_a_connection_begins_with_an_id_that_is_text() {
    let mut server = internet();
    let mut large = |id: [u8; 8]| {
        let mut request = validated(&mut server, 1, client_at(50_000), false);
        request[..8].copy_from_slice(&id);
        let ticket = ticket(server.receive(at(0), client_at(50_000), &request));
        server.channel(at(0), ticket, 9_000)
    };
    for text in [*b"FLUSHDB\n", *b"\xc1\nQUIT\r\n", *b"GET / HT", [0xc1; 8].map(|byte| byte & 0x7f), [0; 8]] {
        assert_eq!(large(text), Channel::Refer(Id(u64::from_be_bytes(text)).into()), "{text:?}");
    }
    assert!(matches!(large(Id::marked(77).to_bytes()), Channel::Open { .. }));
}

#[test]
fn without_a_token_no_connection_is_opened_and_none_that_is_open_is_used() {
    let mut server = internet();
    let send_request = |server: &mut Server, request: &[u8], is_late: bool| {
        let ticket = ticket(server.receive(at(0), client_at(50_000), request));
        if is_late {
            server.defer(&ticket);
        }
        server.channel(at(0), ticket, 9_000)
    };
    let fill = "0".repeat(1_000);
    let filled = |id, is_resend| datagram(id, is_resend, &head(Method::Get, "/", &[("DHTTP-Fill", &fill)]));
    for (id, is_resend, is_late) in [(1, false, false), (2, true, false), (3, false, true)] {
        let channel = send_request(&mut server, &filled(id, is_resend), is_late);
        assert_eq!(channel, Channel::Refer(Id(id).into()));
    }
    assert_eq!(server.connections(), 0);
    let shown = validated(&mut server, 4, client_at(50_000), false);
    assert!(matches!(send_request(&mut server, &shown, false), Channel::Open { .. }));
    // The client's own connection, and a request that an attacker writes in its name.
    assert_eq!(send_request(&mut server, &filled(5, false), false), Channel::Refer(Id(5).into()));
    assert_eq!(server.connections(), 1);
}

#[test]
fn fallback_with_a_token_is_shorter_than_the_smallest_request_and_leads_to_a_connection() {
    let id = Id::marked(9);
    let header = RequestHeader { id, port: 40_001, is_resend: false };
    let smallest = |fields: &str| {
        [&header.to_bytes()[..], format!("GET / HTTP/1.1\r\nHost:\r\n{fields}\r\n").as_bytes()].concat()
    };
    let mut server = internet();
    let mut referred = |request: &[u8]| {
        let ticket = ticket(server.receive(at(0), client_at(50_000), request));
        match server.channel(at(0), ticket, 9_000) {
            Channel::Refer(message) => message.as_bytes().to_vec(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(referred(&smallest("")), id.to_bytes(), "a client without support gets the id alone");
    assert_eq!(referred(&smallest("DHTTP-Token:x\r\n")), id.to_bytes(), "an invalid token opens none either");
    let request = smallest("DHTTP-Token:?\r\n");
    let message = referred(&request);
    assert_eq!((request.len(), message.len()), (51, 34));
    assert!(message.len() < request.len() && FallbackMessage::has_token(&message[8..]));
    let token = String::from_utf8(message[8..].to_vec()).unwrap();
    let shown = smallest(&format!("DHTTP-Token:{token}\r\n"));
    let validated = ticket(server.receive(at(0), client_at(50_000), &shown));
    assert!(matches!(server.channel(at(0), validated, 9_000), Channel::Open { .. }));
}

#[test]
fn limited_clients_get_a_token_by_the_fallback_message_and_are_served() {
    let mut server = internet();
    let fields = [("DHTTP-Token", "?")];
    let request = |id| datagram(id, false, &head(Method::Get, "/", &fields));
    let slipped = (0..1_000).find_map(|id| match server.receive(at(0), client_at(50_000), &request(id)) {
        Verdict::Serve(ticket, _) => {
            server.abandon(ticket);
            None
        }
        Verdict::Refer(message) => Some(message.as_bytes().to_vec()),
        Verdict::Ignore(_) => None,
    });
    let token = String::from_utf8(slipped.expect("its share is used up")[8..].to_vec()).unwrap();
    let shown = datagram(2_000, false, &head(Method::Get, "/", &[("DHTTP-Token", &token)]));
    assert!(matches!(server.receive(at(0), client_at(50_000), &shown), Verdict::Serve(..)));
}

#[test]
fn a_token_is_left_out_of_a_response_that_fits_without_it_alone() {
    let mut server = internet();
    let request = get(1, false);
    let max = 3 * request.len() as u64;
    for (size, has_token, channel) in [
        (max - 41, true, Channel::Datagram),
        (max - 40, false, Channel::Datagram),
        (max, false, Channel::Datagram),
        (max + 1, true, Channel::Refer(Id(1).into())),
    ] {
        let ticket = ticket(server.receive(at(0), client_at(50_000), &request));
        let token = server.token(at(0), &ticket, || size);
        assert_eq!(token.is_some(), has_token, "{size}");
        let line = token.map_or(0, |token| format!("DHTTP-Token: {}\r\n", token.as_str()).len() as u64);
        assert_eq!(server.channel(at(0), ticket, size + line), channel, "{size}");
    }
}

#[test]
fn spoofed_floods_are_limited_and_leave_no_state() {
    let mut server = internet();
    let request = get(1, false);
    let answered = (0..10_000_u32)
        .filter(|n| {
            let [_, _, third, fourth] = n.to_be_bytes();
            let from = SocketAddr::from(([100, 200, third, fourth], 50_000));
            cost(&mut server, from, &request, 60) > 60
        })
        .count();
    assert!(answered <= 2_000, "{answered} answers into one network");
    assert_eq!(server.connections(), 0);
}

#[test]
fn a_token_allows_a_mebibyte_and_then_fallback_messages() {
    for (address, is_limited) in [([8, 8, 4, 4], true), ([127, 0, 0, 1], false)] {
        let mut server = internet();
        let from = SocketAddr::from((address, 50_000));
        let request = validated_for(&mut server, 1, SocketAddr::from((address, 40_001)));
        let costs: Vec<u64> = (0..10_000).map(|_| cost(&mut server, from, &request, 1_000)).collect();
        let whole = costs.iter().filter(|cost| **cost == 1_028).count();
        assert!(costs.iter().all(|cost| [1_028, 36].contains(cost)), "each gets a response");
        assert!(if is_limited { (900..1_100).contains(&whole) } else { whole == 10_000 }, "{whole}");
    }
    // A flood does not open connection after connection either.
    let mut server = internet();
    let request = validated_for(&mut server, 1, client_at(40_001));
    let opened = (0..10_000_u64)
        .filter(|_| {
            let ticket = ticket(server.receive(at(0), client_at(50_000), &request));
            let channel = server.channel(at(0), ticket, 9_000);
            if let Channel::Open { connection, client: _ } = channel {
                server.handle(at(0), roundtrip_dhttp_proto::server::Input::Broken(connection));
            }
            matches!(channel, Channel::Open { .. })
        })
        .count();
    assert!((1..3_000).contains(&opened), "{opened}");
}

#[test]
fn resends_without_a_token_do_not_count_as_loss() {
    let mut server = internet();
    for id in 0..100 {
        if let Verdict::Serve(ticket, _) = server.receive(at(0), client_at(50_000), &get(id, true)) {
            server.abandon(ticket);
        }
    }
    let request = validated(&mut server, 1_000, SocketAddr::from(([8, 8, 4, 9], 50_000)), false);
    let ticket = ticket(server.receive(at(0), SocketAddr::from(([8, 8, 4, 9], 50_000)), &request));
    assert_eq!(server.channel(at(0), ticket, 100), Channel::Datagram);
}

#[test]
fn requests_from_service_ports_get_no_response() {
    for port in [0, 7, 19, 53, 80, 123, 443, 1_900, 5_353, 11_211] {
        let request = get(1, false);
        let verdict = server(ServerConfig::paper()).receive(at(0), client_at(port), &request);
        assert_eq!(verdict, Verdict::Ignore(IgnoreReason::Source), "port {port}");
    }
}

#[test]
fn credentials_are_not_sent_in_datagrams() {
    let mut server = internet();
    for field in ["Authorization", "Cookie"] {
        let request = datagram(1, false, &head(Method::Get, "/", &[(field, "secret")]));
        assert_eq!(server.receive(at(0), client_at(50_000), &request), Verdict::Refer(Id(1).into()));
    }
}

/// Request smuggling: a second request hidden behind the first, by the published techniques.
#[test]
fn no_request_is_smuggled_in_a_datagram() {
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
            Verdict::Ignore(IgnoreReason::Malformed(_))
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
fn forged_responses_are_ignored() {
    let mut client = waiting(ClientConfig::internet());
    let other_host = SocketAddr::from(([8, 8, 8, 8], 80));
    let passes_caches = |output: &Output| match output {
        Output::Send(to, datagram) => {
            *to == server_at()
                && datagram[10] == 1
                && String::from_utf8_lossy(datagram).contains("DHTTP-Past:")
        }
        _ => false,
    };
    let mut retried = 0;
    for (from, datagram, why) in [
        (server_at(), respond(2, "", 5), Discard::Unknown),
        (other_host, respond(1, "", 5), Discard::Stranger),
        (other_host, Id(1).to_bytes().to_vec(), Discard::Stranger),
        (server_at(), vec![0; 7], Discard::Malformed(Malformed::Short)),
        (server_at(), [&respond(1, "", 5)[..], b"more"].concat(), Discard::Malformed(Malformed::Body)),
    ] {
        client.handle(at(1), Input::Datagram(from, &datagram));
        let mut outputs = drain(&mut client, at(1)).0;
        // A host that knows the id is on the path: the request is resent once, past caches that take fresh requests.
        retried += outputs.extract_if(.., |output| passes_caches(output)).count();
        assert_eq!(outputs, [Output::Discarded(from, why)]);
    }
    assert_eq!(retried, 1);
    client.handle(at(1), Input::Unreachable(other_host));
    assert_eq!((drain(&mut client, at(1)).0, client.outstanding()), (vec![], 1));
}

#[test]
fn responses_of_caches_outside_allowed_networks_are_ignored() {
    let networks = Prefixes::new(&["192.0.2.0/24".parse().unwrap()]).unwrap();
    for (from, is_taken) in [("192.0.2.9:80", true), ("192.0.3.1:80", false), ("[2001:db8::1]:80", false)] {
        let from = from.parse().unwrap();
        let config = ClientConfig { responders: Responders::Caches(networks), ..ClientConfig::internet() };
        let mut client = waiting(config);
        client.handle(at(1), Input::Accepted(ConnectionId(1), from));
        let closes = drain(&mut client, at(1)).0.contains(&Output::Close(ConnectionId(1)));
        client.handle(at(1), Input::Datagram(from, &respond(1, "", 5)));
        assert_eq!((closes, client.outstanding()), (!is_taken, usize::from(!is_taken)), "{from}");
    }
    let mut client =
        waiting(ClientConfig { responders: Responders::Caches(networks), ..ClientConfig::internet() });
    client.handle(at(1), Input::Datagram(server_at(), &respond(1, "", 5)));
    assert_eq!(client.outstanding(), 0, "the server itself may always");
}

#[test]
fn connection_with_other_bytes_is_closed_without_a_reply() {
    let id = ConnectionId(5);
    for (bytes, why) in [
        (respond(2, "", 5), Some(Discard::Unknown)),
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
fn connections_of_unknown_hosts_and_too_many_are_refused() {
    let mut client = waiting(ClientConfig { connections: 1, ..ClientConfig::internet() });
    let other_host = SocketAddr::from(([8, 8, 8, 8], 5_000));
    for (id, from, why) in [
        (1, other_host, Some(Discard::Stranger)),
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
