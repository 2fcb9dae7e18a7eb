//! `roundtrip connections`: a server's access logs, and the connections it would hold.
//!
//! In flow flags and logs; out flow counts and warnings. How logs are read, and how counts are shown, is `accesslog-io`'s
//! business; how lines are read and connections counted, `accesslog`'s.

pub mod ask;

use accesslog_io::ask::Asked;
use accesslog_io::input::Input;
use accesslog_io::pass::Passed;
use accesslog_io::report::warning;

use crate::failure::Failure;

/// The result of the count, with warnings about the logs.
#[derive(Debug)]
pub struct Answer {
    /// Counts and time range of the pass.
    pub passed: Passed,
    /// The logs' names, in the order they were read.
    pub names: Vec<String>,
    /// Warnings.
    pub said: Vec<String>,
}

/// Reads logs and counts connections.
///
/// # Errors
/// When nothing can be counted: a missing log, no file that is a log, no sizes.
pub fn answer(inputs: Vec<Input>, asked: &Asked) -> Result<Answer, Failure> {
    let accesslog_io::Answer { passed, names, passed_over } = accesslog_io::count(inputs, asked)?;
    let mut said: Vec<String> =
        passed_over.into_iter().map(|error| format!("{}; it is passed over", Failure::from(error))).collect();
    said.extend(warning::sentences(&names, &passed, &asked.question));
    if passed.counts.requests == 0 {
        return Err(Failure::Value(nothing(&names, &passed, &said)));
    }
    Ok(Answer { passed, names, said })
}

/// The reason for a count of nothing, in one sentence.
fn nothing(names: &[String], passed: &Passed, said: &[String]) -> String {
    let without_size: u64 = passed.read.iter().map(|read| read.without_size).sum();
    if without_size > 0 {
        return format!(
            "{}: no response has a size; --missing-size zero counts them as empty, large as above every threshold",
            names.join(", ")
        );
    }
    said.first()
        .cloned()
        .unwrap_or_else(|| format!("{}: no requests in it; name another log", names.join(", ")))
}
