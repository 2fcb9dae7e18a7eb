//! Character references in attribute values (HTML, section 13.2.5.72): `&amp;`, `&#38;`, `&#x26;`.
//!
//! Of the 2,231 named entities, only the five that stand for markup are decoded. The others do not occur in
//! addresses, and those that need no semicolon would break parameters (`?a=1&copy=2`).

/// The value with its references replaced. Invalid references are left unchanged.
pub(super) fn decode(value: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len());
    let mut rest = value;
    while let Some(at) = rest.iter().position(|byte| *byte == b'&') {
        let (before, reference) = rest.split_at(at);
        out.extend_from_slice(before);
        let (character, length) = character(reference).unwrap_or(('&', 1));
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        rest = reference.get(length..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
    out
}

const NAMED: [(&[u8], char); 5] =
    [(b"amp", '&'), (b"lt", '<'), (b"gt", '>'), (b"quot", '"'), (b"apos", '\'')];

/// The character of a reference at the front of `text`, and the length of the reference.
fn character(text: &[u8]) -> Option<(char, usize)> {
    let body = text.strip_prefix(b"&")?;
    if let Some(number) = body.strip_prefix(b"#") {
        return numeric(number).map(|(character, length)| (character, length + 2));
    }
    let (name, character) = NAMED.into_iter().find(|(name, _)| body.starts_with(name))?;
    match body.get(name.len()) {
        Some(b';') => Some((character, name.len() + 2)),
        // In a value `&lt=3` is a parameter named lt; `&apos` always needs its semicolon.
        Some(b'=' | b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9') => None,
        Some(_) | None => (character != '\'').then_some((character, name.len() + 1)),
    }
}

fn numeric(text: &[u8]) -> Option<(char, usize)> {
    let (radix, prefix) = if let Some(b'x' | b'X') = text.first() { (16, 1) } else { (10, 0) };
    let digits = text.get(prefix..)?;
    let length = digits.iter().take_while(|byte| char::from(**byte).is_digit(radix)).count();
    let digits = digits.get(..length).filter(|digits| !digits.is_empty())?;
    let number = digits.iter().try_fold(0_u32, |number, byte| {
        number.checked_mul(radix)?.checked_add(char::from(*byte).to_digit(radix)?)
    });
    let character = number.and_then(char::from_u32).filter(|character| *character != '\0');
    let semicolon = usize::from(text.get(prefix + length) == Some(&b';'));
    Some((character.unwrap_or(char::REPLACEMENT_CHARACTER), prefix + length + semicolon))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_become_characters_and_the_rest_stays() {
        for (text, expected) in [
            ("a&amp;b", "a&b"),
            ("&lt;&gt;&quot;&apos;", "<>\"'"),
            ("&amp", "&"),
            ("&amp&amp=", "&&amp="),
            ("&ampx", "&ampx"),
            ("&apos", "&apos"),
            ("&#65;&#x42;&#X43", "ABC"),
            ("&#;&#x;&", "&#;&#x;&"),
            ("&#0;&#99999999999;&#xd800;", "\u{fffd}\u{fffd}\u{fffd}"),
            ("&nbsp;", "&nbsp;"),
        ] {
            assert_eq!(String::from_utf8(decode(text.as_bytes())).unwrap(), expected, "{text}");
        }
    }
}
