//! Flags of a verdict: findings that fail a build, and output formats for continuous integration.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

/// Flags of the verdict.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Verdict")]
pub struct GateFlags {
    /// Fail on findings of this severity (low, medium, high) or cause, or on CAUSE:MS, a cause that took this many
    /// milliseconds; `none`: never; repeat it for more [default: medium]
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    pub fail_on: Vec<String>,
    /// Never fail on this cause; repeat it for more
    #[arg(long, value_name = "CAUSE", value_delimiter = ',')]
    pub allow: Vec<String>,
    /// Fail on findings only that are not in this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub baseline: Option<PathBuf>,
    /// Write the findings as a baseline; they do not fail
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub write_baseline: Option<PathBuf>,
    /// Run the command N times; a finding fails if it occurs in more than half of the runs
    #[arg(long, value_name = "N", requires = "run", conflicts_with = "write")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub runs: Option<u16>,
    /// Exit with the command's status; 128 + N after signal N
    #[arg(long, requires = "run")]
    pub status_of_command: bool,
    /// File that results in the formats sarif and github point to, such as the workflow's
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub locate: Option<String>,
}

/// Output format of a diagnosis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people: rounded, as wide as the terminal; in a pipe as wide as needed, or as COLUMNS says
    #[default]
    Table,
    /// For programs: every field, in full precision
    Json,
    /// For spreadsheets: a line for each finding, in full precision
    Csv,
    /// For browsers' network tools: exchanges as an HTTP archive
    Har,
    /// For pull requests: a summary in GitHub's Markdown
    Markdown,
    /// For CI systems: test results as XML
    Junit,
    /// For code scanning: SARIF 2.1.0
    Sarif,
    /// For GitHub workflows: annotations, and a job summary
    Github,
    /// The Test Anything Protocol, version 14
    Tap,
}
