//! Input and files of `load`: requests, plans and results.
//!
//! | module | contents |
//! | --- | --- |
//! | [`emulated`] | Roundtrip's server behind an emulated link |
//! | [`find_limit`] | the search for the rate that a server sustains |
//! | [`log`] | results files |
//! | [`plan`] | plan files, and their need of memory and disk |
//! | [`replay`] | access logs as requests or plans |
//! | [`target`] | the server, and a preflight request |
//! | [`traffic`] | requests and their schedule, from flags |
//! | [`run_display`] | progress on the terminal, and signals |
//!
//! The load generator, the results and their reports are in the crate `load`.

pub mod emulated;
pub mod find_limit;
pub mod log;
pub mod plan;
pub mod replay;
pub mod run_display;
pub mod target;
pub mod traffic;

use std::fmt;

use crate::failure::Failure;

/// Returns the value of a flag, or an error that names the flag.
pub fn value<T>(flag: &str, value: Result<T, impl fmt::Display>) -> Result<T, Failure> {
    value.map_err(Failure::of_flag(flag))
}

/// Parses a number above zero.
pub fn positive(flag: &str, text: &str) -> Result<u32, Failure> {
    let refused = || Failure::Value(format!("--{flag}: `{text}` is not a number from 1 to 4,294,967,295"));
    text.parse().ok().filter(|number| *number > 0).ok_or_else(refused)
}
