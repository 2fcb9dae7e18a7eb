//! Parser and writer of TCP options. Whether an option may appear on a segment is not checked.
//!
//! Unknown options, such as T/TCP's, are read as well.

/// Options of a header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpOptions<'a> {
    bytes: &'a [u8],
    is_truncated: bool,
}

/// TCP option. Padding is skipped in parsing, and written by `Other` of kind 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpOption<'a> {
    /// Maximum segment size that the sender accepts (RFC 9293, section 3.7.1).
    Mss(u16),
    /// Shift of the sender's windows in bits (RFC 7323).
    WindowScale(u8),
    /// Support of selective acknowledgements (RFC 2018).
    SackPermitted,
    /// Selective acknowledgements (RFC 2018).
    Sack(SackBlocks),
    /// Timestamps (RFC 7323).
    Timestamps {
        /// The sender's clock.
        value: u32,
        /// The receiver's clock, as last received by the sender.
        echo: u32,
    },
    /// An option that is not parsed (T/TCP's counts are kinds 11 to 13, Fast Open's cookie 34), or one with
    /// an invalid length.
    Other {
        /// Its kind.
        kind: u8,
        /// Its data.
        data: &'a [u8],
    },
}

/// Blocks from first to last (exclusive), each `None` after the last one present; a header fits at most four.
pub type SackBlocks = [Option<(u32, u32)>; 4];

impl<'a> TcpOptions<'a> {
    /// Creates options from their bytes on the wire.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, is_truncated: false }
    }

    /// Creates truncated options: their end was not captured.
    pub const fn truncated(bytes: &'a [u8]) -> Self {
        Self { bytes, is_truncated: true }
    }

    /// Returns whether the options are truncated: a missing option may have been present.
    pub const fn is_truncated(self) -> bool {
        self.is_truncated
    }

    /// Iterates over the options in order, up to the first malformed one.
    pub fn iter(self) -> impl Iterator<Item = TcpOption<'a>> {
        let mut remaining = self.bytes;
        std::iter::from_fn(move || {
            let option;
            (option, remaining) = split_first_option(remaining)?;
            Some(option)
        })
    }

    /// Returns the maximum segment size that the sender accepts.
    pub fn mss(self) -> Option<u16> {
        self.iter().find_map(|option| if let TcpOption::Mss(mss) = option { Some(mss) } else { None })
    }

    /// Returns the shift of the sender's windows, in bits.
    pub fn window_scale(self) -> Option<u8> {
        self.iter()
            .find_map(|option| if let TcpOption::WindowScale(bits) = option { Some(bits) } else { None })
    }
}

fn split_first_option(bytes: &[u8]) -> Option<(TcpOption<'_>, &[u8])> {
    let padding = bytes.iter().position(|byte| *byte != NO_OPERATION)?;
    match bytes.get(padding..)? {
        [] | [END, ..] => None,
        [kind, length, remaining @ ..] => {
            // The length includes the kind and the length byte.
            let (data, remaining) = remaining.split_at_checked(usize::from(*length).checked_sub(2)?)?;
            Some((TcpOption::read(*kind, data), remaining))
        }
        [_] => None,
    }
}

// Kinds, from the registry of TCP parameters at iana.org.
const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;

impl<'a> TcpOption<'a> {
    fn read(kind: u8, data: &'a [u8]) -> Self {
        let parsed = match kind {
            MSS => <[u8; 2]>::try_from(data).ok().map(|mss| Self::Mss(u16::from_be_bytes(mss))),
            WINDOW_SCALE => <[u8; 1]>::try_from(data).ok().map(|[bits]| Self::WindowScale(bits)),
            SACK_PERMITTED => data.is_empty().then_some(Self::SackPermitted),
            SACK => read_sack(data).map(Self::Sack),
            TIMESTAMPS => <[u8; 8]>::try_from(data).ok().map(|both| {
                let (value, echo) = read_two(both);
                Self::Timestamps { value, echo }
            }),
            _ => None,
        };
        parsed.unwrap_or(Self::Other { kind, data })
    }

