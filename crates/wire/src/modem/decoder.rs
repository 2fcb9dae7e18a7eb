//! Decoder of V.42 bis, for tests.

use super::v42bis::{
    Dictionary, ENTER_COMPRESSED, ENTER_TRANSPARENT, ESCAPE_IN_DATA, ESCAPE_STEP, FIRST_BITS, FLUSH,
    MatchedString, Matcher, Mode, STEP_UP,
};

pub(super) struct Decoder {
    matcher: Matcher,
    mode: Mode,
    escape: u8,
    is_escaped: bool,
    bits: u32,
    pending: u32,
    pending_bits: u32,
}

impl Decoder {
    pub(super) fn new(dictionary: Dictionary) -> Self {
        Self {
            matcher: Matcher::new(dictionary),
            mode: Mode::Transparent,
            escape: 0,
            is_escaped: false,
            bits: FIRST_BITS,
            pending: 0,
            pending_bits: 0,
        }
    }

    pub(super) fn decode(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        for byte in bytes {
            match self.mode {
                Mode::Transparent => self.transparent(*byte, &mut out),
                Mode::Compressed => self.compressed(*byte, &mut out),
            }
        }
        out
    }

    fn transparent(&mut self, byte: u8, out: &mut Vec<u8>) {
        match (self.is_escaped, byte) {
            (false, byte) if byte == self.escape => self.is_escaped = true,
            (false, byte) => self.data(byte, out),
            (true, ENTER_COMPRESSED) => {
                self.mode = Mode::Compressed;
                self.is_escaped = false;
                self.matcher.end();
            }
            (true, ESCAPE_IN_DATA) => {
                self.is_escaped = false;
                self.data(self.escape, out);
                self.escape = self.escape.wrapping_add(ESCAPE_STEP);
            }
            (true, byte) => panic!("escape {byte}"),
        }
    }

    fn data(&mut self, byte: u8, out: &mut Vec<u8>) {
        out.push(byte);
        self.matcher.push(byte);
    }

    fn compressed(&mut self, byte: u8, out: &mut Vec<u8>) {
        self.pending |= u32::from(byte) << self.pending_bits;
        self.pending_bits += 8;
        if self.pending_bits < self.bits {
            return;
        }
        let number = u16::try_from(self.pending & ((1 << self.bits) - 1)).unwrap();
        self.pending >>= self.bits;
        self.pending_bits -= self.bits;
        match number {
            ENTER_TRANSPARENT => {
                self.mode = Mode::Transparent;
                (self.pending, self.pending_bits) = (0, 0);
            }
            FLUSH => (self.pending, self.pending_bits) = (0, 0),
            STEP_UP => self.bits += 1,
            number => self.string(number, out),
        }
    }

    fn string(&mut self, number: u16, out: &mut Vec<u8>) {
        let characters = self.matcher.strings.characters(number).expect("a number that the encoder has");
        if let Some(previous) = self.matcher.previous.take() {
            self.matcher.add_string(previous, characters[0]);
        }
        for character in &characters {
            if *character == self.escape {
                self.escape = self.escape.wrapping_add(ESCAPE_STEP);
            }
        }
        let length = u8::try_from(characters.len()).unwrap();
        self.matcher.previous = Some(MatchedString { number, length });
        out.extend(characters);
    }
}
