//! Segments: TCP with its options (RFC 9293, section 3.1), ARDP's datagram with the same contents, or a UDP datagram.
//!
//! A segment has no addresses: the engine knows the destination. Sequence numbers start at 0 (the SYN) and
//! are 64 bits wide, so the first byte of data is number 1 and numbers never wrap. A capture writer adds an initial
//! sequence number and truncates to 32 bits.

use crate::Payload;

/// TCP segment, ARDP datagram or UDP datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Number of the first byte, or of the SYN or FIN if there is none.
    pub sequence: u64,
    /// Number of the next byte expected; meaningful if `flags.ack`.
    pub acknowledgement: u64,
    /// The window field of the header: scaled, except in a SYN.
    pub window: u16,
    /// The control bits.
    pub flags: Flags,
    /// The options.
    pub options: Options,
    /// Framing on the link.
    pub framing: Framing,
    /// The data.
    pub payload: Payload,
}

/// Framing of a segment on the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    /// TCP's header.
    #[default]
    Tcp,
    /// A UDP datagram with ARDP's header: a byte of version and flags, a connection identifier of two bytes chosen by
    /// the client, sequence number and acknowledgement of four bytes each, a window of two, and eight bytes for each
    /// SACK range. The paper describes ARDP as it is here ("borrows TCP-style flow-control, congestion-avoidance, and
    /// retransmission algorithms", `papers/heidemann-model`, section II-C) but prints no format: this one is the project's.
    Ardp,
    /// A UDP datagram, not part of any connection: without numbers and flags.
    Datagram,
}

/// UDP's header (RFC 768).
const UDP_HEADER: u64 = 8;
/// UDP's header and ARDP's.
pub const ARDP_HEADERS: u64 = UDP_HEADER + 13;

/// Control bits that this simulator uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// Opens the connection.
    pub syn: bool,
    /// Acknowledges: set on all but the first segment.
    pub ack: bool,
    /// Ends the stream.
    pub fin: bool,
    /// Resets the connection.
    pub rst: bool,
    /// Last segment of the application's write.
    pub psh: bool,
}

impl From<Flags> for wire::packet::Flags {
    fn from(Flags { syn, ack, fin, rst, psh }: Flags) -> Self {
        let all = [(syn, Self::SYN), (ack, Self::ACK), (fin, Self::FIN), (rst, Self::RST), (psh, Self::PSH)];
        all.into_iter().filter(|(is_set, _)| *is_set).fold(Self::default(), |all, (_, flag)| all | flag)
    }
}

/// The options. Rare ones are boxed, so that a segment without them is small.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Sender's clock and the echo of the receiver's, in milliseconds (RFC 7323, section 3).
    pub timestamps: Option<Timestamps>,
    /// Ranges received beyond the acknowledgement (RFC 2018).
    pub sack: SackBlocks,
    /// Options of a SYN.
    pub syn: Option<Box<SynOptions>>,
}

/// The options of a SYN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SynOptions {
    /// Maximum payload that its sender accepts (RFC 9293, section 3.7.1).
    pub mss: Option<u16>,
    /// Shift of its sender's windows from now on (RFC 7323, section 2).
    pub window_scale: Option<u8>,
    /// Whether its sender supports selective acknowledgements (RFC 2018).
    pub sack_permitted: bool,
    /// Transaction TCP's connection count (RFC 1644).
    pub connection_count: Option<ConnectionCount>,
    /// TCP Fast Open's cookie, or the request for one (RFC 7413).
    pub fast_open: Option<FastOpen>,
}

/// The timestamp option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamps {
    /// The sender's clock.
    pub value: u32,
    /// The clock of the segment that is acknowledged.
    pub echo: u32,
}

/// Transaction TCP's three options (RFC 1644, section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionCount {
    /// The sender's count for this connection.
    Current(u32),
    /// The same, from a client whose count has restarted: the server must drop its cached count.
    New(u32),
    /// The sender's count, and the echo of the one in the SYN.
    Echo {
        /// The sender's count.
        count: u32,
        /// The count of the SYN.
        echo: u32,
    },
}

/// TCP Fast Open's option (RFC 7413, section 4.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastOpen {
    /// Requests a cookie.
    Request,
    /// Issues a cookie, or presents an issued one.
    Cookie(u64),
}

/// Up to four ranges, each relative to the acknowledgement (RFC 2018); most recent first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: Option<Box<Blocks>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Blocks {
    ranges: [(u32, u32); 4],
    count: usize,
}

impl SackBlocks {
    /// Adds the range from `start` to `end` (sequence numbers), if there is space and it lies within 4 GiB of
    /// `acknowledgement`.
    pub fn push(&mut self, acknowledgement: u64, start: u64, end: u64) {
        let distance = |number: u64| u32::try_from(number.checked_sub(acknowledgement)?).ok();
        if let (Some(start), Some(end)) = (distance(start), distance(end)) {
            let blocks = self.blocks.get_or_insert_default();
            if let Some(free) = blocks.ranges.get_mut(blocks.count) {
                *free = (start, end);
                blocks.count += 1;
            }
        }
    }

    /// Returns the ranges, as sequence numbers.
    pub fn ranges(&self, acknowledgement: u64) -> impl Iterator<Item = (u64, u64)> {
        let number = move |distance: u32| acknowledgement + u64::from(distance);
        let all = self.blocks.iter().flat_map(|blocks| blocks.ranges.iter().take(blocks.count));
        all.map(move |(start, end)| (number(*start), number(*end)))
    }

