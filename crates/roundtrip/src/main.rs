//! Where a web page's round trips go, and how to get them back: the command line.
//!
//! [`scenario`] parses the flags, an engine turns the values into rows, and the rows are printed as tables, JSON, CSV or
//! HTML. Reading order:
//!
//! | module | contents |
//! | --- | --- |
//! | [`cli`] | verbs and flags, with their help |
//! | [`plan_flags`] | plans, from flags and files |
//! | [`verb`] | one module for each verb |
//! | [`plots`] | plots of diagnosed connections, as files |
//! | [`mod@connections`] | connections counted from access logs |
//! | [`serve`] | a server's settings, logging and metrics |
//! | [`grid_run`] | rows of a grid, on all CPUs |
//! | [`show`] | results in the requested format |
//! | [`mod@file`], [`output`], [`terminal`] | output files, standard output, terminal |
//! | [`failure`] | errors and the exit status |
//! | [`feature`] | Cargo features |

#![expect(unreachable_pub, reason = "`pub` marks the interface between modules of a binary")]
#![cfg_attr(not(feature = "all-verbs"), expect(dead_code, reason = "functions that only other verbs call"))]

mod cli;
#[cfg(feature = "all-verbs")]
mod connections;
mod failure;
mod feature;
mod file;
#[cfg(feature = "all-verbs")]
mod grid_run;
#[cfg(feature = "all-verbs")]
mod laboratory;
#[cfg(feature = "all-verbs")]
mod loading;
mod output;
#[cfg(feature = "all-verbs")]
mod page_source;
#[cfg(feature = "all-verbs")]
mod plan_flags;
mod plots;
#[cfg(feature = "all-verbs")]
mod progress;
#[cfg(all(test, feature = "all-verbs"))]
#[path = "../tests/reference/mod.rs"]
mod reference;
mod serve;
#[cfg(feature = "all-verbs")]
mod show;
mod terminal;
mod verb;

use std::process::ExitCode;

use cli::{Cli, Verb};
use failure::Failure;

fn main() -> ExitCode {
    if cli::is_verbose_version(std::env::args_os().skip(1)) {
        return crate::output::to_stdout(&feature::version())
            .map_or_else(|failure| failure.report(), |()| ExitCode::SUCCESS);
    }
    match cli::parse().and_then(|cli| run(&cli)) {
        Ok(status) => status,
        Err(failure) => failure.report(),
    }
}

/// Runs a verb. Exit status: 0 for a result, 1 for a finding or a failed verdict, 128 plus the signal for a stopped load.
fn run(cli: &Cli) -> Result<ExitCode, Failure> {
    match &cli.verb {
        #[cfg(feature = "all-verbs")]
        Verb::Predict(arguments) => verb::predict::run(arguments)?,
        #[cfg(feature = "all-verbs")]
        Verb::Simulate(arguments) => verb::simulate::run(arguments)?,
        #[cfg(feature = "all-verbs")]
        Verb::Measure(arguments) => verb::measure::run(arguments)?,
        #[cfg(feature = "all-verbs")]
        Verb::Compare(arguments) => verb::compare::run(arguments)?,
        #[cfg(feature = "all-verbs")]
        Verb::Connections(arguments) => verb::connections::run(arguments)?,
        #[cfg(feature = "all-verbs")]
        Verb::Content(arguments) => verb::content::run(arguments)?,
        #[cfg(feature = "all-verbs")]
        Verb::Lab(arguments) => verb::lab::run(arguments)?,
        #[cfg(feature = "all-verbs")]
        Verb::Page(arguments) => verb::page::run(arguments)?,
        #[cfg(feature = "all-verbs")]
        Verb::Load(arguments) => return verb::load::run(arguments),
        #[cfg(feature = "all-verbs")]
        Verb::Logs(arguments) => verb::logs::run(arguments)?,
        Verb::Diagnose(arguments) => return verb::diagnose::run(arguments),
        Verb::Watch(arguments) => return verb::watch::run(arguments),
        #[cfg(feature = "all-verbs")]
        Verb::Reproduce(arguments) => return verb::reproduce::run(arguments),
        #[cfg(feature = "all-verbs")]
        Verb::Serve(arguments) => verb::serve::run(arguments)?,
        #[cfg(feature = "all-verbs")]
        Verb::Gateway(arguments) => verb::gateway::run(arguments)?,
        #[cfg(feature = "all-verbs")]
        Verb::Cache(arguments) => verb::cache::run(arguments)?,
        #[cfg(feature = "all-verbs")]
        Verb::Nat(arguments) => verb::nat::run(arguments)?,
        #[cfg(feature = "all-verbs")]
        Verb::Get(arguments) => return verb::get::run(arguments),
        #[cfg(feature = "all-verbs")]
        Verb::Site(arguments) => verb::site::run(arguments)?,
        #[cfg(feature = "all-verbs")]
        Verb::Link(arguments) => return verb::link::run(arguments),
        #[cfg(feature = "all-verbs")]
        Verb::List(arguments) => verb::list::run(arguments)?,
        Verb::Completions { shell } => verb::manual::completions(*shell)?,
        Verb::Man { verb } => verb::manual::man(verb.as_deref())?,
    }
    Ok(ExitCode::SUCCESS)
}
