//! The values of flags and of TOML keys: text in, checked quantities out.
//!
//! Arithmetic is exact: `1.02mibit` is 1,069,547.52 bit/s, never what a float makes of it. What is no value is
//! refused with a sentence that names it and shows a right one; every quantity has a stated range.
//!
//! Not the names of things: those are found by the things themselves ([`crate::names`]).
//!
//! | module | what it reads |
//! | --- | --- |
//! | `decimal` | digits, and the unit that follows them |
//! | [`quantity`] | durations, rates, sizes, counts, probabilities |
//! | [`mod@path`] | queues, losses, jitter, reordering |
//! | [`page`] | pages by name or sizes |
//! | [`mod@print`] | the same values as text |

mod decimal;
pub mod page;
pub mod path;
pub mod print;
pub mod quantity;

use std::fmt;

use crate::names::{Quoted, Unknown};

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
