//! `roundtrip connections`: connections that a server would hold, from its access logs.
//!
//! Flags and logs in, counts and warnings out. `accesslog-io` opens logs and prints counts; `accesslog` parses lines and
//! counts connections.

pub mod options;

use accesslog_io::input::Input;
use accesslog_io::options::ConnectionsOptions;
use accesslog_io::pass::PassResult;
use accesslog_io::report::warning;

use crate::failure::Failure;

/// Result of a count, with warnings about the logs.
#[derive(Debug)]
pub struct CountReport {
    /// Counts and time range of the pass.
    pub passed: PassResult,
    /// The logs' names, in the order they were read.
    pub names: Vec<String>,
    /// Warnings.
    pub warnings: Vec<String>,
}

/// Reads logs and counts connections.
///
/// # Errors
/// If no request can be counted: a missing log, no file that is a log, no sizes.
pub fn count_connections(inputs: Vec<Input>, options: &ConnectionsOptions) -> Result<CountReport, Failure> {
    let accesslog_io::CountResult { passed, names, skipped } = accesslog_io::count(inputs, options)?;
    let mut warnings: Vec<String> =
        skipped.into_iter().map(|error| format!("{}; skipped", Failure::from(error))).collect();
    warnings.extend(warning::sentences(&names, &passed, &options.query));
    if passed.counts.requests == 0 {
        return Err(Failure::Value(empty_count_error(&names, &passed, &warnings)));
    }
    Ok(CountReport { passed, names, warnings })
}

/// The error for logs without countable requests.
fn empty_count_error(names: &[String], passed: &PassResult, warnings: &[String]) -> String {
    let without_size: u64 = passed.read.iter().map(|read| read.without_size).sum();
    if without_size > 0 {
        return format!(
            "{}: no response has a size; --missing-size zero counts them as empty, large as above every threshold",
            names.join(", ")
        );
    }
    warnings
        .first()
        .cloned()
        .unwrap_or_else(|| format!("{}: no requests in it; name another log", names.join(", ")))
}
