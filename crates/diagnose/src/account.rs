//! Where the time of a connection or an exchange went: every nanosecond under one name.
//!
//! Not a list of findings: those name what is worth fixing, while the account covers all time. Unexplained time is
//! under [`Share::Unknown`].

use wire::Duration;

use crate::cause::Cause;

/// Share of the time, by the reason for which it was spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// A cause of stalls.
    Stall(Cause),
    /// Data was in flight, as fast as the path carried it.
    Transfer,
    /// A packet crossed the path and its response returned: distance, not a fault.
    RoundTrip,
    /// No side waited for anything.
    Idle,
    /// The connection was being closed.
    Closing,
    /// The packets do not show the reason.
    Unknown,
}

impl Share {
    /// Returns its name in kebab-case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stall(cause) => cause.name(),
            Self::Transfer => "transfer",
            Self::RoundTrip => "round-trip",
            Self::Idle => "idle",
            Self::Closing => "closing",
            Self::Unknown => "unknown",
        }
    }

    const fn place(self) -> usize {
        match self {
            Self::Stall(cause) => cause as usize,
            Self::Transfer => STALLS,
            Self::RoundTrip => STALLS + 1,
            Self::Idle => STALLS + 2,
            Self::Closing => STALLS + 3,
            Self::Unknown => STALLS + 4,
        }
    }

    /// Iterates over all shares, causes first.
    pub fn all() -> impl Iterator<Item = Self> {
        let rest = [Self::Transfer, Self::RoundTrip, Self::Idle, Self::Closing, Self::Unknown];
        Cause::ALL.into_iter().map(Self::Stall).chain(rest)
    }
}

const STALLS: usize = Cause::ALL.len();

/// Time by share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    shares: [Duration; STALLS + 5],
}

impl Default for Account {
    fn default() -> Self {
        Self { shares: [Duration::ZERO; STALLS + 5] }
    }
}

impl Account {
    /// Adds `time` to `share`.
    pub(crate) fn add(&mut self, share: Share, time: Duration) {
        self.shares[share.place()] += time;
    }

    /// Moves `time` from the share `from` to the share `to`.
    pub(crate) fn transfer(&mut self, from: Share, to: Share, time: Duration) {
        let moved = time.min(self.of(from));
        self.shares[from.place()] = self.of(from) - moved;
        self.add(to, moved);
    }

    /// Returns the time under `share`.
    pub fn of(&self, share: Share) -> Duration {
        self.shares[share.place()]
    }

    /// Returns the total time.
    pub fn total(&self) -> Duration {
        self.shares.into_iter().sum()
    }

    /// Iterates over the shares that are not empty, in the order of [`Share::all`].
    pub fn iter(&self) -> impl Iterator<Item = (Share, Duration)> {
        Share::all().map(|share| (share, self.of(share))).filter(|(_, time)| *time > Duration::ZERO)
    }

    /// Returns the time added since `earlier`.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let mut shares = self.shares;
        shares.iter_mut().zip(earlier.shares).for_each(|(share, before)| *share = *share - before);
        Self { shares }
    }

    /// Adds the times of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.shares.iter_mut().zip(other.shares).for_each(|(share, more)| *share += more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_share_has_its_own_index_and_name() {
        let mut account = Account::default();
        for (share, nanos) in Share::all().zip(1..) {
            account.add(share, Duration::from_nanos(nanos));
        }
        let names: Vec<&str> = account.iter().map(|(share, _)| share.name()).collect();
        let mut sorted = names.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(names.len(), sorted.len());
        assert_eq!(names.len(), STALLS + 5);
        for (share, nanos) in Share::all().zip(1..) {
            assert_eq!(account.of(share), Duration::from_nanos(nanos));
        }
    }
}
