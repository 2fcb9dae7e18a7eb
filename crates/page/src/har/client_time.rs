//! The time that a busy client's threads need for each request and each response.
//!
//! A browser sends requests and handles responses one after another. A request on an open connection of HTTP/2 or HTTP/3 waits for
//! nothing but these threads: they were busy from its start until it left (`blocked` and `send`), with the requests that were made
//! and the responses that ended meanwhile. What Chromium holds back for the scripts of the head waits for them from the end of these.

use std::collections::{BTreeMap, BTreeSet};

use wire::Duration;

use super::timeline::Item;
use crate::Object;

/// Requests and responses of the busy time below which nothing is concluded.
const MIN_EVENTS: u32 = 3;
/// Maximum: what takes longer is one long task, not the work for one response.
const MAX_CLIENT_TIME: Duration = Duration::from_millis(10);

/// Time for each request and each response; `None` if the recording does not show it. `load` is the event, and `before_body` are
/// the objects for which Chromium holds delayable requests back ([`crate::Page::before_body`]).
pub(super) fn client_time(
    items: &[Item],
    objects: &[Object],
    before_body: &BTreeSet<usize>,
    load: Option<Duration>,
) -> Option<Duration> {
    let body = before_body.iter().map(|index| items[*index].end()).max().unwrap_or_default();
    let known = |index: usize| released(&items[index], &objects[index], body);
    let busy = busy_periods(items, known);
    let is_busy = |time: Duration| busy.iter().any(|(from, to)| (*from..=*to).contains(&time));
    let fetched = || (0..items.len()).filter(|index| is_fetched(&items[*index]));
    let moments = fetched().flat_map(|index| [known(index).unwrap_or_default(), items[index].end()]);
    let events = u32::try_from(moments.filter(|time| is_busy(*time)).count()).ok()?;
    if events < MIN_EVENTS {
        return None;
    }
    let total = busy.iter().fold(Duration::ZERO, |sum, (from, to)| sum + (*to - *from));
    let all = load.zip(items.first()).and_then(|(load, document)| {
        let count = u32::try_from(fetched().count()).ok()?;
        Some(load.saturating_sub(document.end()) / u64::from(count.max(1) * 2))
    });
    let time = (total / u64::from(events)).min(MAX_CLIENT_TIME).min(all.unwrap_or(MAX_CLIENT_TIME));
    (time > Duration::ZERO).then_some(time)
}

fn is_fetched(item: &Item) -> bool {
    item.start.is_some() && item.local.is_none()
}

/// Time from which a request may leave: its start, or that of the document's body if it is held back until then.
fn released(item: &Item, object: &Object, body: Duration) -> Option<Duration> {
    let start = item.start?;
    let is_held = object.is_delayable() && start < body && body <= item.begun();
    Some(if is_held { body } else { start })
}

/// Periods in which a request waited for the client's threads, in order, without overlaps. `known` is the time from which a request
/// may leave.
fn busy_periods(items: &[Item], known: impl Fn(usize) -> Option<Duration>) -> Vec<(Duration, Duration)> {
    let mut opened = BTreeMap::new();
    let mut waits = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let Some(known) = known(index).filter(|_| is_fetched(item)) else { continue };
        let connection = item.entry.connection.as_deref();
        if item.entry.phases.connect.is_some_and(|connect| connect > Duration::ZERO) {
            connection.map(|id| opened.entry(id).or_insert_with(|| item.begun()));
            continue;
        }
        let is_open = connection.and_then(|id| opened.get(id)).is_none_or(|open| *open <= known);
        // Only Chromium's phases are known to begin when it knows an object; Safari's priorities are in lower case.
        let priority = item.entry.clues.priority.as_deref();
        let is_chromiums = priority.is_some_and(|name| name.starts_with(char::is_uppercase));
        if index > 0 && is_chromiums && item.is_multiplexed() && is_open {
            waits.push((known, item.begun()));
        }
    }
    waits.sort_unstable();
    let mut periods: Vec<(Duration, Duration)> = Vec::new();
    for (from, to) in waits {
        match periods.last_mut().filter(|(_, end)| from <= *end) {
            Some((_, end)) => *end = (*end).max(to),
            None => periods.push((from, to)),
        }
    }
    periods
}

