//! Entries of a recorded page by what became of them.

use std::collections::BTreeMap;

use super::discovery::Evidence;
use super::left_out::UnparsedEntries;
use super::timeline::{Item, LocalReason};

/// Entries of a page by what became of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Account {
    /// Entries that were fetched.
    pub(super) fetched: usize,
    /// Entries that took no network, by reason.
    pub(super) local: BTreeMap<LocalReason, usize>,
    /// First entry that took no network, by reason.
    pub(super) local_example: BTreeMap<LocalReason, String>,
    /// Entries beyond the maximum number of objects.
    pub(super) beyond_objects: usize,
    /// Entries beyond the maximum number of hosts.
    pub(super) beyond_hosts: usize,
    /// Entries that are not valid, in the whole recording.
    pub(super) odd: UnparsedEntries,
    /// Responses without a body.
    pub(super) empty: usize,
    /// Objects for which the event `load` did not wait.
    pub(super) after_load: usize,
    /// Hosts whose round trip is unknown.
    pub(super) unknown_rtts: usize,
    pub(super) evidence: Evidence,
}

impl Account {
    pub(super) fn count(&mut self, item: &Item) {
        let Some(reason) = item.local else {
            self.fetched += 1;
            self.empty += usize::from(!item.entry.is_transferred() || item.entry.on_wire() == 0);
            return;
        };
        *self.local.entry(reason).or_default() += 1;
        self.local_example.entry(reason).or_insert_with(|| item.path.chars().take(60).collect());
    }
}
