//! A window that restarts after a pause: on a kept-alive connection, nearly every page does
//! (papers/p-http#section-2-4).
//!
//! **Rule**: after a silence longer than the retransmission timeout, with nothing in flight, the sender stops at a
//! flight clearly smaller than an earlier one. Nothing was lost since, and it continues on acknowledgements.
//! **Evidence**: both flights and the silence. **Refuted by**: a receive window that does not allow the earlier flight; a
//! message that needs no more; allowed data that is not sent (`send_buffer_limited`); a loss (`congestion_window`), even
//! one that only a silence suggests; a full path; a flight that ends with a short segment (Nagle's algorithm, or the
//! program).

use wire::Duration;

use crate::cause::{Cause, CauseInfo, Fix, Party};
use crate::finding::Confidence;
use crate::gap::Gap;
use crate::ruling::Ruling;
use crate::text::{counted, millis};

pub(crate) const ABOUT: CauseInfo = CauseInfo {
    description: "After idling the sender restarted with a small congestion window, though the connection had carried more before.",
    fixes: &[
        Fix { party: Party::SendingKernel, change: "sysctl -w net.ipv4.tcp_slow_start_after_idle=0" },
        Fix {
            party: Party::SendingKernel,
            change: "or a congestion control that paces instead (bbr: sysctl -w net.ipv4.tcp_congestion_control=bbr)",
        },
    ],
    is_fault: true,
    min_duration: Duration::from_millis(5),
};

pub(crate) fn rule(gap: &Gap) -> Option<Ruling> {
    gap.awaited()?;
    let burst = &gap.burst;
    let is_less = |flight: u64| flight + gap.mss <= burst.largest_before;
    // A window that was filled had opened to twice its size as its acknowledgements arrived.
    let still_opens = burst.rounds.latest().any(is_less) && gap.flight.bytes < 2 * burst.largest_before;
    let had_more = burst.largest_before >= 2 * gap.mss && (is_less(gap.flight.bytes) || still_opens);
    // A window stops a sender behind a full segment (RFC 9293, section 3.8.6.2.1).
    let ends_full = gap.flight.last.is_multiple_of(gap.mss);
    let is_allowed = gap.has_room && gap.window.is_none_or(|window| window >= burst.largest_before);
    let is_clear = !gap.has_lost && !gap.may_have_lost;
    if burst.silence <= burst.timeout || !had_more || !ends_full || !is_clear || !is_allowed {
        return None;
    }
    let confidence =
        if 2 * gap.flight.bytes <= burst.largest_before { Confidence::High } else { Confidence::Medium };
    Some(Ruling {
        confidence,
        saving: Some(gap.idle()),
        ..Ruling::all(gap, Cause::SlowStartRestart, evidence)
    })
}

fn evidence(gap: &Gap) -> String {
    // The window that opens again may exceed the earlier flight in a later round.
    let earlier = gap.burst.rounds.latest().min().filter(|flight| *flight < gap.flight.bytes);
    let first = earlier.map_or_else(String::new, |flight| format!(", after {flight} in an earlier round"));
    format!(
        "after a pause of {} the {} stopped at {} in flight (packet {}){first} and waited {} for an acknowledgement, \
         though it had had {} in flight before the pause",
        millis(gap.burst.silence),
        gap.wait.side,
        counted(gap.flight.bytes, "byte"),
        gap.flight.frames.1,
        millis(gap.duration()),
        counted(gap.burst.largest_before, "byte"),
    )
}

#[cfg(test)]
mod tests {
    use crate::Cause;
    use crate::report::VantagePoint;
    use crate::script::{Script, opened};

    /// Returns two responses of 20 segments: one that opens the window to 16, and one after `silence` ms in flights of
    /// `second`.
    fn two_pages(silence: u32, second: &[u32]) -> String {
        let mut lines = String::from("30 C send=100\n");
        let mut now = 45.0;
        let mut page = |begin: f64, flights: &[u32]| {
            now = begin;
            for flight in flights {
                (0..*flight).for_each(|_| lines.push_str(&format!("{now} S send=1460\n")));
                now += 15.0;
                lines.push_str(&format!("{now} C\n"));
                now += 15.05;
            }
            now
        };
        let end = page(45.0, &[4, 8, 16]);
        let request = end + f64::from(silence);
        page(request + 15.1, second);
        lines.push_str(&format!("{request} C send=100\n"));
        lines
    }

    #[test]
    fn window_restarted_after_a_pause_is_named() {
        let lines = opened(15.0, &two_pages(2_000, &[2, 4, 8, 2]));
        let found = Script { one_way_ms: 15.0, lines: &lines }.faults_everywhere();
        assert_eq!(found, [(Cause::SlowStartRestart, 30); 3]);
    }

    #[test]
    fn a_window_that_stays_open_is_no_restart_nor_is_a_short_pause() {
        let stays = opened(15.0, &two_pages(2_000, &[16]));
        assert_eq!(Script { one_way_ms: 15.0, lines: &stays }.faults_everywhere(), []);
        let immediate = opened(15.0, &two_pages(20, &[4, 8]));
        assert_eq!(Script { one_way_ms: 15.0, lines: &immediate }.faults_everywhere(), []);
    }

    #[test]
    fn receive_window_that_no_longer_allows_the_earlier_flight_is_no_restart() {
        // Every acknowledgement after the pause offers less than the first page had in flight.
        let lines = two_pages(2_000, &[2, 4, 8, 2]);
        let small = |line: &str| {
            let is_ack = line.ends_with(" C") || line.ends_with("C send=100");
            let at: f64 = line.split(' ').next().unwrap().parse().unwrap();
            if is_ack && at > 2_000.0 { format!("{line} win=14600\n") } else { format!("{line}\n") }
        };
        let lines = opened(15.0, &lines.lines().map(small).collect::<String>());
        let found = Script { one_way_ms: 15.0, lines: &lines }.faults_everywhere();
        assert!(found.iter().all(|(cause, _)| *cause != Cause::SlowStartRestart), "{found:?}");
    }

    #[test]
    fn flight_that_ends_short_waits_for_no_window() {
        let mut lines = two_pages(2_000, &[]);
        let request: f64 = lines.lines().last().unwrap().split(' ').next().unwrap().parse().unwrap();
        for (at, word) in [(15.0, "S send=57"), (30.0, "C"), (45.1, "S send=148"), (60.2, "C")] {
            lines.push_str(&format!("{} {word}\n", request + at));
        }
        let found = Script { one_way_ms: 15.0, lines: &opened(15.0, &lines) }.faults_everywhere();
        assert!(matches!(found[..], [(Cause::Nagle, 30)]), "{found:?}");
    }

    #[test]
    fn regress_window_after_a_silence_that_may_be_a_timeout_is_no_restart() {
        // The last segment of the first page is lost before the client and repaired after 400 ms.
        let mut lines = two_pages(420, &[2, 4, 8, 2]);
        lines.push_str("135.3 S send=274 lost\n535.3 S seq=40880 send=274\n");
        let mut lines: Vec<&str> = lines.lines().collect();
        let at = |line: &&str| line.split(' ').next().unwrap().parse::<f64>().unwrap();
        lines.sort_by(|one, other| at(one).total_cmp(&at(other)));
        let lines = opened(15.0, &lines.join("\n"));
        let found = Script { one_way_ms: 15.0, lines: &lines }.faults(VantagePoint::Client);
        assert_eq!(found, [(Cause::RetransmissionTimeout, 430)]);
    }
}
