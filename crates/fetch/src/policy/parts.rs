//! Range requests for objects in two parts: first the bytes of every object that hold its type and dimensions,
//! and then the rest. The W3C note calls it poor man's multiplexing (`papers/w3c#range-requests`; RFC 9110,
//! section 14).
//!
//! [`super::Policy`] chooses the order. Parts that do not fit together never count as an object.

use std::num::NonZeroU32;

use wire::Bytes;

use crate::report::Failure;
use http1::message::range::{Part, condition_for_rest};
use http1::message::{Fields, ResponseHead, Validator};

/// First bytes of objects, which identify their type and dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstBytes {
    /// Number of bytes; a GIF has its dimensions in the first 10.
    pub bytes: NonZeroU32,
    /// Policy by which they are requested.
    pub policy: FirstBytesPolicy,
}

/// Policy by which first bytes are requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FirstBytesPolicy {
    /// Together with the rest, which follows; only their arrival is reported.
    #[default]
    Together,
    /// Before the rest of any object except the document, with a `Range`.
    First,
}

/// Part of an object that a request is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Portion {
    Whole,
    /// This number of first bytes, at least 1.
    First(u32),
    /// The bytes after these, if the object is unchanged.
    Rest {
        from: u64,
        condition: Option<Validator>,
    },
}

impl Portion {
    /// Adds the part to a request's fields.
    pub(crate) fn add_range(&self, fields: &mut Fields) {
        match self {
            Self::Whole => {}
            Self::First(bytes) => {
                let last = bytes.saturating_sub(1);
                fields.push_checked(b"Range", format!("bytes=0-{last}").as_bytes());
            }
            Self::Rest { from, condition } => {
                fields.push_checked(b"Range", format!("bytes={from}-").as_bytes());
                if let Some(Validator::EntityTag(value) | Validator::LastModified(value)) = condition {
                    fields.push_checked(b"If-Range", value.as_bytes());
                }
            }
        }
    }
}

/// Received parts of each object.
#[derive(Debug)]
pub(crate) struct ReceivedParts {
    first_bytes: Option<FirstBytes>,
    /// Objects up to this one are requested whole.
    document: usize,
    objects: Vec<Progress>,
}

#[derive(Debug)]
struct Progress {
    stage: Stage,
    /// Received bytes of the current body.
    received: u64,
    /// Whether the first bytes have arrived.
    is_known: bool,
    /// Part that the current response contains, by its header.
    part: Option<Part>,
    condition: Option<Validator>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Whole,
    First,
    Rest { from: u64, of: u64 },
}

/// Result of a complete response.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The whole body, of this size.
    Whole(Bytes),
    /// The rest of the body is to be requested.
    Rest,
    Failed(Failure),
}

impl ReceivedParts {
    pub(crate) fn new(first_bytes: Option<FirstBytes>, document: usize, objects: usize) -> Self {
        let mut parts = Self { first_bytes, document, objects: Vec::new() };
        (0..objects).for_each(|_| parts.add());
        parts
    }

    /// Adds an object.
    pub(super) fn add(&mut self) {
        let is_parted = self.objects.len() > self.document
            && self.first_bytes.is_some_and(|first| first.policy == FirstBytesPolicy::First);
        let stage = if is_parted { Stage::First } else { Stage::Whole };
        let progress = Progress { stage, received: 0, is_known: false, part: None, condition: None };
        self.objects.push(progress);
    }

    /// Part to be requested next.
    pub(crate) fn portion(&self, object: usize) -> Portion {
        let progress = &self.objects[object];
        match (progress.stage, self.first_bytes) {
            (Stage::Whole, _) | (Stage::First, None) => Portion::Whole,
            (Stage::First, Some(first)) => Portion::First(first.bytes.get()),
            (Stage::Rest { from, of: _ }, _) => Portion::Rest { from, condition: progress.condition.clone() },
        }
    }

    /// Whether its first bytes are requested separately, and no rest has been.
    pub(super) fn is_parted(&self, object: usize) -> bool {
        self.objects[object].stage == Stage::First
    }

