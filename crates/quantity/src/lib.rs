//! Parser and printer of quantities with units: durations, rates, sizes, probabilities, impairments of a path.
//!
//! Arithmetic is exact: `1.02mibit` is 1,069,547.52 bit/s, without a float's rounding. Every quantity has a range. An
//! error names the invalid value and gives a valid one. In reading order:
//!
//! | module | contents |
//! | --- | --- |
//! | `decimal` | exact decimal numbers, followed by a unit |
//! | `scalar` | durations, rates, sizes, counts, probabilities: [`duration`], [`rate`], ... |
//! | [`mod@path`] | queues, losses, jitter, reordering |
//! | [`mod@print`] | the same values, printed |
//! | [`mod@range`] | ranges of values, expanded |
//! | [`names`] | lookup of names, and the suggestion for an unknown one |
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

mod decimal;
pub mod names;
pub mod path;
pub mod print;
pub mod range;
mod scalar;

pub use scalar::{
    buffer, duration, mss, mtu, object_size, offset, parallel, positive_duration, probability, rate,
    request_size, requests, runs, seed, send_buffer,
};

use names::{Quoted, UnknownName};

/// Invalid text of a quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// A text that cannot be parsed.
    #[error("{} is not {what}; give {example}", Quoted(.given))]
    NotA {
        /// The expected kind, with its article: `a duration`.
        what: &'static str,
        /// The given text.
        given: String,
        /// A valid example, which follows "give".
        example: &'static str,
    },
    /// A value outside the range.
    #[error("{} is out of range for {what}; give {min} to {max}", Quoted(.given))]
    OutOfRange {
        /// The kind, with its article.
        what: &'static str,
        /// The given text.
        given: String,
        /// Minimum.
        min: &'static str,
        /// Maximum.
        max: &'static str,
    },
    /// A number without a unit.
    #[error("{}: {what} needs a unit; write {suggestion}", Quoted(.given))]
    MissingUnit {
        /// The kind, with its article.
        what: &'static str,
        /// The given text.
        given: String,
        /// The same with a unit.
        suggestion: String,
    },
    /// An unknown name.
    #[error(transparent)]
    Unknown(#[from] UnknownName),
}
