//! Tests that cannot run on this machine: each says `skipped: REASON` in a line on stderr, and returns.
//!
//! The line goes past the test harness, which hides what passing tests print: `ci.sh` counts these lines. Where
//! `ROUNDTRIP_REQUIRE_TOOLS` names the program that is missing (`curl nginx`), or the kernel refuses and
//! `ROUNDTRIP_REQUIRE_KERNEL` is 1, the test fails instead. Where `ROUNDTRIP_SKIPPED` names a file, the reason and the test's
//! name are appended to it, so that `ci.sh` can run the test later, with the tool.
//!
//! Not for the program itself: it depends on nothing here.
//!
//! ```
//! if !roundtrip_skip::has("sh") {
//!     return; // the reason is on stderr
//! }
//! ```

use std::env;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;

/// Whether this program is installed, in `PATH` or where Debian keeps what only root should run. Says so where it is not.
///
/// # Panics
/// Where it is not, and `ROUNDTRIP_REQUIRE_TOOLS` names it.
pub fn has(program: &str) -> bool {
    let is_there = find(program).is_some();
    if !is_there {
        missing(program);
    }
    is_there
}

/// Whether all of these are; says of the first that is not.
///
/// # Panics
/// As [`has`].
pub fn has_all(programs: &[&str]) -> bool {
    programs.iter().all(|program| has(program))
}

/// Reports a missing program, however the test found that out.
///
/// # Panics
/// Where `ROUNDTRIP_REQUIRE_TOOLS` names it.
pub fn missing(program: &str) {
    let required = env::var("ROUNDTRIP_REQUIRE_TOOLS").unwrap_or_default();
    let is_required = required.split_whitespace().any(|required| required == program);
    assert!(!is_required, "ROUNDTRIP_REQUIRE_TOOLS names {program}, and it is not installed");
    report_skip(program);
}

/// Reports that the kernel or the system refuses something.
///
/// # Panics
/// Where `ROUNDTRIP_REQUIRE_KERNEL` is 1.
pub fn refused(reason: &str) {
    let is_required = env::var_os("ROUNDTRIP_REQUIRE_KERNEL").is_some_and(|value| value == "1");
    assert!(!is_required, "ROUNDTRIP_REQUIRE_KERNEL is set, and {reason}");
    report_skip(reason);
}

/// Reports a reason that no other function covers.
pub fn report_skip(reason: &str) {
    let line = format!("skipped: {}\n", reason.split_whitespace().collect::<Vec<_>>().join(" "));
    // The harness has the macros that print, not the descriptor. In one piece: others write there, too. Nobody else is to be told
    // where this fails.
    let _ = io::stderr().lock().write_all(line.as_bytes());
    if let Some(file) = env::var_os("ROUNDTRIP_SKIPPED") {
        record(Path::new(&file), reason);
    }
}

/// Appends the reason and the test's name, which the harness gives to its thread, in one line.
fn record(file: &Path, reason: &str) {
    let test = thread::current().name().unwrap_or_default().to_owned();
    let opened = OpenOptions::new().append(true).create(true).open(file);
    let _ = opened.and_then(|mut file| file.write_all(format!("{reason}\t{test}\n").as_bytes()));
}

/// `PATH`, and where Debian keeps what only root should run.
pub fn path() -> String {
    format!("{}:/usr/sbin:/sbin", env::var("PATH").unwrap_or_default())
}

fn find(program: &str) -> Option<PathBuf> {
    env::split_paths(&path()).map(|directory| directory.join(program)).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_where_it_is_and_not_where_it_is_not() {
        assert!(find("sh").is_some());
        assert_eq!(find("no-such-program"), None);
    }
}
