//! The server by itself: the paper's four steps and three rules, its memory, its limits and its time-outs.
//!
//! Attacks are in `attacks`.

use core::net::SocketAddr;

use http1::message::Method;
use roundtrip_dhttp_proto::server::{
    Channel, ConnectionId, IgnoreReason, Input, Output, PerClient, Server, Verdict,
};
use roundtrip_dhttp_proto::{Extension, Id, ServerConfig};
use wire::Time;

use super::setting::{CLIENT_PORT, at, client_at, datagram, get, head, server, ticket};

const UDP_PORT: u16 = 50_000;

fn paper() -> Server {
    server(ServerConfig::paper())
}

/// The channel of a response of `size` bytes to a fresh request.
fn send_request(server: &mut Server, now: Time, id: u64, size: u64) -> Channel {
    let ticket = ticket(server.receive(now, client_at(UDP_PORT), &get(id, false)));
    server.channel(now, ticket, size)
}

fn opened(channel: Channel) -> ConnectionId {
    match channel {
        Channel::Open { connection, client } => {
            assert_eq!(client, client_at(CLIENT_PORT));
            connection
        }
        Channel::Datagram | Channel::Parts(_) | Channel::Connection(_) | Channel::Refer(_) => {
            panic!("{channel:?}")
        }
    }
}

#[test]
fn paper_a_response_of_1460_bytes_goes_by_udp_and_one_more_by_tcp() {
    let mut server = paper();
    assert_eq!(send_request(&mut server, at(0), 1, 1_460), Channel::Datagram);
    opened(send_request(&mut server, at(0), 2, 1_461));
}

#[test]
fn paper_a_resend_is_answered_by_tcp_and_then_no_more() {
    let mut server = paper();
    assert_eq!(send_request(&mut server, at(0), 1, 100), Channel::Datagram);
    let ticket = ticket(server.receive(at(5_000), client_at(UDP_PORT), &get(1, true)));
    let connection = opened(server.channel(at(5_000), ticket, 100));
    server.handle(at(5_001), Input::Opened(connection));
    server.handle(at(5_001), Input::Written(connection));
    let resent = get(1, true);
    let resent = server.receive(at(15_000), client_at(UDP_PORT), &resent);
    assert_eq!(resent, Verdict::Ignore(IgnoreReason::AlreadyAnswered));
}

#[test]
fn a_request_resent_past_a_cache_is_handled_as_new_and_is_no_loss() {
    let mut server = paper();
    let past = datagram(0, true, &head(Method::Get, "/", &[("DHTTP-Past", "caches")]));
    let requested = ticket(server.receive(at(0), client_at(UDP_PORT), &past));
    assert!(!requested.is_resend());
    assert_eq!(server.channel(at(0), requested, 100), Channel::Datagram);
    // One resend would have moved 99 of these to TCP.
    assert!((1..=100).all(|id| send_request(&mut server, at(0), id, 100) == Channel::Datagram));
}

#[test]
fn paper_in_high_loss_one_small_response_in_a_hundred_goes_by_udp() {
    let mut server = paper();
    let lost = ticket(server.receive(at(0), client_at(UDP_PORT), &get(0, true)));
    server.abandon(lost);
    let by_udp =
        (1..=1_000).filter(|id| send_request(&mut server, at(0), *id, 100) == Channel::Datagram).count();
    // One resend, no fresh request: loss is high until a hundred fresh ones were counted.
    assert_eq!(by_udp, 10);
}

#[test]
fn one_lossy_network_moves_others_to_tcp_only_where_loss_is_counted_in_aggregate() {
    // Half of the datagrams to the one network are lost, and their requests resent; the other loses nothing.
    let by_udp = |config: ServerConfig| {
        let mut server = server(config);
        let lossy = SocketAddr::from(([9, 8, 7, 6], UDP_PORT));
        let mut by_udp = 0;
        for id in 0..2_000 {
            let first = ticket(server.receive(at(id), lossy, &get(2 * id, false)));
            if server.channel(at(id), first, 100) == Channel::Datagram && id % 2 == 0 {
                let resent = ticket(server.receive(at(id), lossy, &get(2 * id, true)));
                server.channel(at(id), resent, 100);
            }
            by_udp += usize::from(send_request(&mut server, at(id), 2 * id + 1, 100) == Channel::Datagram);
        }
        by_udp
    };
    let aggregate = by_udp(ServerConfig::paper());
    assert!(aggregate < 50, "{aggregate}");
    assert_eq!(by_udp(ServerConfig::paper().with(Extension::LossByPrefix, true)), 2_000);
}

