//! Header fields: names, values, and the comma-separated tokens in them (RFC 9110, section 5).
//!
//! Not what a field means: framing and persistence are read in [`super::framing`].

use super::FieldLines;

/// Fields of a message in the order received, in one piece of memory: the lines as they are sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    text: Vec<u8>,
    spans: Vec<Span>,
}

/// Position of a field in the text: name, [`COLON`], value, [`LINE_END`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    start: usize,
    name_end: usize,
    value_end: usize,
}

const COLON: &[u8] = b": ";
const LINE_END: &[u8] = b"\r\n";

impl Fields {
    /// Creates an empty list.
    pub const fn new() -> Self {
        Self { text: Vec::new(), spans: Vec::new() }
    }

    /// Creates an empty list with capacity for `fields` fields in `bytes` bytes.
    pub(crate) fn with_capacity_for(fields: usize, bytes: usize) -> Self {
        Self { text: Vec::with_capacity(bytes), spans: Vec::with_capacity(fields) }
    }

    /// Adds a field.
    ///
    /// # Errors
    /// If the name is not a token, or the value has a control character, or white space at either end. Such a field would
    /// not arrive unchanged.
    pub fn push(&mut self, name: &str, value: &str) -> Result<(), FieldError> {
        if !is_token(name.as_bytes()) {
            return Err(FieldError::Name(name.to_owned()));
        }
        let trimmed = value.trim_matches([' ', '\t']);
        // Without an early end, so that it takes many bytes at a time.
        let has_control =
            value.bytes().fold(false, |has, byte| has | (byte != b'\t' && byte.is_ascii_control()));
        if trimmed != value || has_control {
            return Err(FieldError::Value(name.to_owned()));
        }
        self.push_checked(name.as_bytes(), value.as_bytes());
        Ok(())
    }

    /// Adds a field without a check: for names and values that a parser has checked already, or that are constants.
    pub fn push_checked(&mut self, name: &[u8], value: &[u8]) {
        let start = self.text.len();
        self.text.reserve(name.len() + COLON.len() + value.len() + LINE_END.len());
        self.text.extend_from_slice(name);
        let name_end = self.text.len();
        self.text.extend_from_slice(COLON);
        self.text.extend_from_slice(value);
        self.spans.push(Span { start, name_end, value_end: self.text.len() });
        self.text.extend_from_slice(LINE_END);
    }

    /// Returns every field: name as written, value without surrounding white space.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.spans.iter().map(|&Span { start, name_end, value_end }| {
            // Spans are created only in `push_checked`, from lengths of this text.
            (&self.text[start..name_end], &self.text[name_end + COLON.len()..value_end])
        })
    }

    /// Returns the values of every field with this name, in any case.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        self.iter()
            .filter(move |(field_name, _)| field_name.eq_ignore_ascii_case(name.as_bytes()))
            .map(|(_, value)| value)
    }

    /// Returns the value of the first field with this name, in any case.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.iter()
            .find(|(field_name, _)| field_name.eq_ignore_ascii_case(name.as_bytes()))
            .map(|(_, value)| value)
    }

    /// Whether a comma-separated list in a field with this name has this token, both in any case.
    pub fn has_token(&self, name: &str, token: &str) -> bool {
        self.all(name).flat_map(list).any(|element| element.eq_ignore_ascii_case(token.as_bytes()))
    }

    /// Returns the fields with names in lower case, as HTTP/2 has them (RFC 9113, section 8.2).
    #[must_use]
    pub fn in_lower_case(&self) -> Self {
        let mut fields = self.clone();
        for Span { start, name_end, .. } in &fields.spans {
            fields.text[*start..*name_end].make_ascii_lowercase();
        }
        fields
    }

    /// Borrows the fields.
    pub fn as_lines(&self) -> FieldLines<'_> {
        FieldLines::of_checked(&self.text)
    }

    /// Returns every field as it is sent: `Name: value` and a line end.
    pub fn lines(&self) -> &[u8] {
        &self.text
    }
}

/// Returns the elements of a comma-separated list, without the white space around them; empty ones are included.
pub(crate) fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii)
}

/// Whether these bytes are valid as a method or a field name (RFC 9110, section 5.6.2).
pub fn is_token(bytes: &[u8]) -> bool {
    let is_mark = |byte: &u8| matches!(byte, b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'^'..=b'`' | b'|' | b'~');
    !bytes.is_empty() && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || is_mark(byte))
}

/// A field that the caller cannot send.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// The name is not a token.
    #[error("{0:?} is not a field's name; use letters, digits and hyphens")]
    Name(String),
    /// The value of the field with this name has a control character, or white space at an end.
    #[error("the value of {0} has a line end or white space at an end; take it out")]
    Value(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_whatever_its_case() {
        let mut fields = Fields::new();
        fields.push("Connection", "Keep-Alive, TE").unwrap();
        fields.push("connection", "close").unwrap();
        assert_eq!(fields.get("CONNECTION"), Some(&b"Keep-Alive, TE"[..]));
        assert!(fields.has_token("Connection", "te"));
        assert!(fields.has_token("Connection", "Close"));
        assert!(!fields.has_token("Connection", "keep"));
    }

    #[test]
    fn rejects_fields_that_would_split_a_message() {
        let mut fields = Fields::new();
        assert_eq!(fields.push("A b", "x"), Err(FieldError::Name("A b".to_owned())));
        for value in ["x\r\nB: y", "x\ny", " x", "x\t", "\0"] {
            assert_eq!(fields.push("A", value), Err(FieldError::Value("A".to_owned())), "{value:?}");
        }
        assert_eq!(fields, Fields::new());
    }

    #[test]
    fn names_in_lower_case_keep_their_values() {
        let mut fields = Fields::new();
        fields.push("Content-Type", "Text/HTML").unwrap();
        fields.push("ETag", "W/\"A\"").unwrap();
        let lower: Vec<_> =
            fields.in_lower_case().iter().map(|(name, value)| [name, value].concat()).collect();
        assert_eq!(lower, [&b"content-typeText/HTML"[..], b"etagW/\"A\""]);
    }
}
