//! Results of several generators, each with a shard of one plan, merged.
//!
//! Histograms are added, which loses nothing; a second is the worst of the shards' seconds. Not a comparison: runs of
//! different plans are not added.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use load::log::{self, About, Log};
use render::output::number;

use crate::failure::{Failure, shown};

/// The log of a file.
pub fn read(path: &Path) -> Result<Log, Failure> {
    let unreadable = |error| Failure::Read { path: path.to_owned(), error };
    let mut text = String::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(log::MOST_BYTES + 1).read_to_string(&mut text).map_err(unreadable)?;
    if text.len() as u64 > log::MOST_BYTES {
        return Err(Failure::Value(format!(
            "{} has more than {} bytes, and no log of a load has; give logs that `load --log` wrote",
            shown(path),
            number::count(log::MOST_BYTES as f64)
        )));
    }
    log::read(&text).map_err(|error| Failure::Value(format!("{}: {error}", shown(path))))
}

/// The merged results, one log at a time: a thousand shards need no more memory than two.
pub fn merged<'a>(logs: impl IntoIterator<Item = Result<(&'a Path, Log), Failure>>) -> Result<Log, Failure> {
    let mut logs = logs.into_iter();
    let (first, mut whole) =
        logs.next().ok_or_else(|| Failure::Value("there is nothing to merge".to_owned()))??;
    for part in logs {
        let (path, Log { about, record }) = part?;
        let refused = |why: String| Failure::Value(format!("{}: {why}", shown(path)));
        if let Some(what) = differs(&whole.about, &about) {
            return Err(refused(format!(
                "it has {what} than {}; merge the parts of one run, and compare others",
                shown(first)
            )));
        }
        if let Some(part) = about.parts.iter().find(|part| whole.about.parts.contains(part)) {
            return Err(refused(format!("part {part} of {} is there already; give each once", about.of)));
        }
        whole.about.parts.extend(about.parts);
        whole.about.parts.sort_unstable();
        let ((earliest, latest), (began, ended)) = (whole.about.began, about.began);
        whole.about.began = (earliest.min(began), latest.max(ended));
        whole.record.join(record);
    }
    Ok(whole)
}

/// The difference that shows that two logs are not shards of one run; `None` if there is none.
fn differs(one: &About, other: &About) -> Option<&'static str> {
    // Each generator may use another name for the server.
    let About { target: _, protocol, clients, laws, workload, seed, plan, parts: _, of, began: _ } = other;
    let differences = [
        ((laws, workload, seed, plan) != (&one.laws, &one.workload, &one.seed, &one.plan), "another plan"),
        (*protocol != one.protocol, "another protocol"),
        (*clients != one.clients, "other clients"),
        (*of != one.of, "another number of parts"),
    ];
    differences.into_iter().find_map(|(differs, what)| differs.then_some(what))
}

/// Maximum number of missing shards that are listed.
const MOST_NAMED: usize = 20;

/// Warning about missing shards; empty for a complete run.
pub fn remarks(about: &About) -> String {
    let mut text = String::new();
    let mut missing = (1..=about.of).filter(|part| !about.parts.contains(part)).map(|part| part.to_string());
    let some: Vec<String> = missing.by_ref().take(MOST_NAMED).collect();
    if !some.is_empty() {
        let more = if missing.next().is_some() { ", and more" } else { "" };
        text += &format!("\nOf {} parts these are missing: {}{more}.\n", about.of, some.join(", "));
    }
    let apart = about.began.1 - about.began.0;
    if apart > 1.0 {
        text += &format!(
            "\nThe parts began up to {apart:.1} s apart, by their machines' clocks: each second is the sum of the parts' own seconds. \
             --at lets them begin together where these clocks agree.\n"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use load::record::{Channel, Record};

    use super::*;

    fn part(number: u32) -> Log {
        let about = About {
            target: format!("http://10.0.0.{number}/"),
            protocol: "http11".to_owned(),
            clients: String::new(),
            laws: "surge-1998".to_owned(),
            workload: String::new(),
            seed: 1,
            plan: "00ff".to_owned(),
            parts: vec![number],
            of: 3,
            began: (f64::from(number), f64::from(number)),
        };
        let mut record = Record::default();
        record.channels.insert(Channel::Udp, 7);
        record.intended.record(u64::from(number)).unwrap();
        Log { about, record }
    }

    #[test]
    fn shards_are_added_and_missing_ones_are_reported() {
        let (path, other) = (Path::new("a.hlog"), Path::new("b.hlog"));
        let whole = merged([Ok((path, part(3))), Ok((other, part(1)))]).unwrap();
        assert_eq!((&whole.about.parts[..], whole.about.began), (&[1, 3][..], (1.0, 3.0)));
        assert_eq!((whole.record.answers(), whole.record.intended.len()), (14, 2));
        let said = remarks(&whole.about);
        assert!(
            said.contains("Of 3 parts these are missing: 2.") && said.contains("up to 2.0 s apart"),
            "{said}"
        );
    }

    #[test]
    fn regress_of_billions_of_missing_shards_a_few_are_listed() {
        let mut log = part(1);
        log.about.of = u32::MAX;
        let said = remarks(&log.about);
        assert!(
            said.len() < 200 && said.contains("missing: 2, 3,") && said.contains("21, and more."),
            "{said}"
        );
    }

    #[test]
    fn shards_of_other_runs_are_refused() {
        let (path, other) = (Path::new("a.hlog"), Path::new("b.hlog"));
        let refused = |log: Log| merged([Ok((path, part(1))), Ok((other, log))]).unwrap_err().to_string();
        assert!(refused(part(1)).contains("b.hlog: part 1 of 3 is there already"), "{}", refused(part(1)));
        let mut odd = part(2);
        odd.about.plan = "0100".to_owned();
        assert!(refused(odd).contains("it has another plan than a.hlog"));
    }
}
