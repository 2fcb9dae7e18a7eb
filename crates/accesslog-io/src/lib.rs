//! Access logs from files, directories, patterns, standard input and object stores; read and counted in one
//! parallel pass; the counts as text.
//!
//! In flow names; out flow counts, and the counters of each log. `accesslog` parses lines and counts connections. Read in
//! this order:
//!
//! | module | contents |
//! | --- | --- |
//! | [`options`] | the query, and options for reading |
//! | [`input`] | files, directories, patterns, standard input; unpacked |
//! | [`store`], [`object`] | the same in object stores, fetched (feature `object-store`) |
//! | [`open_logs`] | logs recognised, and put in order of their beginnings |
//! | [`blocks`] | bytes cut into blocks of whole lines |
//! | [`table_format`], [`table_file`] | Parquet and Arrow files, batch by batch (feature `parquet`) |
//! | `parquet_object` | Parquet in an object store |
//! | `no_parquet`, `no_store` | the same where they are not built |
//! | [`source`] | a log that is being read, lines or rows |
//! | [`reorder`] | a log's requests put in order of time, within bounds |
//! | [`merge`] | those of several logs made into one stream |
//! | [`merged_logs`] | both, for blocks that come back in any order |
//! | [`slices`] | requests cut into stretches that are counted apart |
//! | [`mod@pass`] | threads that read and count |
//! | [`mod@report`] | the count as tables, JSON, CSV, Parquet and a page |
//! | [`error`] | reasons why logs could not be read |
//!
//! ```
//! use accesslog::connections::Query;
//! use roundtrip_accesslog_io::{options::ConnectionsOptions, count, input};
//! use wire::{Bytes, Duration};
//!
//! let log = std::env::temp_dir().join("roundtrip-accesslog-io.log");
//! std::fs::write(&log, "192.0.2.1 - - [22/Nov/2026:10:00:00 +0000] \"GET / HTTP/1.1\" 200 5120\n")?;
//! let timeout = Duration::from_secs(15);
//! let query = Query::new(&[timeout], &[1], &[Bytes::ZERO], timeout)?;
//! let counts = count(input::named(&[log])?, &ConnectionsOptions::of(query))?;
//! assert_eq!(counts.passed.counts.requests, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Not output: errors are data, and a report is a string.

pub mod blocks;
pub mod error;
mod glob;
pub mod input;
pub mod merge;
pub mod merged_logs;
#[cfg(not(feature = "parquet"))]
pub mod no_parquet;
#[cfg(not(feature = "object-store"))]
pub mod no_store;
#[cfg(feature = "object-store")]
pub mod object;
pub mod open_logs;
pub mod options;
#[cfg(all(feature = "object-store", feature = "parquet"))]
pub mod parquet_object;
pub mod pass;
pub mod reorder;
pub mod report;
pub mod slices;
pub mod source;
#[cfg(feature = "object-store")]
pub mod store;
#[cfg(feature = "parquet")]
pub mod table_file;
pub mod table_format;

#[cfg(not(feature = "parquet"))]
pub use no_parquet as table_file;
#[cfg(not(feature = "object-store"))]
pub use no_store::{self as object, self as store};

pub use error::Error;

use input::Input;
use open_logs::OpenLogs;
use options::ConnectionsOptions;
use pass::{PassOptions, PassResult, pass};

/// Result of reading and counting logs.
#[derive(Debug)]
pub struct CountResult {
    /// Numbers read and counted.
    pub passed: PassResult,
    /// The logs' names, in the order they were read.
    pub names: Vec<String>,
    /// Reasons why others were skipped.
    pub skipped: Vec<Error>,
}

/// Reads logs and counts.
///
/// # Errors
/// When nothing can be read: a missing log, or no input that is a log. When the counters exceed their memory limit.
pub fn count(inputs: Vec<Input>, options: &ConnectionsOptions) -> Result<CountResult, Error> {
    let OpenLogs { logs, names, skipped } = open_logs::open_all(inputs, options)?;
    let ConnectionsOptions { query, distribution, sizing, window, threads, memory, .. } = options;
    let wanted = PassOptions {
        query,
        distribution: *distribution,
        sizing: *sizing,
        window: window.blocks,
        threads: *threads,
        memory: *memory,
    };
    Ok(CountResult { passed: pass(logs, wanted)?, names, skipped })
}
