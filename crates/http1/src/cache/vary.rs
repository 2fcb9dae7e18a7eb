//! Selection of a response by `Vary`: the fields it names, and their values in its own request (RFC 9111, section 4.1).
//!
//! Two responses to one URL may differ in this alone.

use super::parsed_request::ParsedRequest;
use crate::message::Fields;
use crate::message::field::list;

/// Secondary cache key of a response: for each field in `Vary`, a line with the name and the request's value. Mostly empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice(Vec<u8>);

impl Choice {
    /// Returns the key of this response to this request; `None` for `Vary: *`.
    pub fn of(request: &ParsedRequest<'_>, response: &Fields) -> Option<Self> {
        let mut names: Vec<Vec<u8>> = Vec::new();
        for name in response.all("Vary").flat_map(list).filter(|name| !name.is_empty()) {
            if name == b"*" {
                return None;
            }
            names.push(name.to_ascii_lowercase());
        }
        names.sort_unstable();
        names.dedup();
        let mut lines = Vec::new();
        for name in names {
            lines.extend_from_slice(&name);
            lines.push(b':');
            push_field_value(request, &name, &mut lines);
            lines.push(b'\n');
        }
        Some(Self(lines))
    }

    /// Decodes a stored key.
    pub fn from_bytes(lines: &[u8]) -> Self {
        Self(lines.to_vec())
    }

    /// Returns its lines, for the store.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Returns whether a key stored as these bytes also matches this request.
pub fn suits(choice: &[u8], request: &ParsedRequest<'_>) -> bool {
    choice.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).all(|line| {
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let (name, value) = line.split_at(colon);
        let mut now = vec![b':'];
        push_field_value(request, name, &mut now);
        now == value
    })
}

/// Appends `-` and a request's value of a field, normalized over lines and spaces. Appends nothing for an absent
/// field, which differs from an empty one.
fn push_field_value(request: &ParsedRequest<'_>, name: &[u8], out: &mut Vec<u8>) {
    let mut separator = b'-';
    for element in request.all(name).flat_map(list) {
        out.push(separator);
        out.extend_from_slice(element);
        separator = b',';
    }
}
