//! The verdict of `roundtrip diagnose`: its policy from flags, its output in every format, its exit status.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use diagnose::Cause;
use quantity::names::{self, shown};
use report::ci::{self, github, junit, markdown, sarif, tap};
use report::command::CommandExit;
use report::verdict::{Baseline, BaselineError, Policy, Threshold, Verdict};
use report::{Capture, csv, json, text};

use crate::cli::gate::{Format, GateFlags};
use crate::failure::Failure;

/// Builds the policy of the flags; without any, findings of medium severity fail.
pub fn policy(flags: &GateFlags) -> Result<Policy, Failure> {
    let GateFlags { fail_on, allow, baseline, .. } = flags;
    let mut policy = Policy { is_failure_accepted: flags.status_of_command, ..Policy::default() };
    if !fail_on.is_empty() {
        let rules = fail_on.iter().map(|text| Threshold::parse(text)).collect::<Result<Vec<_>, _>>();
        policy.fail_on = rules.map_err(Failure::of_flag("fail-on"))?.into_iter().flatten().collect();
    }
    let cause = |name: &String| names::find("cause", name, &Cause::ALL, Cause::name);
    let allowed: Result<Vec<Cause>, _> = allow.iter().map(cause).collect();
    policy.allowed = allowed.map_err(Failure::of_flag("allow"))?;
    if let Some(path) = baseline {
        let refused = |error| Failure::Value(format!("--baseline {}: {error}", shown(path)));
        policy.known =
            File::open(path).map_err(BaselineError::Io).and_then(Baseline::read).map_err(refused)?;
    }
    Ok(policy)
}

/// Prints captures and verdict.
pub fn show(
    captures: &[Capture],
    verdict: &Verdict<'_>,
    format: Format,
    flags: &GateFlags,
) -> Result<(), Failure> {
    let file = flags.locate.as_deref();
    let text = match format {
        Format::Table => table(captures, verdict, flags),
        Format::Json => json::text(captures, verdict),
        Format::Csv => csv::text(captures),
        Format::Har => report::har::text(captures),
        Format::Markdown => markdown::text(captures, verdict),
        Format::Junit => junit::text(verdict),
        Format::Sarif => sarif::text(verdict, file),
        Format::Github => {
            summarise(&markdown::text(captures, verdict))?;
            github::text(verdict, file)
        }
        Format::Tap => tap::text(verdict),
    };
    crate::output::to_stdout(&text)
}

/// Renders each file, or of several runs the one with the worst case. The verdict follows if flags control it.
fn table(captures: &[Capture], verdict: &Verdict<'_>, flags: &GateFlags) -> String {
    let worst = verdict.cases.first().map(|case| std::slice::from_ref(case.worst.0));
    let shown_captures = worst.or(captures.get(..1)).filter(|_| flags.runs.is_some_and(|runs| runs > 1));
    let terminal = crate::terminal::of_stdout();
    let text = text::render(shown_captures.unwrap_or(captures), terminal);
    let GateFlags { fail_on, allow, baseline, write_baseline, runs, status_of_command: _, locate: _ } = flags;
    let is_plain = fail_on.is_empty() && allow.is_empty() && baseline.is_none() && write_baseline.is_none();
    match is_plain && runs.is_none() {
        true => text + &ci::remarks(verdict, terminal.prose_width()),
        false => text + &ci::text(verdict, terminal.prose_width()),
    }
}

/// Appends to the job summary of GitHub's runner, if any.
fn summarise(text: &str) -> Result<(), Failure> {
    let path = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty());
    let Some(path) = path.map(PathBuf::from) else { return Ok(()) };
    let file = File::options().append(true).create(true).open(&path);
    file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| Failure::Write { path, error })
}

/// Returns the command's status if requested: of several runs the first that is not 0. Otherwise the verdict's.
pub fn status(captures: &[Capture], verdict: &Verdict<'_>, flags: &GateFlags) -> ExitCode {
    let command_status = |capture: &Capture| match capture.command? {
        CommandExit::Exited(status) => u8::try_from(status).ok(),
        CommandExit::Killed(signal) => u8::try_from(128 + signal).ok(),
        CommandExit::Running => None,
    };
    if flags.status_of_command {
        let statuses: Vec<u8> = captures.iter().filter_map(command_status).collect();
        if let Some(first) = statuses.iter().find(|status| **status != 0).or(statuses.first()) {
            return ExitCode::from(*first);
        }
    }
    ExitCode::from(verdict.status())
}
