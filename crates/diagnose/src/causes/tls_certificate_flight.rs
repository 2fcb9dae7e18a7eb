//! A server whose first flight of the TLS handshake does not fit its initial window: certificates cost round trips.
//!
//! **Rule**: the server's flight from its Server Hello on has more than ten segments, and took most of a round trip.
//! **Evidence**: its bytes and packets, and the size of the certificates where they are in the clear (TLS 1.2).
//! **Refuted by**: a flight that arrived within a round trip; a round trip that is not known.

use dissect::Side;
use dissect::tls::{Flight, Tls};
use wire::Duration;

use crate::cause::{Cause, CauseInfo, Fix, Party};
use crate::finding::{Confidence, Finding};
use crate::gap::Wait;
use crate::text::millis;

pub(crate) const ABOUT: CauseInfo = CauseInfo {
    description: "The server's certificates did not fit its initial window: the handshake took extra round trips.",
    fixes: &[
        Fix {
            party: Party::ServerApplication,
            change: "a smaller chain: no root, an ECDSA key, fewer names in a certificate, certificate compression (RFC 8879)",
        },
        Fix {
            party: Party::SendingKernel,
            change: "an initial window of ten segments (ip route change ... initcwnd 10)",
        },
    ],
    is_fault: true,
    min_duration: Duration::from_millis(5),
};

/// The initial window in segments (RFC 6928).
const INITIAL_SEGMENTS: u64 = 10;

/// Returns the finding, for segments of `mss` bytes and this round trip.
pub(crate) fn rule(tls: &Tls, mss: u64, round_trip: Duration) -> Option<Finding> {
    let Flight { first, last, bytes } = tls.flight?;
    let lost = last.at.since(first.at);
    let is_large = bytes > INITIAL_SEGMENTS * mss;
    if !is_large || round_trip == Duration::ZERO || lost < round_trip * 9 / 10 {
        return None;
    }
    let certificates =
        tls.certificate.map_or_else(String::new, |bytes| format!(", {bytes} of them certificates"));
    let evidence = format!(
        "the server's first flight of the TLS handshake had {bytes} bytes{certificates} (packets {} to {}) and took {}, \
         {:.1} round trips",
        first.frame,
        last.frame,
        millis(lost),
        lost.as_secs_f64() / round_trip.as_secs_f64(),
    );
    let wait = Wait { from: first, to: last, side: Side::Server };
    let packets = vec![tls.began.frame, first.frame, last.frame];
    let finding = wait.finding(Cause::TlsCertificateFlight, evidence);
    Some(Finding { confidence: Confidence::Medium, packets, ..finding })
}
