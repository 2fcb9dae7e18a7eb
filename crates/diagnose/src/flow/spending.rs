//! Entries in a connection's account: all of them are made here.

use wire::Duration;

use crate::doubt::Doubt;
use trace::account::Share;

use super::Flow;

impl Flow {
    /// Adds time to a share, as far as it counts.
    pub(super) fn spend(&mut self, share: Share, time: Duration) {
        let before = self.since.since(self.spent).min(time);
        self.spent += time;
        self.account.add(share, time - before);
    }

    /// Adds time of unknown cause, with the reason.
    pub(super) fn spend_unknown(&mut self, doubt: Doubt, time: Duration) {
        let before = self.account.of(Share::Unknown);
        self.spend(Share::Unknown, time);
        self.doubts.add(doubt, self.account.of(Share::Unknown) - before);
    }
}
