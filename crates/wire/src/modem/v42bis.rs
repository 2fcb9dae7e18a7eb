//! V.42 bis compressor: repeated strings are sent as codewords, incompressible data unchanged.
//!
//! Strings are matched, added and removed as in ITU-T V.42 bis (01/90), section 6, codewords grow as in section 7.4,
//! and escapes follow 5.7. The standard leaves the switch between the two modes to the modem: this one compares the
//! size of the last strings with their size as codewords. The decoder is in the tests.

use super::dictionary::Strings;

/// Size of a dictionary, negotiated by both ends when they connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dictionary {
    /// Numbers for strings, characters and commands together (P1 of section 10): from 512.
    pub codewords: u16,
    /// Maximum string length (P2): 6 to 250 characters.
    pub max_string_length: u8,
}

impl Dictionary {
    /// Returns whether V.42 bis allows these values.
    pub const fn is_valid(self) -> bool {
        self.codewords >= 512 && 6 <= self.max_string_length && self.max_string_length <= 250
    }
}

impl Default for Dictionary {
    fn default() -> Self {
        Self { codewords: 2_048, max_string_length: 32 }
    }
}

/// The three codewords that are not strings, in compressed mode.
pub(super) const ENTER_TRANSPARENT: u16 = 0;
pub(super) const FLUSH: u16 = 1;
pub(super) const STEP_UP: u16 = 2;
/// Command after an escape in transparent mode: the other mode begins, or the escape character was data.
pub(super) const ENTER_COMPRESSED: u8 = 0;
pub(super) const ESCAPE_IN_DATA: u8 = 1;
/// Increment of the escape character each time it occurs.
pub(super) const ESCAPE_STEP: u8 = 51;
/// Initial size of codewords, in bits.
pub(super) const FIRST_BITS: u32 = 9;

/// Bits by which codewords exceed, or fall below, their characters, at which the mode changes; the balance is
/// limited to twice that.
const MODE_THRESHOLD: i64 = 128;

/// One direction of a compressor.
#[derive(Clone, Debug)]
pub struct Encoder {
    matcher: Matcher,
    mode: Mode,
    escape: u8,
    bits: u32,
    /// Bits that do not fill a byte yet.
    pending: u32,
    pending_bits: u32,
    /// Size of the last strings as codewords, less their characters', in bits.
    balance: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Transparent,
    Compressed,
}

impl Encoder {
    /// Creates the state at the start of a connection: an empty dictionary, transparent mode.
    pub fn new(dictionary: Dictionary) -> Self {
        Self {
            matcher: Matcher::new(dictionary),
            mode: Mode::Transparent,
            escape: 0,
            bits: FIRST_BITS,
            pending: 0,
            pending_bits: 0,
            balance: 0,
        }
    }

    /// Encodes a byte; appends completed output.
    pub fn push(&mut self, byte: u8, out: &mut Vec<u8>) {
        if let Some(MatchedString { number, length }) = self.matcher.push(byte) {
            if self.mode == Mode::Compressed {
                self.codeword(number, out);
            }
            self.update_balance(length);
            self.change_mode(out);
        }
        match self.mode {
            Mode::Transparent if byte == self.escape => out.extend([byte, ESCAPE_IN_DATA]),
            Mode::Transparent => out.push(byte),
            Mode::Compressed => {}
        }
        if byte == self.escape {
            self.escape = self.escape.wrapping_add(ESCAPE_STEP);
        }
    }

    /// Flushes pending input, padded to whole bytes.
    pub fn flush(&mut self, out: &mut Vec<u8>) {
        if self.mode == Mode::Transparent {
            return;
        }
        if let Some(MatchedString { number, length }) = self.matcher.end() {
            self.codeword(number, out);
            self.update_balance(length);
        }
        if self.pending_bits > 0 {
            self.codeword(FLUSH, out);
            self.align(out);
        }
    }

    /// Sends a codeword, preceded by a change of the codeword size if needed.
    fn codeword(&mut self, number: u16, out: &mut Vec<u8>) {
        while u32::from(number) >> self.bits > 0 {
            self.append_bits(STEP_UP, out);
            self.bits += 1;
        }
        self.append_bits(number, out);
    }

    /// Appends bits, low bits first.
    fn append_bits(&mut self, number: u16, out: &mut Vec<u8>) {
        self.pending |= u32::from(number) << self.pending_bits;
        self.pending_bits += self.bits;
        while self.pending_bits >= 8 {
            out.push(self.pending.to_le_bytes()[0]);
            self.pending >>= 8;
            self.pending_bits -= 8;
        }
    }

    fn align(&mut self, out: &mut Vec<u8>) {
        if self.pending_bits > 0 {
            out.push(self.pending.to_le_bytes()[0]);
            (self.pending, self.pending_bits) = (0, 0);
        }
    }

    fn update_balance(&mut self, length: u8) {
        self.balance += i64::from(self.bits) - 8 * i64::from(length);
        self.balance = self.balance.clamp(-2 * MODE_THRESHOLD, 2 * MODE_THRESHOLD);
    }

