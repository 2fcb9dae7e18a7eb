//! Human quantities: text in, checked values with units out, and the same values as text again.
//!
//! Arithmetic is exact: `1.02mibit` is 1,069,547.52 bit/s, never what a float makes of it. A text that is not a value is
//! refused with a sentence that names it and shows a right one; every quantity has a stated range. Read in this order:
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
//! let unknown = names::Unknown::new("network", "MODEM", ["isdn", "modem"]);
//! assert_eq!(unknown.nearest(), Some("modem"));
//! ```
//!
//! Not the named things themselves: each crate keeps its own lists.

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

use names::{Quoted, Unknown};

/// Why a text is not the value it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueError {
    /// It cannot be read.
    NotA {
        /// What it should be, with its article: `a duration`.
        what: &'static str,
        /// What was given.
        given: String,
        /// What would be right, to follow "give".
        give: &'static str,
    },
    /// It can be read, and is too small or too large.
    OutOfRange {
        /// What it is, with its article.
        what: &'static str,
        /// What was given.
        given: String,
        /// The smallest there can be.
        least: &'static str,
        /// The largest there can be.
        most: &'static str,
    },
    /// A number alone, where the unit decides.
    NoUnit {
        /// What it is, with its article.
        what: &'static str,
        /// What was given.
        given: String,
        /// The same with the unit that was probably meant.
        write: String,
    },
    /// It should be a name, and is none.
    Unknown(Unknown),
}

impl From<Unknown> for ValueError {
    fn from(unknown: Unknown) -> Self {
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
