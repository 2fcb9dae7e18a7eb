//! Nagle's algorithm: a short segment is held while any data is unacknowledged. If the receiver delays that acknowledgement, each
//! waits for the other (papers/p-http#section-2-3, papers/p-http#figure-4).
//!
//! **Rule**: a sender in the middle of sending, or one whose earlier data was unacknowledged when a message came that it responds to,
//! sends a short segment immediately after an acknowledgement, and not before. In the original algorithm (RFC 896) that
//! acknowledgement covers *everything* sent; in Minshall's variant (Linux) at least the last short segment. It is distinguished from
//! a full window by one of three facts: an earlier acknowledgement allowed data that was not sent, more had been in flight before, or
//! only one segment was. An acknowledgement late beyond the round trip was delayed (`nagle-delayed-ack`, for responses the only one);
//! otherwise a round trip is lost (`nagle`).
//!
//! **Refuted by**: a full segment (Nagle never holds one), or data that is missing before it; a FIN (it flushes); a full window; a
//! segment that comes later than an acknowledgement explains, by a quarter of the round trip (the program had not written it yet), or
//! that echoes a timestamp (TSecr) older than that acknowledgement; a loss before, unless everything had been acknowledged; a sender
//! that has sent a short segment while another was unacknowledged (TCP_NODELAY), unless it may have been a probe for the end of a
//! flight.

use dissect::sender::Ack;
use wire::Duration;

use crate::cause::{Cause, CauseInfo, Fix, Party};
use crate::finding::Confidence;
use crate::gap::{Gap, GapStart};
use crate::ruling::Ruling;
use crate::text::{counted, millis};

const FIXES: &[Fix] = &[
    Fix {
        party: Party::SendingApplication,
        change: "write headers and body with one call (writev, a buffered writer flushed once), not piece by piece",
    },
    Fix {
        party: Party::SendingApplication,
        change: "set TCP_NODELAY on the socket (nginx tcp_nodelay on; Node socket.setNoDelay(true); Java \
                 setTcpNoDelay(true); Python StreamRequestHandler.disable_nagle_algorithm = True and wbufsize = -1; \
                 PHP stream_context_create(['socket' => ['tcp_nodelay' => true]]); C# NoDelay = true; Rust \
                 set_nodelay(true); Ruby, Perl and C setsockopt(IPPROTO_TCP, TCP_NODELAY); Go sets it unless \
                 SetNoDelay(false) is called; socat nodelay)",
    },
    Fix {
        party: Party::SendingApplication,
        change: "or hold the pieces together with TCP_CORK until the message is whole",
    },
];

pub(crate) const DELAYED: CauseInfo = CauseInfo {
    description: "The last short piece of a message was held back (Nagle's algorithm) until the receiver acknowledged the \
           piece before, and the receiver delayed that acknowledgement.",
    fixes: FIXES,
    is_fault: true,
    min_duration: Duration::from_millis(5),
};

pub(crate) const ABOUT: CauseInfo = CauseInfo {
    description: "The last short piece of a message was held back (Nagle's algorithm) for a round trip, until the piece \
           before was acknowledged.",
    fixes: FIXES,
    is_fault: true,
    min_duration: Duration::from_millis(5),
};

/// Longest delay of an acknowledgement in use (200 ms in Windows, BSD and Linux), and a tick.
const LONGEST: Duration = Duration::from_millis(250);

/// A reaction this much shorter than the wait is a coincidence in one case of as many.
const COINCIDENCE: u64 = 50;

