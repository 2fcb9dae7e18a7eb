//! QPACK's dynamic table (RFC 9204): an encoder that never evicts, and a decoder of what any such encoder sends.
//!
//! An entry that fits is inserted when its field is first sent, and referred to at once: the section waits for the insertion
//! (section 2.1.2), which leaves in the same datagram. What no longer fits is a literal. Fields that differ with each request
//! are never inserted. A decoder's acknowledgements, a byte or two for each section, are left out: only evictions need them.

use http2::hpack::prefixed::{integer, string, take_integer, take_string};
use http2::hpack::{Field, MAX_LIST_BYTES};

use super::find;
use super::table::STATIC;

/// Bytes that an entry takes beside name and value (section 3.2.1).
const ENTRY_BYTES: usize = 32;
/// Maximum bytes of an instruction that has not arrived completely.
const MAX_INSTRUCTION_BYTES: usize = 1 << 16;
/// Fields whose value differs with each request.
const DIFFERENT: [&[u8]; 4] = [b":path", b"content-length", b"if-none-match", b"if-modified-since"];

type Entry = (Vec<u8>, Vec<u8>);

/// Encoder of one direction.
#[derive(Clone, Debug, Default)]
pub struct Encoder {
    /// Entries, the oldest first, and their bytes.
    entries: Vec<Entry>,
    bytes: usize,
    /// Maximum of the peer; 0 until its SETTINGS have arrived.
    capacity: usize,
    is_announced: bool,
}

impl Encoder {
    /// Notes the peer's SETTINGS: the maximum of its table, and whether sections may wait for insertions.
    pub fn allow(&mut self, capacity: u64, may_block: bool) {
        if may_block {
            self.capacity = usize::try_from(capacity).unwrap_or(usize::MAX).min(MAX_TABLE_BYTES);
        }
    }

    /// Appends a section of these fields, and the instructions that it needs.
    pub fn encode<'a>(
        &mut self,
        fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
        section: &mut Vec<u8>,
        instructions: &mut Vec<u8>,
    ) {
        let fields: Vec<(&[u8], &[u8])> = fields.into_iter().collect();
        let places: Vec<_> = fields
            .iter()
            .map(|(name, value)| {
                let known = find(name, value);
                (known, self.place(name, value, known, instructions))
            })
            .collect();
        let required =
            places.iter().filter_map(|(_, place)| *place).map(|place| place + 1).max().unwrap_or(0);
        match required {
            0 => section.push(0),
            required => integer(0, 8, required % (2 * self.max_entries()) + 1, section),
        }
        // Base is the Required Insert Count: no reference is beyond it.
        section.push(0);
        for ((name, value), (known, place)) in fields.into_iter().zip(places) {
            match place {
                Some(place) => integer(0x80, 6, required - 1 - place, section),
                None => super::literal(name, value, known, section),
            }
        }
    }

    fn max_entries(&self) -> usize {
        (self.capacity / ENTRY_BYTES).max(1)
    }

    /// The entry of a field, inserted if it may be; `None` if the static table has it, or it is sent literally.
    fn place(
        &mut self,
        name: &[u8],
        value: &[u8],
        known: Option<(usize, bool)>,
        instructions: &mut Vec<u8>,
    ) -> Option<usize> {
        if self.capacity == 0 || matches!(known, Some((_, true))) || DIFFERENT.contains(&name) {
            return None;
        }
        if let Some(place) = self.entries.iter().position(|entry| entry.0 == name && entry.1 == value) {
            return Some(place);
        }
        let bytes = name.len() + value.len() + ENTRY_BYTES;
        if self.bytes + bytes > self.capacity {
            return None;
        }
        if !std::mem::replace(&mut self.is_announced, true) {
            integer(0x20, 5, self.capacity, instructions);
        }
        match known {
            Some((index, _)) => integer(0xc0, 6, index, instructions),
            None => string(0x40, 5, name, instructions),
        }
        string(0, 7, value, instructions);
        self.bytes += bytes;
        self.entries.push((name.to_vec(), value.to_vec()));
        Some(self.entries.len() - 1)
    }
}

/// Maximum of a table, whatever the peer allows.
const MAX_TABLE_BYTES: usize = 1 << 16;

/// A section, decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Section {
    /// Its fields.
    Fields(Vec<Field>),
    /// It needs insertions that have not arrived.
    Blocked,
    /// It is invalid.
    Invalid,
}

/// Decoder of one direction.
#[derive(Clone, Debug)]
pub struct Decoder {
    entries: Vec<Entry>,
    bytes: usize,
    max: usize,
    begun: Vec<u8>,
}

impl Decoder {
    /// A decoder whose table has at most this many bytes, as its SETTINGS say.
    pub fn new(max: u64) -> Self {
        let max = usize::try_from(max).unwrap_or(usize::MAX).min(MAX_TABLE_BYTES);
        Self { entries: Vec::new(), bytes: 0, max, begun: Vec::new() }
    }

