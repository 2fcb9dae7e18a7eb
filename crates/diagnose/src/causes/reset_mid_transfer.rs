//! A reset in the middle of a transfer.
//!
//! **Rule**: a reset while an HTTP message is incomplete, or, where messages cannot be read, while data is
//! unacknowledged and neither side had closed. In the latter case a reset that acknowledges the received data is `low`,
//! unless a TLS server sends it: a program that closes with unread data may not want the rest. **Evidence**: the reset,
//! and the missing data. **Or**: a server resets within a second of its data, without `close_notify` (TLS) or, where messages cannot be
//! read, after full segments alone; it resets WebSocket without a Close frame; a server closes while its message, or its TLS record,
//! is incomplete. **Refuted by**: everything acknowledged except a SYN (a half-open connection carries nothing); an earlier close (TLS:
//! the peer's close_notify reaches a closed socket); a sender that had retransmitted its data in vain (`peer-vanished`); a reset that
//! leaves requests without a response (`reset-lost-data`); a client that had sent a FIN before (it gave up). A reset with another TTL
//! than its host's packets, or with the IP ID of the packet that it rejects, is a firewall's, and the evidence names it.

use dissect::http2::StreamError;
use dissect::{Mark, Side};
use http2::settings::error_name;
use wire::Duration;

use crate::cause::{Cause, CauseInfo, Fix, Party};
use crate::failure::ResetFacts;
use crate::finding::{Confidence, Finding, Severity};
use crate::gap::Wait;

pub(crate) const ABOUT: CauseInfo = CauseInfo {
    description: "A reset or an early close ended the connection in the middle of a transfer.",
    fixes: &[
        Fix {
            party: Party::ReceivingApplication,
            change: "find out why it aborts: a crash, a timeout, a limit on the size of a body (nginx \
                     client_max_body_size); read a request to its end before closing",
        },
        Fix {
            party: Party::Network,
            change: "check firewalls, NAT and load balancers with limits on connections or idle time",
        },
    ],
    is_fault: true,
    min_duration: Duration::ZERO,
};

/// Returns the finding of a stream of HTTP/2 that one side ended with an error, or of a connection (GOAWAY): its peer's transfer was
/// cut. `NO_ERROR` and `CANCEL` are no errors (RFC 9113, section 7; 8.7 on retries).
pub(crate) fn of_stream(error: &StreamError) -> Finding {
    const REFUSED_STREAM: u32 = 7;
    let StreamError { from, stream, code, requested, mark } = *error;
    let since = requested.unwrap_or(mark);
    let (what, frame) = match stream {
        0 => ("the connection".to_owned(), "GOAWAY"),
        stream => (format!("stream {stream}"), "RST_STREAM"),
    };
    let request =
        requested.map_or_else(String::new, |request| format!("; its request is packet {}", request.frame));
    let refusal = "; it was not processed: a limit (SETTINGS_MAX_CONCURRENT_STREAMS) or a shutdown";
    let refusal = if code == REFUSED_STREAM { refusal } else { "" };
    let evidence = format!(
        "the {from} ended {what} of HTTP/2 with {} ({code}, {frame}, packet {}){request}{refusal}",
        error_name(code),
        mark.frame,
    );
    let wait = Wait { from: since, to: mark, side: from.other() };
    Finding { saving: None, ..wait.finding(Cause::ResetMidTransfer, evidence) }
}

/// Returns the finding of a server that closed the connection within its response.
pub(crate) fn closed_early(since: Mark, closed: Mark) -> Finding {
    let evidence = format!(
        "the server closed the connection (packet {}) within its response: the message, or its last TLS record, was incomplete",
        closed.frame
    );
    let wait = Wait { from: since, to: closed, side: Side::Server };
    Finding { saving: None, ..wait.finding(Cause::ResetMidTransfer, evidence) }
}

