//! Field blocks (HPACK, RFC 7541): fields in, bytes out, and back.
//!
//! The encoder indexes every field, as browsers and servers do for all but rare ones, and uses the Huffman code where it is
//! shorter.

pub mod huffman;
pub mod prefixed;
mod table;

use prefixed::{integer, string, take_integer, take_string};
use table::{DynamicTable, ENTRY_BYTES};

/// Fields of a header section in order, in one piece of memory: names in lower case, and values. Whatever adds to it returns
/// `None` once it is larger than [`MAX_LIST_BYTES`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldList {
    text: Vec<u8>,
    /// Ends of each name and value.
    ends: Vec<(usize, usize)>,
}

impl FieldList {
    /// No fields yet, with room for those of this encoded section.
    pub fn for_section(section: &[u8]) -> Self {
        // The code for letters takes five to eight bits; a field has a few bytes, or one if it is in a table.
        Self { text: Vec::with_capacity(256 + 2 * section.len()), ends: Vec::with_capacity(16) }
    }

    /// Adds a field.
    pub fn push(&mut self, name: &[u8], value: &[u8]) -> Option<()> {
        self.text.extend_from_slice(name);
        let name_end = self.text.len();
        self.text.extend_from_slice(value);
        self.end(name_end)
    }

    /// Takes the value of a field with this name from a block; `None`, too, if it is invalid.
    pub fn take_value(&mut self, name: &[u8], from: &mut &[u8]) -> Option<()> {
        self.text.extend_from_slice(name);
        let name_end = self.text.len();
        take_string(7, from, &mut self.text)?;
        self.end(name_end)
    }

    /// Takes a name, whose length has a prefix of this number of bits, and its value; `None`, too, if they are invalid.
    pub fn take(&mut self, bits: u32, from: &mut &[u8]) -> Option<()> {
        take_string(bits, from, &mut self.text)?;
        self.take_value(&[], from)
    }

    fn end(&mut self, name_end: usize) -> Option<()> {
        self.ends.push((name_end, self.text.len()));
        (self.text.len() + self.ends.len() * ENTRY_BYTES <= MAX_LIST_BYTES).then_some(())
    }

    /// Returns every field.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&[u8], &[u8])> + ExactSizeIterator {
        self.ends.iter().enumerate().map(|(index, &(name_end, end))| {
            let start = index.checked_sub(1).map_or(0, |before| self.ends[before].1);
            (&self.text[start..name_end], &self.text[name_end..end])
        })
    }

    /// Returns the value of the first field with this name.
    pub fn get(&self, name: &[u8]) -> Option<&[u8]> {
        self.iter().find(|(other, _)| *other == name).map(|(_, value)| value)
    }
}

/// Default of SETTINGS_HEADER_TABLE_SIZE (RFC 9113, section 6.5.2).
pub const DEFAULT_TABLE_BYTES: usize = 4_096;

/// Encoder of one direction.
#[derive(Clone, Debug)]
pub struct Encoder(DynamicTable);

impl Default for Encoder {
    fn default() -> Self {
        Self(DynamicTable::new(DEFAULT_TABLE_BYTES))
    }
}

impl Encoder {
    /// Appends the block of these fields.
    pub fn encode<'a>(&mut self, fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>, into: &mut Vec<u8>) {
        for (name, value) in fields {
            match self.0.find(name, value) {
                Some((index, true)) => integer(0x80, 7, index, into),
                found => {
                    integer(0x40, 6, found.map_or(0, |(index, _)| index), into);
                    if found.is_none() {
                        string(0, 7, name, into);
                    }
                    string(0, 7, value, into);
                    self.0.insert(name, value);
                }
            }
        }
    }
}

/// Decoder of one direction, with limits.
#[derive(Clone, Debug)]
pub struct Decoder {
    table: DynamicTable,
    max_table: usize,
}

/// Maximum bytes of a decoded header section.
pub const MAX_LIST_BYTES: usize = 1 << 18;

impl Default for Decoder {
    fn default() -> Self {
        Self { table: DynamicTable::new(DEFAULT_TABLE_BYTES), max_table: DEFAULT_TABLE_BYTES }
    }
}

