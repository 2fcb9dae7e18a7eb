//! Account of the time of a connection or an exchange: every nanosecond under one name.
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

    const fn position(self) -> usize {
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// The shares that are not empty, in the order of [`Share::all`]: most connections have few, and there are many
    /// connections.
    shares: Vec<(Share, Duration)>,
}

impl Account {
    /// Adds `time` to `share`.
    pub fn add(&mut self, share: Share, time: Duration) {
        if time == Duration::ZERO {
            return;
        }
        match self.shares.iter_mut().find(|(other, _)| *other == share) {
            Some((_, sum)) => *sum += time,
            None => {
                let position = self.shares.partition_point(|(other, _)| other.position() < share.position());
                self.shares.insert(position, (share, time));
            }
        }
    }

    /// Moves `time` from the share `from` to the share `to`.
    pub fn transfer(&mut self, from: Share, to: Share, time: Duration) {
        let moved = time.min(self.of(from));
        self.shares.iter_mut().filter(|(share, _)| *share == from).for_each(|(_, sum)| *sum = *sum - moved);
        self.shares.retain(|(_, sum)| *sum > Duration::ZERO);
        self.add(to, moved);
    }

    /// Returns the time under `share`.
    pub fn of(&self, share: Share) -> Duration {
        self.iter().find(|(other, _)| *other == share).map(|(_, time)| time).unwrap_or_default()
    }

    /// Returns the total time.
    pub fn total(&self) -> Duration {
        self.iter().map(|(_, time)| time).sum()
    }

    /// Returns the time in which either side waited, or data flowed.
    pub fn waited(&self) -> Duration {
        self.total() - self.of(Share::Idle) - self.of(Share::Closing)
    }

    /// Iterates over the shares that are not empty, in the order of [`Share::all`].
    pub fn iter(&self) -> impl Iterator<Item = (Share, Duration)> {
        self.shares.iter().copied()
    }

    /// Returns the time added since `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        let added = self.iter().map(|(share, time)| (share, time - earlier.of(share)));
        Self { shares: added.filter(|(_, time)| *time > Duration::ZERO).collect() }
    }

    /// Adds the times of `other`.
    pub fn merge(&mut self, other: &Self) {
        other.iter().for_each(|(share, time)| self.add(share, time));
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
