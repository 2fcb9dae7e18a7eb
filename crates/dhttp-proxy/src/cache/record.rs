//! A stored response: one self-contained piece of memory (or of a file).
//!
//! Key, choice, policy, fields and a short body are contiguous: in a store of a million small responses the overhead of
//! each matters. Where it is stored is for `memory` and `disk`.

use std::sync::Arc;

use http1::cache::{Choice, Policy};
use http1::message::FieldLines;

/// A stored response. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record(Arc<[u8]>);

/// Parts of a record.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordParts<'a> {
    /// Host and target.
    pub(super) key: &'a [u8],
    /// Requests for which it may be selected.
    pub(super) choice: &'a Choice,
    pub(super) policy: Policy,
    pub(super) status: u16,
    pub(super) fields: FieldLines<'a>,
    /// The body, if it is stored in the record.
    pub(super) body: &'a [u8],
}

/// Status, and the lengths of key, choice and fields, behind the policy.
const HEAD: usize = Policy::BYTES + 2 + 4 + 4 + 4;

impl Record {
    pub(super) fn new(parts: RecordParts<'_>) -> Self {
        let RecordParts { key, choice, policy, status, fields, body } = parts;
        let (choice, fields) = (choice.as_bytes(), fields.as_bytes());
        let length = |part: &[u8]| u32::try_from(part.len()).unwrap_or(u32::MAX).to_be_bytes();
        let mut bytes = Vec::with_capacity(HEAD + key.len() + choice.len() + fields.len() + body.len());
        bytes.extend_from_slice(&policy.to_bytes());
        bytes.extend_from_slice(&status.to_be_bytes());
        for part in [key, choice, fields] {
            bytes.extend_from_slice(&length(part));
        }
        for part in [key, choice, fields, body] {
            bytes.extend_from_slice(part);
        }
        Self(bytes.into())
    }

    /// Decodes a record; `None` if it is invalid.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let record = Self(bytes.into());
        let (key, choice, fields) = record.lengths();
        let is_whole = key.checked_add(choice)?.checked_add(fields)?.checked_add(HEAD)? <= bytes.len();
        is_whole.then_some(record)
    }

    /// Returns its bytes, to be stored elsewhere.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether both are the same object in memory.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns its length in bytes.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn key(&self) -> &[u8] {
        self.part(0)
    }

    pub(super) fn choice(&self) -> &[u8] {
        self.part(1)
    }

    pub(super) fn fields(&self) -> FieldLines<'_> {
        FieldLines::of_checked(self.part(2))
    }

    pub(super) fn body(&self) -> &[u8] {
        let (key, choice, fields) = self.lengths();
        self.0.get(HEAD + key + choice + fields..).unwrap_or_default()
    }

    pub(super) fn status(&self) -> u16 {
        let bytes = self.0.get(Policy::BYTES..).and_then(<[u8]>::first_chunk);
        bytes.map_or(0, |bytes| u16::from_be_bytes(*bytes))
    }

    pub(super) fn policy(&self) -> Policy {
        Policy::from_bytes(self.0.first_chunk().unwrap_or(&[0; Policy::BYTES]))
    }

    fn part(&self, which: usize) -> &[u8] {
        let (key, choice, fields) = self.lengths();
        let (start, length) = match which {
            0 => (0, key),
            1 => (key, choice),
            _ => (key + choice, fields),
        };
        self.0.get(HEAD + start..HEAD + start + length).unwrap_or_default()
    }

    fn lengths(&self) -> (usize, usize, usize) {
        let length = |index: usize| {
            let bytes = self.0.get(Policy::BYTES + 2 + 4 * index..).and_then(<[u8]>::first_chunk);
            bytes.map_or(0, |bytes| u32::from_be_bytes(*bytes) as usize)
        };
        (length(0), length(1), length(2))
    }
}
