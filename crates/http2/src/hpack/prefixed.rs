//! Integers and strings with a prefix, of which HPACK and QPACK are made (RFC 7541, section 5; RFC 9204, section 4.1).

use super::{MAX_LIST_BYTES, huffman};

/// Appends an integer with a prefix of this number of bits (RFC 7541, section 5.1).
pub fn integer(flags: u8, bits: u32, value: usize, into: &mut Vec<u8>) {
    let max = (1_usize << bits) - 1;
    let byte = |value: usize| u8::try_from(value).unwrap_or(u8::MAX);
    if value < max {
        return into.push(flags | byte(value));
    }
    into.push(flags | byte(max));
    let mut rest = value - max;
    while rest >= 0x80 {
        into.push(0x80 | byte(rest & 0x7f));
        rest >>= 7;
    }
    into.push(byte(rest));
}

/// Takes an integer with a prefix of this number of bits; `None` if it is cut short or above 2^28.
pub fn take_integer(bits: u32, from: &mut &[u8]) -> Option<usize> {
    let max = (1_usize << bits) - 1;
    let mut value = usize::from(take_byte(from)?) & max;
    if value < max {
        return Some(value);
    }
    for shift in (0..28).step_by(7) {
        let byte = take_byte(from)?;
        value += usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn take_byte(from: &mut &[u8]) -> Option<u8> {
    let (first, rest) = from.split_first()?;
    *from = rest;
    Some(*first)
}

/// Appends a string whose length has a prefix of this number of bits, after the bit that marks the Huffman code (RFC 7541,
/// section 5.2).
pub fn string(flags: u8, bits: u32, text: &[u8], into: &mut Vec<u8>) {
    let length = huffman::encoded_length(text);
    if length < text.len() {
        integer(flags | 1 << bits, bits, length, into);
        huffman::encode(text, into);
    } else {
        integer(flags, bits, text.len(), into);
        into.extend_from_slice(text);
    }
}

/// Takes such a string, and appends it decoded; `None` if it is cut short, wrongly coded or longer than [`MAX_LIST_BYTES`] when
/// decoded.
pub fn take_string(bits: u32, from: &mut &[u8], into: &mut Vec<u8>) -> Option<()> {
    let is_coded = from.first()? & (1 << bits) != 0;
    let length = take_integer(bits, from)?;
    let (text, rest) = from.split_at_checked(length)?;
    *from = rest;
    if is_coded {
        return huffman::decode(text, MAX_LIST_BYTES, into);
    }
    into.extend_from_slice(text);
    Some(())
}