    /// Changes the mode if the balance exceeds the threshold. Called between two strings only.
    fn change_mode(&mut self, out: &mut Vec<u8>) {
        match self.mode {
            Mode::Compressed if self.balance >= MODE_THRESHOLD => {
                self.codeword(ENTER_TRANSPARENT, out);
                self.align(out);
                self.mode = Mode::Transparent;
            }
            Mode::Transparent if self.balance <= -MODE_THRESHOLD => {
                out.extend([self.escape, ENTER_COMPRESSED]);
                self.mode = Mode::Compressed;
            }
            Mode::Compressed | Mode::Transparent => {}
        }
    }
}

/// The string being matched, and the strings before it.
#[derive(Clone, Debug)]
pub(super) struct Matcher {
    pub(super) strings: Strings,
    max_string_length: u8,
    /// Current string; length 0 if empty.
    current: MatchedString,
    /// Previous string, if nothing has followed it yet.
    pub(super) previous: Option<MatchedString>,
    /// String added last, which the other end does not have yet.
    newest: Option<u16>,
}

/// A string that was matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MatchedString {
    pub(super) number: u16,
    pub(super) length: u8,
}

impl Matcher {
    pub(super) fn new(dictionary: Dictionary) -> Self {
        let Dictionary { codewords, max_string_length } = dictionary;
        let current = MatchedString { number: 0, length: 0 };
        Self {
            strings: Strings::new(codewords),
            max_string_length: max_string_length.max(1),
            current,
            previous: None,
            newest: None,
        }
    }

    /// Adds a character; returns the string before it, if that ends there.
    pub(super) fn push(&mut self, character: u8) -> Option<MatchedString> {
        let MatchedString { number, length } = self.current;
        if length > 0 {
            let longer = self.strings.find(number, character).filter(|longer| Some(*longer) != self.newest);
            if let Some(number) = longer.filter(|_| length < self.max_string_length) {
                self.current = MatchedString { number, length: length + 1 };
                return None;
            }
        }
        let ended = self.end();
        if let Some(previous) = self.previous.take() {
            self.add_string(previous, character);
        }
        self.current = MatchedString { number: Strings::character(character), length: 1 };
        ended
    }

    /// Ends the current string.
    pub(super) fn end(&mut self) -> Option<MatchedString> {
        let ended = Some(self.current).filter(|current| current.length > 0)?;
        self.previous = Some(ended);
        self.current.length = 0;
        Some(ended)
    }

    /// Adds a string extended by the character that followed it.
    pub(super) fn add_string(&mut self, string: MatchedString, character: u8) {
        let MatchedString { number, length } = string;
        let is_new = length < self.max_string_length && self.strings.find(number, character).is_none();
        self.newest = is_new.then(|| self.strings.add(number, character));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::decoder::Decoder;
    use super::*;

    /// Returns the decoded bytes of these packets, and the number of bytes sent.
    fn encode_and_decode(dictionary: Dictionary, packets: &[Vec<u8>]) -> (Vec<u8>, usize) {
        let (mut encoder, mut decoder) = (Encoder::new(dictionary), Decoder::new(dictionary));
        let (mut arrived, mut sent) = (Vec::new(), 0);
        for packet in packets {
            let mut out = Vec::new();
            packet.iter().for_each(|byte| encoder.push(*byte, &mut out));
            encoder.flush(&mut out);
            sent += out.len();
            arrived.extend(decoder.decode(&out));
        }
        (arrived, sent)
    }

    #[test]
    fn repeated_string_is_one_codeword() {
        let text = b"roundtrip, ".repeat(400);
        let (arrived, sent) = encode_and_decode(Dictionary::default(), std::slice::from_ref(&text));
        assert_eq!(arrived, text);
        assert!(sent < text.len() / 8, "{sent} for {}", text.len());
    }

    #[test]
    fn incompressible_data_is_sent_unchanged() {
        let mut random = crate::Seed::default().stream("noise", 0);
        let noise: Vec<u8> = (0..20_000).map(|_| random.next_u64().to_le_bytes()[0]).collect();
        let text = b"text in between ".repeat(100);
        let (arrived, sent) =
            encode_and_decode(Dictionary::default(), &[noise.clone(), text.clone(), noise.clone()]);
        assert_eq!(arrived, [noise.clone(), text, noise].concat());
        assert!(sent < 41_000, "{sent}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn decoding_restores_any_input(
            packets in prop::collection::vec(prop::collection::vec(prop_oneof![Just(b'a'), Just(b'b'), any::<u8>()], 0..600), 0..12),
            codewords in 512_u16..1_200,
            max_string_length in 1_u8..40,
        ) {
            let (arrived, _) = encode_and_decode(Dictionary { codewords, max_string_length }, &packets);
            prop_assert_eq!(arrived, packets.concat());
        }
    }
}
