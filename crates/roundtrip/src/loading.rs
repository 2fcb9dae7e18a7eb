//! What `load` reads, prints and writes: requests, plans and results.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`emulated`] | our own server behind an emulated link, instead of somebody's |
//! | [`limits`] | who was the limit of each second, drawn for the page |
//! | [`merge`] | parts put together |
//! | [`page`] | runs on a page, for people elsewhere |
//! | [`plan`] | a plan as a file, and how well it fits |
//! | [`replay`] | access logs, read for a plan |
//! | [`result`] | what came of a run |
//! | [`target`] | the server, and a preflight request |
//! | [`thresholds`] | limits that a run is judged by |
//! | [`traffic`] | requests and their schedule, from flags |
//! | [`view`] | a run while it goes on, in lines |
//! | [`watch`] | what draws them, and hears that the run is to end |
//!
//! Not the load itself, nor what came of it as a file: both are the crate `load`'s.

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
