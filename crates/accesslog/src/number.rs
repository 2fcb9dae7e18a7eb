//! Parsers of sizes and durations in logs: digits, decimals, and the notations of "unknown".
//!
//! The crate `quantity` parses what users type, with units.

use wire::{Bytes, Duration};

use crate::tally::Reason;

/// Size that some servers log when it is unknown: 2^32 - 1.
const UNKNOWN: u64 = 0xFFFF_FFFF;

/// The number of the leading digits of `text`, and their count; `None` for more than 19.
#[inline]
pub fn digits(text: &[u8]) -> Option<(u64, usize)> {
    // The count is unpredictable: no branch depends on it, where it is small.
    text.first_chunk().and_then(few_digits).or_else(|| many_digits(text))
}

/// The same for a text of at least eight bytes; `None` if all are digits.
#[inline]
fn few_digits(text: &[u8; 8]) -> Option<(u64, usize)> {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let values = u64::from_le_bytes(*text) ^ (EACH * u64::from(b'0'));
    // A value above 9, or not ASCII, sets its byte's highest bit; the lowest such byte is the first that is
    // not a digit.
    let no_digits = (((values & (EACH * 0x7f)) + (EACH * 0x76)) | values) & (EACH * 0x80);
    if no_digits == 0 {
        return None;
    }
    let bits = no_digits.trailing_zeros() & !7;
    // Zeros precede the digits, in the lower bytes; in two steps, because a shift by 64 bits would overflow.
    let digits = values << 8 << (56 - bits);
    // Pairs, then fours, then all eight: the first is at the lowest byte.
    let pairs = (digits * 10 + (digits >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs * 100 + (pairs >> 16)) & 0x0000_ffff_0000_ffff;
    let number = (fours * 10_000 + (fours >> 32)) & 0xffff_ffff;
    Some((number, (bits / 8) as usize))
}

fn many_digits(text: &[u8]) -> Option<(u64, usize)> {
    let mut number = 0_u64;
    let mut count = 0;
    for byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        number = number.wrapping_mul(10).wrapping_add(u64::from(digit));
        count += 1;
    }
    // Nineteen digits fit 64 bits.
    (count <= 19).then_some((number, count))
}

/// Parses a field of digits only.
pub fn whole(text: &[u8]) -> Option<u64> {
    match digits(text)? {
        (number, count) if count == text.len() && count > 0 => Some(number),
        _ => None,
    }
}

/// Parses a size in bytes; a hyphen, an empty field, and 2^32 - 1 mean unknown.
///
/// # Errors
/// [`Reason::Size`] for anything else.
#[inline]
pub fn size(text: &[u8]) -> Result<Option<Bytes>, Reason> {
    if matches!(text, b"-" | b"") {
        return Ok(None);
    }
    let number = whole(text).ok_or(Reason::Size)?;
    Ok(known_size(number))
}

/// A size given as a number; `None` if it means unknown.
#[inline]
pub fn known_size(number: u64) -> Option<Bytes> {
    (number != UNKNOWN).then_some(Bytes::new(number))
}

/// Parses a status code of three digits; 0 for a hyphen or an empty field (no response was sent).
///
/// # Errors
/// [`Reason::Status`] for anything else.
pub fn status(text: &[u8]) -> Result<u16, Reason> {
    match text {
        b"-" | b"" => Ok(0),
        // Some servers log 000 when the client had disconnected.
        [b'0', b'0', b'0'] => Ok(0),
        [hundreds @ b'1'..=b'9', tens @ b'0'..=b'9', ones @ b'0'..=b'9'] => {
            let digit = |byte: u8| u16::from(byte - b'0');
            Ok(digit(*hundreds) * 100 + digit(*tens) * 10 + digit(*ones))
        }
        _ => Err(Reason::Status),
    }
}

/// Parses a decimal number, `1646861401.5241024`, in billionths; further digits are dropped. `None` if
/// invalid.
pub fn billionths(text: &[u8]) -> Option<u64> {
    let (whole, digit_count) = digits(text)?;
    let rest = text.get(digit_count..)?;
    if digit_count == 0 {
        return None;
    }
    let fraction = match rest {
        [] => 0,
        [b'.', fraction @ ..] if fraction.iter().all(u8::is_ascii_digit) => {
            let padded = fraction.iter().copied().chain(std::iter::repeat(b'0')).take(9);
            padded.fold(0, |number, digit| number * 10 + u64::from(digit - b'0'))
        }
        _ => return None,
    };
    whole.checked_mul(1_000_000_000)?.checked_add(fraction)
}

/// Parses a duration in seconds, with or without decimals; `None` (unknown) if it is not a number.
pub fn seconds(text: &[u8]) -> Option<Duration> {
    billionths(text).map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_size_is_not_zero() {
        assert_eq!(size(b"0"), Ok(Some(Bytes::ZERO)));
        assert_eq!([size(b"-"), size(b""), size(b"4294967295")], [Ok(None); 3]);
        assert_eq!(size(b"4294967296"), Ok(Some(Bytes::new(4_294_967_296))));
        for wrong in ["12x", "-1", "1 2", "99999999999999999999"] {
            assert_eq!(size(wrong.as_bytes()), Err(Reason::Size), "{wrong}");
        }
    }

    #[test]
    fn decimals_keep_their_nanoseconds() {
        assert_eq!(billionths(b"1646861401.5241024"), Some(1_646_861_401_524_102_400));
        assert_eq!(billionths(b"0.0000000019"), Some(1));
        assert_eq!([billionths(b""), billionths(b"."), billionths(b"1.x"), billionths(b"1e3")], [None; 4]);
    }

    #[test]
    fn few_digits_are_the_same_number_as_many() {
        for text in
            ["12345678 ", "1234567\n", "0\n1234567", "x0123456", "/9999999", "9:345678", "99999\u{b9}\u{b9}"]
        {
            for from in 0..text.len() {
                let text = &text.as_bytes()[from..];
                assert_eq!(digits(text), many_digits(text), "{text:?}");
            }
        }
        assert_eq!(digits(b"20480 - -"), Some((20_480, 5)));
    }

    #[test]
    fn a_status_has_three_digits() {
        assert_eq!([status(b"200"), status(b"-"), status(b"000")], [Ok(200), Ok(0), Ok(0)]);
        assert_eq!([status(b"20"), status(b"2000"), status(b"2o0")], [Err(Reason::Status); 3]);
    }
}
