//! Input and files of `load`: requests, plans and results.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`emulated`] | our own server behind an emulated link, instead of an existing one |
//! | [`log`] | the results file of a run, read |
//! | [`plan`] | a plan as a file |
//! | [`replay`] | access logs, read for a plan |
//! | [`target`] | the server, and a preflight request |
//! | [`traffic`] | requests and their schedule, from flags |
//! | [`run_display`] | a run in progress, drawn on the terminal, and signals |
//!
//! Not the load generator, the results or their reports: those are in the crate `load`.

pub mod emulated;
pub mod log;
pub mod plan;
pub mod replay;
pub mod run_display;
pub mod target;
pub mod traffic;

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
