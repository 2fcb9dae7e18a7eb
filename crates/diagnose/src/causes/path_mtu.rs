//! A path whose MTU is smaller than its ends assume.
//!
//! **Rule**: a full segment was sent at least three times without an acknowledgement, then its data arrives in smaller
//! segments, and no segment as large was ever acknowledged before; or it is never acknowledged although the peer still
//! sends, or is a client's and nothing smaller is in flight; or, at the receiver, nothing of a response comes, though the sequence
//! number of a later packet without data shows it, or two full segments or more never come, and smaller ones behind them do.
//! **Or** a router reported it: ICMP "fragmentation needed", ICMPv6 "packet too big". **Evidence**: the segments, the router's
//! message. **Refuted by**: a segment as large that was acknowledged (it was a loss); a segment larger than the MSS (a network card splits it later).
//!
//! An MSS below Ethernet's is a note: a tunnel, or a firewall that clamps it.

use dissect::{Mark, Side};
use wire::{Duration, Time};

use crate::cause::{Cause, CauseInfo, Fix, Party};
use crate::failure::{SmallMtu, SplitRepair, StuckFacts};
use crate::finding::{Confidence, Finding, Severity};
use crate::gap::Wait;
use crate::text::{counted, millis};
use crate::whole::WholeFacts;

pub(crate) const ABOUT: CauseInfo = CauseInfo {
    description: "The path MTU is smaller than the ends assume: full-size segments were dropped.",
    fixes: &[
        Fix {
            party: Party::Network,
            change: "let ICMP \"fragmentation needed\" and ICMPv6 \"packet too big\" through firewalls; clamp the MSS on the \
                     router before the narrow link (iptables -t mangle ... -j TCPMSS --clamp-mss-to-pmtu)",
        },
        Fix {
            party: Party::SendingKernel,
            change: "probe for it (sysctl net.ipv4.tcp_mtu_probing=1), or set the interface's MTU to that of the path",
        },
    ],
    is_fault: true,
    min_duration: Duration::ZERO,
};

/// Number of transmissions of a full segment after which its size is suspect, and the shortest time that they take.
const TOO_LARGE: u32 = 3;
const MIN_SILENCE: Duration = Duration::from_secs(1);

/// Detects data that was acknowledged at `mark` only after it had been sent in smaller segments.
pub(crate) fn in_pieces(facts: &StuckFacts<'_>, mark: Mark) -> Option<Finding> {
    let (stuck, from) = (&facts.stuck, facts.from);
    let (small, small_length) = stuck.shorter?;
    if !facts.is_largest || (stuck.times < TOO_LARGE && facts.reported.is_none()) {
        return None;
    }
    let evidence = format!(
        "the {from} sent {} (packet {}) {} times in vain; in segments of {} (packet {}) they arrived (packet {}), \
         and no segment as large ever did{}",
        counted(stuck.length, "byte"),
        stuck.first.frame,
        stuck.times,
        counted(small_length, "byte"),
        small.frame,
        mark.frame,
        report_of(facts.reported)
    );
    let packets = vec![stuck.first.frame, small.frame, mark.frame];
    let failure = facts.failure(Cause::PathMtu, stuck.first, packets, evidence);
    Some(Finding { lost: mark.at.since(failure.at), ..failure })
}

/// Returns whether full segments were sent in vain.
pub(crate) fn is_too_large(facts: &StuckFacts<'_>) -> bool {
    let stuck = &facts.stuck;
    stuck.times >= TOO_LARGE
        && stuck.last.at.since(stuck.first.at) >= MIN_SILENCE
        && stuck.length * 10 >= facts.mss * 9
        && facts.is_largest
}

/// Returns whether smaller segments arrived meanwhile.
pub(crate) fn is_proven_by_smaller(facts: &StuckFacts<'_>) -> bool {
    is_too_large(facts) && facts.stuck.has_small_arrived && !facts.stuck.is_needless
}

/// Returns whether all that a client sent in vain was as large: a smaller segment, which passes, has a duplicate ACK (RFC 5681,
/// section 4.2). Of a server's segments that shows nothing: its client may have gone.
pub(crate) fn is_upload_too_large(facts: &StuckFacts<'_>) -> bool {
    is_too_large(facts) && facts.from == Side::Client && facts.is_all_full && !facts.stuck.is_needless
}

/// Detects full segments that were never acknowledged, though the peer still sends.
pub(crate) fn in_vain(facts: &StuckFacts<'_>) -> Option<Finding> {
    if !is_too_large(facts) {
        return None;
    }
    let (stuck, from) = (&facts.stuck, facts.from);
    let is_guess = facts.is_silent && !stuck.has_small_arrived;
    let small = match (stuck.has_small_arrived, is_guess) {
        (true, _) => "though smaller ones sent together with them arrived".to_owned(),
        (false, true) => "as all else in flight, which was as large".to_owned(),
        (false, false) => format!("though the {} sent packets meanwhile", from.other()),
    };
    let evidence = format!(
        "the {from} sent {} bytes (packet {}) {} times in vain, to the end (packet {}), {small}; no \
         segment as large ever arrived{}",
        stuck.length,
        stuck.first.frame,
        stuck.times,
        stuck.last.frame,
        report_of(facts.reported)
    );
    let packets = vec![stuck.first.frame, stuck.last.frame];
    let failure = facts.failure(Cause::PathMtu, stuck.first, packets, evidence);
    Some(Finding { confidence: if is_guess { Confidence::Medium } else { Confidence::High }, ..failure })
}

