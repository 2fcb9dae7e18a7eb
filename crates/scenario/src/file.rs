//! A scenario as a file: TOML in, a [`crate::Spec`] out, and back.
//!
//! The caller reads files, and passes their names for errors. This is the only module that knows TOML. The
//! keys of the first level are the flags without their dashes ([`crate::spec::Key`]). A value is a text in
//! quotes as for a flag, or a number where that is the same; lists are arrays.
//!
//! ```toml
//! network = ["modem", { like = "fast-internet", rtt = "133ms" }]
//! page = "6651+3883+1866"
//! requests = "dependent"
//! processing = "3.7ms"
//! ```
//!
//! A custom network is a table: `name` (or none), `like` (a named network to begin with) or `rtt` and `rate`;
//! and the other keys of a path. A custom page is a table of `name` and `sizes`. A changed stack is a table of `like`
//! and the keys that change it: `stack = { like = "linux", idle = "paced" }`.
//!
//! | module | contents |
//! | --- | --- |
//! | `read` | from text to a `Spec` |
//! | `tables` | the tables of networks, stacks and pages |
//! | `values` | keys and values: their order, their types |
//! | `write` | from a `Spec` to text |

mod read;
mod tables;
mod values;
mod write;

use quantity::ValueError;
use quantity::names::{Quoted, UnknownName};

use crate::network::NetworkError;
use crate::spec::PlanError;
use page::PageError;

/// A problem of a file, and its position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {problem}")]
pub struct FileError {
    /// The file, as the user named it.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The problem.
    pub problem: Box<Problem>,
}

/// A problem of a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// Larger than any scenario; the file was not read.
    #[error("no scenario is larger than 1 MiB; give another file")]
    TooLarge,
    /// Invalid TOML; the parser's message.
    #[error("this is not TOML: {0}")]
    Syntax(String),
    /// An unknown key.
    #[error(transparent)]
    UnknownKey(UnknownName),
    /// A value of another type than the key's.
    #[error("`{key}` cannot be {found}; write {example}")]
    Type {
        /// The key.
        key: &'static str,
        /// Type of the value, with its article.
        found: &'static str,
        /// Valid example: a whole line.
        example: String,
    },
    /// An invalid text or number.
    #[error("{key}: {error}")]
    Value {
        /// The key.
        key: &'static str,
        /// Reason why it is invalid.
        error: ValueError,
    },
    /// An invalid name.
    #[error(
        "{} is not a name; give 1 to 200 characters that can be printed, and no + in a network's",
        Quoted(.0)
    )]
    Name(String),
    /// A name that is taken.
    #[error("duplicate name {}; choose another", Quoted(.0))]
    NameTaken(String),
    /// A page without its sizes.
    #[error("a page of your own needs sizes; give them, such as sizes = \"6651+3883\"")]
    NoSizes,
    /// A stack without the one that it changes.
    #[error("a stack of your own changes a named one; give its name, such as like = \"linux\"")]
    NoLike,
    /// A network without round trip or rate.
    #[error(transparent)]
    Half(PlanError),
    /// An invalid network.
    #[error(transparent)]
    Network(NetworkError),
    /// An invalid page.
    #[error(transparent)]
    Page(PageError),
}
