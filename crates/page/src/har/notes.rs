//! Sentences on what of a recording is kept, and how.

use super::account::Account;
use super::left_out::{LeftOut, UnparsedEntries};
use super::timeline::{Item, LocalReason};
use crate::{Page, RecordedTimes};

/// Sentences on a page.
pub(super) fn notes(account: &Account, items: &[Item], hosts: usize, times: RecordedTimes) -> Vec<String> {
    [
        recorded(times),
        Some(entries(account, hosts)),
        compressed(items),
        compressed_now(items),
        request_size(items),
        discovery(account),
        distances(account, hosts),
        after_load(account),
        client_time(times),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The recording's own times, to compare with.
fn recorded(times: RecordedTimes) -> Option<String> {
    let RecordedTimes { content_loaded: _, load, last_end, before_load: _, client_time: _ } = times;
    let times = [("load event", load), ("last response", last_end)];
    let times = times.map(|(name, time)| Some(format!("{name} at {:.0} ms", time?.as_millis_f64())));
    let times: Vec<String> = times.into_iter().flatten().collect();
    (!times.is_empty()).then(|| format!("the recording's own times: {}", times.join(", ")))
}

/// The client's own time.
fn client_time(times: RecordedTimes) -> Option<String> {
    let time = times.client_time?.as_millis_f64();
    Some(format!(
        "the browser was busy: its threads take {time:.1} ms for each request and each response, one after another"
    ))
}

/// `98 of 100 entries are fetched from 5 hosts; 2 take no network: ...; left out: ...`.
fn entries(account: &Account, hosts: usize) -> String {
    let Account { fetched, local, local_example, beyond_objects, beyond_hosts, odd, empty, .. } = account;
    let locals: usize = local.values().sum();
    let dropped = beyond_objects + beyond_hosts + odd.count;
    let all = fetched + locals + dropped;
    let from = if hosts == 1 { "1 host".to_owned() } else { format!("{hosts} hosts") };
    let mut sentence = format!("{fetched} of {all} entries are fetched, from {from}");
    if *empty > 0 {
        sentence += &format!("; {} without a body, which count as 1 byte", empty);
    }
    let reasons = local.iter().map(|(reason, count)| {
        let example = local_example.get(reason).map_or("", String::as_str);
        format!("{count} {} (first {example})", reason.words())
    });
    if locals > 0 {
        let reasons: Vec<String> = reasons.collect();
        sentence += &format!("; {locals} as time without network: {}", reasons.join(", "));
    }
    let left_out: Vec<String> = [
        (*beyond_objects, format!("beyond {} objects", Page::MAX_OBJECTS)),
        (*beyond_hosts, format!("from hosts beyond {}", Page::MAX_HOSTS)),
        (odd.count, format!("unreadable ({})", odd.first)),
    ]
    .iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, reason)| format!("{count} {reason}"))
    .collect();
    if dropped > 0 {
        sentence += &format!("; left out: {}", left_out.join("; "));
    }
    sentence
}

impl LocalReason {
    const fn words(self) -> &'static str {
        match self {
            Self::Cache => "from the browser's cache",
            Self::Scheme => "not fetched by HTTP",
            Self::NoResponse => "without a response",
        }
    }
}

/// Savings by content codings.
fn compressed(items: &[Item]) -> Option<String> {
    let sizes = items.iter().filter(|item| item.local.is_none() && item.entry.is_transferred());
    super::coded(sizes.map(|item| (item.entry.size, item.recorded_size())))
}

/// Savings by the compression that is requested.
fn compressed_now(items: &[Item]) -> Option<String> {
    let smaller =
        items.iter().filter(|item| item.entry.compressed.is_some() && item.size() < item.recorded_size());
    let sizes: Vec<[u64; 2]> = smaller.map(|item| [item.recorded_size(), item.size()]).collect();
    let [before, after] = [0, 1].map(|side| sizes.iter().map(|pair| pair[side]).sum::<u64>());
    (!sizes.is_empty()).then(|| {
        format!("bodies that the compression makes smaller: {}, {before} bytes to {after}", sizes.len())
    })
}

fn request_size(items: &[Item]) -> Option<String> {
    super::requests(items.iter().filter(|item| item.local.is_none()).filter_map(|item| item.entry.request))
}

/// `dependencies: 80 recorded, 12 inferred; 3 recorded initiators began later or are missing`.
fn discovery(account: &Account) -> Option<String> {
    let evidence = account.evidence;
    let counted = [
        (evidence.initiators, "by recorded initiators"),
        (evidence.named, "by the texts that name them"),
        (evidence.redirects, "by redirects and preflights"),
        (evidence.referers, "by Referer"),
        (evidence.inferred, "by what had arrived last"),
        (evidence.timeless, "without a recorded start after the document"),
    ];
    let parts = counted.iter().filter(|(count, _)| *count > 0).map(|(count, rule)| format!("{count} {rule}"));
    let mut parts: Vec<String> = parts.collect();
    if evidence.elements > 0 {
        parts[0] += &format!(" ({} at their place in the document)", evidence.elements);
    }
    let lost = match evidence.lost_initiators {
        0 => String::new(),
        count => format!("; {count} recorded initiators are missing or began later"),
    };
    (!parts.is_empty()).then(|| format!("objects are discovered: {}{lost}", parts.join(", ")))
}

fn distances(account: &Account, hosts: usize) -> Option<String> {
    let unknown = account.unknown_rtts;
    (unknown > 0 && hosts > 1).then(|| {
        format!(
            "hosts without a recorded handshake, which count as near as the nearest: {unknown} of {hosts}"
        )
    })
}

fn after_load(account: &Account) -> Option<String> {
    let count = account.after_load;
    (count > 0).then(|| format!("objects that do not count for the load event: {count}"))
}

/// A recording in which nothing was fetched.
pub(super) fn nothing_fetched(entries: usize, odd: &UnparsedEntries) -> Option<String> {
    let unreadable = LeftOut { odd: odd.clone(), ..LeftOut::default() }.sentence(0, 0);
    match entries {
        0 => unreadable,
        1 => Some("its entry took no network, or has no response".to_owned()),
        entries => Some(format!("its {entries} entries took no network, or have no response")),
    }
}

/// Pages of which nothing was fetched.
pub(super) fn idle_pages(pages: usize, entries: usize) -> Option<String> {
    (pages > 0).then(|| format!("left out: {pages} further pages, whose {entries} entries took no network"))
}