    pub(super) fn head(&mut self, object: usize, head: &ResponseHead) {
        let progress = &mut self.objects[object];
        progress.received = 0;
        progress.part = (head.status == 206).then(|| Part::of(&head.fields)).flatten();
        progress.condition = condition_for_rest(&head.fields);
    }

    /// Counts received bytes of the body; returns whether the first bytes are complete with them.
    pub(super) fn body(&mut self, object: usize, length: u64) -> bool {
        let progress = &mut self.objects[object];
        progress.received += length;
        let first_bytes = self.first_bytes.map(|first| u64::from(first.bytes.get()));
        first_bytes.is_some_and(|first_bytes| progress.received >= first_bytes) && self.mark_known(object)
    }

    /// Marks the first bytes as arrived; returns whether that is to be reported.
    pub(super) fn mark_known(&mut self, object: usize) -> bool {
        self.first_bytes.is_some() && !std::mem::replace(&mut self.objects[object].is_known, true)
    }

    /// Handles a complete response with this status.
    pub(super) fn complete(&mut self, object: usize, status: u16, body: Bytes) -> Outcome {
        let progress = &mut self.objects[object];
        // The reader considers a response complete only with its whole length.
        let part = progress.part.filter(|part| part.length == body.get());
        match (progress.stage, status, part) {
            (Stage::First, 206, Some(Part { first: 0, length, total: Some(of) })) if length == of => {
                Outcome::Whole(body)
            }
            (Stage::First, 206, Some(Part { first: 0, length, total: Some(of) })) => {
                progress.stage = Stage::Rest { from: length, of };
                Outcome::Rest
            }
            (Stage::Rest { from, of }, 206, Some(Part { first, length, total: Some(total) }))
                if first == from && total == of && from + length == of =>
            {
                Outcome::Whole(Bytes::new(of))
            }
            (Stage::First | Stage::Rest { from: _, of: _ }, 206, _) => Outcome::Failed(Failure::Part),
            // An unsolicited part.
            (Stage::Whole, 206, _) => Outcome::Failed(Failure::Status(206)),
            // An object without a first byte is empty.
            (Stage::First, 416, _) => Outcome::Whole(Bytes::ZERO),
            (Stage::Whole | Stage::First | Stage::Rest { from: _, of: _ }, _, _) => Outcome::Whole(body),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http1::message::Version;

    /// Outcome of an object whose first 10 bytes were requested, given these responses: status, range, body.
    fn outcome(responses: &[(u16, &str, u64)]) -> String {
        let first =
            FirstBytes { bytes: const { NonZeroU32::new(10).unwrap() }, policy: FirstBytesPolicy::First };
        let mut parts = ReceivedParts::new(Some(first), 0, 2);
        let mut last = String::new();
        for (status, range, body) in responses {
            let mut fields = Fields::new();
            fields.push("Content-Range", range).unwrap();
            parts.head(1, &ResponseHead { version: Version::Http11, status: *status, fields });
            last = format!("{:?}", parts.complete(1, *status, Bytes::new(*body)));
        }
        last
    }

    #[test]
    fn parts_that_do_not_fit_together_are_rejected() {
        let first = (206, "bytes 0-9/100", 10);
        assert_eq!(outcome(&[first]), "Rest");
        assert_eq!(outcome(&[first, (206, "bytes 10-99/100", 90)]), "Whole(Bytes(100))");
        assert_eq!(outcome(&[first, (200, "", 50)]), "Whole(Bytes(50))");
        assert_eq!(outcome(&[(206, "bytes 0-4/5", 5)]), "Whole(Bytes(5))");
        assert_eq!(outcome(&[(416, "bytes */0", 0)]), "Whole(Bytes(0))");
        for rest in
            ["bytes 11-99/100", "bytes 10-98/100", "bytes 10-99/101", "bytes 0-9/100", "bytes */100", ""]
        {
            assert_eq!(outcome(&[first, (206, rest, 90)]), "Failed(Part)", "{rest}");
        }
        for invalid in ["bytes 1-10/100", "bytes 0-8/100", "bytes 0-9/*", "bytes 0-9/9", "lines 0-9/100", ""]
        {
            assert_eq!(outcome(&[(206, invalid, 10)]), "Failed(Part)", "{invalid}");
        }
    }
}
