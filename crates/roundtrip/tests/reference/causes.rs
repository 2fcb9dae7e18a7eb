//! Causes of stalls, with the texts that `roundtrip diagnose` prints.

use diagnose::Cause;
use diagnose::cause::{CauseInfo, Describe, Fix, Party};

use super::{cell, table};

/// The page.
pub fn page() -> String {
    let rows: Vec<Vec<String>> = Cause::ALL.iter().map(|cause| summary(*cause)).collect();
    let fixes: String = Cause::ALL.iter().filter_map(|cause| remedies(*cause)).collect();
    format!(
        "# Causes of stalls\n\nGenerated from `crates/diagnose/src/causes`, whose files have each rule, its evidence \
         and what would refute it. [diagnose.md](../diagnose.md) explains the verb. A *failure* ends a connection \
         early and is always reported. A *fault* can be fixed. A *note* is good to know. Shorter times than the \
         minimum are in the account only.\n\n{}\n## Fixes\n{fixes}",
        table(&["cause", "kind", "minimum", "event"], &rows)
    )
}

fn summary(cause: Cause) -> Vec<String> {
    let CauseInfo { description, fixes: _, is_fault, min_duration } = cause.about();
    let kind = match (cause.is_failure(), is_fault) {
        (true, _) => "failure",
        (false, true) => "fault",
        (false, false) => "note",
    };
    vec![format!("`{}`", cause.name()), kind.to_owned(), min_duration.to_string(), cell(description)]
}

fn remedies(cause: Cause) -> Option<String> {
    let fixes = cause.about().fixes;
    let line = |Fix { party, change }: &Fix| format!("- {}: {}\n", party_name(*party), cell(change));
    let lines: String = fixes.iter().map(line).collect();
    (!fixes.is_empty()).then(|| format!("\n### {}\n\n{lines}", cause.name()))
}

const fn party_name(party: Party) -> &'static str {
    match party {
        Party::SendingApplication => "sending application",
        Party::ReceivingApplication => "receiving application",
        Party::SendingKernel => "sending kernel",
        Party::ReceivingKernel => "receiving kernel",
        Party::ClientApplication => "client application",
        Party::ServerApplication => "server application",
        Party::Network => "network",
    }
}