/// Returns whether a piece, by its position and length, repairs a hole as smaller segments do: less than a second after a loss
/// a sender has no reason to send those.
pub(crate) fn is_split(hole: (u64, u64), piece: (u64, u64), mss: u64, waited: Duration) -> bool {
    const MIN_LOST: u64 = 1_000;
    let (start, lost) = hole;
    let full = lost.min(mss);
    let is_smaller = piece.0 == start && piece.1 * 10 <= full * 6 && full >= MIN_LOST;
    is_smaller && piece.1 > 0 && waited >= MIN_SILENCE
}

/// Detects a sender that fell to smaller segments after a loss, and from then on sent none larger than `largest`.
pub(crate) fn split(
    from: Side,
    split: &SplitRepair,
    largest: u64,
    reported: Option<&SmallMtu>,
) -> Option<Finding> {
    let SplitRepair { since, mark, lost, piece } = *split;
    if largest * 10 > piece * 11 {
        return None;
    }
    let evidence = format!(
        "{} of the {} were missing (packet {}) until they came in pieces of {piece} (packet {}) {} later, and no \
         segment of more than {} ever came{}",
        counted(lost, "byte"),
        from,
        since.frame,
        mark.frame,
        millis(mark.at.since(since.at)),
        counted(largest, "byte"),
        report_of(reported)
    );
    Some(Wait { from: since, to: mark, side: from }.finding(Cause::PathMtu, evidence))
}

/// Detects a response of which nothing came, though a later packet without data shows that it was `sent`: small packets pass.
pub(crate) fn never_came(since: Mark, (sent, shown): (u64, Mark), mss: u64) -> Option<Finding> {
    let wait = Wait { from: since, to: shown, side: Side::Server };
    let evidence = format!(
        "after packet {} the server sent {sent} bytes, as the sequence number of packet {} shows, and \
         none of them came in {}, though its packets without data did",
        since.frame,
        shown.frame,
        millis(wait.duration())
    );
    (sent >= mss && wait.duration() >= MIN_SILENCE).then(|| wait.finding(Cause::PathMtu, evidence))
}

/// Detects full segments of a server that never came, though smaller ones sent together with them did.
pub(crate) fn never_filled(
    (sent, since): (u64, Mark),
    end: Time,
    [largest, mss]: [u64; 2],
) -> Option<Finding> {
    let wait = Wait { from: since, to: Mark { at: end, ..since }, side: Side::Server };
    let evidence = format!(
        "{sent} bytes before packet {} never came in {}: the client waited for two segments of {mss} bytes or more, of which no retransmission \
         came either, and had smaller ones behind them, of up to {largest}",
        since.frame,
        millis(wait.duration())
    );
    (sent >= 2 * mss && wait.duration() >= MIN_SILENCE).then(|| wait.finding(Cause::PathMtu, evidence))
}

/// Returns a clause on what a router reported.
fn report_of(reported: Option<&SmallMtu>) -> String {
    reported.map_or_else(String::new, |SmallMtu { mark, mtu, reporter, from: _ }| {
        let size = if *mtu > 0 { format!(" of {mtu} bytes") } else { " that is smaller".to_owned() };
        format!("; {reporter} reported an MTU{size} (ICMP \"fragmentation needed\", packet {})", mark.frame)
    })
}

/// Returns the finding of an MTU that a router reported, where nothing else shows it; within the connection's time.
pub(crate) fn reported(small: &SmallMtu, started: Time, ended: Time) -> Finding {
    Finding {
        cause: Cause::PathMtu,
        severity: Severity::Low,
        confidence: Confidence::High,
        side: small.from,
        at: small.mark.at.min(ended).max(started),
        lost: Duration::ZERO,
        saving: None,
        packets: vec![small.mark.frame],
        evidence: format!(
            "a packet of the {} was too big for the path, and it went on{}",
            small.from,
            report_of(Some(small))
        ),
    }
}

/// Notes an MSS below Ethernet's.
pub(crate) fn note(whole: &WholeFacts<'_>) -> Option<Finding> {
    /// Ethernet's MTU, which includes TCP and IP headers.
    const MTU: u32 = 1_500;
    let headers = if whole.is_ipv6 { 60 } else { 40 };
    let ((one, other), opened) = whole.mss.zip(whole.opened)?;
    let least = u32::from(one.min(other));
    // Below that, the MSS is the end's own limit.
    if least + headers >= MTU || least < 1_000 {
        return None;
    }
    let evidence = format!(
        "the handshake agrees on an MSS of {least} bytes (an MTU of {}): a tunnel on the path, or a router that clamps it",
        least + headers
    );
    let packets = [Some(opened), whole.answered].into_iter().flatten().map(|mark| mark.frame).collect();
    let note = Finding::note(Cause::PathMtu, opened.at, Duration::ZERO, evidence);
    Some(Finding { packets, ..note })
}
