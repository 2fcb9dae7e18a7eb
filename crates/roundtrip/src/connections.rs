//! `roundtrip connections`: a server's access logs, and the connections it would hold.
//!
//! In flow flags and logs; out flow tables, rows or a page. How lines are read is `accesslog`'s business,
//! how connections are counted `accesslog::connections`'. Read in this order:
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`ask`] | flags, made into a query |
//! | [`input`] | files, directories, patterns, standard input; decompressed |
//! | [`store`], [`object`] | the same in object stores, fetched |
//! | [`line_up`] | logs recognised, and sorted by their first record |
//! | [`blocks`] | bytes cut into blocks of whole lines |
//! | [`table_format`], [`table_file`] | Parquet and Arrow files, batch by batch |
//! | `parquet_object` | Parquet in an object store |
//! | `no_parquet`, `no_store` | the same where they are not built |
//! | [`source`] | a log that is being read, lines or rows |
//! | [`order`] | a log's requests sorted by time, within bounds |
//! | [`merge`] | the requests of several logs merged into one stream |
//! | [`intake`] | both, for blocks that complete in any order |
//! | [`slices`] | requests cut into slices that are counted independently |
//! | [`mod@pass`] | the threads that read and count |
//! | [`said`] | warnings about unreadable input, for stderr |
//! | [`row`] | the result for programs |
//! | [`distribution`] | the distribution of bytes and requests over connections |
//! | [`over_time`] | connections in each minute, for programs |
//! | [`parquet_file`] | both as Parquet tables |
//! | [`table`], [`sentence`] | for people |
//! | [`page`] | as a page with the paper's figures |

pub mod ask;
pub mod blocks;
pub mod distribution;
pub mod input;
pub mod intake;
pub mod line_up;
pub mod merge;
#[cfg(not(feature = "parquet"))]
pub mod no_parquet;
#[cfg(not(feature = "object-store"))]
pub mod no_store;
#[cfg(feature = "object-store")]
pub mod object;
pub mod order;
pub mod over_time;
pub mod page;
#[cfg(feature = "parquet")]
pub mod parquet_file;
#[cfg(all(feature = "object-store", feature = "parquet"))]
pub mod parquet_object;
pub mod pass;
pub mod row;
pub mod said;
pub mod sentence;
pub mod slices;
pub mod source;
#[cfg(feature = "object-store")]
pub mod store;
pub mod table;
#[cfg(feature = "parquet")]
pub mod table_file;
pub mod table_format;

#[cfg(not(feature = "parquet"))]
pub use no_parquet::{self as parquet_file, self as table_file};
#[cfg(not(feature = "object-store"))]
pub use no_store::{self as object, self as store};

use crate::failure::Failure;

use ask::Asked;
use input::Input;
use line_up::LinedUp;
use pass::{Passed, Wanted, pass};

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
    let LinedUp { logs, names, mut said } = line_up::line_up(inputs, asked)?;
    let Asked { question, distribution, sizing, window, threads, .. } = asked;
    let wanted = Wanted {
        question,
        distribution: *distribution,
        sizing: *sizing,
        window: window.blocks,
        threads: *threads,
    };
    let passed = pass(logs, wanted);
    said.extend(said::sentences(&names, &passed, &asked.question));
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
            "{}: no answer has a size; --missing-size zero counts them as empty, large as above every threshold",
            names.join(", ")
        );
    }
    said.first()
        .cloned()
        .unwrap_or_else(|| format!("{}: there is no request in it; name another log", names.join(", ")))
}
