//! Errors of reading logs: the culprit, and the remedy.

use std::io;
use std::path::PathBuf;

use accesslog::format::FormatError;
use quantity::names::shown;

/// Reason why nothing was read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or directory cannot be read.
    #[error("cannot read {}: {error}", shown(.path))]
    Unreadable {
        /// The path.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// Standard input cannot be read.
    #[error("cannot read standard input: {0}")]
    Stdin(io::Error),
    /// An object store or a server refused; a sentence that names the address.
    #[error("{0}")]
    Store(String),
    /// A pattern or a directory has no file.
    #[error("{0}: no such file; name a log")]
    NoFile(String),
    /// The log of this name is empty.
    #[error("{0}: the log is empty; name another log")]
    Empty(String),
    /// Most requests are further out of order than the window.
    #[error(
        "{late} of {requests} requests are further out of order than --window, so that most would be left out; give each \
         log by its name, sort the lines by time, or give a larger --window"
    )]
    OutOfOrder {
        /// Number of these.
        late: u64,
        /// Number of all requests.
        requests: u64,
    },
    /// The format of the log of this name is unknown.
    #[error("{0}: unknown access log format; name it")]
    UnknownFormat(String),
    /// A table cannot be read, or lacks a column.
    #[error("{name}: {reason}; name its columns")]
    Table {
        /// The log's name.
        name: String,
        /// Description of the fault.
        reason: String,
    },
    /// The format has no field names, so that no field can be chosen as the client.
    #[error(transparent)]
    ClientField(FormatError),
    /// None of several inputs is a log; the reason for the first.
    #[error("no access log found: {0}")]
    NoAccessLog(Box<Self>),
    /// Counting needs more memory than its limit, in bytes.
    #[error(
        "the clients and requests within the longest timeout take more than {} MiB; allow more with \
         --memory, count with shorter --timeout or with fewer --threshold and --per-client, or count a part \
         of the log",
        .0 >> 20
    )]
    TooMuchMemory(usize),
    /// Whole-second times become fractions in a stretch with more requests within the longest timeout than fit the limit.
    #[error(
        "times of whole seconds become fractions of seconds amid more requests than are held; count both \
         parts of the log by themselves"
    )]
    MixedTimes,
    /// A feature that was left out of this build.
    #[error("{culprit}: this build lacks the feature `{}`; enable it", .part.name())]
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
