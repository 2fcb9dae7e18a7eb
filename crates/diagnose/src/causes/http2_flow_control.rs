//! A sender of HTTP/2 whose window is used up: it waits for WINDOW_UPDATE, whatever TCP allows.
//!
//! **Rule**: the sender's DATA had used up the window of its stream or of the connection, and it continued after the frame
//! that opened it again. Over TLS, which hides windows: TCP let it go on, or had sent all records whole, down to a short segment, and
//! it went on when a record came that only such frames can be. **Evidence**: the packets of both, and the window's size. **Refuted by**: a
//! connection whose beginning was not captured, so that windows are not known.
//!
//! A receiver that updates a used-up window later than a round trip has not read (RFC 9113, section 5.2.2): a wider window would
//! fill, too, and reading saves the time.

use dissect::Mark;
use http2::window::WindowLimit;
use wire::Duration;

use super::opening;
use crate::cause::{Cause, CauseInfo, Fix, Party};
use crate::gap::{Gap, GapEnd};
use crate::ruling::Ruling;
use crate::text::millis;

pub(crate) const ABOUT: CauseInfo = CauseInfo {
    description: "The sender had used up HTTP/2's flow-control window and waited for WINDOW_UPDATE.",
    fixes: &[
        Fix {
            party: Party::ReceivingApplication,
            change: "a larger window than rate times round trip: gRPC-Go WithInitialWindowSize and WithInitialConnWindowSize, \
                     Go http2.Transport MaxReceiveBufferPerStream, Node initialWindowSize and setLocalWindowSize, nginx \
                     http2_body_preread_size, Java flowControlWindow, Python h2 initial_window_size",
        },
        Fix {
            party: Party::ReceivingApplication,
            change: "where updates come late: read as soon as data is there, and do the slow work elsewhere",
        },
    ],
    is_fault: true,
    min_duration: Duration::from_millis(1),
};

pub(crate) fn rule(gap: &Gap) -> Option<Ruling> {
    let (updated, reaction) = update(gap)?;
    if !matches!(gap.end, GapEnd::Data) || !gap.continues() || gap.is_flowing() {
        return None;
    }
    // The update shows where it is captured; the sender has it after the rest of the path.
    let known = updated.at + gap.path.to_sender.unwrap_or_default();
    let is_reaction = known + reaction >= gap.wait.to.at && updated.at < gap.wait.to.at;
    // A wider window would still take the time that it needs to open, and the link for as many bytes. It would fill, too, where the
    // reader was late.
    let is_reader_late = held(gap) * 2 > gap.duration();
    let with_room = if is_reader_late { Duration::ZERO } else { opening::saved_with_room(gap) };
    let saving = Some(with_room.max(unread(gap).unwrap_or_default()).min(gap.duration()));
    let cause = Cause::Http2FlowControl;
    is_reaction.then(|| Ruling { saving, ..Ruling::all(gap, cause, evidence) })
}

/// Returns the time for which the receiver had a window's worth of data, and did not read it.
fn unread(gap: &Gap) -> Option<Duration> {
    /// Programs may take their time, and a busy host delays them.
    const LATE: Duration = Duration::from_millis(100);
    Some(held(gap)).filter(|held| *held >= LATE)
}

/// Returns the time from the use of the whole window to its update, beyond a round trip.
fn held(gap: &Gap) -> Duration {
    let blocked = gap.messages.blocked.and_then(|blocked| Some((blocked.since, blocked.updated?)));
    let time = blocked.map_or(Duration::ZERO, |(since, updated)| updated.at.since(since.at));
    time.saturating_sub(gap.path.round_trip)
}

/// Returns the update for which the sender waited, and the time that it may take to go on.
fn update(gap: &Gap) -> Option<(Mark, Duration)> {
    /// A window that is known to be used up leaves no doubt; without that, a program that writes now and then is slower.
    const SLOW: Duration = Duration::from_millis(10);
    const PROMPT: Duration = Duration::from_millis(1);
    if let Some(blocked) = gap.messages.blocked {
        let reaction = SLOW.max(gap.path.noise).max(gap.path.round_trip / 4);
        return Some((blocked.updated?, reaction));
    }
    // A congestion window lets a sender go on with the first acknowledgement of its flight, not with the last.
    let has_room = gap.in_flight == 0 && (gap.acks > 1 || 3 * gap.surely_freed > gap.flight.bytes);
    // Whatever TCP holds back is cut at a full segment, in the middle of a record: all of this had been sent.
    let is_sent_whole = gap.messages.is_record_whole && gap.flight.bytes > gap.mss && gap.ends_short();
    let updated = gap.messages.updated.filter(|_| has_room || is_sent_whole)?;
    // Away from the sender its segment has also crossed the link.
    let reaction =
        PROMPT.max(gap.path.noise.min(gap.path.round_trip / 4)) + gap.path.segment.unwrap_or_default();
    Some((updated, reaction))
}

