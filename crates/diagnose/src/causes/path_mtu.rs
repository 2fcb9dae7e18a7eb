//! A path whose MTU is smaller than its ends assume.
//!
//! **Rule**: a full segment was sent at least three times without an acknowledgement, then its data arrives in smaller
//! segments, and no segment as large was ever acknowledged before; or it is never acknowledged although the peer still
//! sends; or, at the receiver, nothing of a response comes, though the sequence number of a later packet without data shows it.
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

/// Detects full segments that were never acknowledged, though the peer still sends.
pub(crate) fn in_vain(facts: &StuckFacts<'_>) -> Option<Finding> {
    if !is_too_large(facts) {
        return None;
    }
    let (stuck, from) = (&facts.stuck, facts.from);
    let small = if stuck.has_small_arrived {
        "smaller ones sent together with them arrived".to_owned()
    } else {
        format!("the {} sent packets meanwhile", from.other())
    };
    let evidence = format!(
        "the {from} sent {} bytes (packet {}) {} times in vain, to the end (packet {}), though {small}; no \
         segment as large ever arrived{}",
        stuck.length,
        stuck.first.frame,
        stuck.times,
        stuck.last.frame,
        report_of(facts.reported)
    );
    let packets = vec![stuck.first.frame, stuck.last.frame];
    Some(facts.failure(Cause::PathMtu, stuck.first, packets, evidence))
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

#[cfg(test)]
mod tests {
    use crate::report::VantagePoint;
    use crate::script::{Script, opened};
    use crate::{Cause, Severity};

    const DIES: &str =
        "30 C send=100\n45 S send=1460 lost\n300 S seq=0 send=1460 lost\n900 S seq=0 send=1460 lost";

    #[test]
    fn lost_full_segments_and_delivered_small_ones_show_the_path_mtu() {
        let lines =
            opened(15.0, &format!("{DIES}\n2100 S seq=0 send=536\n2115 C\n2131 S seq=536 send=924\n2146 C"));
        let found = Script { one_way_ms: 15.0, lines: &lines }.faults(VantagePoint::Server);
        assert_eq!(found[0], (Cause::PathMtu, 2_085), "{found:?}");
        assert!(found.iter().all(|(cause, lost)| *cause == Cause::PathMtu || *lost < 100), "{found:?}");
    }

    #[test]
    fn full_segments_that_passed_before_make_it_a_loss() {
        let before = "30 C send=100\n45 S send=1460\n60 C\n61 C send=9\n76 S send=1460 lost\n300 S seq=1460 send=1460 lost
            900 S seq=1460 send=1460 lost\n2100 S seq=1460 send=536\n2115 C";
        let lines = opened(15.0, before);
        let found = Script { one_way_ms: 15.0, lines: &lines }.faults(VantagePoint::Server);
        assert!(found.iter().all(|(cause, _)| *cause == Cause::RetransmissionTimeout), "{found:?}");
    }

    #[test]
    fn a_clamped_mss_is_a_note() {
        let lines = "0 C syn mss=1360\n15 S syn mss=1460\n30 C\n31 C send=9\n46 S send=9";
        let report = Script { one_way_ms: 15.0, lines }.diagnose(VantagePoint::Client);
        let note = report.findings.iter().find(|finding| finding.cause == Cause::PathMtu).unwrap();
        assert_eq!(note.severity, Severity::Note);
        assert!(note.evidence.contains("1360"), "{}", note.evidence);
    }

    /// An upload whose header section and nine full segments leave together; only the former arrives.
    #[test]
    fn small_data_that_arrives_beside_full_segments_shows_the_size() {
        let found = |head: &str| {
            let mut lines = format!("30 C send=54{head}\n");
            (0..3).for_each(|n| lines += &format!("30.{n} C send=1460 lost\n"));
            lines += if head.is_empty() { "45.1 S ack=54\n" } else { "" };
            for at in [330, 930, 2_130, 4_530] {
                lines += &format!("{at} C seq=54 send=1460 lost\n");
            }
            let lines = opened(15.0, &lines);
            let found = Script { one_way_ms: 15.0, lines: &lines }.faults(VantagePoint::Client);
            found.into_iter().map(|(cause, _)| cause).collect::<Vec<_>>()
        };
        assert_eq!(found(""), [Cause::PathMtu]);
        assert!(!found(" lost").contains(&Cause::PathMtu), "{:?}", found(" lost"));
    }

    /// Captured at the receiver, where the full segments never come.
    #[test]
    fn fall_to_smaller_segments_for_good_is_named_at_the_receiver() {
        let found = |later: &str| {
            let lines = format!(
                "0 C syn\n15 S syn\n30 C\n31 C send=100\n46 S send=1460 lost\n46.1 S send=400\n61.2 C ack=0\n\
                 3046 S seq=0 send=536\n3046.1 S seq=536 send=536\n3046.2 S seq=1072 send=388\n3061.3 C\n\
                 3076.4 S send=536\n3076.5 S send={later}\n3091.6 C"
            );
            let found = Script { one_way_ms: 15.0, lines: &lines }.faults(VantagePoint::Client);
            found.into_iter().map(|(cause, _)| cause).next()
        };
        assert_eq!(found("563"), Some(Cause::PathMtu));
        assert_eq!(found("1460"), Some(Cause::RetransmissionTimeout));
    }
}
