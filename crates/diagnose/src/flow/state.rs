//! State of each side of a connection, and of its opening.

use dissect::Mark;
use dissect::clock::Clock;
use dissect::recent::RecentPackets;
use dissect::sender::Sender;
use wire::{Duration, Time};

use crate::cause::Cause;
use crate::causes::opening::{CountedSavings, SparedWaits};
use crate::failure::{RepeatedRetransmission, SplitRepair};
use crate::gap::{Burst, Gap};
use crate::ruling::Ruling;

/// State of one side, in the order of memory: what every packet needs comes first.
#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct EndState {
    pub(super) sender: Sender,
    /// When its peer's last acknowledgement of new data passed, if it has sent nothing since.
    pub(super) last_ack_at: Option<Time>,
    /// The closed window, if its peer ever closed it.
    pub(super) closed: Option<Box<ZeroWindow>>,
    /// A timestamp that it sent and its peer has not echoed, and when that passed: where the handshake was not captured.
    pub(super) stamped: Option<(u32, Time)>,
    /// Since when its peer reports data behind a hole, if nothing of this side was captured.
    pub(super) hole: Option<Mark>,
    /// Minimum reach of its window, before and after the last acknowledgement.
    pub(super) edges: [u64; 2],
    /// The windows that its peer offers.
    pub(super) offered: OfferedWindows,
    /// Number of short segments since its peer sent something.
    pub(super) pieces: u16,
    pub(super) has_lost: bool,
    /// Whether a silence looked like a timeout, though no capture shows the lost packet.
    pub(super) may_have_lost: bool,
    /// Whether it has sent a short segment while another was unacknowledged: Nagle's algorithm is off.
    pub(super) sends_shorts: bool,
    /// Whether its last packet was generated together with its last data, though it passed later.
    pub(super) is_together: bool,
    /// Shift of the windows that this side offers.
    pub(super) scale: Option<u8>,
    pub(super) scale_offer: ScaleOffer,
    /// The largest window field that it sent, and with which shift its peer stopped there, how often: where no SYN was captured.
    pub(super) widest_field: u16,
    pub(super) stops_at_field: (u8, u8),
    /// Whether its SYN does not permit SACK.
    pub(super) refuses_sack: bool,
    /// The last packets, to recognize a second capture of one.
    pub(super) recent: RecentPackets,
    /// The window in its SYN, which is never shifted.
    pub(super) first_window: Option<u16>,
    /// End of its urgent data.
    pub(super) urgent: u64,
    /// Gaps that may be the beginning of a plateau.
    #[expect(clippy::vec_box, reason = "a gap is large, and most senders have none or one")]
    pub(super) held: Vec<Box<HeldGap>>,
    /// Savings counted for the burst by a wider window.
    pub(super) counted: Option<Box<CountedSavings>>,
    /// Savings counted for it by a wider initial window.
    pub(super) spared: Option<Box<SparedWaits>>,
    pub(super) burst: Burst,
    /// The cause of the loss being repaired, and the end position of the repair.
    pub(super) recovery: Option<(Cause, u64)>,
    /// Delay of its last packet beyond what the path needs, by its timestamp clock.
    pub(super) late: Option<Duration>,
    /// The same of its latest full segments, smoothed.
    pub(super) queued: Duration,
    /// The newest timestamp sent to it.
    pub(super) newest_stamp: Option<u32>,
    /// The same, with data.
    pub(super) data_stamp: Option<u32>,
    /// A retransmission that may prove spurious.
    pub(super) suspect: Option<Box<Suspect>>,
    /// Data that it retransmits repeatedly.
    pub(super) stuck: Option<Box<RepeatedRetransmission>>,
    /// The pause after which it sent a single segment, until its next one.
    pub(super) resumed: Option<Box<HeldGap>>,
    /// A lost segment that came in smaller pieces.
    pub(super) split: Option<Box<SplitRepair>>,
    /// Its timestamp clock.
    pub(super) clock: Clock,
    /// Bytes of the TLS alert that it sent last, after its peer had closed: a close, not a loss.
    pub(super) alert: u64,
    /// The sequence number of its SYN.
    pub(super) first_number: Option<u32>,
}

