//! Losses, by how the sender detected them: its timer, duplicate ACKs or SACK, or a probe for the end of a flight.
//!
//! **Rule**: data is sent a second time, or arrives long after the data that follows it; or its sender's IP IDs show packets
//! that did not pass before it, and it comes after a pause as long as a timer (`low`); or, after such a pause, its congestion window is
//! one segment. Three duplicate ACKs, or one
//! SACK of later data, make it a `fast-retransmit`. Without them, and after at least the timer's duration, it is a
//! `retransmission-timeout` (each further one takes twice as long). If it is the last segment of a flight and less time
//! has passed, at most a second, and both sides permit SACK, it was a probe (RFC 8985, `tail-loss-probe`). A retransmitted SYN is the timer's. **Refuted by**: a
//! second capture of the same packet (the same IP ID); reordered data (it arrives sooner than the sender could have
//! detected a loss); data that was already acknowledged (needless); an acknowledgement that echoes (TSecr) an earlier
//! timestamp than the retransmission's (RFC 3522: the original had arrived); a duplicate SACK of data retransmitted once
//! (RFC 2883: the same); window and keep-alive probes; a FIN without data
//! (no side waits for it); anything after a reset; a SYN/ACK to a client that neither completes its handshake nor retransmits its SYN.
//!
//! **Confidence medium**: a fast retransmission after data had waited for half a round trip or more in a queue on the path. Its sender
//! had filled link and queue, and the loss is the signal to slow down (RFC 5681, section 3.1): no fault of the path, and the link
//! stays busy meanwhile. A policer or a faulty link drops without a queue.

use wire::Duration;

use super::opening;
use crate::cause::{Cause, CauseInfo, Fix, Party};
use crate::finding::Confidence;
use crate::gap::{Gap, GapEnd, Repair};
use crate::ruling::{Evidence, Ruling};
use crate::side::Side;
use crate::text::{counted, millis};
use trace::account::Share;

pub(super) const LOSSES: Fix = Fix {
    party: Party::Network,
    change: "find where packets are lost (a queue too short, a faulty link, a policer, Wi-Fi)",
};

pub(crate) const TIMEOUT: CauseInfo = CauseInfo {
    description: "A packet was lost, and only the sender's retransmission timer recovered it.",
    fixes: &[
        LOSSES,
        Fix {
            party: Party::SendingKernel,
            change: "selective acknowledgements and loss probes on (sysctl net.ipv4.tcp_sack=1, \
                     net.ipv4.tcp_early_retrans=3, net.ipv4.tcp_recovery=1); on short paths a lower timer (ip route \
                     change ... rto_min 40ms)",
        },
    ],
    is_fault: true,
    min_duration: Duration::ZERO,
};

pub(crate) const TAIL: CauseInfo = CauseInfo {
    description: "The last packet of a flight was lost (or its acknowledgement was), and the sender probed for it.",
    fixes: &[LOSSES],
    is_fault: true,
    min_duration: Duration::from_millis(5),
};

pub(crate) const FAST: CauseInfo = CauseInfo {
    description: "A packet was lost; duplicate ACKs or SACK reported it, and it was retransmitted about a round trip later.",
    fixes: &[LOSSES],
    is_fault: true,
    min_duration: Duration::from_millis(5),
};

/// Duplicate ACKs that indicate a loss (RFC 5681).
const DUPLICATES: u32 = 3;
/// Kernel timers run in ticks of 4 to 10 ms and may expire early by this much.
const TICK: Duration = Duration::from_millis(10);
/// Time after which it was the initial timer of 1 to 3 s (RFC 6298, RFC 1122): two round trips are rarely as long.
const LATE_PROBE: Duration = Duration::from_secs(1);
/// Maximum round trip to a sender all of whose packets reach the point of capture.
const NEAR: Duration = Duration::from_micros(300);

pub(crate) fn handshake(gap: &Gap) -> Option<Ruling> {
    match gap.end {
        // Both sides' timers take a second. A segment so soon after the other side's segment crossed it in flight, and
        // the timer's time counts for the other one.
        GapEnd::Handshake { previous: Some(before) }
            if gap.duration() * 4 < gap.wait.to.at.since(before.at) =>
        {
            None
        }
        // The result of a SYN without any response is determined later (`flow/opening.rs`).
        // A client that was not captured may have replied.
        GapEnd::Handshake { previous: Some(_) } if gap.wait.side == Side::Server && !gap.is_peer_seen => {
            Some(Ruling::plain(gap, Share::Unknown))
        }
        GapEnd::Handshake { previous: Some(_) } if !gap.is_acknowledged => {
            Some(Ruling::plain(gap, Share::Stall(Cause::RetransmissionTimeout)))
        }
        GapEnd::Handshake { previous: Some(_) } => {
            Some(Ruling::all(gap, Cause::RetransmissionTimeout, of_handshake))
        }
        GapEnd::Handshake { previous: None }
        | GapEnd::Data
        | GapEnd::Repair(_)
        | GapEnd::Fin
        | GapEnd::Reset => None,
    }
}

