//! Judgement of a gap's cause: the rules in order, specific before general.

use wire::Duration;

use crate::causes;
use crate::gap::{Gap, GapEnd, GapStart};
use crate::ruling::Ruling;
use trace::account::Share;

type Rule = fn(&Gap) -> Option<Ruling>;

/// The rules in order; the first ruling counts.
const RULES: [Rule; 26] = [
    causes::retransmission::handshake,
    causes::connection_setup::rule,
    causes::receive_window_limited::too_small,
    causes::retransmission::rule,
    causes::retransmission::needless,
    causes::retransmission::recovering,
    causes::expect_continue::rule,
    flowing,
    sent_together,
    causes::http2_flow_control::rule,
    awaits_uncaptured,
    causes::retransmission::before_the_capture,
    causes::bottleneck_queue::rule,
    causes::receive_window_limited::rule,
    causes::nagle::rule,
    causes::short_initial_segment::rule,
    causes::delayed_ack::rule,
    path_is_full,
    causes::send_buffer_limited::rule,
    causes::slow_start_restart::rule,
    causes::congestion_window::rule,
    causes::slow_start::rule,
    causes::proxy_in_path::rule,
    causes::think::rule,
    closing,
    unseen,
];

/// Returns the first ruling; `None` if no rule applies.
pub(crate) fn judge(gap: &Gap) -> Option<Ruling> {
    RULES.iter().find_map(|rule| rule(gap))
}

/// Data that flows needs no cause.
fn flowing(gap: &Gap) -> Option<Ruling> {
    let flows = matches!(gap.end, GapEnd::Data) && gap.continues() && gap.is_flowing();
    flows.then(|| Ruling::plain(gap, Share::Transfer))
}

/// The sender generated both segments together (TSval): the path delayed the second one.
fn sent_together(gap: &Gap) -> Option<Ruling> {
    let is_data = matches!(gap.end, GapEnd::Data) && gap.continues();
    (gap.is_together && is_data).then(|| Ruling::plain(gap, Share::RoundTrip))
}

/// The sender waited for the acknowledgement of a packet that was not captured, which may be a retransmission.
fn awaits_uncaptured(gap: &Gap) -> Option<Ruling> {
    let is_of_unseen = gap.awaited()?.is_of_unseen;
    is_of_unseen.then(|| Ruling::plain(gap, Share::Unknown))
}

/// The sender waited because it had filled the path: the path's capacity is the limit.
fn path_is_full(gap: &Gap) -> Option<Ruling> {
    gap.awaited()?;
    gap.path.is_full.then(|| Ruling::plain(gap, Share::Transfer))
}

/// Time before the close of a connection does not count as a wait, unless an earlier rule applies.
fn closing(gap: &Gap) -> Option<Ruling> {
    const LONGER_IS_IDLE: Duration = Duration::from_millis(200);
    let ends = matches!(gap.end, GapEnd::Fin | GapEnd::Reset) || gap.before == GapStart::Ending;
    let share = match gap.before {
        GapStart::Ending => Share::Closing,
        GapStart::Nothing | GapStart::Handshake(_) | GapStart::Data(_) | GapStart::Unseen(_) => {
            if gap.duration() > LONGER_IS_IDLE { Share::Idle } else { Share::Closing }
        }
    };
    ends.then(|| Ruling::plain(gap, share))
}

/// Data that was not captured was in flight.
fn unseen(gap: &Gap) -> Option<Ruling> {
    let is_unseen = gap.before == GapStart::Unseen(gap.wait.side) && gap.is_flowing();
    is_unseen.then(|| Ruling::plain(gap, Share::Transfer))
}
