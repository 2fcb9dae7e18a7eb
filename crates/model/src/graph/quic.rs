//! A connection over QUIC: its set-up, its windows in bytes, and the bytes of its packets. No term for head-of-line blocking:
//! the formulas lose no packet.

use page::Host;
use scenario::{Connection as Start, Scenario, Tls, serving};
use tcp::stack::Growth;
use wire::{Bytes, Duration};

use super::connection::Connection;
use super::setup::{CERTIFICATE_CHAIN, CLIENT_HELLO, SERVER_HELLO, Setup};
use crate::slow_start::Policy;
use crate::{Path, SlowStart};

/// Slow start from the server's initial window, mostly ten datagrams (RFC 9002, section 7.2); it grows by the bytes acknowledged.
pub(super) fn slow_start(scenario: &Scenario) -> SlowStart {
    let initial_window = serving::http3_server(scenario).initial_window / DATAGRAM;
    SlowStart { acks: Policy::EverySegment, growth: Growth::PerSegment, initial_window, ssthresh: None }
}

/// Bytes of a datagram; its payload, and what its packet takes beside it: header, tag, the frame's header.
const DATAGRAM: u64 = 1_200;
const PAYLOAD: u64 = DATAGRAM - OVERHEAD;
const OVERHEAD: u64 = 30;
/// Bytes of the client's first datagrams, of which the server may send three times as many (RFC 9000, section 8.1).
const FIRST_DATAGRAM: u64 = 1_250;
const AMPLIFICATION: u64 = 3;
/// Headers of HTTP/3's frames of a message.
const FRAMES: u64 = 6;

/// Opens a connection to this host: one round trip, none with early data, and one more for certificates beyond the limit.
pub(super) fn open(
    opened: Duration,
    path: Path,
    scenario: &Scenario,
    host: &Host,
    is_warm: bool,
) -> Connection {
    debug_assert!(!is_warm || scenario.client.connection == Start::Warm);
    let path = Path { mss: path.mss.min(Bytes::new(PAYLOAD)), ..path };
    let setup = if is_warm { Setup::NONE } else { setup(&path, host, scenario.tls) };
    Connection::opened(opened, path, &slow_start(scenario), setup, is_warm)
}

fn setup(path: &Path, host: &Host, tls: Tls) -> Setup {
    let hello = packets(CLIENT_HELLO);
    let chain = host.certificate_chain.unwrap_or(CERTIFICATE_CHAIN);
    let flight = match tls {
        Tls::None | Tls::V12 | Tls::V13 => packets(SERVER_HELLO + chain),
        Tls::V13Resumed | Tls::V13EarlyData => packets(SERVER_HELLO),
    };
    let allowed = Bytes::new(AMPLIFICATION * FIRST_DATAGRAM * CLIENT_HELLO.pieces_of(path.mss));
    let round_trips = match tls {
        Tls::V13EarlyData => 0,
        Tls::None | Tls::V12 | Tls::V13 | Tls::V13Resumed => 1 + u64::from(flight > allowed),
    };
    let time = match tls {
        Tls::V13EarlyData => path.rate_up.time_for(hello),
        Tls::None | Tls::V12 | Tls::V13 | Tls::V13Resumed => {
            path.rate_up.time_for(hello) + path.rate.time_for(flight)
        }
    };
    Setup { tcp: Duration::ZERO, tls: path.rtt * round_trips + time, sent: flight, in_flight: 1 }
}

/// Bytes of a message with the frames of HTTP/3, in packets. QPACK sends what earlier requests had as indices, as HPACK does.
pub(super) fn on_the_wire(message: Bytes, is_repeated_request: bool) -> Bytes {
    let message = if is_repeated_request { Bytes::new(message.get() / 4) } else { message };
    packets(message + Bytes::new(FRAMES))
}

fn packets(content: Bytes) -> Bytes {
    content + Bytes::new(content.get().div_ceil(PAYLOAD) * OVERHEAD)
}
