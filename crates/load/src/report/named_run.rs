//! A run beside others on a page.

use crate::log::Log;
use crate::record::Record;
use crate::second::Second;

/// A run and its name on the page.
pub struct NamedRun {
    /// Short name: it labels the ends of lines.
    pub name: String,
    /// The run.
    pub log: Log,
}

/// The seconds, without those at the end that have neither requests due nor responses: the last begins with the plan's end.
pub(super) fn shown(record: &Record) -> &[Second] {
    let is_empty = |second: &Second| second.due + second.responses + second.failed == 0;
    let last = record.seconds.iter().rposition(|second| !is_empty(second)).map_or(0, |last| last + 1);
    &record.seconds[..last]
}
