//! Errors of reading logs: the culprit, and the remedy.

use std::fmt;
use std::io;
use std::path::PathBuf;

use accesslog::format::FormatError;
use quantity::names::shown;

/// Reason why nothing was read.
#[derive(Debug)]
pub enum Error {
    /// A file or directory cannot be read.
    Unreadable {
        /// The path.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// Standard input cannot be read.
    Stdin(io::Error),
    /// An object store or a server refused; a sentence that names the address.
    Store(String),
    /// A pattern or a directory has no file.
    NoFile(String),
    /// The log of this name is empty.
    Empty(String),
    /// The format of the log of this name is unknown.
    UnknownFormat(String),
    /// A table cannot be read, or lacks a column.
    Table {
        /// The log's name.
        name: String,
        /// Description of the fault.
        reason: String,
    },
    /// The format has no field names, so that no field can be chosen as the client.
    ClientField(FormatError),
    /// None of several inputs is a log; the reason for the first.
    NoAccessLog(Box<Self>),
    /// Counting needs more memory than its limit, in bytes.
    TooMuchMemory(usize),
    /// Whole-second times become fractions in a stretch with more requests within the longest timeout than fit the limit.
    MixedTimes,
    /// A feature that was left out of this build.
    NotBuilt {
        /// The option or file that needs it.
        culprit: String,
        /// The feature.
        part: Part,
    },
}

/// A part that a build may leave out: a Cargo feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Logs in object stores and on the Web.
    ObjectStore,
    /// Parquet and Arrow tables.
    Parquet,
}

impl Part {
    /// Cargo's name for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ObjectStore => "object-store",
            Self::Parquet => "parquet",
        }
    }

    /// The error of a build without it.
    pub fn missing(self, culprit: &str) -> Error {
        Error::NotBuilt { culprit: culprit.to_owned(), part: self }
    }

    /// Returns `Ok` where it was built.
    ///
    /// # Errors
    /// [`missing`](Self::missing).
    pub fn require(self, culprit: &str) -> Result<(), Error> {
        let is_built = match self {
            Self::ObjectStore => cfg!(feature = "object-store"),
            Self::Parquet => cfg!(feature = "parquet"),
        };
        if is_built { Ok(()) } else { Err(self.missing(culprit)) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { path, error } => write!(f, "cannot read {}: {error}", shown(path)),
            Self::Stdin(error) => write!(f, "cannot read standard input: {error}"),
            Self::Store(sentence) => f.write_str(sentence),
            Self::NoFile(pattern) => write!(f, "{pattern}: no such file; name a log"),
            Self::Empty(name) => write!(f, "{name}: the log is empty; name another log"),
            Self::UnknownFormat(name) => {
                write!(f, "{name}: unknown access log format; name it")
            }
            Self::Table { name, reason } => write!(f, "{name}: {reason}; name its columns"),
            Self::ClientField(error) => error.fmt(f),
            Self::NoAccessLog(first) => write!(f, "no access log found: {first}"),
            Self::TooMuchMemory(limit) => write!(
                f,
                "the clients and requests within the longest timeout take more than {} MiB; allow more with --memory, count \
                 with shorter --timeout or with fewer --threshold and --per-client, or count a part of the log",
                limit >> 20
            ),
            Self::MixedTimes => f.write_str(
                "times of whole seconds become fractions of seconds amid more requests than are held; count both \
                 parts of the log by themselves",
            ),
            Self::NotBuilt { culprit, part } => {
                write!(f, "{culprit}: this build lacks the feature `{}`; enable it", part.name())
            }
        }
    }
}

impl std::error::Error for Error {}
