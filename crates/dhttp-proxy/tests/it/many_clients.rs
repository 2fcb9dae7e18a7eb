//! Attackers with an address for each connection, whose requests wait for slow origins: another host gets its responses.
//!
//! Three network namespaces, removed with the test; without the permission to create them it prints that, and passes.

use crate::two_clients;

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use dhttp::{ClientConfig, ServerConfig};
use roundtrip_dhttp_proxy::GatewayConfig;
use socket2::{Domain, Socket, Type};
use two_clients::{
    Hosts, Service, cache_with, connect, gateway_with, is_served_at, one_of_many, service_address,
    silent_server,
};

/// Connections of the service; the attackers open twice as many.
const CONNECTIONS: usize = 160;
/// Requests of the other host.
const OTHERS: usize = 40;
/// Longer than any of this takes.
const SLOW: Duration = Duration::from_secs(120);

/// Connects from an address of its own, and sends this.
fn attack(to: SocketAddr, number: usize, request: &str) -> std::io::Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&SocketAddr::new(one_of_many(number), 0).into())?;
    socket.connect_timeout(&to.into(), Duration::from_secs(10))?;
    let mut stream = TcpStream::from(socket);
    stream.write_all(request.as_bytes())?;
    Ok(stream)
}

/// Whether the service has neither closed the connection nor responded.
fn is_waiting(mut stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    stream.read(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

/// Starts a service, has attackers send these requests, and checks that another host is served and most of them still wait.
fn others_are_served(
    start: impl FnOnce() -> Service + Send + 'static,
    request: impl Fn(usize) -> String + Send + 'static,
    counter: &str,
) {
    if !skip::has("ip") {
        return;
    }
    if let Err(missing) = testbed::available() {
        return skip::refused(&missing.to_string());
    }
    let hosts = Hosts::new().unwrap();
    hosts.take_many_addresses();
    let service = hosts.server.start(start).wait().unwrap();
    let to = service_address(1, false);
    let attacking = hosts.attacker.start(move || {
        (0..2 * CONNECTIONS)
            .filter_map(|number| attack(to, number, &request(number)).ok())
            .collect::<Vec<_>>()
    });
    let attackers = attacking.wait().unwrap();
    let (to, prefix) = (service_address(2, false), service.prefix.clone());
    let other = hosts.other.start(move || {
        let requests = (0..OTHERS).filter(|number| {
            // The service sees the end of a connection: a full one leaves a client a single one.
            std::thread::park_timeout(Duration::from_millis(50));
            is_served_at(&mut connect(to).unwrap(), &prefix, &format!("/{number}"))
        });
        requests.count()
    });
    let (served, waiting) =
        (other.wait().unwrap(), attackers.iter().filter(|stream| is_waiting(stream)).count());
    let metrics = (service.metrics)();
    println!(
        "{} of {} attackers wait, {served} of {OTHERS} requests of another served",
        waiting,
        attackers.len()
    );
    assert_eq!(served, OTHERS, "{metrics}");
    // Seven eighths are never ended for others.
    assert!((CONNECTIONS * 7 / 8 - 1..=CONNECTIONS).contains(&waiting), "{waiting}: {metrics}");
    let ended = metrics.lines().find_map(|line| line.strip_prefix(counter)?.trim().parse::<usize>().ok());
    assert!(ended.is_some_and(|ended| ended >= CONNECTIONS), "{metrics}");
}

#[test]
fn requests_that_wait_for_one_slow_path_of_a_cache_give_way_to_others() {
    let config = ServerConfig { accepted: CONNECTIONS, ..ServerConfig::internet() };
    let counter = "roundtrip_dhttp_connections_closed_total{reason=\"newcomer\"}";
    let request = |_| "GET /slow HTTP/1.1\r\nHost: h\r\n\r\n".to_owned();
    others_are_served(move || cache_with(false, config, SLOW), request, counter);
}

#[test]
fn exchanges_with_as_many_silent_servers_give_way_to_others() {
    let config = GatewayConfig { connections: CONNECTIONS, ..GatewayConfig::new(ClientConfig::internet()) };
    let counter = "roundtrip_gateway_connections_closed_total{reason=\"newcomer\"}";
    let request = |number| format!("GET http://{}/ HTTP/1.1\r\nHost: h\r\n\r\n", silent_server(number));
    others_are_served(move || gateway_with(false, config, SLOW), request, counter);
}