    /// Appends the option as on the wire. Data beyond 253 bytes fits no header and is truncated.
    pub(super) fn write(&self, into: &mut Vec<u8>) {
        let mut append = |kind: u8, data: &[u8]| {
            let data = data.get(..253).unwrap_or(data);
            let length = u8::try_from(data.len() + 2).expect("253 and 2 are 255");
            into.extend([kind, length]);
            into.extend(data);
        };
        match self {
            Self::Mss(mss) => append(MSS, &mss.to_be_bytes()),
            Self::WindowScale(bits) => append(WINDOW_SCALE, &[*bits]),
            Self::SackPermitted => append(SACK_PERMITTED, &[]),
            Self::Sack(blocks) => {
                let edges = blocks.iter().map_while(|block| *block).flat_map(|(first, last)| [first, last]);
                append(SACK, &edges.flat_map(u32::to_be_bytes).collect::<Vec<u8>>());
            }
            Self::Timestamps { value, echo } => {
                append(TIMESTAMPS, &[value.to_be_bytes(), echo.to_be_bytes()].concat())
            }
            // These two have neither length nor data (RFC 9293, section 3.1).
            Self::Other { kind: kind @ (END | NO_OPERATION), data: _ } => into.push(*kind),
            Self::Other { kind, data } => append(*kind, data),
        }
    }
}

/// Parses one to four blocks; any other length is not a valid option.
fn read_sack(data: &[u8]) -> Option<SackBlocks> {
    let (edges, []) = data.as_chunks::<8>() else { return None };
    if edges.is_empty() || edges.len() > 4 {
        return None;
    }
    let mut blocks = SackBlocks::default();
    blocks.iter_mut().zip(edges).for_each(|(block, edges)| *block = Some(read_two(*edges)));
    Some(blocks)
}

fn read_two([a, b, c, d, e, f, g, h]: [u8; 8]) -> (u32, u32) {
    (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Vec<TcpOption<'_>> {
        TcpOptions::new(bytes).iter().collect()
    }

    #[test]
    fn linux_syn_is_parsed() {
        // In tcpdump's notation: mss 1460, sackOK, TS val 1 ecr 0, nop, wscale 7.
        let syn = [2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7];
        let timestamps = TcpOption::Timestamps { value: 1, echo: 0 };
        let options = [TcpOption::Mss(1460), TcpOption::SackPermitted, timestamps, TcpOption::WindowScale(7)];
        assert_eq!(read(&syn), options);
        assert_eq!(TcpOptions::new(&syn).mss(), Some(1460));
        assert_eq!(TcpOptions::new(&syn).window_scale(), Some(7));
    }

    #[test]
    fn options_after_an_unknown_one_are_parsed() {
        // T/TCP's CC option (RFC 1644), then an MSS.
        let other = TcpOption::Other { kind: 11, data: &[0, 0, 0, 1] };
        assert_eq!(read(&[1, 1, 11, 6, 0, 0, 0, 1, 2, 4, 2, 0]), [other, TcpOption::Mss(512)]);
    }

    #[test]
    fn padding_of_any_length_is_skipped() {
        assert_eq!(read(&vec![NO_OPERATION; 1 << 20]), []);
        assert_eq!(read(&[1, 1, 1, 4, 2, 1, END, 4, 2]), [TcpOption::SackPermitted]);
    }

    #[test]
    fn malformed_option_ends_the_list() {
        for damaged in [&[2_u8][..], &[2, 0], &[2, 1, 1], &[2, 5, 1, 2]] {
            let bytes = [&[3, 3, 7], damaged].concat();
            assert_eq!(read(&bytes), [TcpOption::WindowScale(7)]);
        }
        assert_eq!(read(&[2, 3, 5]), [TcpOption::Other { kind: 2, data: &[5] }]);
    }

    #[test]
    fn options_round_trip() {
        let sack = TcpOption::Sack([Some((1, 2)), Some((3, u32::MAX)), None, None]);
        let timestamps = TcpOption::Timestamps { value: 7, echo: u32::MAX };
        let other = TcpOption::Other { kind: 34, data: b"cookie" };
        let options = [
            TcpOption::Mss(536),
            TcpOption::WindowScale(14),
            TcpOption::SackPermitted,
            sack,
            timestamps,
            other,
        ];
        let mut bytes = Vec::new();
        options.iter().for_each(|option| option.write(&mut bytes));
        assert_eq!(read(&bytes), options);
    }
}
