//! The pages of a recording as graphs, and the account of its entries.

use std::collections::BTreeMap;

use wire::{Bytes, Duration};

use super::account::Account;
use super::archive::{Archive, RecordedPage};
use super::client_time::client_time;
use super::discovery;
use super::entry::Entry;
use super::origins::{self, Address, Origins};
use super::timeline::{self, Item};
use super::{HarError, hints, initiators, notes};
use crate::graph::BOOSTED_IMAGES;
use crate::{Kind, Object, Page, Priority, RecordedTimes};

/// Every page of the recording that fetched something; and the number of pages that fetched nothing.
pub(super) fn pages(name: &str, archive: Archive) -> Result<Vec<Page>, HarError> {
    let Archive { pages: recorded, entries, odd } = archive;
    let visits = visits(recorded, entries);
    let is_fetched = |entry: &Entry| timeline::local_reason(entry).is_none();
    let (visits, idle): (Vec<_>, Vec<_>) =
        visits.into_iter().partition(|(_, entries)| entries.iter().any(is_fetched));
    let idle_entries: usize = idle.iter().map(|(_, entries)| entries.len()).sum();
    let count = visits.len();
    if count == 0 {
        return Err(HarError::Empty(notes::nothing_fetched(idle_entries, &odd)));
    }
    let page = |(index, (recorded, entries))| {
        let name = if count == 1 { name.to_owned() } else { format!("{name}#{}", index + 1) };
        let account = Account { odd: odd.clone(), ..Account::default() };
        let mut page = page(&name, &recorded, entries, account)?;
        page.notes.extend(notes::idle_pages(idle.len(), idle_entries));
        Ok(page)
    };
    visits.into_iter().enumerate().map(page).collect()
}

/// Entries by their page, in the order of the pages; entries of no page belong to the first.
fn visits(recorded: Vec<RecordedPage>, entries: Vec<Entry>) -> Vec<(RecordedPage, Vec<Entry>)> {
    let mut by_id = BTreeMap::new();
    let mut visits: Vec<(RecordedPage, Vec<Entry>)> = Vec::new();
    for page in recorded {
        if let Some(id) = &page.id {
            // Of several pages of one id, the first counts.
            by_id.entry(id.clone()).or_insert(visits.len());
        }
        visits.push((page, Vec::new()));
    }
    if visits.is_empty() {
        visits.push(Default::default());
    }
    for entry in entries {
        let visit = entry.page.as_ref().and_then(|id| by_id.get(id)).copied().unwrap_or(0);
        visits[visit].1.push(entry);
    }
    visits.retain(|(_, entries)| !entries.is_empty());
    visits
}

