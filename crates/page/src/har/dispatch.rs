//! The client's own time before a request leaves, and before the document's body.
//!
//! A browser is busy while a page loads: on a fast network requests wait for its threads longer than for the network. Over a slower
//! one they wait for them, too, and the network in addition. What waited for something else has no such time here: for a connection
//! that another request opened, for one of HTTP/1's to be free, or for the document's body.

use std::collections::BTreeMap;

use wire::Duration;

use super::phases::Phases;
use super::timeline::Item;
use crate::Page;

/// Maximum time by which a request that is held back follows another of the same task of the browser, whose time it shares.
const SAME_TASK: Duration = Duration::from_millis(20);

/// Requests in flight beside which a delayable one leaves only if the document's body has been reached (third_party/blink,
/// `ResourceLoadScheduler`, `kTightLimit`).
const TIGHT_LIMIT: usize = 2;

/// Part of these times that a visit over a slower network has: its requests and scripts do not all want the CPU together. Visits
/// of seven pages over `cable`, `dsl` and `4g` had 0.60 to 0.92 of the recording's, 0.75 of them together (studies/chromium).
fn over_slower_networks(time: Duration) -> Duration {
    time * 3 / 4
}

/// Time of each object between its start and the moment at which its request left, beyond what the network took of it.
pub(super) fn times(items: &[Item], rtts: &[Duration], page: &Page) -> Vec<Duration> {
    let mut connections = Connections::of(items, rtts);
    let mut last: Option<(Duration, Duration)> = None;
    let mut times = Vec::with_capacity(items.len());
    let body = page.before_body().iter().map(|index| items[*index].end()).max();
    for (index, (item, object)) in items.iter().zip(&page.objects).enumerate() {
        let mut time = None;
        if let Some(start) = item.start.filter(|_| item.local.is_none() && index > 0) {
            let is_held = object.is_delayable() && body.is_some_and(|body| start < body);
            let may_queue = is_held || object.is_delayable() && !item.is_multiplexed();
            let own = if may_queue { None } else { connections.own_time(item, start) };
            last = own.map(|time| (start, time)).or(last);
            let shared = last.filter(|(other, _)| is_held && start <= *other + SAME_TASK);
            time = own.or(shared.map(|(_, time)| time));
        }
        times.push(over_slower_networks(time.unwrap_or_default()));
        connections.note(item);
    }
    times
}

/// Connections of a recording.
struct Connections<'a> {
    rtts: &'a [Duration],
    /// Shortest handshakes without and with TLS, less the host's distance.
    shortest: [Duration; 2],
    /// Time from which each may be used, by its id.
    opened: BTreeMap<&'a str, Duration>,
}

impl<'a> Connections<'a> {
    fn of(items: &[Item], rtts: &'a [Duration]) -> Self {
        let mut connections = Self { rtts, shortest: Default::default(), opened: BTreeMap::new() };
        connections.shortest = [false, true].map(|has_tls| {
            let own = items.iter().filter(|item| item.entry.phases.has_tls == has_tls);
            own.filter_map(|item| connections.handshakes(item)).min().unwrap_or_default()
        });
        connections
    }

    /// Handshakes of the connection that an entry opened, less what the host's distance takes of them: two round trips at least.
    fn handshakes(&self, item: &Item) -> Option<Duration> {
        item.entry.phases.handshakes.map(|handshakes| handshakes.saturating_sub(self.rtt(item) * 2))
    }

    fn rtt(&self, item: &Item) -> Duration {
        self.rtts.get(item.host).copied().unwrap_or_default()
    }

    /// The client's time of a request that opened a connection, or found one open.
    fn own_time(&self, item: &Item, start: Duration) -> Option<Duration> {
        // Only Chromium's recordings have priorities, and only its phases are known to begin when it knows an object.
        item.entry.clues.priority.as_ref()?;
        let Phases { blocked, send, has_tls, .. } = item.entry.phases;
        if let Some(handshakes) = self.handshakes(item) {
            // TLS 1.2 takes a round trip more than 1.3.
            let expected = self.shortest[usize::from(has_tls)] + self.rtt(item);
            return Some(blocked + send + handshakes.saturating_sub(expected));
        }
        let connection = item.entry.connection.as_deref().filter(|_| item.is_multiplexed());
        let is_open = connection.and_then(|id| self.opened.get(id)).is_some_and(|open| *open <= start);
        is_open.then_some(blocked + send)
    }

    fn note(&mut self, item: &'a Item) {
        if let Some(id) = item.entry.connection.as_deref() {
            self.opened.entry(id).or_insert_with(|| item.begun());
        }
    }
}

