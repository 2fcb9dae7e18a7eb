//! Acknowledgements of one connection: which of them BSD would have sent immediately.
//!
//! The heartbeat releases those that wait.

use wire::Time;
use wire::packet::{Flags, TcpOption, TcpSegment};

/// Treatment of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PacketAction {
    Pass,
    Hold,
}

/// State of one connection's acknowledgements.
#[derive(Debug)]
pub(super) struct Connection<P> {
    pub(super) last_heard: Time,
    own: SynOptions,
    peer: SynOptions,
    /// Last acknowledgement forwarded to the peer.
    passed: Option<u32>,
    /// Last acknowledgement of the host, forwarded or not, and its window.
    latest: Option<(u32, u16)>,
    /// Whether the host has sent duplicates since it last advanced: it waits for lost data.
    has_hole: bool,
    /// The acknowledgement that covers the peer's FIN.
    end: Option<u32>,
    pub(super) held: Option<P>,
}

/// Options of a SYN.
#[derive(Clone, Copy, Debug, Default)]
struct SynOptions {
    mss: Option<u16>,
    timestamps: bool,
}

impl<P> Connection<P> {
    pub(super) fn new() -> Self {
        Self {
            last_heard: Time::ZERO,
            own: SynOptions::default(),
            peer: SynOptions::default(),
            passed: None,
            latest: None,
            has_hole: false,
            end: None,
            held: None,
        }
    }

    /// Whether BSD would send this segment immediately.
    pub(super) fn judge(&mut self, segment: &TcpSegment<'_>) -> PacketAction {
        if segment.flags.contains(Flags::SYN) {
            *self = Self { last_heard: self.last_heard, held: self.held.take(), ..Self::new() };
            self.own = SynOptions::of(segment);
            if segment.flags.contains(Flags::ACK) {
                // Where the peer opened the connection, this is the handshake's final acknowledgement.
                (self.latest, self.passed) = (Some((segment.ack, segment.window)), Some(segment.ack));
            }
            return PacketAction::Pass;
        }
        let action = if self.may_wait(segment) { PacketAction::Hold } else { PacketAction::Pass };
        self.latest = Some((segment.ack, segment.window));
        if action == PacketAction::Pass {
            self.passed = Some(segment.ack);
        }
        action
    }

    fn may_wait(&mut self, segment: &TcpSegment<'_>) -> bool {
        let (Some((latest, window)), Some(passed)) = (self.latest, self.passed) else { return false };
        if !segment.is_pure_ack() {
            return false;
        }
        if advance(latest, segment.ack) == 0 {
            self.has_hole |= segment.ack == latest && segment.window == window;
            return false;
        }
        let fills_a_hole = std::mem::take(&mut self.has_hole);
        let ends = self.end.is_some_and(|end| advance(end.wrapping_sub(1), segment.ack) > 0);
        !fills_a_hole && !ends && advance(passed, segment.ack) < 2 * self.full_segment()
    }

    pub(super) fn watch(&mut self, segment: &TcpSegment<'_>) {
        if segment.flags.contains(Flags::SYN) {
            self.peer = SynOptions::of(segment);
        }
        if segment.flags.contains(Flags::FIN) {
            // Modulo 2^32, as all sequence numbers are.
            #[expect(clippy::cast_possible_truncation)]
            let length = segment.sequence_length() as u32;
            self.end = Some(segment.seq.wrapping_add(length));
        }
    }

    /// Bytes of data in a full segment: timestamps take 12 of them.
    fn full_segment(&self) -> u32 {
        /// Default MSS (RFC 9293, 3.7.1).
        const DEFAULT_MSS: u16 = 536;
        const TIMESTAMPS: u16 = 12;
        let [own, peer] = [self.own, self.peer].map(|offer| offer.mss.unwrap_or(DEFAULT_MSS));
        // A peer whose SYN was not seen has no known MSS.
        let mss = if self.peer.mss.is_some() { own.min(peer) } else { own };
        let options = if self.own.timestamps && self.peer.timestamps { TIMESTAMPS } else { 0 };
        u32::from(mss.saturating_sub(options).max(1))
    }

    /// Releases the held acknowledgement, which becomes the last one forwarded.
    pub(super) fn release_last(&mut self) -> Option<P> {
        let held = self.held.take();
        if held.is_some() {
            self.passed = self.latest.map(|(ack, _)| ack);
        }
        held
    }
}

impl SynOptions {
    fn of(syn: &TcpSegment<'_>) -> Self {
        let timestamps = syn.options.iter().any(|option| matches!(option, TcpOption::Timestamps { .. }));
        Self { mss: syn.options.mss(), timestamps }
    }
}

/// Number of bytes by which `to` is ahead of `from`; 0 if it is behind (RFC 9293, 3.4).
fn advance(from: u32, to: u32) -> u32 {
    let ahead = to.wrapping_sub(from);
    if ahead < 1 << 31 { ahead } else { 0 }
}