fn evidence(gap: &Gap) -> String {
    let Some(blocked) = gap.messages.blocked else {
        return format!(
            "the {} had sent whole records (packet {}), and continued (packet {}) only after a record of the size of HTTP/2's \
             WINDOW_UPDATE (packet {}), {} later; TCP's windows allowed more",
            gap.wait.side,
            gap.wait.from.frame,
            gap.wait.to.frame,
            gap.messages.updated.map_or(0, |mark| mark.frame),
            millis(gap.duration())
        );
    };
    let window = match blocked.limit {
        WindowLimit::Stream(stream) => format!("window of stream {stream}"),
        WindowLimit::Connection => "window of the connection".to_owned(),
    };
    format!(
        "the {} had used up the {window} of HTTP/2, {} bytes (packet {}), and continued (packet {}) after WINDOW_UPDATE (packet \
         {}), {} later; TCP's windows allowed more{}",
        gap.wait.side,
        blocked.size,
        blocked.since.frame,
        gap.wait.to.frame,
        blocked.updated.map_or(0, |mark| mark.frame),
        millis(gap.duration()),
        unread(gap).map_or_else(String::new, |held| format!(
            "; the {} did not read for {}",
            gap.wait.side.other(),
            millis(held)
        ))
    )
}

#[cfg(test)]
mod tests {
    use crate::Cause;
    use crate::report::VantagePoint;
    use crate::script::{Script, opened};

    const PREFACE: &str = "30 C text=PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n\\x00\\x00\\x06\\x04\\x00\\x00\\x00\\x00\\x00\
        \\x00\\x04\\x00\\x00\\x10\\x00\n30.1 C hex=0000020105000000018286";

    /// A response in DATA frames of 1,024 bytes, four in a window; the client updates the window after each four.
    fn response(windows: usize, late: f64) -> String {
        let mut lines = format!("{PREFACE}\n45.5 S hex=00000101040000000188\n");
        let mut at = 45.6;
        for _ in 0..windows {
            for number in 0..4 {
                let data = format!("000400000000000001{}", "78".repeat(1_024));
                lines += &format!("{:.2} S hex={data}\n", at + 0.1 * f64::from(number));
            }
            lines +=
                &format!("{:.2} C\n{:.2} C hex=00000408000000000100001000\n", at + 15.35, at + 15.4 + late);
            at += 30.5 + late;
        }
        opened(15.0, &lines)
    }

    #[test]
    fn sender_that_waits_for_a_window_update_is_limited_by_it() {
        let lines = response(4, 0.0);
        for vantage_point in [VantagePoint::Client, VantagePoint::Server, VantagePoint::Between] {
            let faults = Script { one_way_ms: 15.0, lines: &lines }.faults(vantage_point);
            let causes: Vec<Cause> = faults.iter().map(|(cause, _)| *cause).collect();
            assert_eq!(causes, [Cause::Http2FlowControl; 3], "{vantage_point:?}");
        }
    }

    #[test]
    fn window_that_its_reader_updates_late_is_worth_fixing_whatever_its_size() {
        let saving = |late: f64| {
            let report =
                Script { one_way_ms: 15.0, lines: &response(3, late) }.diagnose(VantagePoint::Server);
            let count = report.counts.iter().find(|count| count.cause == Cause::Http2FlowControl);
            (count.map(|count| count.saving.as_millis_f64().round()), report.is_worth_fixing())
        };
        let (saved, is_worth_fixing) = saving(200.0);
        assert!(saved >= Some(400.0) && is_worth_fixing, "{saved:?}");
        assert!(saving(0.0).0 < Some(100.0), "{:?}", saving(0.0));
    }

    /// Flights of five whole records over TLS, each acknowledged, then updated; the next leaves `reaction` ms after the update.
    fn over_tls(reaction: f64) -> bool {
        let mut lines =
            "30 C client-hello\n45 S server-hello\n60 C records=53\n60.1 C records=150\n75.2 S records=44\n"
                .to_owned();
        let mut at = 75.3;
        for _ in 0..6 {
            (0..5)
                .for_each(|number| lines += &format!("{:.2} S records=1000\n", at + 0.1 * f64::from(number)));
            lines += &format!("{:.2} C\n{:.2} C records=43\n", at + 15.5, at + 17.0);
            at += 32.1 + reaction;
        }
        let faults = Script { one_way_ms: 15.0, lines: &opened(15.0, &lines) }.faults_everywhere();
        faults.iter().any(|(cause, _)| *cause == Cause::Http2FlowControl)
    }

    #[test]
    fn whole_records_that_leave_at_once_after_an_update_waited_for_it() {
        assert!(over_tls(0.0));
        assert!(!over_tls(12.0), "a program that writes now and then");
    }
}
