//! For which requests an answer was chosen: what it names in `Vary`, and what its own request said there
//! (RFC 9111, section 4.1).
//!
//! Not what is asked for: two answers to one address may differ in this alone.

use super::asked::Asked;
use crate::message::Fields;
use crate::message::field::list;

/// What an answer was chosen by: for each field that it names, a line with the name and what its request said. Nothing
/// for most.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice(Vec<u8>);

impl Choice {
    /// What this answer to this request was chosen by; `None` if by what nobody knows (`Vary: *`).
    pub fn of(request: &Asked<'_>, response: &Fields) -> Option<Self> {
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
            said(request, &name, &mut lines);
            lines.push(b'\n');
        }
        Some(Self(lines))
    }

    /// One that was kept as bytes.
    pub fn from_bytes(lines: &[u8]) -> Self {
        Self(lines.to_vec())
    }

    /// To be kept.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Whether a choice that was kept as these bytes would have been made for this request, too.
pub fn suits(choice: &[u8], request: &Asked<'_>) -> bool {
    choice.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).all(|line| {
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let (name, value) = line.split_at(colon);
        let mut now = vec![b':'];
        said(request, name, &mut now);
        now == value
    })
}

/// What a request says in a field, however it is spread over lines and spaces; `-` before it, or nothing if the field is
/// not there: that is another thing than an empty one.
fn said(request: &Asked<'_>, name: &[u8], out: &mut Vec<u8>) {
    let mut separator = b'-';
    for element in request.all(name).flat_map(list) {
        out.push(separator);
        out.extend_from_slice(element);
        separator = b',';
    }
}
