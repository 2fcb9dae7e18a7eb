//! A response, and the source of its body.

use std::fs::File;
use std::sync::Arc;

use http1::message::Fields;

/// A response. Cheap to clone, so a handler may cache it.
#[derive(Clone, Debug)]
pub struct Response {
    /// Status code, 200 to 999.
    pub status: u16,
    /// Fields except `Connection`, `Content-Length`, `Transfer-Encoding` and `Date`.
    pub fields: Arc<Fields>,
    /// Body, also for a HEAD request: its length is then announced, but it is not sent.
    pub body: Body,
}

impl Response {
    /// Creates a response with these bytes. A type that is not valid in a field is left out.
    pub fn whole(status: u16, content_type: &str, body: impl Into<Arc<[u8]>>) -> Self {
        let mut fields = Fields::new();
        // A type with a line end is left out: it must not split the response.
        let _ = fields.push("Content-Type", content_type);
        Self { status, fields: Arc::new(fields), body: Body::Whole(body.into()) }
    }

    /// Creates a response with a line of text.
    pub fn text(status: u16, text: &str) -> Self {
        Self::whole(status, "text/plain; charset=utf-8", format!("{text}\n").into_bytes())
    }

    /// Whether this status implies that there is no body.
    pub const fn is_bodiless(&self) -> bool {
        matches!(self.status, 204 | 304)
    }
}

/// Source of a body.
#[derive(Clone, Debug)]
pub enum Body {
    /// All bytes in memory.
    Whole(Arc<[u8]>),
    /// Part of a file. It is read, or sent by the kernel, when there is space for it.
    File {
        /// The file.
        file: Arc<File>,
        /// Offset of the first byte.
        offset: u64,
        /// Length in bytes.
        length: u64,
    },
    /// Only for HEAD: the length of an origin's body, if known, in bytes.
    Described(Option<u64>),
}

impl Body {
    /// Returns the length in bytes.
    pub fn len(&self) -> u64 {
        match self {
            Self::Whole(bytes) => bytes.len() as u64,
            Self::File { file: _, offset: _, length } => *length,
            Self::Described(length) => length.unwrap_or(0),
        }
    }

    /// Returns the length to announce, in bytes, if it is known.
    pub fn announced_length(&self) -> Option<u64> {
        match self {
            Self::Whole(_) | Self::File { file: _, offset: _, length: _ } => Some(self.len()),
            Self::Described(length) => *length,
        }
    }

    /// Returns a range of it: `length` bytes from offset `first`.
    pub fn part(&self, first: u64, length: u64) -> Self {
        match self {
            Self::Whole(bytes) if first == 0 && length == bytes.len() as u64 => self.clone(),
            Self::Whole(bytes) => Self::of_slice(bytes, first, length),
            Self::File { file, offset, length: _ } => {
                Self::File { file: Arc::clone(file), offset: offset + first, length }
            }
            Self::Described(_) => Self::Described(Some(length)),
        }
    }

    /// Copies a range of a slice: `length` bytes from offset `first`.
    pub fn of_slice(bytes: &[u8], first: u64, length: u64) -> Self {
        let to_usize = |number: u64| usize::try_from(number).unwrap_or(usize::MAX).min(bytes.len());
        Self::Whole(
            bytes.get(to_usize(first)..to_usize(first.saturating_add(length))).unwrap_or_default().into(),
        )
    }

    /// Whether the length is zero.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