impl Decoder {
    /// Decodes a block; `None` if it is invalid, or larger than [`MAX_LIST_BYTES`]: a connection error.
    pub fn decode(&mut self, block: &[u8]) -> Option<FieldList> {
        let (mut fields, mut rest) = (FieldList::for_section(block), block);
        while let [first, ..] = *rest {
            if first & 0xe0 == 0x20 {
                let max = take_integer(5, &mut rest)?;
                if max > self.max_table || fields.iter().len() > 0 {
                    return None;
                }
                self.table.set_max(max);
                continue;
            }
            self.field(first, &mut rest, &mut fields)?;
        }
        Some(fields)
    }

    fn field(&mut self, first: u8, rest: &mut &[u8], into: &mut FieldList) -> Option<()> {
        if first & 0x80 != 0 {
            let (name, value) = self.table.get(take_integer(7, rest)?)?;
            return into.push(name, value);
        }
        let is_indexed = first & 0x40 != 0;
        match take_integer(if is_indexed { 6 } else { 4 }, rest)? {
            0 => into.take(7, rest)?,
            index => into.take_value(self.table.get(index)?.0, rest)?,
        }
        if is_indexed && let Some((name, value)) = into.iter().next_back() {
            self.table.insert(name, value);
        }
        Some(())
    }

    /// Current maximum of the table, which its peer may have reduced.
    pub const fn table_bytes(&self) -> usize {
        self.table.max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7541, appendix C.4: requests with Huffman codes.
    #[test]
    fn requests_of_rfc_7541_are_encoded_and_decoded() {
        let first = [
            0x82, 0x86, 0x84, 0x41, 0x8c, 0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4,
            0xff,
        ];
        let second = [0x82, 0x86, 0x84, 0xbe, 0x58, 0x86, 0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf];
        let fields: [(&[u8], &[u8]); 5] = [
            (b":method", b"GET"),
            (b":scheme", b"http"),
            (b":path", b"/"),
            (b":authority", b"www.example.com"),
            (b"cache-control", b"no-cache"),
        ];
        let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
        for (block, count) in [(&first[..], 4), (&second[..], 5)] {
            let mut encoded = Vec::new();
            encoder.encode(fields[..count].iter().copied(), &mut encoded);
            assert_eq!(encoded, block);
            let decoded = decoder.decode(block).unwrap();
            assert!(decoded.iter().eq(fields[..count].iter().copied()));
        }
    }

    #[test]
    fn repeated_fields_take_a_byte_until_the_table_is_full() {
        let mut encoder = Encoder::default();
        let mut length = |value: &[u8]| {
            let mut block = Vec::new();
            encoder.encode([(&b"cookie"[..], value)], &mut block);
            block.len()
        };
        let large = [b'x'; 3_000];
        assert!(length(&large) > 2_000);
        assert_eq!(length(&large), 1);
        assert!(length(&[b'y'; 3_000]) > 2_000);
        assert!(length(&large) > 2_000, "it has left the table");
    }

    #[test]
    fn blocks_cut_anywhere_and_absurd_integers_are_refused_or_shorter() {
        let block = [0x40, 0x0a, b'c', b'u', b's', b't', b'o', b'm', b'-', b'k', b'e', b'y', 0x01, b'v'];
        for cut in 1..block.len() {
            assert_eq!(Decoder::default().decode(&block[..cut]), None, "{cut}");
        }
        assert_eq!(Decoder::default().decode(&[0xff; 9]), None);
        assert_eq!(Decoder::default().decode(&[0x80]), None, "index 0");
        assert_eq!(Decoder::default().decode(&[0x3f, 0xe2, 0x1f]), None, "a table of more than 4,096 bytes");
    }

    #[test]
    fn a_section_above_the_maximum_is_refused_however_short_its_block() {
        let value = [b'x'; 3_000];
        let (mut encoder, mut block) = (Encoder::default(), Vec::new());
        encoder.encode(std::iter::repeat_n((&b"cookie"[..], &value[..]), 86), &mut block);
        assert_eq!(Decoder::default().decode(&block).unwrap().iter().len(), 86);
        encoder.encode([(&b"cookie"[..], &value[..])], &mut block);
        assert_eq!(Decoder::default().decode(&block), None);
    }
}