/// Detects a reset that cuts a transfer. It counts at the end of the connection only: unless the sender had retransmitted its
/// data in vain, or the reset left requests without a response.
pub(crate) fn rule(facts: &ResetFacts) -> Option<Finding> {
    let (by, reset) = (facts.from, facts.mark);
    let Cut { of, severity, what } = cut(facts)?;
    let since = *facts.sending.of(of);
    let sign = sign_of_a_firewall(facts, by == of);
    let confidence = if severity == Severity::Low { Confidence::Low } else { Confidence::Medium };
    let evidence = format!(
        "the {by} reset the connection (packet {}) while the {of} was sending (packet {}): {what}{sign}",
        reset.frame, since.frame
    );
    let wait = Wait { from: since, to: reset, side: of };
    let finding = wait.finding(Cause::ResetMidTransfer, evidence);
    Some(Finding { severity, confidence, saving: None, ..finding })
}

/// The side whose transfer was cut, and how that shows.
struct Cut {
    of: Side,
    severity: Severity,
    what: String,
}

fn cut(facts: &ResetFacts) -> Option<Cut> {
    let (from, peer) = (facts.from, facts.from.other());
    // A client that had closed before had given up: what comes then meets a closed socket.
    if from == Side::Client && facts.has_ended.client {
        return None;
    }
    let has_closed = facts.has_ended.client || facts.has_ended.server;
    let high = |of, what: &str| Some(Cut { of, severity: Severity::High, what: what.to_owned() });
    if let Some(sign) = facts.truncation.filter(|_| from == Side::Server && !has_closed) {
        return high(from, sign);
    }
    // A message that ends with the connection, and not by a FIN, is cut.
    if *facts.is_within.of(peer) {
        return high(peer, "its message was incomplete");
    }
    if *facts.is_within.of(from) && !*facts.has_ended.of(from) {
        return high(from, "its message was incomplete");
    }
    let are_seen = facts.is_seen.client && facts.is_seen.server;
    if facts.is_read && !facts.is_bare || has_closed || !are_seen || facts.unacknowledged == 0 {
        return None;
    }
    // A program that closes with unread data also resets, but acknowledges the received data: it may not want
    // the rest. A reset without ACK denies that the connection exists.
    let is_refused = facts.is_tls && from == Side::Server;
    let severity = if facts.is_bare || is_refused { Severity::High } else { Severity::Low };
    let bytes = facts.unacknowledged;
    let what = match facts.is_bare {
        true => format!("{bytes} of its bytes were not acknowledged"),
        false => format!("{bytes} of its bytes were acknowledged by the reset alone"),
    };
    Some(Cut { of: peer, severity, what })
}

/// Returns a clause on a reset that the host itself did not send: a firewall copies the IP ID of the packet that it
/// rejects, and its own packets have passed fewer or more routers than those of the host.
fn sign_of_a_firewall(facts: &ResetFacts, is_of_sender: bool) -> String {
    /// Routes may differ by this many routers.
    const ROUTES: u8 = 2;
    let (from, hop_limit) = (facts.from, facts.hop_limit);
    let other = facts.usual_hop_limit.filter(|usual| usual.abs_diff(hop_limit) > ROUTES);
    match (other, facts.is_copied) {
        (_, true) => format!(
            "; the reset has the IP ID of the {}'s last packet: a firewall or NAT sent it, not the {from}",
            from.other()
        ),
        (Some(usual), false) => format!(
            "; the reset has a TTL of {hop_limit}, the {from}'s other packets one of {usual}: a firewall or NAT probably \
             sent it, not the {from}"
        ),
        // Stacks in use abort with ACK; without, a reset responds to a segment of no connection (RFC 9293, section 3.10.7.1).
        (None, false) if facts.is_bare && is_of_sender => {
            format!(
                "; without ACK it denies that the connection exists: a firewall or NAT sent it, or the {from} lost it"
            )
        }
        (None, false) => String::new(),
    }
}
