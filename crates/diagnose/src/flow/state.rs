//! State of each side of a connection, and of its beginning.

use wire::{Duration, Time};

use crate::cause::Cause;
use crate::causes::opening::{CountedSavings, SparedWaits};
use crate::clock::Clock;
use crate::gap::{Burst, Gap, Mark};
use crate::judge::Ruling;
use crate::segment::Segment;
use crate::sender::Sender;

use super::failures::RepeatedRetransmission;

/// State of one side.
#[derive(Debug, Default)]
pub(super) struct EndState {
    pub(super) sender: Sender,
    /// The last packets, so that a second capture of one is known.
    pub(super) recent: RecentPackets,
    pub(super) burst: Burst,
    /// Savings counted for the burst that a wider window gives.
    pub(super) counted: Option<Box<CountedSavings>>,
    /// Savings counted for it that a wider window at its beginning gives.
    pub(super) spared: Option<Box<SparedWaits>>,
    /// Gaps that may be a plateau's beginning.
    pub(super) held: Vec<HeldGap>,
    /// The cause of the loss being repaired, and the position up to which.
    pub(super) recovery: Option<(Cause, u64)>,
    /// When its peer's last acknowledgement of something new passed, if it has sent nothing since.
    pub(super) heard_at: Option<Time>,
    /// The windows that its peer offers.
    pub(super) offered: OfferedWindows,
    /// When its peer forbade it to send, if that ever happened.
    pub(super) closed: Option<Box<ZeroWindow>>,
    pub(super) has_lost: bool,
    /// Minimum reach of its window, before the last acknowledgement and with it.
    pub(super) edges: [u64; 2],
    /// Whether it has sent a short segment while another was unacknowledged: Nagle's algorithm is off.
    pub(super) sends_shorts: bool,
    /// Where its urgent data ends.
    pub(super) urgent: u64,
    /// The newest stamps that it was sent: with data, and of all.
    pub(super) data_stamp: Option<u32>,
    pub(super) newest_stamp: Option<u32>,
    /// Whether its last packet was generated together with its last data, though it passed later.
    pub(super) is_together: bool,
    /// Its timestamps, and by how much its last packet came later than the path needs.
    pub(super) clock: Clock,
    pub(super) late: Option<Duration>,
    /// Bytes of the TLS alert that it sent last, after its peer had ended: a close, and no loss.
    pub(super) alert: u64,
    /// Short segments since its peer sent something.
    pub(super) pieces: u16,
    /// By how many bits the windows that this side offers are shifted.
    pub(super) scale: Option<u8>,
    pub(super) scale_offer: ScaleOffer,
    /// The window in its SYN, which is never shifted.
    pub(super) first_window: Option<u16>,
    /// The sequence number of its SYN.
    pub(super) first_number: Option<u32>,
    /// Data that it sends again and again.
    pub(super) stuck: Option<Box<RepeatedRetransmission>>,
}

/// Reference values for each packet of one side, and the gap since the last event.
#[derive(Debug, Default)]
pub(super) struct ReferenceValues {
    /// The first acknowledgement without data in the gap, and by how much it came later than the path needs.
    pub(super) own_ack: Option<(Mark, Option<Duration>)>,
    /// The first packet in the gap that it retransmitted without need.
    pub(super) needless: Option<Mark>,
    /// Where its packets are looked at.
    pub(super) interface: Option<u32>,
    pub(super) has_ended: bool,
    /// When its last packet passed.
    pub(super) heard_at: Option<Time>,
}

/// Movement of the windows that a side is offered.
#[derive(Debug, Default)]
pub(super) struct OfferedWindows {
    pub(super) largest: u32,
    /// Since when its peer does not move the window with what it acknowledges.
    pub(super) shrunk_since: Option<Time>,
    /// Whether something was acknowledged since the edge moved.
    pub(super) is_still: bool,
}

impl OfferedWindows {
    /// An acknowledgement passes: the edge may stand still, though it covers more.
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
        // Programs read now and then: a segment or two that are not read yet are no reason to stop.
        let unread = u64::from(self.largest - window);
        if unread <= (2 * mss).min(u64::from(self.largest / 4)) {
            self.shrunk_since = None;
        } else if covers_more {
            self.shrunk_since.get_or_insert(at);
        }
    }
}

/// Windows without room.
#[derive(Debug, Default)]
pub(super) struct ZeroWindow {
    /// Since when its peer forbids it to send.
    pub(super) since: Option<Mark>,
    /// The window that it advertised then.
    pub(super) window: u32,
    /// Since when it had been narrower than before; and when the sender had sent last, if the peer had not since.
    pub(super) shrunk_since: Time,
    pub(super) sent: Option<Time>,
    /// Number of probes by its sender.
    pub(super) probes: u32,
    /// When it was closed and opened, until it shows whether its sender was held.
    pub(super) reopened: Option<(Mark, Mark)>,
    /// Times in this gap in which sending was forbidden.
    pub(super) over: Vec<(Mark, Mark)>,
}

/// A gap, and what it looks like if it is not of a plateau.
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
    /// It was not captured, or not to its end.
    #[default]
    Unknown,
}

/// Fingerprints of the last packets.
#[derive(Debug, Default)]
pub(super) struct RecentPackets {
    fingerprints: [u32; 16],
    place: u8,
    identification: Option<u16>,
    /// Different packets in a row with one number, and whether any two had different ones.
    alike: u32,
    differs: bool,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Handshake {
    pub(super) opened: Option<Mark>,
    pub(super) answered: Option<Mark>,
    pub(super) is_done: bool,
}

impl Handshake {
    /// Returns whether the SYN was repeated since its SYN/ACK.
    pub(super) fn is_asked_again(&self) -> bool {
        let Self { opened, answered, is_done: _ } = self;
        opened.zip(*answered).is_some_and(|(opened, answered)| opened.at > answered.at)
    }
}

impl RecentPackets {
    /// The first and the last of them.
    pub(super) fn edges(&self) -> [u64; 2] {
        let [first, .., last] = self.fingerprints;
        [first, last].map(u64::from)
    }

    /// Whether this very packet was captured before.
    pub(super) fn has(&mut self, segment: &Segment<'_>) -> bool {
        let Some(fingerprint) = segment.fingerprint() else { return false };
        // A sender that numbers all its packets alike does not number them.
        if self.fingerprints.contains(&fingerprint) && (self.alike == 0 || self.differs) {
            return true;
        }
        match self.identification {
            Some(before) if before == segment.identification => self.alike += 1,
            Some(_) => self.differs = true,
            None => {}
        }
        self.identification = Some(segment.identification);
        let place = usize::from(self.place) % self.fingerprints.len();
        self.fingerprints[place] = fingerprint;
        self.place = self.place.wrapping_add(1);
        false
    }
}
