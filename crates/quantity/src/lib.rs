//! Human quantities: text in, checked values with units out, and the same values as text again.
//!
//! Arithmetic is exact: `1.02mibit` is 1,069,547.52 bit/s, without a float's rounding. An invalid value is
//! rejected with a sentence that names it and shows a valid one; every quantity has a stated range.
//! Read in this order:
//!
//! | module | what it reads |
//! | --- | --- |
//! | `decimal` | digits, and the unit that follows them |
//! | `scalar` | durations, rates, sizes, counts, probabilities: [`duration`], [`rate`], ... |
//! | [`mod@path`] | queues, losses, jitter, reordering |
//! | [`mod@print`] | the same values as text |
//! | [`names`] | names: lookup, and a suggestion for an unknown one |
//!
//! ```
//! use roundtrip_quantity::{duration, names, rate};
//!
//! assert_eq!(duration("89ms").map(|span| span.to_string()), Ok("89ms".to_owned()));
//! assert_eq!(rate("1.25MB/s"), rate("10Mbit"));
//! assert_eq!(
//!     rate("10").unwrap_err().to_string(),
//!     "`10`: a rate needs a unit; write 10Mbit"
//! );
//! let unknown = names::UnknownName::new("network", "MODEM", ["isdn", "modem"]);
//! assert_eq!(unknown.nearest(), Some("modem"));
//! ```
//!
//! Not the named things themselves: each crate has its own lists.

mod decimal;
pub mod names;
pub mod path;
pub mod print;
mod scalar;

pub use scalar::{
    buffer, duration, mss, mtu, object_size, parallel, probability, rate, request_size, requests, runs, seed,
    send_buffer,
};

use std::fmt;

use names::{Quoted, UnknownName};

/// Reason why a text is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueError {
    /// A text that cannot be parsed.
    NotA {
        /// The expected kind, with its article: `a duration`.
        what: &'static str,
        /// The given text.
        given: String,
        /// A valid example, to follow "give".
        give: &'static str,
    },
    /// A value outside the range.
    OutOfRange {
        /// The kind, with its article.
        what: &'static str,
        /// The given text.
        given: String,
        /// Minimum.
        least: &'static str,
        /// Maximum.
        most: &'static str,
    },
    /// A number without a unit, where the unit decides.
    NoUnit {
        /// The kind, with its article.
        what: &'static str,
        /// The given text.
        given: String,
        /// The same with the unit that was probably meant.
        write: String,
    },
    /// An unknown name.
    Unknown(UnknownName),
}

impl From<UnknownName> for ValueError {
    fn from(unknown: UnknownName) -> Self {
        Self::Unknown(unknown)
    }
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotA { what, given, give } => write!(f, "{} is not {what}; give {give}", Quoted(given)),
            Self::OutOfRange { what, given, least, most } => {
                write!(f, "{} is out of range for {what}; give {least} to {most}", Quoted(given))
            }
            Self::NoUnit { what, given, write } => {
                write!(f, "{}: {what} needs a unit; write {write}", Quoted(given))
            }
            Self::Unknown(unknown) => unknown.fmt(f),
        }
    }
}

impl std::error::Error for ValueError {}
