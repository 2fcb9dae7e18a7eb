//! Input, output and files of `load`: requests, plans and results.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`emulated`] | our own server behind an emulated link, instead of an existing one |
//! | [`limits`] | the bottleneck of each second, drawn for the page |
//! | [`merge`] | results of several shards, merged |
//! | [`page`] | runs as an HTML page |
//! | [`plan`] | a plan as a file, and its goodness of fit |
//! | [`replay`] | access logs, read for a plan |
//! | [`result`] | the results of a run |
//! | [`target`] | the server, and a preflight request |
//! | [`thresholds`] | the limits that a run is judged by |
//! | [`traffic`] | requests and their schedule, from flags |
//! | [`view`] | a run in progress, in lines |
//! | [`watch`] | the thread that draws these lines and waits for signals |
//!
//! Not the load generator, nor the results file: both are in the crate `load`.

pub mod emulated;
pub mod limits;
pub mod merge;
pub mod page;
pub mod plan;
pub mod replay;
pub mod result;
pub mod target;
pub mod thresholds;
pub mod traffic;
pub mod view;
pub mod watch;

use std::fmt;

use crate::failure::Failure;

/// The value of a flag, or a sentence that names the flag.
pub fn value<T>(flag: &str, value: Result<T, impl fmt::Display>) -> Result<T, Failure> {
    value.map_err(|error| Failure::Value(format!("--{flag}: {error}")))
}

/// A number above zero.
pub fn positive(flag: &str, text: &str) -> Result<u32, Failure> {
    let refused = || Failure::Value(format!("--{flag}: `{text}` is not a number from 1 to 4,294,967,295"));
    text.parse().ok().filter(|number| *number > 0).ok_or_else(refused)
}
