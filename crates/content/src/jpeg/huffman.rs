//! Huffman codes of JPEG, optimised for the symbols to encode (T.81, annexes C and K.2), and the bit stream of a file.
//!
//! No code has more than 16 bits, and none is all ones.

/// A symbol, and extra bits that select one of its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HuffmanSymbol {
    pub(super) symbol: u8,
    extra: u32,
    length: u32,
}

impl HuffmanSymbol {
    pub(super) const fn bare(symbol: u8) -> Self {
        Self { symbol, extra: 0, length: 0 }
    }

    /// A value of at most 15 bits after at most 15 zeros (T.81, section F.1.2.1).
    pub(super) fn number(zeros: u8, number: i32) -> Self {
        let length = u32::BITS - number.unsigned_abs().leading_zeros();
        let mask = (1_u32 << length) - 1;
        // A negative value is stored as its one's complement: its first bit is zero.
        let extra = if number < 0 { !number.unsigned_abs() & mask } else { number.unsigned_abs() };
        let symbol = zeros << 4 | u8::try_from(length & 15).expect("four bits");
        Self { symbol, extra, length }
    }
}

/// A Huffman table.
#[derive(Debug)]
pub(super) struct Table {
    /// Number of codes of each length, from 1.
    counts: [u8; 16],
    /// Symbols, sorted by the length of their codes.
    symbols: Vec<u8>,
    /// Code and length of each symbol.
    codes: [(u32, u32); 256],
}

impl Table {
    /// The optimal table for these symbols.
    pub(super) fn of(symbols: impl IntoIterator<Item = u8>) -> Self {
        // The last entry represents the code of all ones, which is left out.
        let mut frequencies = [0_u64; 257];
        frequencies[256] = 1;
        symbols.into_iter().for_each(|symbol| frequencies[usize::from(symbol)] += 1);
        let lengths = lengths(frequencies);
        let counts = limited(&lengths);
        let mut order: Vec<usize> = (0..256).filter(|symbol| lengths[*symbol] > 0).collect();
        order.sort_by_key(|symbol| lengths[*symbol]);
        let symbols: Vec<u8> = order.into_iter().filter_map(|symbol| u8::try_from(symbol).ok()).collect();
        let (mut codes, mut code, mut left) = ([(0, 0); 256], 0, symbols.iter());
        for (length, count) in (1..).zip(counts) {
            for symbol in left.by_ref().take(count.into()) {
                codes[usize::from(*symbol)] = (code, length);
                code += 1;
            }
            code <<= 1;
        }
        Self { counts, symbols, codes }
    }

    /// The table in the file's format.
    pub(super) fn written(&self) -> Vec<u8> {
        [&self.counts[..], &self.symbols].concat()
    }

    pub(super) fn write(&self, coded: HuffmanSymbol, bits: &mut Bits) {
        let (code, length) = self.codes[usize::from(coded.symbol)];
        bits.push(code, length);
        bits.push(coded.extra, coded.length);
    }
}

/// Code length of each symbol: the two least frequent get one more bit, and are merged.
fn lengths(mut frequencies: [u64; 257]) -> [usize; 257] {
    let mut lengths = [0; 257];
    let mut together: Vec<Vec<usize>> = (0..257).map(|symbol| vec![symbol]).collect();
    loop {
        let mut there: Vec<usize> = (0..257).filter(|symbol| frequencies[*symbol] > 0).collect();
        // Of equal frequencies the last comes first, so that the code of all ones is among the longest.
        there.sort_by_key(|symbol| (frequencies[*symbol], std::cmp::Reverse(*symbol)));
        let [least, next, ..] = there[..] else { return lengths };
        frequencies[least] += std::mem::take(&mut frequencies[next]);
        let joined = std::mem::take(&mut together[next]);
        together[least].extend(joined);
        together[least].iter().for_each(|symbol| lengths[*symbol] += 1);
    }
}

/// Number of codes of each length, at most 16 bits (T.81, figure K.3), without the code of all ones.
fn limited(lengths: &[usize; 257]) -> [u8; 16] {
    let mut counts = [0_u32; 258];
    lengths.iter().filter(|length| **length > 0).for_each(|length| counts[*length] += 1);
    for long in (17..counts.len()).rev() {
        while counts[long] > 0 {
            let Some(short) = (1..long - 1).rev().find(|length| counts[*length] > 0) else { break };
            // Two of the longest codes become one that is a bit shorter, and a shorter code is split in two.
            counts[long] -= 2;
            counts[long - 1] += 1;
            counts[short + 1] += 2;
            counts[short] -= 1;
        }
    }
    if let Some(last) = counts.iter_mut().rev().find(|count| **count > 0) {
        *last -= 1;
    }
    std::array::from_fn(|length| u8::try_from(counts[length + 1]).expect("at most 256 symbols"))
}

/// Bit stream of a file.
pub(super) struct Bits {
    out: Vec<u8>,
    held: u64,
    count: u32,
}

impl Bits {
    pub(super) const fn new(out: Vec<u8>) -> Self {
        Self { out, held: 0, count: 0 }
    }

    /// Appends the lowest `length` bits, at most 16.
    fn push(&mut self, bits: u32, length: u32) {
        self.held = self.held << length | u64::from(bits);
        self.count += length;
        while self.count >= 8 {
            self.count -= 8;
            let byte = (self.held >> self.count).to_le_bytes()[0];
            self.out.push(byte);
            // A zero byte after 0xff distinguishes it from a marker.
            if byte == 0xff {
                self.out.push(0);
            }
        }
        self.held &= (1 << self.count) - 1;
    }

    /// The file, its last byte padded with ones.
    pub(super) fn end(mut self) -> Vec<u8> {
        let missing = (8 - self.count % 8) % 8;
        self.push((1 << missing) - 1, missing);
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_prefix_free_never_all_ones_and_at_most_sixteen_bits() {
        // Each is as frequent as the two before it together: without a limit, codes would have 24 bits.
        let (mut symbols, mut one, mut other) = (Vec::new(), 1, 1);
        for symbol in 0..24 {
            symbols.extend(std::iter::repeat_n(symbol, one));
            (one, other) = (other, one + other);
        }
        let table = Table::of(symbols);
        let codes = &table.codes[..24];
        for (number, (code, length)) in codes.iter().enumerate() {
            assert!(
                (1..=16).contains(length) && *code != (1 << length) - 1,
                "{number}: {code:b} of {length}"
            );
            for (other, _) in codes.iter().enumerate().filter(|(other, _)| *other != number) {
                let (longer, bits) = codes[other];
                assert!(bits < *length || longer >> (bits - length) != *code, "{number} begins {other}");
            }
        }
        assert_eq!(table.counts.iter().map(|count| usize::from(*count)).sum::<usize>(), table.symbols.len());
    }

    #[test]
    fn values_are_encoded_as_in_the_standard() {
        let coded = |number| {
            let HuffmanSymbol { symbol, extra, length } = HuffmanSymbol::number(2, number);
            (symbol, extra, length)
        };
        assert_eq!(
            [0, 1, -1, 5, -5].map(coded),
            [(0x20, 0, 0), (0x21, 1, 1), (0x21, 0, 1), (0x23, 5, 3), (0x23, 2, 3)]
        );
    }
}