    /// Handles instructions; `None` if they are invalid, or evict an entry.
    pub fn instruct(&mut self, bytes: &[u8]) -> Option<()> {
        self.begun.extend_from_slice(bytes);
        let begun = std::mem::take(&mut self.begun);
        let mut rest = &begun[..];
        while let [first, ..] = *rest {
            let before = rest;
            let entry = match first {
                first if first & 0x80 != 0 => insertion_by_name(first, &self.entries, &mut rest),
                first if first & 0x40 != 0 => {
                    take_string(5, &mut rest).zip(take_string(7, &mut rest)).map(Some)
                }
                first if first & 0x20 != 0 => match take_integer(5, &mut rest) {
                    Some(capacity) if capacity > self.max => return None,
                    Some(_) => Some(None),
                    None => None,
                },
                _ => take_integer(5, &mut rest).map(|index| self.entries.iter().rev().nth(index).cloned()),
            };
            match entry {
                Some(entry) => self.insert(entry)?,
                // Not complete yet, or absurd.
                None if before.len() > MAX_INSTRUCTION_BYTES => return None,
                None => {
                    self.begun = before.to_vec();
                    return Some(());
                }
            }
        }
        Some(())
    }

    fn insert(&mut self, entry: Option<Entry>) -> Option<()> {
        let Some(entry) = entry else { return Some(()) };
        self.bytes += entry.0.len() + entry.1.len() + ENTRY_BYTES;
        self.entries.push(entry);
        (self.bytes <= self.max).then_some(())
    }

    /// Decodes a section.
    pub fn decode(&self, section: &[u8]) -> Section {
        let mut rest = section;
        let Some(required) = self.required(&mut rest) else { return Section::Invalid };
        if required > self.entries.len() {
            return Section::Blocked;
        }
        self.fields(required, rest).map_or(Section::Invalid, Section::Fields)
    }

    /// Required Insert Count (section 4.5.1.1), of a table that has not wrapped.
    fn required(&self, rest: &mut &[u8]) -> Option<usize> {
        let encoded = take_integer(8, rest)?;
        let max_entries = self.max / ENTRY_BYTES;
        match encoded {
            0 => Some(0),
            encoded if encoded > 2 * max_entries => None,
            encoded => Some(encoded - 1),
        }
    }

    fn fields(&self, required: usize, mut rest: &[u8]) -> Option<Vec<Field>> {
        // Only a Base that is the Required Insert Count.
        if take_integer(7, &mut rest)? != 0 {
            return None;
        }
        let (mut fields, mut bytes) = (Vec::new(), 0);
        while let [first, ..] = *rest {
            let field = if first & 0xc0 == 0x80 {
                let place = required.checked_sub(1 + take_integer(6, &mut rest)?)?;
                let (name, value) = self.entries.get(place)?;
                Field { name: name.clone(), value: value.clone() }
            } else {
                super::static_field(first, &mut rest)?
            };
            bytes += field.name.len() + field.value.len() + ENTRY_BYTES;
            if bytes > MAX_LIST_BYTES {
                return None;
            }
            fields.push(field);
        }
        Some(fields)
    }
}

/// An insertion whose name is an entry's; `None` if it is incomplete.
fn insertion_by_name(first: u8, entries: &[Entry], rest: &mut &[u8]) -> Option<Option<Entry>> {
    let index = take_integer(6, rest)?;
    let value = take_string(7, rest)?;
    let name = match first & 0x40 != 0 {
        true => STATIC.get(index).map(|(name, _)| name.to_vec()),
        false => entries.iter().rev().nth(index).map(|(name, _)| name.clone()),
    };
    Some(name.map(|name| (name, value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_fields_take_a_byte_and_wait_for_their_insertion() {
        let fields: [(&[u8], &[u8]); 4] =
            [(b":method", b"GET"), (b":path", b"/a"), (b"user-agent", b"browser/1.0"), (b"x-own", b"value")];
        let (mut encoder, mut decoder) = (Encoder::default(), Decoder::new(4_096));
        encoder.allow(4_096, true);
        let (mut first, mut instructions) = (Vec::new(), Vec::new());
        encoder.encode(fields, &mut first, &mut instructions);
        assert_eq!(decoder.decode(&first), Section::Blocked);
        for byte in &instructions {
            decoder.instruct(&[*byte]).unwrap();
        }
        let expected: Vec<Field> = fields.iter().map(|(name, value)| Field::new(name, value)).collect();
        assert_eq!(decoder.decode(&first), Section::Fields(expected.clone()));
        let (mut second, before) = (Vec::new(), instructions.len());
        encoder.encode(fields, &mut second, &mut instructions);
        assert_eq!((instructions.len(), decoder.decode(&second)), (before, Section::Fields(expected)));
        // The prefix, a byte each, and the path.
        assert_eq!(second.len(), 2 + 3 + 4);
    }

    #[test]
    fn what_does_not_fit_is_literal_and_absurd_instructions_are_refused() {
        let mut encoder = Encoder::default();
        encoder.allow(100, true);
        let (mut section, mut instructions) = (Vec::new(), Vec::new());
        let large = [b'~'; 80];
        encoder.encode([(&b"cookie"[..], &large[..])], &mut section, &mut instructions);
        assert!(instructions.is_empty() && section.len() > 80);
        assert_eq!(Decoder::new(100).decode(&section), Section::Fields(vec![Field::new(b"cookie", &large)]));
        assert_eq!(Decoder::new(100).instruct(&[0x3f, 0xff, 0x7f]), None, "a capacity beyond the setting");
        assert_eq!(Decoder::new(4_096).decode(&[0xff, 0xff, 0xff, 0x7f, 0]), Section::Invalid);
        assert_eq!(Decoder::new(0).decode(&[1, 0, 0x80]), Section::Invalid);
    }
}
