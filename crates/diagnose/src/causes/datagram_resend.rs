//! A datagram that was lost: its client resends the request.
//!
//! **Rule**: a request with the id of a pending one is marked as a retransmission, at least a millisecond after it was last
//! sent. Each wait counts as `retransmission-timeout` of the dialogue, until the next request; engines name the stall
//! `datagram-resend`. **Evidence**: both packets. **Refuted by**: a copy without the mark, or sooner: it was captured twice.

use dissect::Mark;
use wire::Duration;

use crate::cause::{CauseInfo, Fix, Party};
use crate::text::millis;

pub(crate) const ABOUT: CauseInfo = CauseInfo {
    description: "A datagram with a request or its response was lost, and the client resent the request.",
    fixes: &RESENT,
    is_fault: true,
    min_duration: Duration::ZERO,
};

/// Fixes for a resent request, to which no TCP setting applies.
pub(crate) const RESENT: [Fix; 2] = [
    Fix {
        party: Party::Network,
        change: "find where packets are lost (a queue too short, a faulty link, a policer, Wi-Fi)",
    },
    Fix {
        party: Party::ClientApplication,
        change: "a resend timer that follows the round trip, as DHTTP's internet profile has it (at \
                 least 300 ms; the paper's is 5 s)",
    },
];

/// Returns whether a request that was sent `before` is a resent one, not a second capture.
pub(crate) fn is_resent(is_marked: bool, before: Mark, now: Mark) -> bool {
    /// Minimum time after which a client resends a request.
    const SOON: Duration = Duration::from_millis(1);
    is_marked && now.at.since(before.at) >= SOON
}

/// Returns how the packets of a request and of its resent copy show the loss.
pub(crate) fn evidence(before: Mark, now: Mark) -> String {
    format!(
        "the client had no response to its request (packet {}) and resent it (packet {}) {} later",
        before.frame,
        now.frame,
        millis(now.at.since(before.at))
    )
}