pub(crate) fn rule(gap: &Gap) -> Option<Ruling> {
    let GapEnd::Repair(repair) = &gap.end else { return None };
    if gap.is_bare_fin() {
        return Some(Ruling::plain(gap, Share::Closing));
    }
    // Where its receiver was not captured, one byte may as well probe a closed window (RFC 9293, section 3.8.6.1).
    let may_be_probe = gap.length == 1 && !gap.is_peer_seen;
    let Some(cause) = cause(gap, repair).filter(|_| !may_be_probe) else {
        return Some(Ruling::plain(gap, Share::Unknown));
    };
    let evidence = match cause {
        Cause::TailLossProbe => of_tail,
        Cause::FastRetransmit => of_fast,
        _ => of_timeout,
    };
    // Further segments of the same recovery are sent as acknowledgements allow.
    if repair.in_recovery == Some(cause) && repair.since < repair.timeout && gap.is_flowing() {
        return Some(flowing(gap, cause));
    }
    let ruling = Ruling::all(gap, cause, evidence);
    // The receiver had to wait for it since it was missing, although other data arrived meanwhile. Further timeouts begin
    // with the retransmission before.
    let lost_since = Some(repair.earlier).filter(|earlier| {
        earlier.at < gap.wait.from.at && (cause != Cause::RetransmissionTimeout || repair.times <= 1)
    });
    let is_signal = cause == Cause::FastRetransmit && repair.overflow.is_some();
    let confidence = if is_signal { Confidence::Medium } else { Confidence::High };
    // A message that was complete but for it would have ended then, whatever its sender did meanwhile.
    let of_message = repair.message_end.map(|end| gap.wait.to.at.since(end)).unwrap_or_default();
    let saving = Some(opening::saved_without_repair(gap).max(of_message));
    Some(Ruling { lost_since, confidence, saving, ..ruling })
}

/// New data during loss recovery: duplicate ACKs release it, not the program. Refuted by data that leaves without an
/// acknowledgement, or that fits into one segment with the data in flight. Refuted also by a full window, unless the
/// acknowledgement that advances it covers the data after the loss, or reports more of it (SACK).
pub(crate) fn recovering(gap: &Gap) -> Option<Ruling> {
    let is_full = gap.headroom.is_some_and(|headroom| headroom < gap.length.min(gap.mss));
    let is_forbidden =
        is_full && gap.trigger.is_some_and(|ack| !ack.is_sacked && u64::from(ack.bytes) <= 2 * gap.mss);
    let cause =
        gap.recovering.filter(|_| matches!(gap.end, GapEnd::Data) && gap.continues() && !is_forbidden)?;
    if gap.is_flowing() {
        return Some(flowing(gap, cause));
    }
    let is_released = gap.trigger.is_some() && gap.flight.bytes + gap.length > gap.mss;
    is_released.then(|| Ruling {
        confidence: Confidence::Medium,
        saving: Some(opening::saved_without_loss(gap)),
        ..Ruling::all(gap, Cause::CongestionWindow, of_recovery)
    })
}

/// Data flows during a repair. After a fast retransmission none of the time is saved yet: the window that did not open meanwhile is.
fn flowing(gap: &Gap, cause: Cause) -> Ruling {
    let saving = (cause == Cause::FastRetransmit).then_some(Duration::ZERO);
    Ruling { saving, ..Ruling::plain(gap, Share::Stall(cause)) }
}