    /// Returns the number of ranges.
    pub fn len(&self) -> usize {
        self.blocks.as_ref().map_or(0, |blocks| blocks.count)
    }

    /// Returns whether it has no ranges.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_none()
    }
}

impl Segment {
    /// Creates a UDP datagram.
    pub fn datagram(payload: Payload) -> Self {
        Self {
            sequence: 0,
            acknowledgement: 0,
            window: 0,
            flags: Flags::default(),
            options: Options::default(),
            framing: Framing::Datagram,
            payload,
        }
    }

    /// Returns the length in sequence numbers: its bytes, and one each for SYN and FIN.
    pub fn length(&self) -> u64 {
        self.payload.len() as u64 + u64::from(self.flags.syn) + u64::from(self.flags.fin)
    }

    /// Returns the number after its last.
    pub fn end(&self) -> u64 {
        self.sequence + self.length()
    }

    /// Returns whether it is a bare acknowledgement.
    pub fn is_pure_ack(&self) -> bool {
        self.length() == 0 && !self.flags.rst
    }

    /// Returns the size of the IP packet: IPv4's header, the header of its framing with options padded to words,
    /// payload.
    pub fn ip_bytes(&self) -> u64 {
        let transport = match self.framing {
            Framing::Tcp => 20 + self.options.bytes(),
            Framing::Ardp => ARDP_HEADERS + 8 * self.options.sack.len() as u64,
            Framing::Datagram => UDP_HEADER,
        };
        20 + transport + self.payload.len() as u64
    }
}

impl Options {
    /// Returns the size in the header, padded to a multiple of four as stacks do.
    pub fn bytes(&self) -> u64 {
        let Self { timestamps, sack, syn } = self;
        let timestamps = if timestamps.is_some() { 12 } else { 0 };
        let sack = if sack.is_empty() { 0 } else { 4 + 8 * sack.len() as u64 };
        timestamps + sack + syn.as_ref().map_or(0, |syn| syn.bytes(timestamps > 0))
    }
}

impl SynOptions {
    fn bytes(&self, has_timestamps: bool) -> u64 {
        let Self { mss, window_scale, sack_permitted, connection_count, fast_open } = self;
        let count = match connection_count {
            None => 0,
            Some(ConnectionCount::Current(_) | ConnectionCount::New(_)) => 8,
            Some(ConnectionCount::Echo { .. }) => 16,
        };
        let fast_open = match fast_open {
            None => 0,
            Some(FastOpen::Request) => 4,
            Some(FastOpen::Cookie(_)) => 12,
        };
        let flag = |is_present: bool| if is_present { 4 } else { 0 };
        // With timestamps, SACK-permitted replaces their padding.
        flag(mss.is_some())
            + flag(window_scale.is_some())
            + flag(*sack_permitted && !has_timestamps)
            + count
            + fast_open
    }
}

/// Returns the reset that replies to a segment without a connection (RFC 9293, section 3.10.7.1). Resets and datagrams
/// cause none.
pub fn reset_for(segment: &Segment) -> Option<Segment> {
    if segment.flags.rst || segment.framing == Framing::Datagram {
        return None;
    }
    let sequence = if segment.flags.ack { segment.acknowledgement } else { 0 };
    let flags = Flags { rst: true, ack: !segment.flags.ack, ..Flags::default() };
    Some(Segment {
        sequence,
        acknowledgement: segment.end(),
        window: 0,
        flags,
        options: Options::default(),
        framing: segment.framing,
        payload: Payload::EMPTY,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syn_and_fin_take_a_sequence_number_each() {
        let flags = Flags { syn: true, fin: true, ..Flags::default() };
        let segment = Segment {
            sequence: 0,
            acknowledgement: 0,
            window: 0,
            flags,
            options: Options::default(),
            framing: Framing::Tcp,
            payload: Payload::from(&b"abc"[..]),
        };
        assert_eq!(segment.end(), 5);
        assert_eq!(segment.ip_bytes(), 43);
        assert_eq!(Segment { framing: Framing::Ardp, ..segment }.ip_bytes(), 20 + 8 + 13 + 3);
    }

    #[test]
    fn datagram_has_two_headers_and_causes_no_reset() {
        let datagram = Segment::datagram(Payload::from(&b"abc"[..]));
        assert_eq!((datagram.ip_bytes(), reset_for(&datagram)), (20 + 8 + 3, None));
    }

    #[test]
    fn a_syn_of_linux_has_twenty_bytes_of_options() {
        let timestamps = Some(Timestamps { value: 1, echo: 0 });
        let syn = SynOptions {
            mss: Some(1460),
            window_scale: Some(7),
            sack_permitted: true,
            ..SynOptions::default()
        };
        let options = Options { timestamps, syn: Some(Box::new(syn)), ..Options::default() };
        assert_eq!(options.bytes(), 20);
    }

    #[test]
    fn holds_at_most_four_ranges() {
        let mut sack = SackBlocks::default();
        (1..=5).for_each(|n| sack.push(100, 100 * n + 10, 100 * n + 20));
        assert_eq!(sack.len(), 4);
        assert_eq!(sack.ranges(100).next(), Some((110, 120)));
        let mut behind = SackBlocks::default();
        behind.push(100, 50, 60);
        assert!(behind.is_empty());
    }
}
