//! Errors that end a command without a result: the sentence on stderr and the exit status.
//!
//! Findings and verdicts are results, and exit with 1.

use std::fmt;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

#[cfg(feature = "all-verbs")]
use accesslog_io::error::Part;
use clap::error::ErrorKind;
#[cfg(feature = "all-verbs")]
use load::merge::MergeError;
use report::filter::FilterError;

pub use quantity::names::shown;
use render::terminal::printable;

use crate::cli::usage_error;
#[cfg(feature = "all-verbs")]
use crate::feature::Feature;

/// Error of a command, by culprit.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The command line: clap's error, or its help and version texts, which are not failures.
    #[error("{}", usage_error::sentence(.0))]
    Flags(Box<clap::Error>),
    /// A name or a value that is not valid.
    #[error("{0}")]
    Value(String),
    /// An input file.
    #[error("cannot read {}: {}", shown(.path), reason(.error))]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// An output file.
    #[error("cannot write {}: {}", shown(.path), reason(.error))]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// Standard output.
    #[error("cannot write to standard output: {}", reason(.0))]
    Stdout(io::Error),
    /// The laboratory: a missing requirement, or a failure in it.
    #[error("{0}")]
    Laboratory(String),
    /// The network, or a peer in it.
    #[error("{0}")]
    Network(String),
}

impl Failure {
    /// Reports it on stderr in one sentence, and returns the exit status: 2, or 0 for help and for a closed pipe.
    pub fn report(&self) -> ExitCode {
        match self {
            Self::Stdout(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            Self::Flags(error) if !error.use_stderr() => print_help(error),
            Self::Flags(error) if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
                eprint!("{error}");
                ExitCode::from(2)
            }
            Self::Flags(_)
            | Self::Value(_)
            | Self::Read { .. }
            | Self::Write { .. }
            | Self::Stdout(_)
            | Self::Laboratory(_)
            | Self::Network(_) => {
                eprintln!("roundtrip: {}", printable(&self.to_string(), false));
                ExitCode::from(2)
            }
        }
    }
}

/// Prints requested help or version to stdout.
fn print_help(help_request: &clap::Error) -> ExitCode {
    let help = help_request.render();
    let text = if crate::terminal::of_stdout().colour { help.ansi().to_string() } else { help.to_string() };
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => Failure::Stdout(error).report(),
    }
}

impl Failure {
    /// Returns the failure of a flag with an invalid value.
    pub fn of_flag<E: fmt::Display>(flag: &str) -> impl Fn(E) -> Self {
        move |error| Self::Value(format!("--{flag}: {error}"))
    }
}

impl From<clap::Error> for Failure {
    fn from(error: clap::Error) -> Self {
        Self::Flags(Box::new(error))
    }
}

#[cfg(feature = "all-verbs")]
impl From<accesslog_io::Error> for Failure {
    fn from(error: accesslog_io::Error) -> Self {
        use accesslog_io::Error;
        match error {
            Error::Unreadable { path, error } => Self::Read { path, error },
            Error::Store(sentence) => Self::Network(sentence),
            Error::NotBuilt { culprit, part: Part::ObjectStore } => {
                Self::Value(Feature::ObjectStore.missing(&culprit))
            }
            Error::NotBuilt { culprit, part: Part::Parquet } => {
                Self::Value(Feature::Parquet.missing(&culprit))
            }
            Error::UnknownFormat(name) => {
                Self::Value(format!("{name}: unknown access log format; name it with --log-format"))
            }
            Error::Table { name, reason } => {
                Self::Value(format!("{name}: {reason}; --columns time=NAME,client=NAME,size=NAME names them"))
            }
            Error::ClientField(error) => Self::Value(format!("--client-field: {error}")),
            Error::NoAccessLog(first) => {
                Self::Value(format!("no access log found: {}; skipped", Self::from(*first)))
            }
            error @ (Error::Stdin(_)
            | Error::NoFile(_)
            | Error::Empty(_)
            | Error::TooMuchMemory(_)
            | Error::OutOfOrder { .. }
            | Error::MixedTimes) => Self::Value(error.to_string()),
        }
    }
}

impl From<capture::Error> for Failure {
    fn from(error: capture::Error) -> Self {
        use capture::Error;
        match error {
            Error::Unreadable { path, error } => Self::Read { path, error },
            Error::NotACapture { .. } | Error::Qlog { .. } | Error::KeyLog { .. } => {
                Self::Value(error.to_string())
            }
            Error::Command { .. } => Self::Value(error.to_string()),
            Error::Forbidden { .. }
            | Error::Kernel(_)
            | Error::Signals(_)
            | Error::Packets(_)
            | Error::Spool(_) => Self::Laboratory(error.to_string()),
        }
    }
}

impl From<FilterError> for Failure {
    fn from(error: FilterError) -> Self {
        match error {
            FilterError::Cause(unknown) => Self::Value(format!("--cause: {unknown}")),
            FilterError::Since(error) => Self::Value(format!("--since: {error}")),
        }
    }
}

#[cfg(feature = "all-verbs")]
impl From<MergeError> for Failure {
    fn from(error: MergeError) -> Self {
        Self::Value(error.to_string())
    }
}

#[cfg(feature = "all-verbs")]
impl From<content::Error> for Failure {
    fn from(error: content::Error) -> Self {
        match error {
            content::Error::Unreadable { path, error } => Self::Read { path, error },
            error => Self::Value(error.to_string()),
        }
    }
}

/// Conversions of errors of the laboratory.
macro_rules! laboratory_failures {
    ($($error:ty),*) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::Laboratory(error.to_string())
            }
        }
    )*};
}

laboratory_failures!(testbed::Error);
#[cfg(feature = "all-verbs")]
laboratory_failures!(crate::laboratory::Error, reproduce::server_benchmark::Error, measure::Error);

#[cfg(feature = "all-verbs")]
impl From<sweep::row_file::Error> for Failure {
    fn from(error: sweep::row_file::Error) -> Self {
        use sweep::row_file::Error;
        match error {
            Error::Read { path, error } => Self::Read { path, error },
            Error::Write { path, error } => Self::Write { path, error },
            error @ Error::OtherRows { .. } => Self::Value(format!("--into {error}")),
        }
    }
}

/// The system's error in plain words, with the remedy where there is one.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file or directory".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied; choose another path".to_owned(),
        io::ErrorKind::StorageFull => "the disk is full; free some space or choose another path".to_owned(),
        io::ErrorKind::IsADirectory => "it is a directory; name a file in it".to_owned(),
        io::ErrorKind::ReadOnlyFilesystem => "the disk is read-only; choose another path".to_owned(),
        io::ErrorKind::InvalidData => "it is not text; give a file in UTF-8".to_owned(),
        // The system's kinds are open-ended.
        _ => error.to_string(),
    }
}