/// The sender retransmitted data that had arrived: its timer expired, or it probed (RFC 8985), before the acknowledgement
/// arrived. Refuted by data of its peer since then: that carried the acknowledgement.
pub(crate) fn needless(gap: &Gap) -> Option<Ruling> {
    let needless = gap.needless.filter(|_| matches!(gap.end, GapEnd::Data) && gap.continues())?;
    // A segment sent together with needed data did not wait for a timer of its own.
    if needless.at.since(gap.wait.from.at) < TICK.max(gap.path.round_trip / 4) {
        return None;
    }
    // Clearly earlier than the timer it was a probe: of the end of the flight. Of its beginning, it was a fast retransmission
    // after reordering, and the window went on by itself.
    let since = needless.at.since(gap.wait.from.at);
    let is_early = since + since / 4 + TICK < gap.usual_timeout;
    if is_early && !gap.is_needless_of_end {
        return None;
    }
    let is_probe = gap.may_probe && is_early;
    let cause = if is_probe { Cause::TailLossProbe } else { Cause::RetransmissionTimeout };
    // After the timer's time the sender still waited for an acknowledgement, and the reply to its retransmission was one.
    let answered = gap.path.round_trip + gap.path.round_trip / 4 + TICK;
    let is_shown =
        !is_probe && since + TICK >= gap.usual_timeout && gap.wait.to.at.since(needless.at) <= answered;
    let confidence = if is_shown { Confidence::High } else { Confidence::Medium };
    let evidence: Evidence = if is_probe { of_needless_probe } else { of_needless };
    Some(Ruling { confidence, ..Ruling::all(gap, cause, evidence) })
}

/// Data lost before the point of capture, together with all that followed: the retransmission is the first copy
/// captured. The middle of a message and Linux's timer show it; or the sender's IP IDs, and a pause as long as its timer.
pub(crate) fn before_the_capture(gap: &Gap) -> Option<Ruling> {
    let is_as_long = gap.duration() + TICK >= gap.usual_timeout && gap.trigger.is_none();
    // One timer, or two: what takes longer on a path without other losses is a program's.
    let is_plausible = gap.duration() <= gap.usual_timeout * 3 + TICK;
    let is_skip = gap.skipped > 0 && is_plausible;
    if is_skip && is_as_long && matches!(gap.end, GapEnd::Data) && !gap.is_behind_hole {
        // A lost acknowledgement of a server that was late would be as rare on a path without other losses.
        let is_exact = gap.duration() <= gap.usual_timeout + gap.usual_timeout / 4 + TICK;
        let confidence = if is_exact && gap.has_path_lost { Confidence::High } else { Confidence::Low };
        let ruling = Ruling::all(gap, Cause::RetransmissionTimeout, of_skipped);
        return Some(Ruling { confidence, ..ruling });
    }
    (may_be_a_lost_tail(gap) && gap.messages.is_within == Some(true)).then(|| Ruling {
        confidence: Confidence::Low,
        ..Ruling::all(gap, Cause::RetransmissionTimeout, of_span)
    })
}

/// Returns whether a sender with a wide window was silent for its timeout at least, and continued with one full segment.
pub(crate) fn may_be_after_timeout(gap: &Gap) -> bool {
    matches!(gap.end, GapEnd::Data)
        && gap.continues()
        && gap.trigger.is_none()
        && gap.in_flight == 0
        && gap.length == gap.mss
        && gap.largest_since_loss >= 3 * gap.mss
        && gap.duration() + TICK >= gap.usual_timeout
}

/// Returns whether a sender that had been silent sent its second segment only on the acknowledgement of the first, though the
/// receiver's window allowed both: after a timeout the congestion window is one segment (RFC 5681, section 3.1), after mere idleness
/// an initial window, of two segments or more (section 4.1). The pause was that of data that did not reach the point of capture.
/// Refuted by a short segment, which Nagle's algorithm may have held. On a short path only timestamps tell what a sender knew.
pub(crate) fn has_loss_window(pause: &Gap, gap: &Gap) -> bool {
    const LONG: Duration = Duration::from_millis(1);
    let is_known = gap.path.round_trip >= LONG || gap.late_arrival.is_some();
    is_known
        && gap.awaited().is_some()
        && gap.flight.segments == 1
        && gap.flight.frames.0 == pause.wait.to.frame
        && gap.is_prompt()
        && !gap.is_short()
        && gap.headroom.is_some_and(|headroom| headroom >= gap.length)
}

/// Returns whether a sender far from the point of capture continued after exactly its timeout: the end of its last
/// flight may have been lost before the point of capture.
pub(crate) fn may_be_a_lost_tail(gap: &Gap) -> bool {
    matches!(gap.end, GapEnd::Data) && may_have_lost_more(gap) && is_timer(gap)
}

/// Returns whether a sender far from the point of capture continued without an acknowledgement.
fn may_have_lost_more(gap: &Gap) -> bool {
    let near = NEAR.max(gap.path.round_trip / 10);
    let is_far = gap.path.to_sender.is_some_and(|to| to > near);
    gap.continues() && is_far && gap.trigger.is_none() && !gap.is_complete
}

/// Returns whether the same may apply where losses have been seen already: the sender's timer may be up to twice what
/// the capture shows, because only the sender knows its measurements.
pub(crate) fn may_be_lost_repeatedly(gap: &Gap) -> bool {
    let expected = gap.usual_timeout;
    let is_by_timer =
        gap.silence.is_some_and(|silence| silence + TICK >= expected && silence <= expected * 2);
    gap.has_lost && is_by_timer && may_have_lost_more(gap)
}

