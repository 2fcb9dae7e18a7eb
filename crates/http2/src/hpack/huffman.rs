//! HPACK's Huffman code (RFC 7541, appendix B).
//!
//! The code is canonical: codes of one length are consecutive, in the order of their symbols. So the lengths define it.

/// Symbols: the bytes, and the end of the string.
const SYMBOLS: usize = 257;
/// Symbol of the end, whose first bits are padding.
const END: usize = 256;
const MAX_LENGTH: usize = 30;

/// Bits of each symbol's code.
const LENGTHS: [u8; SYMBOLS] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28,
    28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6,
    6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7,
    8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7,
    15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24,
    23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23,
    23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26,
    26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20,
    21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27,
    27, 27, 26, 30,
];

/// Symbols by code, and the first code and the first symbol's place of each length.
struct Canonical {
    codes: [u32; SYMBOLS],
    sorted: [u16; SYMBOLS],
    first_code: [u32; MAX_LENGTH + 2],
    first_place: [u16; MAX_LENGTH + 2],
}

#[expect(clippy::cast_possible_truncation, reason = "257 symbols fit 16 bits")]
const CANONICAL: Canonical = {
    let (mut codes, mut sorted) = ([0; SYMBOLS], [0; SYMBOLS]);
    let (mut first_code, mut first_place) = ([0; MAX_LENGTH + 2], [0; MAX_LENGTH + 2]);
    let (mut code, mut place, mut length) = (0_u32, 0_usize, 1);
    while length <= MAX_LENGTH {
        code <<= 1;
        (first_code[length], first_place[length]) = (code, place as u16);
        let mut symbol = 0;
        while symbol < SYMBOLS {
            if LENGTHS[symbol] as usize == length {
                (codes[symbol], sorted[place]) = (code, symbol as u16);
                code += 1;
                place += 1;
            }
            symbol += 1;
        }
        length += 1;
    }
    (first_code[length], first_place[length]) = (u32::MAX, place as u16);
    Canonical { codes, sorted, first_code, first_place }
};

/// Returns the bytes that a string takes.
pub fn encoded_length(text: &[u8]) -> usize {
    let bits: usize = text.iter().map(|byte| usize::from(LENGTHS[usize::from(*byte)])).sum();
    bits.div_ceil(8)
}

/// Appends a string in this code.
pub fn encode(text: &[u8], into: &mut Vec<u8>) {
    let (mut bits, mut count) = (0_u64, 0_u32);
    for byte in text {
        let symbol = usize::from(*byte);
        bits = bits << LENGTHS[symbol] | u64::from(CANONICAL.codes[symbol]);
        count += u32::from(LENGTHS[symbol]);
        while count >= 8 {
            count -= 8;
            into.push(low_byte(bits >> count));
        }
    }
    if count > 0 {
        into.push(low_byte(bits << (8 - count) | 0xff >> count));
    }
}

const fn low_byte(bits: u64) -> u8 {
    bits.to_be_bytes()[7]
}

/// Symbols whose codes have at most [`SHORT`] bits, by the first bits of the code: symbol and length, 0 for longer codes.
#[expect(clippy::cast_possible_truncation, reason = "bytes and lengths of codes fit")]
const SHORT_CODES: [(u8, u8); 1 << SHORT] = {
    let mut codes = [(0, 0); 1 << SHORT];
    let mut symbol = 0;
    while symbol < END {
        let length = LENGTHS[symbol] as u32;
        if length <= SHORT {
            let (first, count) = (CANONICAL.codes[symbol] << (SHORT - length), 1 << (SHORT - length));
            let mut place = 0;
            while place < count {
                codes[(first + place) as usize] = (symbol as u8, length as u8);
                place += 1;
            }
        }
        symbol += 1;
    }
    codes
};

/// Bits of the codes of letters, digits and most punctuation.
const SHORT: u32 = 8;

/// Symbol and length of the code at the beginning of these bits.
fn symbol_at(bits: u32) -> Option<(usize, u32)> {
    let (symbol, length) = SHORT_CODES[(bits >> (u32::BITS - SHORT)) as usize];
    if length > 0 {
        return Some((usize::from(symbol), u32::from(length)));
    }
    (SHORT + 1..).zip(SHORT as usize + 1..=MAX_LENGTH).find_map(|(length, index)| {
        let first = usize::from(CANONICAL.first_place[index]);
        let count = CANONICAL.first_place[index + 1] - CANONICAL.first_place[index];
        let offset = (bits >> (u32::BITS - length)).checked_sub(CANONICAL.first_code[index])?;
        (offset < u32::from(count)).then(|| (usize::from(CANONICAL.sorted[first + offset as usize]), length))
    })
}

/// Appends a string, decoded; `None` if it is not one, or longer than `max` bytes.
pub fn decode(bytes: &[u8], max: usize, into: &mut Vec<u8>) -> Option<()> {
    into.reserve(bytes.len().saturating_mul(8).div_ceil(5).min(max));
    let end = into.len().saturating_add(max);
    let (mut bits, mut count, mut rest) = (0_u64, 0_u32, bytes.iter());
    loop {
        while count <= u64::BITS - 8
            && let Some(byte) = rest.next()
        {
            (bits, count) = (bits << 8 | u64::from(*byte), count + 8);
        }
        while let Some(later) = count.checked_sub(SHORT)
            && let (symbol, length @ 1..) = SHORT_CODES[usize::from(low_byte(bits >> later))]
        {
            if into.len() == end {
                return None;
            }
            into.push(symbol);
            count -= u32::from(length);
        }
        if count < u32::BITS && rest.len() > 0 {
            continue;
        }
        // The next bits, followed by ones at the end.
        let next = match count.checked_sub(u32::BITS) {
            Some(later) => bits >> later,
            None => bits << (u32::BITS - count) | u64::from(u32::MAX >> count),
        };
        let next = u32::try_from(next & u64::from(u32::MAX)).unwrap_or(u32::MAX);
        let (symbol, length) = symbol_at(next)?;
        if length > count {
            // Padding: fewer than eight bits, all of them ones.
            let ones = (1 << count) - 1;
            return (count < 8 && bits & ones == ones).then_some(());
        }
        count -= length;
        if symbol == END || into.len() == end {
            return None;
        }
        into.push(u8::try_from(symbol).ok()?);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(bytes: &[u8], max: usize) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        decode(bytes, max, &mut text)?;
        Some(text)
    }

    #[test]
    fn rfc_7541_example_is_encoded_and_decoded() {
        let mut encoded = Vec::new();
        encode(b"www.example.com", &mut encoded);
        assert_eq!(encoded, [0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff]);
        assert_eq!(decoded(&encoded, 100).as_deref(), Some(&b"www.example.com"[..]));
        assert_eq!(decoded(&encoded, 14), None, "longer than allowed");
    }

    #[test]
    fn every_byte_survives_and_its_length_is_known() {
        let text: Vec<u8> = (0..=255).collect();
        let mut encoded = Vec::new();
        encode(&text, &mut encoded);
        assert_eq!((encoded.len(), decoded(&encoded, 256)), (encoded_length(&text), Some(text)));
    }

    #[test]
    fn wrong_padding_and_the_end_symbol_are_refused() {
        assert_eq!(decoded(&[0x00], 9), None, "five bits, and three zeros");
        assert_eq!(decoded(&[0xff; 1], 9), None, "eight bits of padding");
        assert_eq!(decoded(&[0xff; 4], 9), None, "the end");
    }
}
