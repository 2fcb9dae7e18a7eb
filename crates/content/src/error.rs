//! Errors of reading a page's content: the culprit, and the remedy.

use std::io;
use std::path::PathBuf;

use page::PageError;
use quantity::names::{UnknownName, shown};

/// Reason why a page could not be read.
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
    /// A directory is not a valid page.
    #[error("{}: {error}", shown(.path))]
    NotAPage {
        /// The path.
        path: PathBuf,
        /// The fault of the page.
        error: PageError,
    },
    /// A directory has no non-empty file.
    #[error("{} has no file with anything in it; name another directory", shown(.0))]
    Empty(PathBuf),
    /// A file that makes the page larger than 256 MiB.
    #[error("{} makes the page larger than 256 MiB; {remedy}", shown(.path))]
    TooLarge {
        /// The path.
        path: PathBuf,
        /// The remedy.
        remedy: &'static str,
    },
    /// Neither a directory nor the name of a site.
    #[error(
        "{} is not a directory, and {unknown}; name a directory with the page's files, or a .har",
        shown(.path)
    )]
    NoInput {
        /// The path given.
        path: PathBuf,
        /// Reason why it is not a site's name.
        unknown: UnknownName,
    },
    /// A recording (HAR) cannot be read.
    #[error("{}: {reason}", shown(.path))]
    Recording {
        /// The path.
        path: PathBuf,
        /// Description of the fault.
        reason: String,
    },
    /// A form of the page is not a valid page.
    #[error("{name}: {error}")]
    Form {
        /// The page's name.
        name: String,
        /// The fault of the page.
        error: PageError,
    },
}