#[test]
fn smaller_path_mtu_costs_two_timeouts_and_is_not_counted_as_loss() {
    let config =
        ServerConfig::paper().with(Extension::LossByPrefix, true).with(Extension::AdaptiveSize, true);
    let mut server = server(config);
    for id in [1, 2] {
        assert_eq!(send_request(&mut server, at(0), id, 1_400), Channel::Datagram, "which is lost");
        let resent = ticket(server.receive(at(5_000), client_at(UDP_PORT), &get(id, true)));
        assert!(!matches!(server.channel(at(5_000), resent, 1_400), Channel::Datagram));
    }
    assert!(!matches!(send_request(&mut server, at(6_000), 3, 1_400), Channel::Datagram));
    assert_eq!(send_request(&mut server, at(6_000), 4, 1_200), Channel::Datagram);
    server.handle(at(6_000), Input::TooLarge(client_at(UDP_PORT).ip(), 1_200));
    assert!(!matches!(send_request(&mut server, at(6_000), 5, 1_200), Channel::Datagram));
    assert_eq!(send_request(&mut server, at(6_000), 6, 900), Channel::Datagram);
    assert_eq!(send_request(&mut server, at(606_000), 7, 1_400), Channel::Datagram, "tried again");
}

#[test]
fn extensions_are_off_in_the_papers_profile_and_enabled_by_name() {
    for extension in Extension::ALL {
        let paper = ServerConfig::paper();
        assert_eq!(paper.with(extension, false), paper, "{extension}");
        assert_ne!(paper.with(extension, true), paper, "{extension}");
    }
    let is_usual = |extension: &Extension| *extension != Extension::Parts;
    let usual = Extension::ALL.into_iter().filter(is_usual);
    let all = usual.fold(ServerConfig::internet(), |config, one| config.with(one, true));
    assert_eq!(all, ServerConfig::internet());
}

#[test]
fn paper_the_three_rules_choose_among_a_clients_connections() {
    let per_client = PerClient { max: 2, max_when_few: 2, few_below: 0 };
    let mut server = server(ServerConfig { per_client, ..ServerConfig::paper() });
    let first = opened(send_request(&mut server, at(0), 1, 9_000));
    server.handle(at(1), Input::Opened(first));
    let second = opened(send_request(&mut server, at(1), 2, 9_000));
    server.handle(at(2), Input::Opened(second));
    assert_eq!(
        send_request(&mut server, at(2), 3, 9_000),
        Channel::Connection(first),
        "both have one pending"
    );
    assert_eq!(send_request(&mut server, at(2), 4, 9_000), Channel::Connection(second), "the fewest pending");
    server.handle(at(3), Input::Written(second));
    server.handle(at(3), Input::Written(second));
    assert_eq!(send_request(&mut server, at(3), 5, 9_000), Channel::Connection(second), "an idle one");
}

