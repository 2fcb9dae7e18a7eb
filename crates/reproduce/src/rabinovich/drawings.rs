//! Figures 3, 4 and 5 of `papers/dhttp`, which have no numbers: their illustrated events, counted.
//!
//! Figure 3 in packets over two paths. After half of a response, the client's packets to the origin's address take the
//! path without a cache. Figures 4 and 5 from the server's own rules, datagram by datagram. Kernels in namespaces of their
//! own do the same in `crates/dhttp-proxy/tests/it/interception.rs` and `crates/roundtrip/tests/it/nat`.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use dhttp_proto::message::{Id, RequestHeader};
use dhttp_proto::server::{Channel, ConnectionId, Input as ServerInput, PerClient, Secrets, Ticket, Verdict};
use dhttp_proto::{Key, Server, ServerConfig};
use scenario::Stack;
use simulate::profile::{Clocks, config};
use tcp::{Connection, Event, Input, Output, Payload, Segment};
use wire::{Bytes, Duration, Time};

use crate::laboratory::Laboratory;
use crate::published::Cell;

/// Our value, or the reason why it is not available.
type OurValue = Result<Option<f64>, String>;

/// Size of the intercepted response.
const RESPONSE: usize = 100_000;
/// One-way delay between the hosts, on either path.
const DELAY: Duration = Duration::from_millis(25);
/// Time after which every client has timed out: an Apache's `Timeout` of five minutes.
const END: Time = Time::from_nanos(300_000_000_000);

/// An intercepted response: the first label is its protocol, the second the paths.
pub fn figure_3(cell: &Cell, _: &mut Laboratory<'_>) -> OurValue {
    let is_own_address = cell.label(0) == "dhttp";
    let diverges = cell.label(1) == "two paths";
    intercepted(is_own_address, diverges).map(|arrived| Some(100.0 * arrived as f64 / RESPONSE as f64))
}

/// Bytes that arrive at the client.
fn intercepted(is_own_address: bool, diverges: bool) -> Result<usize, String> {
    let stack = Stack::named("linux-2.0").map_err(|unknown| unknown.to_string())?;
    let clocks = Clocks { heartbeat: Duration::from_millis(50), slow: Duration::from_millis(100) };
    let config = config(&stack, Bytes::new(1_460), Duration::from_millis(1), clocks);
    let ready = |error: tcp::config::ConfigError| error.to_string();
    // Client and cache: under DHTTP the cache opens the connection, from its own address.
    let mut ends = if is_own_address {
        [Connection::server(config.clone()).map_err(ready)?, Connection::client(config).map_err(ready)?]
    } else {
        [Connection::client(config.clone()).map_err(ready)?, Connection::server(config).map_err(ready)?]
    };
    ends[usize::from(is_own_address)].handle(Time::ZERO, Input::Open);
    let mut flying: BTreeMap<(Time, u64), (usize, Segment)> = BTreeMap::new();
    let (mut now, mut number, mut arrived) = (Time::ZERO, 0, 0);
    loop {
        let mut due: Option<Time> = None;
        for end in [0, 1] {
            loop {
                match ends[end].poll(now) {
                    Output::Transmit(segment) => {
                        // Packets to the cache's own address always reach it; those to the origin's take the other path later.
                        let passes = end == 1 || is_own_address || !diverges || arrived < RESPONSE / 2;
                        number += 1;
                        if passes {
                            flying.insert((now + DELAY, number), (1 - end, segment));
                        }
                    }
                    Output::Event(Event::Connected) if end == 1 => {
                        ends[end].handle(now, Input::WriteLast(Payload::from(vec![7; RESPONSE])));
                    }
                    Output::Event(Event::Readable) => {
                        while let Some(payload) = ends[end].read() {
                            arrived += payload.len();
                        }
                    }
                    Output::Event(_) => {}
                    Output::Timeout(at) => {
                        due = due.into_iter().chain(at).min();
                        break;
                    }
                }
            }
        }
        let next = flying.first_key_value().map(|((at, _), _)| *at).into_iter().chain(due).min();
        let Some(next) = next.filter(|at| arrived < RESPONSE && *at < END) else { return Ok(arrived) };
        now = next.max(now);
        while let Some(entry) = flying.first_entry().filter(|entry| entry.key().0 <= now) {
            let (to, segment) = entry.remove();
            ends[to].handle(now, Input::Segment(&segment));
        }
    }
}

/// An address that was forged into requests.
const VICTIM: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 7);
/// An ephemeral port.
const PORT: u16 = 40_001;

/// SYNs that a forged request for a large object causes at its victim: the first label is the server's profile, the second
/// the forged port.
pub fn figure_4(cell: &Cell, _: &mut Laboratory<'_>) -> OurValue {
    let profile = if cell.label(0) == "paper" { ServerConfig::paper() } else { ServerConfig::internet() };
    let port = if cell.label(1) == "low" { 80 } else { PORT };
    let mut server = Server::new(profile, secrets());
    let opens = match requested(&mut server, port, 1) {
        Some(ticket) => matches!(server.channel(Time::ZERO, ticket, LARGE), Channel::Open { .. }),
        None => false,
    };
    Ok(Some(f64::from(u8::from(opens))))
}

/// A response that goes by TCP.
const LARGE: u64 = 20_000;

/// The three rules of dispatch: connections that are opened for a request under each.
pub fn figure_5(cell: &Cell, _: &mut Laboratory<'_>) -> OurValue {
    const THREE: PerClient = PerClient { max: 3, max_when_few: 3, few_below: 0 };
    let mut server = Server::new(ServerConfig { per_client: THREE, ..ServerConfig::paper() }, secrets());
    let mut carried: BTreeMap<ConnectionId, u32> = BTreeMap::new();
    let mut opened = 0;
    let (requests, waits) = match cell.label(0) {
        "idle connection" => (2, false),
        "below the limit" => (3, true),
        _ => (9, true),
    };
    for id in 0..requests {
        let Some(ticket) = requested(&mut server, PORT, id) else { return Ok(None) };
        let connection = match server.channel(Time::ZERO, ticket, LARGE) {
            Channel::Open { connection, client: _ } => {
                opened += 1;
                server.handle(Time::ZERO, ServerInput::Opened(connection));
                connection
            }
            Channel::Connection(connection) => connection,
            Channel::Datagram | Channel::Parts(_) | Channel::Refer(_) => return Ok(None),
        };
        *carried.entry(connection).or_default() += 1;
        if !waits {
            server.handle(Time::ZERO, ServerInput::Written(connection));
        }
    }
    Ok(match cell.column.name.as_str() {
        "opened" => Some(f64::from(opened)),
        _ => carried.values().max().copied().map(f64::from),
    })
}

/// Lets the server judge a request with the victim's source address.
fn requested(server: &mut Server, port: u16, id: u64) -> Option<Ticket> {
    let mut datagram = RequestHeader { id: Id(id), port, is_resend: false }.to_bytes().to_vec();
    datagram.extend(b"GET /large HTTP/1.1\r\nHost: www\r\n\r\n");
    match server.receive(Time::ZERO, SocketAddr::V4(SocketAddrV4::new(VICTIM, port)), &datagram) {
        Verdict::Serve(ticket, _) => Some(ticket),
        Verdict::Ignore(_) | Verdict::Refer(_) => None,
    }
}

/// Fixed keys of the simulated server.
const fn secrets() -> Secrets {
    Secrets { token: Key { generation: 0, secret: [1; 16] }, tables: [2; 16] }
}