/// Returns whether the sender was silent for exactly the duration of its timer.
fn is_timer(gap: &Gap) -> bool {
    let expected = gap.usual_timeout;
    gap.silence.is_some_and(|silence| {
        let difference = silence.saturating_sub(expected) + expected.saturating_sub(silence);
        difference <= TICK + expected / 20
    })
}

/// Returns the way in which the sender detected the loss; `None` if that does not show.
pub(crate) fn cause(gap: &Gap, repair: &Repair) -> Option<Cause> {
    let Repair {
        since,
        silence,
        quiet,
        duplicates,
        is_sacked,
        is_last,
        in_recovery,
        timeout,
        latest_probe,
        times,
        was_seen,
        earlier: _,
        overflow: _,
        message_end: _,
    } = *repair;
    let timer_ran = silence + TICK >= timeout;
    let was_told = duplicates >= DUPLICATES || is_sacked;
    // A segment triggered by an acknowledgement left because of it.
    let is_on_time = gap.trigger.is_some();
    let round_trip = gap.path.round_trip;
    // Maximum delay of the reaction to a duplicate ACK or SACK: RACK waits for a quarter of a round trip (RFC 8985), on
    // a timer of at least two ticks that may be one late.
    let limit =
        if is_sacked { (round_trip / 2).max(round_trip / 4 + TICK * 3) } else { TICK.max(round_trip / 2) };
    // A sender whose timer expires was silent before; in a queue other data passes ahead of the repair.
    let is_late = !is_on_time && quiet >= limit && !gap.is_flowing();
    if is_on_time && in_recovery.is_some() {
        return in_recovery;
    }
    // Before its timer expires, a sender retransmits the middle of a flight only if acknowledgements have reported the loss.
    let is_due_unseen = round_trip > Duration::ZERO && since * 4 >= round_trip * 3;
    if !gap.is_peer_seen && !timer_ran && was_seen && !is_last && is_due_unseen {
        return Some(Cause::FastRetransmit);
    }
    if was_told && times <= 1 && !is_late && (is_on_time || !timer_ran || !was_seen) {
        return Some(Cause::FastRetransmit);
    }
    if timer_ran || (is_late && (was_told || in_recovery.is_some())) {
        return Some(Cause::RetransmissionTimeout);
    }
    if let Some(cause) = in_recovery {
        return Some(cause);
    }
    // With few segments in flight fewer duplicate ACKs suffice, if the sender reacts to them (RFC 5827).
    if is_sacked || (duplicates > 0 && !is_late) {
        return Some(Cause::FastRetransmit);
    }
    // RFC 8985: a probe is sent after two round trips. What takes longer is a timer with an unusual minimum, unless the
    // acknowledgements were not captured.
    let is_due = gap.is_peer_seen && round_trip > Duration::ZERO && since * 2 >= round_trip * 3;
    let is_probe = gap.may_probe && is_last && since <= (latest_probe + TICK).min(LATE_PROBE);
    match (is_probe, is_due) {
        (true, true) => Some(Cause::TailLossProbe),
        (false, true) => Some(Cause::RetransmissionTimeout),
        (true, false) | (false, false) => None,
    }
}

fn repair(gap: &Gap) -> Option<&Repair> {
    match &gap.end {
        GapEnd::Repair(repair) => Some(repair),
        GapEnd::Data | GapEnd::Handshake { previous: _ } | GapEnd::Fin | GapEnd::Reset => None,
    }
}

fn of_handshake(gap: &Gap) -> String {
    let GapEnd::Handshake { previous: Some(before) } = gap.end else { return String::new() };
    let segment = if gap.wait.side == Side::Client { "SYN" } else { "SYN/ACK" };
    format!(
        "the {} had no acknowledgement of its {segment} (packet {}) and retransmitted it (packet {}) {} later",
        gap.wait.side,
        before.frame,
        gap.wait.to.frame,
        millis(gap.wait.to.at.since(before.at))
    )
}

fn of_needless(gap: &Gap) -> String {
    let needless = gap.needless.map_or(0, |mark| mark.frame);
    let what = format!("retransmitted what had arrived (packet {needless}): its timer expired");
    continued(gap, &what)
}

fn of_needless_probe(gap: &Gap) -> String {
    let needless = gap.needless.map_or(0, |mark| mark.frame);
    continued(gap, &format!("probed for the end of its flight (packet {needless}), although it had arrived,"))
}

