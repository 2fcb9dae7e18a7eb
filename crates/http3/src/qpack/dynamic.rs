//! QPACK's dynamic table (RFC 9204): an encoder that never evicts, and a decoder of what any encoder sends.
//!
//! An entry that fits is inserted when its field is first sent, and referred to at once: the section waits for the insertion
//! (section 2.1.2), which leaves in the same datagram. What no longer fits is a literal. Fields that differ with each request
//! are never inserted. A decoder's acknowledgements, a byte or two for each section, are left out: only evictions need them.

use std::collections::VecDeque;

use http2::hpack::FieldList;
use http2::hpack::prefixed::{integer, string, take_integer, take_string};

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
    /// Maximum of the peer, and how much of it is used; 0 until its SETTINGS have arrived.
    max: usize,
    capacity: usize,
    is_announced: bool,
}

impl Encoder {
    /// Notes the peer's SETTINGS: the maximum of its table, and whether sections may wait for insertions.
    pub fn allow(&mut self, capacity: u64, may_block: bool) {
        if may_block {
            self.max = usize::try_from(capacity).unwrap_or(usize::MAX);
            self.capacity = self.max.min(MAX_TABLE_BYTES);
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
            required => {
                integer(0, 8, required % (self.max / ENTRY_BYTES).max(1).saturating_mul(2) + 1, section)
            }
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

/// Takes a string of an instruction.
fn take_text(bits: u32, rest: &mut &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    take_string(bits, rest, &mut text)?;
    Some(text)
}

/// Maximum of a table, whatever the peer allows.
pub const MAX_TABLE_BYTES: usize = 1 << 16;

/// A section, decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Section {
    /// Its fields.
    Fields(FieldList),
    /// It needs insertions that have not arrived.
    Blocked,
    /// It is invalid.
    Invalid,
}

/// Decoder of one direction.
#[derive(Clone, Debug)]
pub struct Decoder {
    /// Entries that are not evicted, the oldest first, and their bytes.
    entries: VecDeque<Entry>,
    bytes: usize,
    /// Number of evicted entries.
    evicted: usize,
    capacity: usize,
    /// Maximum of the capacity.
    max: usize,
    begun: Vec<u8>,
}

/// An instruction of an encoder (section 4.3).
enum Instruction {
    Capacity(usize),
    /// An insertion; `None`: its name refers to no entry.
    Insert(Option<Entry>),
}

impl Decoder {
    /// A decoder whose table has at most this many bytes, as its SETTINGS say.
    pub fn new(max: u64) -> Self {
        let max = usize::try_from(max).unwrap_or(usize::MAX);
        Self { entries: VecDeque::new(), bytes: 0, evicted: 0, capacity: 0, max, begun: Vec::new() }
    }

    /// Sets the maximum, where SETTINGS arrive later.
    pub fn set_max(&mut self, max: u64) {
        self.max = usize::try_from(max).unwrap_or(usize::MAX);
    }

    /// Handles instructions; `None` if they are invalid, or a capacity is larger than [`MAX_TABLE_BYTES`].
    pub fn instruct(&mut self, bytes: &[u8]) -> Option<()> {
        self.begun.extend_from_slice(bytes);
        let begun = std::mem::take(&mut self.begun);
        let mut rest = &begun[..];
        while let [first, ..] = *rest {
            let before = rest;
            match self.instruction(first, &mut rest) {
                Some(Instruction::Capacity(capacity)) => {
                    self.capacity =
                        Some(capacity).filter(|capacity| *capacity <= self.max.min(MAX_TABLE_BYTES))?;
                    self.evict(0);
                }
                Some(Instruction::Insert(entry)) => self.insert(entry?)?,
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

    fn instruction(&self, first: u8, rest: &mut &[u8]) -> Option<Instruction> {
        let latest = |index: usize| self.entries.iter().rev().nth(index);
        Some(match first {
            first if first & 0x80 != 0 => {
                let (index, value) = (take_integer(6, rest)?, take_text(7, rest)?);
                let name = match first & 0x40 != 0 {
                    true => STATIC.get(index).map(|(name, _)| name.to_vec()),
                    false => latest(index).map(|(name, _)| name.clone()),
                };
                Instruction::Insert(name.map(|name| (name, value)))
            }
            first if first & 0x40 != 0 => {
                Instruction::Insert(Some((take_text(5, rest)?, take_text(7, rest)?)))
            }
            first if first & 0x20 != 0 => Instruction::Capacity(take_integer(5, rest)?),
            _ => Instruction::Insert(latest(take_integer(5, rest)?).cloned()),
        })
    }

    /// Inserts an entry; `None` if it is larger than the table.
    fn insert(&mut self, entry: Entry) -> Option<()> {
        let bytes = entry.0.len() + entry.1.len() + ENTRY_BYTES;
        (bytes <= self.capacity).then_some(())?;
        self.evict(bytes);
        self.bytes += bytes;
        self.entries.push_back(entry);
        Some(())
    }

    /// Evicts the oldest entries until this many bytes fit (section 3.2.2).
    fn evict(&mut self, bytes: usize) {
        while self.bytes + bytes > self.capacity
            && let Some((name, value)) = self.entries.pop_front()
        {
            self.bytes -= name.len() + value.len() + ENTRY_BYTES;
            self.evicted += 1;
        }
    }

    /// Number of insertions so far.
    fn inserted(&self) -> usize {
        self.evicted + self.entries.len()
    }

    /// Decodes a section.
    pub fn decode(&self, section: &[u8]) -> Section {
        let mut rest = section;
        let Some(required) = self.required(&mut rest) else { return Section::Invalid };
        if required > self.inserted() {
            return Section::Blocked;
        }
        self.fields(required, rest).map_or(Section::Invalid, Section::Fields)
    }

    /// Required Insert Count (section 4.5.1.1).
    fn required(&self, rest: &mut &[u8]) -> Option<usize> {
        let encoded = take_integer(8, rest)?;
        if encoded == 0 {
            return Some(0);
        }
        let max_entries = self.max / ENTRY_BYTES;
        let range = max_entries.saturating_mul(2);
        if encoded > range {
            return None;
        }
        let max = self.inserted().saturating_add(max_entries);
        let required = (max / range * range).saturating_add(encoded - 1);
        let required = if required > max { required.checked_sub(range)? } else { required };
        Some(required).filter(|required| *required > 0)
    }

    fn fields(&self, required: usize, mut rest: &[u8]) -> Option<FieldList> {
        let is_negative = rest.first()? & 0x80 != 0;
        let delta = take_integer(7, &mut rest)?;
        let base = if is_negative { required.checked_sub(delta + 1)? } else { required + delta };
        let mut fields = FieldList::for_section(rest);
        while let [first, ..] = *rest {
            self.field(first, (required, base), &mut rest, &mut fields)?;
        }
        Some(fields)
    }

    /// Takes a field (section 4.5.2 to 4.5.6); references before Base count from it downwards.
    fn field(
        &self,
        first: u8,
        (required, base): (usize, usize),
        rest: &mut &[u8],
        into: &mut FieldList,
    ) -> Option<()> {
        let entry = |place: usize| {
            let index = place.checked_sub(self.evicted).filter(|_| place < required)?;
            self.entries.get(index)
        };
        let before = |index: usize| base.checked_sub(index + 1);
        let (name, value) = match first {
            first if first & 0xc0 == 0x80 => entry(before(take_integer(6, rest)?)?)?,
            first if first & 0xf0 == 0x10 => entry(base + take_integer(4, rest)?)?,
            first if first & 0xd0 == 0x40 => {
                return into.take_value(&entry(before(take_integer(4, rest)?)?)?.0, rest);
            }
            first if first & 0xf0 == 0 => {
                return into.take_value(&entry(base + take_integer(3, rest)?)?.0, rest);
            }
            first => return super::static_field(first, rest, into),
        };
        into.push(name, value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(fields: &[(&[u8], &[u8])]) -> FieldList {
        let mut list = FieldList::default();
        fields.iter().for_each(|(name, value)| list.push(name, value).unwrap());
        list
    }

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
        let expected = list(&fields);
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
        assert_eq!(Decoder::new(100).decode(&section), Section::Fields(list(&[(b"cookie", &large)])));
        assert_eq!(Decoder::new(100).instruct(&[0x3f, 0xff, 0x7f]), None, "a capacity beyond the setting");
        assert_eq!(Decoder::new(4_096).instruct(&[0x3f, 1, 0x00]), None, "a duplicate of no entry");
        assert_eq!(Decoder::new(4_096).instruct(&[0x21, 0x41, b'a', 1, b'b']), None, "larger than the table");
        assert_eq!(Decoder::new(4_096).decode(&[0xff, 0xff, 0xff, 0x7f, 0]), Section::Invalid);
        assert_eq!(Decoder::new(0).decode(&[1, 0, 0x80]), Section::Invalid);
    }

    fn fields(section: &Section) -> Vec<(String, String)> {
        let Section::Fields(fields) = section else { panic!("{section:?}") };
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        fields.iter().map(|(name, value)| (text(name), text(value))).collect()
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    /// RFC 9204, appendix B.2 to B.5.
    #[test]
    fn the_dynamic_table_of_rfc_9204_is_followed() {
        let (authority, path) = ((":authority", "www.example.com"), (":path", "/sample/path"));
        let mut decoder = Decoder::new(220);
        let first = [0x03, 0x81, 0x10, 0x11];
        assert_eq!(decoder.decode(&first), Section::Blocked);
        decoder.instruct(b"\x3f\xbd\x01\xc0\x0fwww.example.com\xc1\x0c/sample/path").unwrap();
        assert_eq!(fields(&decoder.decode(&first)), pairs(&[authority, path]));
        assert_eq!(decoder.bytes, 106);
        decoder.instruct(b"\x4acustom-key\x0ccustom-value").unwrap();
        assert_eq!(decoder.bytes, 160);
        decoder.instruct(&[0x02]).unwrap();
        assert_eq!((decoder.bytes, decoder.inserted()), (217, 4));
        let second = [0x05, 0x00, 0x80, 0xc1, 0x81];
        let expected = [authority, (":path", "/"), ("custom-key", "custom-value")];
        assert_eq!(fields(&decoder.decode(&second)), pairs(&expected));
        decoder.instruct(b"\x81\x0dcustom-value2").unwrap();
        assert_eq!((decoder.bytes, decoder.evicted, decoder.inserted()), (215, 1, 5));
        assert_eq!(fields(&decoder.decode(&second)), pairs(&expected));
        assert_eq!(decoder.decode(&first), Section::Invalid, "its first entry was evicted");
    }

    #[test]
    fn names_of_entries_and_counts_that_wrap_are_read() {
        let mut decoder = Decoder::new(64);
        decoder.instruct(&[0x3f, 33]).unwrap();
        for value in b'0'..=b'9' {
            decoder.instruct(&[0x41, b'a', 1, value]).unwrap();
        }
        // Ten insertions, of which one is left; a count is sent modulo four (section 4.5.1.1).
        assert_eq!((decoder.evicted, decoder.entries.len()), (9, 1));
        assert_eq!(fields(&decoder.decode(&[3, 0, 0x80])), pairs(&[("a", "9")]));
        assert_eq!(fields(&decoder.decode(&[3, 0, 0x40, 1, b'x'])), pairs(&[("a", "x")]));
        assert_eq!(fields(&decoder.decode(&[3, 0x80, 0x00, 1, b'y'])), pairs(&[("a", "y")]));
        assert_eq!(decoder.decode(&[3, 0, 0x81]), Section::Invalid, "evicted");
        assert_eq!(decoder.decode(&[3, 0, 0x10]), Section::Invalid, "beyond what it requires");
        assert_eq!(decoder.decode(&[4, 0, 0x80]), Section::Blocked);
        decoder.instruct(&[0x20]).unwrap();
        assert_eq!((decoder.entries.len(), decoder.inserted()), (0, 10));
    }
}
