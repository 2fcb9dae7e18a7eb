//! Where a web page's round trips go, and how to get them back: the command line.
//!
//! Flags go in, [`scenario`] makes values of them, an engine makes rows of those, and the rows come out as tables, JSON,
//! CSV or a page. Read in this order:
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`cli`] | verbs and flags, with their help |
//! | [`verb`] | what each verb does |
//! | [`output`] | tables, JSON, CSV |
//! | [`terminal`] | where output goes |
//! | [`failure`] | why there is none, and the exit status |

#![expect(unreachable_pub, reason = "nothing imports a program: `pub` is what one module offers the others")]

mod cli;
mod failure;
mod output;
mod terminal;
mod verb;

use std::process::ExitCode;

use cli::{Cli, Verb};
use failure::Failure;

fn main() -> ExitCode {
    match cli::parse().and_then(|cli| run(&cli)) {
        Ok(status) => status,
        Err(failure) => failure.report(),
    }
}

/// 0 for a result, 1 for a finding or a verdict that fails; failures are 2.
fn run(cli: &Cli) -> Result<ExitCode, Failure> {
    match &cli.verb {
        Verb::List(list) => verb::list::run(list)?,
        Verb::Completions { shell } => verb::manual::completions(*shell)?,
        Verb::Man { verb } => verb::manual::man(verb.as_deref())?,
    }
    Ok(ExitCode::SUCCESS)
}
