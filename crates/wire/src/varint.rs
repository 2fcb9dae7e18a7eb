//! Integers of variable length (RFC 9000, section 16).

/// Maximum value.
pub const MAX: u64 = (1 << 62) - 1;

/// Appends an integer; what exceeds [`MAX`] becomes [`MAX`].
pub fn put(value: u64, into: &mut Vec<u8>) {
    let value = value.min(MAX);
    let bytes = value.to_be_bytes();
    let (length, mark) = match value {
        0..=0x3f => (1, 0x00),
        0x40..=0x3fff => (2, 0x40),
        0x4000..=0x3fff_ffff => (4, 0x80),
        _ => (8, 0xc0),
    };
    let start = into.len();
    into.extend_from_slice(&bytes[8 - length..]);
    into[start] |= mark;
}

/// Appends a transport parameter that is an integer: its identifier, its length, and itself (section 18).
pub fn put_parameter(id: u64, value: u64, into: &mut Vec<u8>) {
    let mut content = Vec::new();
    put(value, &mut content);
    put(id, into);
    put(content.len() as u64, into);
    into.extend(content);
}

/// Takes an integer from the beginning; `None` if it is incomplete.
pub fn take(from: &mut &[u8]) -> Option<u64> {
    let first = *from.first()?;
    let length = 1 << (first >> 6);
    let (bytes, rest) = from.split_at_checked(length)?;
    *from = rest;
    Some(bytes.iter().skip(1).fold(u64::from(first & 0x3f), |value, byte| value << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9000, appendix A.1.
    #[test]
    fn examples_of_rfc_9000_are_read_and_written() {
        let examples: [(&[u8], u64); 4] = [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
        ];
        for (bytes, value) in examples {
            let mut written = Vec::new();
            put(value, &mut written);
            assert_eq!((&written[..], take(&mut &bytes[..])), (bytes, Some(value)));
            assert_eq!(take(&mut &bytes[..bytes.len() - 1]), None);
        }
    }

    #[test]
    fn a_parameter_has_its_identifier_and_its_length() {
        let mut parameters = Vec::new();
        put_parameter(4, 65_536, &mut parameters);
        put_parameter(0x4000, 7, &mut parameters);
        assert_eq!(parameters, [4, 4, 0x80, 1, 0, 0, 0x80, 0, 0x40, 0, 1, 7]);
    }
}