fn page(
    name: &str,
    recorded: &RecordedPage,
    entries: Vec<Entry>,
    mut account: Account,
) -> Result<Page, HarError> {
    let mut origins = Origins::default();
    let mut items: Vec<Item> =
        entries.into_iter().filter_map(|entry| item(entry, &mut origins, &mut account)).collect();
    let first = items.iter().filter_map(|item| item.entry.phases.start).min();
    let origin = first.into_iter().chain(recorded.start).min();
    timeline::arrange(&mut items, origin);
    account.beyond_objects = items.len().saturating_sub(Page::MAX_OBJECTS);
    items.truncate(Page::MAX_OBJECTS);
    items.iter().for_each(|item| account.count(item));
    initiators::find_unrecorded(&mut items);
    let late = recorded.start.zip(origin).map_or(0, |(start, origin)| start.saturating_sub(origin));
    let late = Duration::from_nanos(u64::try_from(late).unwrap_or(0));
    let event = |time: Option<Duration>| time.map(|time| time + late);
    let times = RecordedTimes {
        content_loaded: event(recorded.content_loaded),
        load: event(recorded.load),
        last_end: items.iter().filter(|item| item.start.is_some()).map(Item::end).max(),
        before_load: None,
        client_time: None,
    };
    let (after, evidence) = discovery::dependencies(&items);
    account.evidence = evidence;
    let root = items.first().map_or(0, |item| item.host);
    let objects = items
        .iter()
        .zip(after)
        .enumerate()
        .map(|(index, (item, after))| Object { after, ..object(item, root, index == 0, times.load) });
    let mut page = Page::of(name, objects.collect());
    boost_images(&items, &mut page.objects);
    let client_time = client_time(&items, &page.objects, &page.before_body(), times.load);
    let hints = hints::of_hosts(&items, &origins);
    let (mut hosts, rtts, unknown) = origins.finish(&items, client_time);
    hosts.iter_mut().zip(hints).for_each(|(host, hints)| host.hints = hints);
    account.unknown_rtts = unknown;
    let server_times = origins::own_server_times(&items, &rtts, &hosts);
    page.objects.iter_mut().zip(server_times).for_each(|(object, time)| object.processing = time);
    let counted = items.iter().zip(&page.objects).filter(|(_, object)| object.counts_for_load);
    let last_byte = counted.map(|(item, _)| item.end()).max();
    let before_load = times.load.zip(last_byte).and_then(|(load, last_byte)| work(load, last_byte));
    let times = RecordedTimes { before_load, client_time, ..times };
    account.after_load = page.objects.iter().filter(|object| !object.counts_for_load).count();
    let notes = notes::notes(&account, &items, hosts.len(), times);
    let page = Page { hosts, notes, recorded: Some(times), ..page }.without_unused_hosts();
    page.check().map(|()| page).map_err(HarError::Page)
}

/// Gives the first images the medium priority that Chromium gives them, where none is recorded.
fn boost_images(items: &[Item], objects: &mut [Object]) {
    let images = items.iter().zip(objects).filter(|(_, object)| object.kind == Kind::Image);
    let unknown = images.take(BOOSTED_IMAGES).filter(|(item, _)| !item.has_known_priority());
    unknown.for_each(|(_, object)| object.priority = Priority::Medium);
}

/// Work between the last byte and the load event. A proxy that records sees no such event, and writes another time: one that is
/// longer than a second, and than everything before, is no work.
fn work(load: Duration, last_byte: Duration) -> Option<Duration> {
    let work = load - last_byte;
    (work <= last_byte.max(Duration::from_secs(1))).then_some(work)
}

/// The entry with its host; `None` beyond the maximum number of hosts.
fn item(entry: Entry, origins: &mut Origins, account: &mut Account) -> Option<Item> {
    let local = timeline::local_reason(&entry);
    let address = entry.url.as_deref().and_then(Address::of);
    let (host, path) = match (&address, local) {
        (Some(address), None) => {
            let Some(host) = origins.index(address, &entry) else {
                account.beyond_hosts += 1;
                return None;
            };
            (host, address.path.clone())
        }
        (Some(Address { host, path, .. }), Some(_)) => (0, format!("//{host}{path}")),
        (None, _) => (0, entry.label.clone()),
    };
    let kind = timeline::kind(&entry, &path);
    Some(Item { entry, host, path, kind, local, start: None })
}

fn object(item: &Item, root: usize, is_root: bool, load: Option<Duration>) -> Object {
    Object {
        host: item.host,
        path: Some(item.path.clone()),
        method: item.entry.method.clone(),
        kind: item.kind,
        priority: item.priority(),
        request_head: item.entry.request.map(Bytes::new),
        response_head: item.entry.response.map(Bytes::new),
        request_body: Bytes::new(item.entry.request_body).min(Page::MAX_OBJECT_BYTES),
        local: item.local.map(|_| item.entry.phases.end),
        is_render_blocking: item.is_render_blocking(is_root),
        is_anonymous: item.is_anonymous(root),
        counts_for_load: is_root || item.counts_for_load(load),
        ..Object::sized(Bytes::new(item.size()))
    }
}
