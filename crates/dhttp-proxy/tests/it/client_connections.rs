//! The limit of connections of one client: a host that exceeds it loses its own connections, and another host none.
//!
//! Three network namespaces, removed with the test; without the permission to create them it prints that, and passes.

use crate::two_clients;

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use dhttp::server::ClientLimits;
use two_clients::{Hosts, Service, cache, connect, gateway, is_served, serve, service_address};

/// The limit of one client.
const LIMIT: usize = 20;
/// Connections of the attacker.
const ATTEMPTS: usize = 3 * LIMIT;

fn counted(service: &Service, name: &str) -> usize {
    let metrics = (service.metrics)();
    let value = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("{name}: {metrics}")).parse().unwrap()
}

/// Whether the peer has neither closed the connection nor responded.
fn is_open(mut stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let read = stream.read(&mut [0]);
    stream.set_nonblocking(false).unwrap();
    read.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

fn one_client_has_its_share_only(
    start: fn(bool, ClientLimits) -> Service,
    closed: &'static str,
    is_ipv6: bool,
) {
    if let Err(missing) = testbed::available() {
        return skip::refused(&missing.to_string());
    }
    let Hosts { attacker, other, server } = Hosts::new().unwrap();
    let limits = ClientLimits { connections: LIMIT, ..ClientLimits::default() };
    let service = server.start(move || start(is_ipv6, limits)).wait().unwrap();
    let [to_attacker, to_other] = [1, 2].map(|link| service_address(link, is_ipv6));
    let prefix = service.prefix.clone();
    let mut lasting = other.start(move || connect(to_other).unwrap()).wait().unwrap();
    assert!(is_served(&mut lasting, &prefix));

    // Idle connections: the longest idle one of the same client makes way.
    let idle =
        attacker.start(move || (0..ATTEMPTS).map(|_| connect(to_attacker).unwrap()).collect::<Vec<_>>());
    let idle = idle.wait().unwrap();
    let (mut lasting, prefix) = all_are_served(&other, lasting, prefix, to_other);
    assert_eq!(idle.iter().filter(|stream| is_open(stream)).count(), LIMIT);
    assert!(is_open(&idle[ATTEMPTS - 1]) && !is_open(&idle[0]), "the oldest are closed");
    assert_eq!(counted(&service, closed), ATTEMPTS - LIMIT);
    drop(idle);

    // Requests in progress: there is none to make way, and further ones are refused.
    let begun = format!("POST {prefix}/ HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nbod");
    let busy = attacker.start(move || {
        let all = (0..ATTEMPTS).map(|_| connect(to_attacker).unwrap());
        let all = all.map(|mut stream| stream.write_all(begun.as_bytes()).map(|()| stream));
        all.flatten().collect::<Vec<_>>()
    });
    let busy = busy.wait().unwrap();
    (lasting, _) = all_are_served(&other, lasting, prefix, to_other);
    let open = busy.iter().filter(|stream| is_open(stream)).count();
    assert!(open <= LIMIT, "{open}");
    drop(lasting);
}

/// Checks that the other host is served: on the connection that it had before, and on new ones.
fn all_are_served(
    other: &testbed::Namespace,
    mut lasting: TcpStream,
    prefix: String,
    to: std::net::SocketAddr,
) -> (TcpStream, String) {
    other
        .start(move || {
            assert!(is_served(&mut lasting, &prefix), "on a connection that was there before");
            // Fewer than its limit: the server may see the end of each only after the next has begun.
            for number in 0..LIMIT / 2 {
                assert!(is_served(&mut connect(to).unwrap(), &prefix), "on new connection {number}");
            }
            (lasting, prefix)
        })
        .wait()
        .unwrap()
}

const GATEWAY_CLOSED: &str = "roundtrip_gateway_connections_closed_total{reason=\"idle\"}";
const SERVER_CLOSED: &str = "roundtrip_dhttp_connections_closed_total{reason=\"idle\"}";

#[test]
fn gateway_limits_the_connections_of_one_client_by_ipv4() {
    one_client_has_its_share_only(gateway, GATEWAY_CLOSED, false);
}

#[test]
fn gateway_limits_the_connections_of_one_client_by_ipv6() {
    one_client_has_its_share_only(gateway, GATEWAY_CLOSED, true);
}

#[test]
fn server_limits_the_connections_of_one_client() {
    one_client_has_its_share_only(serve, SERVER_CLOSED, false);
}

#[test]
fn cache_limits_the_connections_of_one_client_by_ipv4() {
    one_client_has_its_share_only(cache, SERVER_CLOSED, false);
}

#[test]
fn cache_limits_the_connections_of_one_client_by_ipv6() {
    one_client_has_its_share_only(cache, SERVER_CLOSED, true);
}
