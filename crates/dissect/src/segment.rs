//! A captured TCP segment with the values that the analysis needs, parsed once.

use wire::Time;
use wire::packet::{Flags, Packet, TcpOption, TcpSegment};

use crate::Side;
use crate::clock::Stamp;
use crate::multipath::MultipathOption;

/// One segment of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'a> {
    /// Its packet's number in the capture.
    pub frame: u64,
    /// When it was captured.
    pub at: Time,
    /// Side that sent it.
    pub from: Side,
    /// The TCP header and payload.
    pub tcp: TcpSegment<'a>,
    /// Its TCP options.
    pub options: Options,
    /// The IP ID; 0 where the sender does not set it.
    pub identification: u16,
    /// TTL or hop limit.
    pub hop_limit: u8,
}

/// The options that matter.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// The MSS, in bytes.
    pub mss: Option<u16>,
    /// The window scale, in bits; at most 14.
    pub window_scale: Option<u8>,
    /// The timestamps.
    pub stamp: Option<Stamp>,
    /// Whether further options may not have been captured.
    pub is_cut: bool,
    /// Whether a SYN permits SACK.
    pub is_sack_permitted: bool,
    /// The first SACK block.
    pub sack: Option<(u32, u32)>,
    /// Whether a SACK option was cut off: nothing else follows timestamps except in a SYN.
    pub is_sack_cut: bool,
    /// Multipath TCP.
    pub multipath: Option<MultipathOption>,
}

impl<'a> Segment<'a> {
    /// Parses the options of a segment that `from` sent.
    pub fn new(frame: u64, at: Time, from: Side, packet: &Packet<'a>, tcp: TcpSegment<'a>) -> Self {
        let mut options = Options { is_cut: tcp.options.is_truncated(), ..Options::default() };
        for option in tcp.options.iter() {
            match option {
                TcpOption::Mss(mss) => options.mss = Some(mss),
                TcpOption::WindowScale(bits) => options.window_scale = Some(bits.min(14)),
                TcpOption::Timestamps { value, echo } => options.stamp = Some(Stamp { value, echo }),
                TcpOption::Sack([first, _, _, _]) => options.sack = first,
                TcpOption::Other { kind: MultipathOption::KIND, data } => {
                    options.multipath = MultipathOption::read(data).or(options.multipath);
                }
                TcpOption::SackPermitted => options.is_sack_permitted = true,
                TcpOption::Other { kind: _, data: _ } => {}
            }
        }
        options.is_sack_cut = options.is_cut && options.stamp.is_some() && !tcp.flags.contains(Flags::SYN);
        let Packet { source: _, destination: _, ip_length: _, identification, hop_limit, transport: _ } =
            *packet;
        Self { frame, at, from, tcp, options, identification, hop_limit }
    }

    /// Returns whether it has the flag.
    pub const fn has(&self, flag: Flags) -> bool {
        self.tcp.flags.contains(flag)
    }

    /// Payload bytes on the wire.
    pub const fn length(&self) -> u64 {
        self.tcp.payload_length.get()
    }

    /// Returns whether it consumes sequence numbers.
    pub fn carries(&self) -> bool {
        self.tcp.sequence_length() > 0
    }

    /// Returns a fingerprint that two captures of the same packet share, and a retransmission does not. `None` where
    /// the sender does not set the IP ID.
    pub fn fingerprint(&self) -> Option<u32> {
        if self.identification == 0 {
            return None;
        }
        let TcpSegment { seq, ack, window, payload_length, .. } = self.tcp;
        let parts = [
            u64::from(self.identification),
            u64::from(seq),
            u64::from(ack),
            u64::from(window),
            payload_length.get(),
        ];
        // FNV's prime spreads each part over the whole word.
        let hash = parts.into_iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, part| {
            (hash ^ part).wrapping_mul(0x0100_0000_01b3).rotate_left(23)
        });
        u32::try_from((hash ^ (hash >> 31)) >> 32).ok()
    }
}
