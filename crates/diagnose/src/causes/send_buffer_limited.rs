//! A socket buffer smaller than the path holds: the sender cannot have more on its way than the buffer keeps, however
//! wide the windows (papers/p-http#section-2-5).
//!
//! **Rule**: three times in a row the sender stops at the same flight, to within half a segment, below the receiver's
//! window, without a loss, and continues on acknowledgements. A congestion window grows in between, by half a segment
//! for each round trip at the very least. **Refuted by**: a flight that grows, a loss, a receiver's window without
//! room, a path that is full.

use wire::Duration;

use super::plateau;
use crate::cause::{About, Cause, Fix, Who};
use crate::gap::{Gap, Stop, millis};
use crate::judge::{Confidence, Ruling};

pub(crate) const ABOUT: About = About {
    what: "The sender never had more on its way than its socket buffer holds, though the path and the receiver would \
           have taken more.",
    fixes: &[
        Fix {
            who: Who::SendingApplication,
            change: "do not set SO_SNDBUF (Linux then grows it), or set it to rate x round trip and more",
        },
        Fix {
            who: Who::SendingKernel,
            change: "raise the limit: sysctl -w net.ipv4.tcp_wmem='4096 131072 16777216'",
        },
        Fix { who: Who::SendingApplication, change: "keep the buffer filled: write before it runs empty" },
    ],
    is_fault: true,
    least: Duration::from_millis(5),
};

/// Waits at the same flight, this one included.
const ROUNDS: usize = 3;

pub(crate) fn rule(gap: &Gap) -> Option<Ruling> {
    gap.awaited()?;
    let rounds = &gap.burst.rounds;
    let is_plateau = rounds.count + 1 >= ROUNDS
        && rounds.latest().take(ROUNDS - 1).all(|flight| gap.is_level(flight))
        && gap.flight.bytes >= 2 * gap.mss;
    let fits = is_plateau && !gap.has_lost;
    fits.then(|| Ruling {
        confidence: Confidence::Medium,
        saving: Some(plateau::saved(gap, Stop::Room)),
        ..Ruling::all(gap, Cause::SendBufferLimited, evidence)
    })
}

/// Whether a gap may be one of a plateau that is not long enough yet to tell.
pub(crate) fn may_be(gap: &Gap) -> bool {
    gap.awaited().is_some() && !gap.has_lost && gap.flight.bytes >= 2 * gap.mss
}

fn evidence(gap: &Gap) -> String {
    let window = gap.window.map_or_else(String::new, |window| format!(", below the receiver's {window}"));
    format!(
        "again and again the {} stopped at {} bytes on their way (packet {}){window}, with nothing lost, and waited \
         {} for an acknowledgement",
        gap.side,
        gap.flight.bytes,
        gap.flight.frames.1,
        millis(gap.duration()),
    )
}

#[cfg(test)]
mod tests {
    use crate::Cause;
    use crate::script::{Script, opened};

    /// Flights of so many bytes, each acknowledged as a whole and followed at once.
    fn flights(sizes: &[u32]) -> String {
        let mut lines = String::from("30 C send=100\n");
        let mut now = 45.0;
        for size in sizes {
            let (full, rest) = (size / 1_460, size % 1_460);
            (0..full).for_each(|_| lines.push_str(&format!("{now} S send=1460\n")));
            if rest > 0 {
                lines.push_str(&format!("{now} S send={rest}\n"));
            }
            now += 15.0;
            lines.push_str(&format!("{now} C\n"));
            now += 15.05;
        }
        lines
    }

    #[test]
    fn a_flight_that_never_grows_is_a_buffer() {
        let lines = opened(15.0, &flights(&[16_384; 7]));
        let found = Script { one_way_ms: 15.0, lines: &lines }.faults_everywhere();
        // The first wait, too, that looked like a window that was opening.
        assert_eq!(found, [(Cause::SendBufferLimited, 30); 6]);
    }

    #[test]
    fn a_flight_that_grows_however_slowly_is_none() {
        let lines = opened(15.0, &flights(&[14_600, 16_060, 17_520, 18_980, 20_440, 21_900]));
        assert_eq!(Script { one_way_ms: 15.0, lines: &lines }.faults_everywhere(), []);
    }

    #[test]
    fn a_few_equal_flights_are_not_enough() {
        let lines = opened(15.0, &flights(&[16_384; 3]));
        let report = Script { one_way_ms: 15.0, lines: &lines }.diagnose(crate::report::Place::Server);
        assert!(!report.is_worth_fixing());
        assert!(report.account.of(crate::Share::Unknown).as_nanos() > 25_000_000);
    }
}
