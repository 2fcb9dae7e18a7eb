//! Field sections (QPACK, RFC 9204): fields in, bytes out, and back.
//!
//! [`encode`] refers to the static table and writes all else literally, in the Huffman code where that is shorter, as an encoder
//! must whose peer has no dynamic table. Where it has one, repeated fields take a byte ([`dynamic`]).

pub mod dynamic;
mod table;

use http2::hpack::FieldList;
use http2::hpack::prefixed::{integer, string, take_integer};

use table::{OF_LENGTH, STATIC};

/// Appends a section of these fields.
pub fn encode<'a>(fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>, into: &mut Vec<u8>) {
    // Required Insert Count and Base: no dynamic table.
    into.extend([0, 0]);
    for (name, value) in fields {
        literal(name, value, find(name, value), into);
    }
}

/// Appends a field without the dynamic table; `known` is its entry in the static one.
fn literal(name: &[u8], value: &[u8], known: Option<(usize, bool)>, into: &mut Vec<u8>) {
    match known {
        Some((index, true)) => integer(0xc0, 6, index, into),
        Some((index, false)) => {
            integer(0x50, 4, index, into);
            string(0, 7, value, into);
        }
        None => {
            string(0x20, 3, name, into);
            string(0, 7, value, into);
        }
    }
}

/// Decodes a section; `None` if it is invalid, larger than [`http2::hpack::MAX_LIST_BYTES`], or refers to a dynamic table.
pub fn decode(section: &[u8]) -> Option<FieldList> {
    let mut rest = section;
    if take_integer(8, &mut rest)? != 0 {
        return None;
    }
    take_integer(7, &mut rest)?;
    let mut fields = FieldList::for_section(section);
    while let [first, ..] = *rest {
        static_field(first, &mut rest, &mut fields)?;
    }
    Some(fields)
}

/// Takes a field that does not refer to the dynamic table.
fn static_field(first: u8, rest: &mut &[u8], into: &mut FieldList) -> Option<()> {
    match first {
        first if first & 0xc0 == 0xc0 => {
            let (name, value) = STATIC.get(take_integer(6, rest)?)?;
            into.push(name, value)
        }
        first if first & 0xd0 == 0x50 => {
            let (name, _) = STATIC.get(take_integer(4, rest)?)?;
            into.take_value(name, rest)
        }
        first if first & 0xe0 == 0x20 => into.take(3, rest),
        _ => None,
    }
}

/// The static entry of a field, and whether its value is the same.
fn find(name: &[u8], value: &[u8]) -> Option<(usize, bool)> {
    let mut named = None;
    let mut places = OF_LENGTH.get(name.len()).copied().unwrap_or_default();
    while places > 0 {
        let index = places.trailing_zeros() as usize;
        places &= places - 1;
        let (of_index, other) = STATIC[index];
        if of_index != name {
            continue;
        }
        if other == value {
            return Some((index, true));
        }
        named.get_or_insert(index);
    }
    named.map(|index| (index, false))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9204, appendix B.1, whose value is not in the Huffman code.
    #[test]
    fn the_literal_of_rfc_9204_is_decoded() {
        let section =
            [0x00, 0x00, 0x51, 0x0b, 0x2f, 0x69, 0x6e, 0x64, 0x65, 0x78, 0x2e, 0x68, 0x74, 0x6d, 0x6c];
        assert!(decode(&section).unwrap().iter().eq([(&b":path"[..], &b"/index.html"[..])]));
    }

    #[test]
    fn known_fields_take_a_byte_or_two_and_all_are_decoded() {
        let fields: [(&[u8], &[u8]); 6] = [
            (b":method", b"GET"),
            (b":status", b"200"),
            (b"x-frame-options", b"sameorigin"),
            (b":path", b"/index.html"),
            (b"x-unknown-name", b"value"),
            (b"cookie", &[b'~'; 200]),
        ];
        let mut section = Vec::new();
        encode(fields[..3].iter().copied(), &mut section);
        assert_eq!(section, [0, 0, 0xd1, 0xd9, 0xff, 35]);
        section.clear();
        encode(fields.iter().copied(), &mut section);
        assert!(decode(&section).unwrap().iter().eq(fields));
        for cut in 2..section.len() {
            let shorter = decode(&section[..cut]);
            assert!(shorter.is_none_or(|shorter| shorter.iter().len() < fields.len()), "{cut}");
        }
    }

    #[test]
    fn dynamic_references_and_absurd_integers_are_refused() {
        assert_eq!(decode(&[1, 0, 0x80]), None);
        assert_eq!(decode(&[0, 0, 0x80]), None, "dynamic, below Base");
        assert_eq!(decode(&[0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]), None);
        assert_eq!(decode(&[0, 0, 0xff, 36]), None, "beyond the table");
        assert_eq!(decode(&[]), None);
    }
}