/// State updated by each packet of one side, and by the gap since the last event.
#[derive(Debug, Default)]
pub(super) struct ReferenceValues {
    /// The first acknowledgement without data in the gap, and its delay beyond what the path needs; and its timestamp.
    pub(super) own_ack: Option<(Mark, Option<Duration>)>,
    pub(super) own_ack_stamp: Option<u32>,
    /// The first needless retransmission in the gap, and whether it was the end of a flight.
    pub(super) needless: Option<Mark>,
    pub(super) is_needless_of_end: bool,
    /// Number of its packets in the gap that were not captured, as their IP IDs show.
    pub(super) skipped: u32,
    /// Its usual retransmission timeout before its last acknowledgement, if that came with data.
    pub(super) timeout: Option<Duration>,
    /// Interface on which its packets are followed.
    pub(super) interface: Option<u32>,
    pub(super) has_ended: bool,
    /// When its last packet passed.
    pub(super) last_packet_at: Option<Time>,
}

/// Movement of the windows that a side is offered.
#[derive(Debug, Default)]
pub(super) struct OfferedWindows {
    pub(super) largest: u32,
    /// Time since which its peer does not advance the window with its acknowledgements.
    pub(super) shrunk_since: Option<Time>,
    /// Whether new data was acknowledged since the edge last moved.
    pub(super) is_still: bool,
}

impl OfferedWindows {
    /// Handles an acknowledgement: the edge may not move, although more is covered.
    pub(super) fn passed(
        &mut self,
        at: Time,
        window: Option<u32>,
        mss: u64,
        is_still: bool,
        covers_more: bool,
    ) {
        self.is_still = is_still && (covers_more || self.is_still);
        let Some(window) = window else { return };
        self.largest = self.largest.max(window);
        // Programs read at intervals: a segment or two of unread data are no reason to stop.
        let unread = u64::from(self.largest - window);
        if unread <= (2 * mss).min(u64::from(self.largest / 4)) {
            self.shrunk_since = None;
        } else if covers_more {
            self.shrunk_since.get_or_insert(at);
        }
    }
}

/// A closed window.
#[derive(Debug, Default)]
pub(super) struct ZeroWindow {
    /// Time since which its peer does not allow it to send.
    pub(super) since: Option<Mark>,
    /// The window that it advertised then.
    pub(super) window: u32,
    /// Time since which it had been smaller than before; and when the sender had last sent, if the peer had not since.
    pub(super) shrunk_since: Time,
    pub(super) sent: Option<Time>,
    /// Number of probes by its sender.
    pub(super) probes: u32,
    /// When it was closed and opened, until it is known whether its sender was blocked.
    pub(super) reopened: Option<(Mark, Mark)>,
    /// Periods in this gap in which sending was not allowed.
    pub(super) over: Vec<(Mark, Mark)>,
}

/// A gap, and its ruling if it is not part of a plateau.
#[derive(Debug)]
pub(super) struct HeldGap {
    pub(super) gap: Gap,
    pub(super) ruling: Option<Ruling>,
}

/// Window scale option of a SYN.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum ScaleOffer {
    Bits(u8),
    No,
    /// The option was not captured completely.
    #[default]
    Unknown,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Handshake {
    pub(super) opened: Option<Mark>,
    pub(super) answered: Option<Mark>,
    pub(super) is_done: bool,
}

impl Handshake {
    /// Returns whether the SYN was retransmitted since its SYN/ACK.
    pub(super) fn is_syn_retransmitted(&self) -> bool {
        let Self { opened, answered, is_done: _ } = self;
        opened.zip(*answered).is_some_and(|(opened, answered)| opened.at > answered.at)
    }
}

/// A retransmission whose acknowledgement may show that the original had arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Suspect {
    pub(super) start: u64,
    pub(super) stop: u64,
    /// The timestamp (TSval) of the first retransmission.
    pub(super) stamp: Option<u32>,
    /// Whether it was retransmitted more than once: then a duplicate may be one of the retransmissions.
    pub(super) is_repeated: bool,
    /// Whether its first byte was acknowledged.
    pub(super) is_covered: bool,
    /// The packet of the first retransmission.
    pub(super) frame: u64,
}