pub(crate) fn rule(gap: &Gap) -> Option<Ruling> {
    let ack = gap.awaited().or_else(|| held_back(gap))?;
    let flight = &gap.flight;
    // Nagle's algorithm does not hold the data that is missing before it.
    let is_held = gap.is_short() && gap.length > 0 && !gap.has_fin && !gap.is_behind_hole;
    let all_arrived = gap.in_flight == 0;
    // The first acknowledgement of the last short segment releases the next.
    let newly = ack.to.saturating_sub(ack.bytes.into())..ack.to;
    let short_arrived = flight.short_segments > 0
        && newly.start < flight.last_short_end
        && newly.end >= flight.last_short_end;
    // During or after a repair, other acknowledgements than that of the last short segment release data, too.
    let is_clear = !gap.has_lost || all_arrived;
    if !is_held || !is_clear || !(all_arrived || short_arrived) || !gap.is_prompt() {
        return None;
    }
    let had_window = gap.freed_early()
        || flight.bytes + gap.length <= gap.largest_since_loss
        // Every stack since RFC 3390 starts with four segments or 4,380 bytes; older ones with one or two.
        // Stacks that scale windows (RFC 1323) are newer than initial windows of one segment.
        // After a repaired loss the window is at least two segments.
        || (flight.segments == 1 && (!gap.has_lost || gap.largest_since_loss > 0))
        || (!gap.has_lost && flight.segments == 2 && (!flight.begins_short || gap.has_scale));
    // Of several acknowledgements close together any may have triggered it.
    if !had_window || (gap.acks > 1 && !gap.freed_early()) {
        return None;
    }
    let confidence =
        if gap.freed_early() || flight.segments == 1 { Confidence::High } else { Confidence::Medium };
    Some(match gap.late {
        // Beyond any timer in use the path may have been slow.
        Some(late) if late > LONGEST => Ruling {
            confidence: confidence.min(Confidence::Medium),
            ..Ruling::all(gap, Cause::NagleDelayedAck, delayed)
        },
        Some(_) => Ruling { confidence, ..Ruling::all(gap, Cause::NagleDelayedAck, delayed) },
        // Near the sender, a segment right after the acknowledgement, relative to the wait, is no coincidence.
        None if gap.path.is_at_sender && gap.reaction() * COINCIDENCE <= gap.duration() => {
            Ruling { confidence, ..Ruling::all(gap, Cause::Nagle, held) }
        }
        None => {
            Ruling { confidence: confidence.min(Confidence::Medium), ..Ruling::all(gap, Cause::Nagle, held) }
        }
    })
}

/// The delayed acknowledgement of earlier data that released a response, as of session tickets of TLS 1.3. A program that was ready
/// at that very moment is a coincidence.
fn held_back(gap: &Gap) -> Option<&Ack> {
    let is_response = gap.before == GapStart::Data(gap.wait.side.other()) && gap.late.is_some();
    let is_clear = gap.reaction() * COINCIDENCE <= gap.duration();
    // An acknowledgement that came with the request, or before it, held nothing back.
    gap.released().filter(|ack| is_response && is_clear && ack.frame > gap.wait.from.frame)
}

fn delayed(gap: &Gap) -> String {
    let late = gap.late.map(millis).unwrap_or_default();
    format!("{}; the {} delayed that acknowledgement by {late}", held(gap), gap.wait.side.other())
}

fn held(gap: &Gap) -> String {
    let ack = gap.trigger.map_or(0, |ack| ack.frame);
    // Minshall's variant waits for the last short segment, although full ones after it are still in flight.
    let what = if gap.in_flight == 0 {
        let were = if gap.flight.last == 1 { "was" } else { "were" };
        format!(
            "the {} sent before (packet {}) {were}",
            counted(gap.flight.last, "byte"),
            gap.flight.frames.1
        )
    } else {
        "the last short segment before them was".to_owned()
    };
    format!(
        "the {} held {} (packet {}) until {what} acknowledged (packet {ack}), and sent {} {}, {} after what came before",
        gap.wait.side,
        counted(gap.length, "byte"),
        gap.wait.to.frame,
        if gap.length == 1 { "it" } else { "them" },
        reaction(gap),
        millis(gap.duration()),
    )
}

/// Returns a sentence on how soon the sender reacted.
fn reaction(gap: &Gap) -> String {
    const IMMEDIATE: Duration = Duration::from_micros(500);
    let reaction = gap.reaction();
    if reaction < IMMEDIATE { "immediately".to_owned() } else { format!("{} later", millis(reaction)) }
}
