//! Connection set-up with TLS: round trips, and the server's flight, which may exceed the initial window.

use page::Host;
use scenario::Tls;
use wire::{Bytes, Duration};

use crate::{Path, SlowStart};

/// Client Hello with a key share of X25519MLKEM768 (1,216 bytes; draft-ietf-tls-ecdhe-mlkem) as browsers send it.
pub(super) const CLIENT_HELLO: Bytes = Bytes::new(1_800);
/// Client Hello of TLS 1.2, without such a key share.
const CLIENT_HELLO_OF_1_2: Bytes = Bytes::new(300);
/// Server Hello with its key share (1,210 bytes), Encrypted Extensions, Certificate Verify and Finished.
pub(super) const SERVER_HELLO: Bytes = Bytes::new(1_600);
/// Server Hello and Server Key Exchange of TLS 1.2.
const SERVER_HELLO_OF_1_2: Bytes = Bytes::new(450);
/// Certificate chain of a host, if it is not known: the median of 75,000 (IETF 116, draft-ietf-tls-cert-abridge).
pub(super) const CERTIFICATE_CHAIN: Bytes = Bytes::new(4_032);

/// Cost of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Setup {
    /// Time of TCP's handshake.
    pub(super) tcp: Duration,
    /// Time from there until the first request may leave.
    pub(super) tls: Duration,
    /// Bytes that the server has sent by then: they have opened its window.
    pub(super) sent: Bytes,
    /// Segments that are in flight when the first response begins: session tickets.
    pub(super) in_flight: u64,
}

impl Setup {
    /// Cost of a connection that is open already.
    pub(super) const NONE: Self =
        Self { tcp: Duration::ZERO, tls: Duration::ZERO, sent: Bytes::ZERO, in_flight: 0 };
}

/// Returns the cost of a connection to a host.
pub(super) fn setup(path: &Path, start: &SlowStart, host: &Host, tls: Tls) -> Setup {
    let chain = host.certificate_chain.unwrap_or(CERTIFICATE_CHAIN);
    let (hello, flight) = match tls {
        _ if !host.protocols.tls => (Bytes::ZERO, Bytes::ZERO),
        Tls::None => (Bytes::ZERO, Bytes::ZERO),
        Tls::V12 => (CLIENT_HELLO_OF_1_2, SERVER_HELLO_OF_1_2 + chain),
        Tls::V13 => (CLIENT_HELLO, SERVER_HELLO + chain),
        Tls::V13Resumed | Tls::V13EarlyData => (CLIENT_HELLO, SERVER_HELLO),
    };
    let (round_trips, transfer) = match tls {
        _ if flight == Bytes::ZERO => (0, Duration::ZERO),
        // Its requests follow the hello.
        Tls::V13EarlyData => (0, path.rate_up.time_for(hello)),
        tls => {
            let time = path.rate_up.time_for(hello) + path.rate.time_for(flight) + start.delay(path, flight);
            (tls.round_trips(), time)
        }
    };
    let in_flight = u64::from(flight > Bytes::ZERO);
    Setup { tcp: path.rtt, tls: path.rtt * u64::from(round_trips) + transfer, sent: flight, in_flight }
}