#[test]
fn connection_opened_early_carries_the_response_or_stays_for_later_ones() {
    let mut server = server(ServerConfig { opens_early: true, ..ServerConfig::internet() });
    let client = SocketAddr::new(client_at(UDP_PORT).ip(), CLIENT_PORT);
    let first = ticket(server.receive(at(0), client_at(UDP_PORT), &get(1, false)));
    let token = server.token(at(0), &first, || 60).unwrap();
    server.abandon(first);
    let request = |id, token: &str| {
        datagram(Id::marked(id).0, false, &head(Method::Get, "/", &[("DHTTP-Token", token)]))
    };
    let mut unproved = ticket(server.receive(at(0), client_at(UDP_PORT), &request(1, "x")));
    assert_eq!(server.open_early(at(0), &mut unproved), None, "it may be spoofed");
    server.abandon(unproved);
    let deferred = |server: &mut Server, id| {
        let mut ticket = ticket(server.receive(at(0), client_at(UDP_PORT), &request(id, token.as_str())));
        server.defer(&ticket);
        let opened = server.open_early(at(0), &mut ticket);
        (ticket, opened)
    };
    let (first, opened) = deferred(&mut server, 2);
    let (connection, to) = opened.expect("a connection before the response");
    assert_eq!(to, client);
    server.handle(at(50), Input::Opened(connection));
    assert_eq!(server.channel(at(100), first, 9_000), Channel::Connection(connection));
    server.handle(at(100), Input::Written(connection));
    let (second, opened) = deferred(&mut server, 3);
    assert_eq!(opened, None, "the idle connection serves");
    let (third, opened) = deferred(&mut server, 4);
    let (other, _) = opened.expect("the first is reserved");
    assert_eq!(server.channel(at(100), second, 100), Channel::Datagram);
    assert_eq!(server.channel(at(100), third, 100), Channel::Datagram);
    server.handle(at(200), Input::Opened(other));
    assert_eq!(server.connections(), 2);
    // Unused, it closes like any idle connection.
    let closed = [server.poll(at(15_300)), server.poll(at(15_300))];
    assert_eq!(closed, [connection, other].map(Output::Close));
}

#[test]
fn a_request_is_pending_at_a_connection_before_its_channel_is_known() {
    let per_client = PerClient { max: 2, max_when_few: 2, few_below: 0 };
    let mut server = server(ServerConfig { per_client, ..ServerConfig::paper() });
    let first = opened(send_request(&mut server, at(0), 1, 9_000));
    server.handle(at(1), Input::Opened(first));
    server.handle(at(1), Input::Written(first));
    let small = ticket(server.receive(at(2), client_at(UDP_PORT), &get(2, false)));
    let second = opened(send_request(&mut server, at(2), 3, 9_000));
    assert_ne!(first, second, "the first is taken until the small answer goes another way");
    assert_eq!(server.channel(at(3), small, 100), Channel::Datagram);
    assert_eq!(send_request(&mut server, at(3), 4, 9_000), Channel::Connection(first));
}

#[test]
fn a_client_with_few_neighbours_gets_more_connections() {
    let per_client = PerClient { max: 1, max_when_few: 3, few_below: 2 };
    let mut server = server(ServerConfig { per_client, ..ServerConfig::paper() });
    let first = opened(send_request(&mut server, at(0), 1, 9_000));
    opened(send_request(&mut server, at(0), 2, 9_000));
    assert_eq!(
        send_request(&mut server, at(0), 3, 9_000),
        Channel::Connection(first),
        "two are no longer few"
    );
}

#[test]
fn full_server_refers_to_plain_http_but_still_sends_small_responses() {
    let mut server = server(ServerConfig { connections: 0, ..ServerConfig::paper() });
    assert_eq!(send_request(&mut server, at(0), 0x0102, 9_000), Channel::Refer(Id(0x0102).into()));
    assert_eq!(send_request(&mut server, at(0), 2, 100), Channel::Datagram);
    assert_eq!(server.connections(), 0);
}

#[test]
fn unsafe_methods_are_referred_to_plain_http() {
    let mut server = paper();
    let source = client_at(UDP_PORT);
    for (method, fields, is_served) in [
        (Method::Get, &[][..], true),
        (Method::Head, &[], true),
        (Method::Options, &[], true),
        (Method::Other("POST".into()), &[], false),
        (Method::Other("get".into()), &[], false),
        (Method::Get, &[("Expect", "100-continue")], false),
        (Method::Get, &[("Upgrade", "h2c")], false),
    ] {
        let datagram = datagram(7, false, &head(method, "/", fields));
        match server.receive(at(0), source, &datagram) {
            Verdict::Serve(ticket, _) if is_served => server.abandon(ticket),
            verdict => assert_eq!((verdict, is_served), (Verdict::Refer(Id(7).into()), false)),
        }
    }
}