fn continued(gap: &Gap, what: &str) -> String {
    format!(
        "the {} {what} before the acknowledgement came; it continued (packet {}) {} after packet {}",
        gap.wait.side,
        gap.wait.to.frame,
        millis(gap.duration()),
        gap.wait.from.frame,
    )
}

fn of_skipped(gap: &Gap) -> String {
    format!(
        "before packet {}, {} after packet {}, the {} sent {} that did not pass here, as IP IDs show: the first copy was lost, \
         and its timer retransmitted it",
        gap.wait.to.frame,
        millis(gap.duration()),
        gap.wait.from.frame,
        gap.wait.side,
        counted(gap.skipped.into(), "packet"),
    )
}

pub(crate) fn of_loss_window(gap: &Gap) -> String {
    format!(
        "the {} was silent for {} (packets {} and {}), continued with one segment, and sent the next on its acknowledgement: its \
         window was that after a timeout, and what it had sent meanwhile was lost before the capture",
        gap.wait.side,
        millis(gap.duration()),
        gap.wait.from.frame,
        gap.wait.to.frame,
    )
}

fn of_span(gap: &Gap) -> String {
    format!(
        "the {} stopped in the middle of its message (packet {}) and continued (packet {}) {} after it could have known that \
         all had arrived: as long as its retransmission timer takes, as if what it sent first had been lost",
        gap.wait.side,
        gap.wait.from.frame,
        gap.wait.to.frame,
        millis(gap.silence.unwrap_or_default()),
    )
}

fn of_timeout(gap: &Gap) -> String {
    let Some(repair) = repair(gap) else { return String::new() };
    let reported = match (repair.duplicates, repair.is_sacked) {
        (0, false) => "with neither duplicate ACKs nor SACK before it".to_owned(),
        (_, true) => "after SACK had reported the gap".to_owned(),
        (count, false) => format!("after {}", counted(count.into(), "duplicate ACK")),
    };
    format!(
        "the {} retransmitted {} packet {} (packet {}, {}), {}, {reported}",
        gap.wait.side,
        shown(repair),
        repair.earlier.frame,
        gap.wait.to.frame,
        counted(gap.length, "byte"),
        later(repair)
    )
}

const fn shown(repair: &Repair) -> &'static str {
    if repair.was_seen { "data of" } else { "data that was missing since" }
}

/// Formats the time since the last transmission, which is not the one named if there were several.
fn later(repair: &Repair) -> String {
    let since = millis(repair.since);
    match repair.times {
        0 | 1 => format!("{since} later"),
        times => format!("{since} after the last of {times} transmissions"),
    }
}

fn of_tail(gap: &Gap) -> String {
    let Some(repair) = repair(gap) else { return String::new() };
    let (side, earlier, to, later) = (gap.wait.side, repair.earlier.frame, gap.wait.to.frame, later(repair));
    match (repair.is_last, shown(repair)) {
        (true, _) if repair.was_seen => format!(
            "the {side} probed for the end of its flight (packet {earlier}) by retransmitting it (packet {to}), {later}"
        ),
        (_, shown) => format!(
            "after a probe for the end of its flight the {side} retransmitted {shown} packet {earlier} (packet {to}), {later}"
        ),
    }
}

fn of_recovery(gap: &Gap) -> String {
    format!(
        "while a loss was being repaired the {} had {} in flight and sent nothing new for {} (packets {} and {})",
        gap.wait.side,
        counted(gap.flight.bytes, "byte"),
        millis(gap.duration()),
        gap.wait.from.frame,
        gap.wait.to.frame,
    )
}

fn of_fast(gap: &Gap) -> String {
    let Some(repair) = repair(gap) else { return String::new() };
    let reported = match (repair.duplicates, repair.is_sacked) {
        (0, true) => "SACK reported the gap".to_owned(),
        (0, false) if !gap.is_peer_seen => {
            "acknowledgements that were not captured had reported it".to_owned()
        }
        (0, false) => "a loss before it was being repaired".to_owned(),
        (1, _) => "a duplicate ACK had come".to_owned(),
        (count, _) => format!("{count} duplicate ACKs had come"),
    };
    let shown = if repair.was_seen { "was sent before in" } else { "was missing since" };
    let signal = repair.overflow.map_or_else(String::new, |queue| {
        let queue = millis(queue);
        format!("; data waited {queue} in a full queue: the link was busy, and the loss told its sender to slow down")
    });
    format!(
        "data that {shown} packet {} was retransmitted in packet {}, {}, when {reported}{signal}",
        repair.earlier.frame,
        gap.wait.to.frame,
        later(repair)
    )
}
