//! Errors of reading a page's content: the culprit, and the remedy.

use std::fmt;
use std::io;
use std::path::PathBuf;

use page::PageError;
use quantity::names::{UnknownName, shown};

/// Reason why a page could not be read.
#[derive(Debug)]
pub enum Error {
    /// A file or directory cannot be read.
    Unreadable {
        /// The path.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// A directory is not a valid page.
    NotAPage {
        /// The path.
        path: PathBuf,
        /// The fault of the page.
        error: PageError,
    },
    /// A directory has no non-empty file.
    Empty(PathBuf),
    /// A file that makes the page larger than 256 MiB.
    TooLarge {
        /// The path.
        path: PathBuf,
        /// The remedy.
        remedy: &'static str,
    },
    /// Neither a directory nor the name of a site.
    NoInput {
        /// The path given.
        path: PathBuf,
        /// Reason why it is not a site's name.
        unknown: UnknownName,
    },
    /// A recording (HAR) cannot be read.
    Recording {
        /// The path.
        path: PathBuf,
        /// Description of the fault.
        reason: String,
    },
    /// A form of the page is not a valid page.
    Form {
        /// The page's name.
        name: String,
        /// The fault of the page.
        error: PageError,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { path, error } => write!(f, "cannot read {}: {error}", shown(path)),
            Self::NotAPage { path, error } => write!(f, "{}: {error}", shown(path)),
            Self::Empty(path) => {
                write!(f, "{} has no file with anything in it; name another directory", shown(path))
            }
            Self::TooLarge { path, remedy } => {
                write!(f, "{} makes the page larger than 256 MiB; {remedy}", shown(path))
            }
            Self::NoInput { path, unknown } => {
                let path = shown(path);
                write!(
                    f,
                    "{path} is not a directory, and {unknown}; name a directory with the page's files, or a .har"
                )
            }
            Self::Recording { path, reason } => write!(f, "{}: {reason}", shown(path)),
            Self::Form { name, error } => write!(f, "{name}: {error}"),
        }
    }
}

impl std::error::Error for Error {}