#[test]
fn resend_of_a_pending_request_is_handled_once_and_gets_tcp() {
    let mut server = paper();
    let slow = ticket(server.receive(at(0), client_at(UDP_PORT), &get(1, false)));
    server.defer(&slow);
    let resent = get(1, true);
    let resent = server.receive(at(5_000), client_at(UDP_PORT), &resent);
    assert_eq!(resent, Verdict::Ignore(IgnoreReason::InProgress));
    opened(server.channel(at(6_000), slow, 100));
}

#[test]
fn responses_lost_with_a_connection_are_repeated() {
    for (written, input, is_forgotten) in [
        (false, Input::Broken as fn(ConnectionId) -> Input, true),
        (true, Input::Broken, true),
        (false, Input::Closed, true),
        (true, Input::Closed, false),
    ] {
        let mut server = paper();
        let connection = opened(send_request(&mut server, at(0), 1, 9_000));
        server.handle(at(1), Input::Opened(connection));
        if written {
            server.handle(at(2), Input::Written(connection));
        }
        server.handle(at(3), input(connection));
        assert_eq!(server.connections(), 0);
        match server.receive(at(5_000), client_at(UDP_PORT), &get(1, true)) {
            Verdict::Serve(ticket, _) => {
                assert!(is_forgotten);
                opened(server.channel(at(5_000), ticket, 9_000));
            }
            verdict => {
                assert_eq!((verdict, is_forgotten), (Verdict::Ignore(IgnoreReason::AlreadyAnswered), false))
            }
        }
    }
}

#[test]
fn idle_stalled_or_unopened_connections_are_closed() {
    let timeout = ServerConfig::paper().timeout;
    let mut server = paper();
    let connection = opened(send_request(&mut server, at(0), 1, 9_000));
    assert_eq!(server.poll(at(0)), Output::Timeout(Some(at(0) + timeout.open)));
    server.handle(at(10), Input::Opened(connection));
    assert_eq!(server.poll(at(10)), Output::Timeout(Some(at(10) + timeout.stall)));
    server.handle(at(20), Input::Progressed(connection));
    assert_eq!(server.poll(at(20)), Output::Timeout(Some(at(20) + timeout.stall)));
    server.handle(at(30), Input::Written(connection));
    let idle = at(30) + timeout.idle;
    assert_eq!(server.poll(at(30)), Output::Timeout(Some(idle)));
    assert_eq!(server.poll(idle), Output::Close(connection));
    assert_eq!(server.poll(idle), Output::Timeout(None));

    let stalled = opened(send_request(&mut server, at(0), 2, 9_000));
    server.handle(at(0), Input::Opened(stalled));
    assert_eq!(server.poll(at(0) + timeout.stall), Output::Abort(stalled));
    let unreachable = opened(send_request(&mut server, at(0), 3, 9_000));
    assert_eq!(server.poll(at(0) + timeout.open), Output::Abort(unreachable));
    assert_eq!(server.connections(), 0);
}

#[test]
fn response_timeout_begins_when_the_response_is_ready() {
    let mut server = paper();
    let connection = opened(send_request(&mut server, at(0), 1, 9_000));
    server.handle(at(0), Input::Opened(connection));
    server.handle(at(0), Input::Written(connection));
    let slow = ticket(server.receive(at(10_000), client_at(UDP_PORT), &get(2, false)));
    assert_eq!(server.poll(at(200_000)), Output::Timeout(None), "it is kept for an answer in the making");
    assert_eq!(server.channel(at(200_000), slow, 9_000), Channel::Connection(connection));
    let stall = ServerConfig::paper().timeout.stall;
    assert_eq!(server.poll(at(200_000)), Output::Timeout(Some(at(200_000) + stall)));
}

#[test]
fn events_of_a_closed_connection_are_ignored() {
    let mut server = paper();
    let connection = opened(send_request(&mut server, at(0), 1, 9_000));
    let reserved = ticket(server.receive(at(0), client_at(UDP_PORT), &get(2, false)));
    server.handle(at(1), Input::Broken(connection));
    for late in [Input::Opened, Input::Progressed, Input::Written, Input::Closed, Input::Broken] {
        server.handle(at(2), late(connection));
    }
    assert_ne!(opened(server.channel(at(2), reserved, 9_000)), connection);
}
