//! Results of several generators, each with a shard of one plan, merged.
//!
//! Histograms are added, which loses nothing; a second is the worst of the shards' seconds. Not a comparison: runs of
//! different plans are not added.

use std::path::{Path, PathBuf};

use quantity::names::shown;

use crate::log::{Log, RunParameters};

/// Error of a merge.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// No results.
    #[error("there is nothing to merge")]
    Nothing,
    /// A result is of another run than the first.
    #[error(
        "{}: {difference} than {}; merge the shards of one run, and compare others",
        shown(.path),
        shown(.first)
    )]
    Other {
        /// The culprit.
        path: PathBuf,
        /// The difference.
        difference: &'static str,
        /// The result that it was compared with.
        first: PathBuf,
    },
    /// A shard is given twice.
    #[error("{}: shard {part} of {of} is given twice; give each once", shown(.path))]
    Twice {
        /// The culprit.
        path: PathBuf,
        /// Number of the shard.
        part: u32,
        /// Number of shards.
        of: u32,
    },
}

/// The merged results, one log at a time: a thousand shards need no more memory than two.
///
/// # Errors
/// Those of the logs, and [`MergeError`].
pub fn merged<'a, E: From<MergeError>>(
    logs: impl IntoIterator<Item = Result<(&'a Path, Log), E>>,
) -> Result<Log, E> {
    let mut logs = logs.into_iter();
    let (first, mut whole) = logs.next().ok_or(MergeError::Nothing)??;
    for part in logs {
        let (path, Log { parameters, record }) = part?;
        if let Some(difference) = differs(&whole.parameters, &parameters) {
            return Err(
                MergeError::Other { path: path.to_owned(), difference, first: first.to_owned() }.into()
            );
        }
        if let Some(part) = parameters.shards.iter().find(|part| whole.parameters.shards.contains(part)) {
            return Err(
                MergeError::Twice { path: path.to_owned(), part: *part, of: parameters.shard_count }.into()
            );
        }
        whole.parameters.shards.extend(parameters.shards);
        whole.parameters.shards.sort_unstable();
        let ((earliest, latest), (began, ended)) = (whole.parameters.began, parameters.began);
        whole.parameters.began = (earliest.min(began), latest.max(ended));
        whole.record.join(record);
    }
    Ok(whole)
}

/// The difference that shows that two logs are not shards of one run; `None` if there is none.
fn differs(one: &RunParameters, other: &RunParameters) -> Option<&'static str> {
    // Each generator may use another name for the server.
    let RunParameters {
        target: _,
        protocol,
        clients,
        distributions,
        workload,
        seed,
        plan,
        shards: _,
        shard_count,
        began: _,
    } = other;
    let differences = [
        (
            (distributions, workload, seed, plan)
                != (&one.distributions, &one.workload, &one.seed, &one.plan),
            "another plan",
        ),
        (*protocol != one.protocol, "another protocol"),
        (*clients != one.clients, "other clients"),
        (*shard_count != one.shard_count, "another number of shards"),
    ];
    differences.into_iter().find_map(|(differs, difference)| differs.then_some(difference))
}

/// Maximum number of missing shards that are listed.
const MAX_NAMED: usize = 20;

/// Warning about missing shards; empty for a complete run.
pub fn missing_shards(parameters: &RunParameters) -> String {
    let mut text = String::new();
    let mut missing = (1..=parameters.shard_count)
        .filter(|part| !parameters.shards.contains(part))
        .map(|part| part.to_string());
    let listed: Vec<String> = missing.by_ref().take(MAX_NAMED).collect();
    if !listed.is_empty() {
        let more = if missing.next().is_some() { ", and more" } else { "" };
        text += &format!("\nMissing shards of {}: {}{more}.\n", parameters.shard_count, listed.join(", "));
    }
    let start_spread = parameters.began.1 - parameters.began.0;
    if start_spread > 1.0 {
        text += &format!(
            "\nThe parts began up to {start_spread:.1} s apart, by their hosts' clocks: each second is the sum of the parts' own seconds. \
             --at lets them begin together where these clocks agree.\n"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use crate::record::{Channel, Record};

    use super::*;

    fn part(number: u32) -> Log {
        let parameters = RunParameters {
            target: format!("http://10.0.0.{number}/"),
            protocol: "http11".to_owned(),
            clients: String::new(),
            distributions: "surge-1998".to_owned(),
            workload: String::new(),
            seed: 1,
            plan: "00ff".to_owned(),
            shards: vec![number],
            shard_count: 3,
            began: (f64::from(number), f64::from(number)),
        };
        let mut record = Record::default();
        record.channels.insert(Channel::Udp, 7);
        record.intended.record(u64::from(number)).unwrap();
        Log { parameters, record }
    }

    #[test]
    fn shards_are_added_and_missing_ones_are_reported() {
        let (path, other) = (Path::new("a.hlog"), Path::new("b.hlog"));
        let whole = merged::<MergeError>([Ok((path, part(3))), Ok((other, part(1)))]).unwrap();
        assert_eq!((&whole.parameters.shards[..], whole.parameters.began), (&[1, 3][..], (1.0, 3.0)));
        assert_eq!((whole.record.responses(), whole.record.intended.len()), (14, 2));
        let reported = missing_shards(&whole.parameters);
        assert!(
            reported.contains("Missing shards of 3: 2.") && reported.contains("up to 2.0 s apart"),
            "{reported}"
        );
    }

    #[test]
    fn regress_of_billions_of_missing_shards_a_few_are_listed() {
        let mut log = part(1);
        log.parameters.shard_count = u32::MAX;
        let reported = missing_shards(&log.parameters);
        assert!(
            reported.len() < 200 && reported.contains(": 2, 3,") && reported.contains("21, and more."),
            "{reported}"
        );
    }

    #[test]
    fn shards_of_other_runs_are_refused() {
        let (path, other) = (Path::new("a.hlog"), Path::new("b.hlog"));
        let refused =
            |log: Log| merged::<MergeError>([Ok((path, part(1))), Ok((other, log))]).unwrap_err().to_string();
        assert!(refused(part(1)).contains("b.hlog: shard 1 of 3 is given twice"), "{}", refused(part(1)));
        let mut changed = part(2);
        changed.parameters.plan = "0100".to_owned();
        assert!(refused(changed).contains("another plan than a.hlog"));
    }
}
