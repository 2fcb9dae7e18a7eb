//! One request and its answer as a sum of parts, and a series of them (equations (2), (6), (10), (15)).
//!
//! Every formula of the paper adds up the same parts; a protocol is which of them it pays. Not a timeline of
//! packets: the stalls' places are those of a path on which each object follows the one before it.

use wire::{Bytes, Duration};

use crate::slow_start::Stall;
use crate::{Path, SlowStart};

/// One request and its answer, as the scenario asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The request, head and all.
    pub request: Bytes,
    /// From the arrival of the request to the first byte of the answer.
    pub processing: Duration,
    /// The answer.
    pub reply: Bytes,
}

/// What an exchange costs: `T = rtt + setup + req + processing + slow start + reply`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// There with the request and back with the answer.
    pub rtt: Duration,
    /// The handshake before the request, or, in DHTTP, before the answer.
    pub setup: Duration,
    /// Sending the request: `req_min`.
    pub request: Duration,
    /// The server's own time.
    pub processing: Duration,
    /// The stalls of slow start.
    pub stalls: Vec<Stall>,
    /// Sending the answer: `reply_min`.
    pub reply: Duration,
}

impl Transaction {
    /// The exchange without anything that a protocol adds.
    pub(crate) fn bare(path: &Path, exchange: &Exchange) -> Self {
        Self {
            rtt: path.rtt,
            setup: Duration::ZERO,
            request: path.rate_up.time_for(exchange.request),
            processing: exchange.processing,
            stalls: Vec::new(),
            reply: path.rate.time_for(exchange.reply),
        }
    }

    /// With one round trip of handshake before it.
    pub(crate) fn after_handshake(self, path: &Path) -> Self {
        Self { setup: path.rtt, ..self }
    }

    /// With a window that starts small.
    pub(crate) fn in_slow_start(self, path: &Path, start: &SlowStart, exchange: &Exchange) -> Self {
        Self { stalls: start.stalls(path, exchange.reply).collect(), ..self }
    }

    /// All of it: `T`.
    pub fn elapsed(&self) -> Duration {
        self.rtt + self.setup + self.slow_start() + self.working()
    }

    /// What slow start wastes.
    pub fn slow_start(&self) -> Duration {
        self.stalls.iter().map(|stall| stall.wasted).sum()
    }

    /// The part in which something is sent or worked on.
    pub fn working(&self) -> Duration {
        self.request + self.processing + self.reply
    }

    /// From the first packet to the first byte of the answer at the client.
    fn to_first_byte(&self) -> Duration {
        self.setup + self.rtt + self.request + self.processing
    }
}

/// Exchanges one after the other over one path: `S = rtt + sum of (T(i) - rtt)`.
///
/// The requests are independent: each but the first is on its way while the answers before it arrive, so one
/// round trip is paid for all. `waits` gives back those that are not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// In the order of the page's objects.
    pub transactions: Vec<Transaction>,
    /// How many of the transactions after the first wait for the one before them: each pays its own round trip.
    pub waits: u64,
}

impl Series {
    /// Of independent requests.
    pub fn independent(transactions: Vec<Transaction>) -> Self {
        Self { transactions, waits: 0 }
    }

    /// All of it: `S`.
    pub fn elapsed(&self) -> Duration {
        self.starts().last().map_or(Duration::ZERO, |(start, transaction)| start + transaction.elapsed())
    }

    /// The part in which something is sent or worked on: `S` less its round trips.
    pub fn working(&self) -> Duration {
        self.transactions.iter().map(Transaction::working).sum()
    }

    /// Every wait of the series, in order of time.
    pub fn stalls(&self) -> Vec<Wait> {
        self.starts().flat_map(|(start, transaction)| waits_of(start, transaction)).collect()
    }

    /// Each transaction with the time at which its first packet leaves.
    fn starts(&self) -> impl Iterator<Item = (Duration, &Transaction)> {
        let waits = usize::try_from(self.waits).unwrap_or(usize::MAX);
        self.transactions.iter().enumerate().scan(Duration::ZERO, move |next, (index, transaction)| {
            let start = *next;
            *next += transaction.elapsed() - transaction.rtt;
            if index < waits {
                *next += transaction.rtt;
            }
            Some((start, transaction))
        })
    }
}

/// A time in a series in which nothing useful is on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Why.
    pub cause: Cause,
    /// When it begins, as the client sees it.
    pub at: Duration,
    /// What it costs.
    pub lost: Duration,
}

/// Why nothing useful is on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// A handshake.
    ConnectionSetup,
    /// A congestion window that has not opened yet.
    SlowStart,
}

impl Cause {
    /// As `diagnose` names it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ConnectionSetup => "connection-setup",
            Self::SlowStart => "slow-start",
        }
    }
}

/// The waits of one transaction that starts at `start`.
fn waits_of(start: Duration, transaction: &Transaction) -> Vec<Wait> {
    let setup = Wait { cause: Cause::ConnectionSetup, at: start, lost: transaction.setup };
    let mut now = start + transaction.to_first_byte();
    let slow_start = transaction.stalls.iter().map(|stall| {
        let at = now + stall.sending;
        now = at + stall.wasted;
        Wait { cause: Cause::SlowStart, at, lost: stall.wasted }
    });
    let all: Vec<Wait> = std::iter::once(setup).chain(slow_start).collect();
    all.into_iter().filter(|wait| wait.lost > Duration::ZERO).collect()
}

#[cfg(test)]
mod tests {
    use ::tcp::stack::Growth;
    use scenario::Network;

    use super::*;
    use crate::slow_start::Policy;
    use crate::{minimum, tcp};

    const EXCHANGE: Exchange =
        Exchange { request: Bytes::new(256), processing: Duration::ZERO, reply: Bytes::new(6651) };

    #[test]
    fn a_series_pays_one_round_trip_and_one_more_for_each_that_waits() {
        let path = Path::from(&Network::named("fast-internet").unwrap());
        let one = minimum::transaction(&path, &EXCHANGE);
        let mut series = Series::independent(vec![one.clone(); 3]);
        assert_eq!(series.elapsed(), path.rtt + one.working() * 3);
        series.waits = 2;
        assert_eq!(series.elapsed(), path.rtt * 3 + one.working() * 3);
        assert_eq!(Series::independent(Vec::new()).elapsed(), Duration::ZERO);
    }

    #[test]
    fn the_waits_and_the_work_and_one_round_trip_are_all_of_it() {
        let path = Path::from(&Network::named("fast-internet").unwrap());
        let start = SlowStart {
            acks: Policy::EverySegment,
            growth: Growth::PerAcknowledgement,
            initial_window: 2,
            ssthresh: None,
        };
        let series = Series::independent(vec![tcp::transaction(&path, &start, &EXCHANGE); 3]);
        let waits = series.stalls();
        let lost: Duration = waits.iter().map(|wait| wait.lost).sum();
        assert_eq!(path.rtt + lost + series.working(), series.elapsed());
        assert!(waits.windows(2).all(|pair| pair[0].at + pair[0].lost <= pair[1].at + path.rtt));
        assert!(waits.iter().all(|wait| wait.at + wait.lost <= series.elapsed()));
    }
}