/// Time from the end of the last object before the document's body until a request left that is held back until the body; or
/// until the document was parsed, where the browser was slow to send the request.
pub(super) fn before_body(items: &[Item], page: &Page, parsed: Option<Duration>) -> Option<Duration> {
    let before = page.before_body();
    let end = before.iter().map(|index| items[*index].end()).max()?;
    let left = |item: &Item| item.start.map(|start| start + item.entry.phases.blocked);
    let is_held = |index: usize| {
        let starts_before = items[index].start.is_some_and(|start| start < end);
        page.objects[index].is_delayable() && !before.contains(&index) && starts_before
    };
    let fetched = || items.iter().enumerate().skip(1).filter(|(_, item)| item.local.is_none());
    let mut leaving: Vec<Duration> =
        fetched().filter(|(index, _)| is_held(*index)).filter_map(|(_, item)| left(item)).collect();
    leaving.retain(|time| *time >= end);
    leaving.sort_unstable();
    let sorted = |mut times: Vec<Duration>| {
        times.sort_unstable();
        times
    };
    let all_left = sorted(fetched().filter_map(|(_, item)| left(item)).collect());
    let ends =
        sorted(fetched().filter(|(_, item)| item.start.is_some()).map(|(_, item)| item.end()).collect());
    let until = |times: &[Duration], now: Duration| times.partition_point(|time| *time <= now);
    let in_flight = |now: Duration| until(&all_left, now).saturating_sub(until(&ends, now));
    let body = leaving.into_iter().find(|time| in_flight(*time) > TIGHT_LIMIT)?;
    let body = parsed.filter(|parsed| *parsed > end).map_or(body, |parsed| body.min(parsed));
    Some(over_slower_networks(body - end))
}

#[cfg(test)]
mod tests {
    use super::super::test_archive::{Recorded, archive};
    use crate::Page;

    /// Entry of a type and priority over HTTP/2: its connection, and milliseconds in which it was blocked.
    fn entry(start: u64, path: &str, more: &str, connect: f64, blocked: u64) -> String {
        let url = format!("https://h/{path}");
        let more = format!(r#"{more}"connection":"1","#);
        let recorded =
            Recorded { connect, wait: 10.0, receive: 10.0, more: &more, ..Recorded::at(start, &url) };
        let json = recorded.json().replace("http/1.1", "h2");
        json.replace(r#""blocked":0"#, &format!(r#""blocked":{blocked}"#))
    }

    fn page(entries: &[String]) -> Page {
        crate::har::pages("visit", archive(entries).as_bytes()).unwrap().remove(0)
    }

    fn dispatch(page: &Page) -> Vec<f64> {
        page.objects.iter().map(|object| object.dispatch.as_millis_f64()).collect()
    }

    const DOCUMENT: &str = r#""_resourceType":"document","_priority":"VeryHigh","#;
    const SHEET: &str = r#""_resourceType":"stylesheet","_priority":"VeryHigh","#;
    const SCRIPT: &str = r#""_resourceType":"script","_priority":"High","#;
    const IMAGE: &str = r#""_resourceType":"image","_priority":"Low","#;

    #[test]
    fn time_before_a_request_on_an_open_connection_is_the_clients() {
        let entries = [
            entry(0, "", DOCUMENT, 20.0, 5),
            entry(50, "a.css", SHEET, -1.0, 30),
            // Its connection opens later: another request's handshakes are what it waited for.
            entry(10, "b.css", SHEET, -1.0, 40),
        ];
        assert_eq!(dispatch(&page(&entries)), [0.0, 0.0, 22.5]);
        let without_priorities = entries.map(|entry| entry.replace(r#""_priority":"VeryHigh","#, ""));
        assert_eq!(dispatch(&page(&without_priorities)), [0.0; 3]);
    }

    #[test]
    fn handshakes_that_took_longer_than_others_count() {
        let other = |text: String| text.replace("https://h/", "https://i/").replace(r#""1""#, r#""2""#);
        let entries = [entry(0, "", DOCUMENT, 20.0, 0), other(entry(50, "a.css", SHEET, 65.0, 3))];
        assert_eq!(dispatch(&page(&entries)), [0.0, 28.5]);
    }

    #[test]
    fn requests_that_were_held_back_show_when_the_body_was_reached() {
        let images = ["1.png", "2.png", "3.png", "4.png"].map(|path| entry(50, path, IMAGE, -1.0, 100));
        let entries =
            [&[entry(0, "", DOCUMENT, 20.0, 0), entry(50, "a.js", SCRIPT, -1.0, 2)][..], &images].concat();
        // The script ended at 72 ms, and the images left at 150 ms: three quarters of that.
        let read = page(&entries);
        assert_eq!(read.recorded.unwrap().before_body, Some(wire::Duration::from_micros(58_500)));
        // Of the same task as the script, they share its time.
        assert_eq!(dispatch(&read), [0.0, 1.5, 1.5, 1.5, 1.5, 1.5]);
        let alone = page(&entries[..3]);
        assert_eq!(alone.recorded.unwrap().before_body, None, "one may leave before the body");
    }
}