#[cfg(test)]
mod tests {
    use super::super::test_archive::{Recorded, archive};
    use crate::Page;

    /// Entry over HTTP/2: `connect` in milliseconds, or -1, and milliseconds in which it was blocked.
    fn entry(start: u64, path: &str, priority: &str, connect: f64, blocked: u64) -> String {
        let url = format!("https://h/{path}");
        let more = format!(r#""_resourceType":"script","_priority":"{priority}","connection":"1","#);
        let recorded =
            Recorded { connect, wait: 10.0, receive: 10.0, more: &more, ..Recorded::at(start, &url) };
        let json = recorded.json().replace("http/1.1", "h2");
        json.replace(r#""blocked":0"#, &format!(r#""blocked":{blocked}"#))
    }

    fn client_time(scripts: &[String]) -> Option<f64> {
        let entries = [&[entry(0, "", "VeryHigh", 20.0, 5)], scripts].concat();
        let page: Page = crate::har::pages("visit", archive(&entries).as_bytes()).unwrap().remove(0);
        page.recorded.unwrap().client_time.map(wire::Duration::as_millis_f64)
    }

    fn scripts(count: u64, start: u64, priority: &str, blocked: u64) -> Vec<String> {
        (0..count)
            .map(|index| entry(start + index, &format!("{index}.js"), priority, -1.0, blocked))
            .collect()
    }

    #[test]
    fn requests_on_an_open_connection_show_how_long_the_threads_take() {
        // Ten requests from 100 to 109 ms leave until 132 ms: 32 ms for ten messages, and the last of them has sent for 1 ms.
        let time = client_time(&scripts(10, 100, "High", 22)).unwrap();
        assert!((3.1..3.3).contains(&time), "{time}");
        assert_eq!(client_time(&scripts(2, 100, "High", 22)), None, "too few");
    }

    #[test]
    fn requests_held_back_for_scripts_of_the_head_wait_from_the_end_of_these() {
        // A script of the head ends at 200.5 ms; ten others leave until 231 ms: 30.5 ms for them and its response.
        let head = entry(90, "head.js", "High", 0.5, 90);
        let held = [&[head], scripts(10, 100, "Low", 122).as_slice()].concat();
        let time = client_time(&held).unwrap();
        assert!((2.7..2.8).contains(&time), "{time}");
    }

    #[test]
    fn requests_that_wait_for_a_connection_show_no_busy_threads() {
        // The connection of the document is open from 26 ms.
        assert_eq!(client_time(&scripts(10, 10, "High", 22)), None);
    }

    #[test]
    fn handshakes_that_a_busy_client_may_have_noted_late_are_no_distance() {
        // 3.1 ms for each message; the shortest exchange with the first host took 10 ms.
        let other = |host: &str, connect: f64| {
            let entry = entry(200, "a.png", "Low", connect, 0).replace(r#""wait":10"#, r#""wait":50"#);
            entry.replace("https://h/", &format!("https://{host}/"))
        };
        let mut all = scripts(10, 100, "High", 22);
        all.extend([entry(0, "", "VeryHigh", 20.0, 5), other("near", 15.0), other("far", 40.0)]);
        let page = crate::har::pages("visit", archive(&all).as_bytes()).unwrap().remove(0);
        let extra: Vec<f64> = page.hosts.iter().map(|host| host.extra_rtt.as_millis_f64()).collect();
        assert_eq!(extra[..2], [0.0, 0.0]);
        assert!(extra[2] > 15.0, "{extra:?}");
    }

    #[test]
    fn one_long_task_is_not_the_time_for_each_message() {
        assert_eq!(client_time(&scripts(10, 100, "High", 900)), Some(10.0));
    }
}
