//! One request and its response as a sum of parts, and a series of them (equations (2), (6), (10), (15)).
//!
//! Every formula of the paper adds up the same parts; protocols differ in the parts they include. Times of stalls assume
//! that each object follows the previous one.

use trace::Cause;
use wire::{Bytes, Duration};

use crate::slow_start::Stall;
use crate::{Path, SlowStart};

/// Request and response, as in the scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Size of the request with its headers.
    pub request: Bytes,
    /// Time from the arrival of the request to the first byte of the response.
    pub processing: Duration,
    /// Size of the response.
    pub reply: Bytes,
}

/// Cost of an exchange: `T = rtt + setup + req + processing + slow start + reply`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// Propagation of the request and the response.
    pub rtt: Duration,
    /// The handshake before the request, or, in DHTTP, before the response.
    pub setup: Duration,
    /// Transmission time of the request: `req_min`.
    pub request: Duration,
    /// Processing time of the server.
    pub processing: Duration,
    /// The stalls of slow start.
    pub stalls: Vec<Stall>,
    /// Transmission time of the response: `reply_min`.
    pub reply: Duration,
}

impl Transaction {
    /// Returns the transaction without the overhead of a protocol.
    pub(crate) fn without_overhead(path: &Path, exchange: &Exchange) -> Self {
        Self {
            rtt: path.rtt,
            setup: Duration::ZERO,
            request: path.rate_up.time_for(exchange.request),
            processing: exchange.processing,
            stalls: Vec::new(),
            reply: path.rate.time_for(exchange.reply),
        }
    }

    /// Adds one round trip of handshake.
    pub(crate) fn with_handshake(self, path: &Path) -> Self {
        Self { setup: path.rtt, ..self }
    }

    /// Adds the stalls of slow start.
    pub(crate) fn with_slow_start(self, path: &Path, start: &SlowStart, exchange: &Exchange) -> Self {
        Self { stalls: start.stalls(path, exchange.reply).collect(), ..self }
    }

    /// Returns the total time: `T`.
    pub fn elapsed(&self) -> Duration {
        self.rtt + self.setup + self.slow_start() + self.working()
    }

    /// Returns the time wasted by slow start.
    pub fn slow_start(&self) -> Duration {
        self.stalls.iter().map(|stall| stall.wasted).sum()
    }

    /// Returns the time of transmission and processing.
    pub fn working(&self) -> Duration {
        self.request + self.processing + self.reply
    }

    /// Returns the time from the first packet to the first byte of the response at the client.
    fn to_first_byte(&self) -> Duration {
        self.setup + self.rtt + self.request + self.processing
    }
}

/// Sequential exchanges over one path: `S = rtt + sum of (T(i) - rtt)`.
///
/// The requests are independent: each but the first is in flight while the responses before it arrive, so one
/// round trip is counted for all. `waits` adds the round trips of those that are not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// Transactions in the order of the page's objects.
    pub transactions: Vec<Transaction>,
    /// Number of transactions after the first that wait for the previous one: each adds its own round trip.
    pub waits: u64,
}

impl Series {
    /// Creates a series of independent requests.
    pub fn independent(transactions: Vec<Transaction>) -> Self {
        Self { transactions, waits: 0 }
    }

    /// Returns the total time: `S`.
    pub fn elapsed(&self) -> Duration {
        self.start_times().last().map_or(Duration::ZERO, |(start, transaction)| start + transaction.elapsed())
    }

    /// Returns the time of transmission and processing: `S` less its round trips.
    pub fn working(&self) -> Duration {
        self.transactions.iter().map(Transaction::working).sum()
    }

    /// Returns every wait of the series, in order of time.
    pub fn stalls(&self) -> Vec<Wait> {
        self.start_times().flat_map(|(start, transaction)| waits_in(start, transaction)).collect()
    }

    /// Iterates over the transactions, each with the time of its first packet.
    fn start_times(&self) -> impl Iterator<Item = (Duration, &Transaction)> {
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

/// Time in a series without useful transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Its cause.
    pub cause: Cause,
    /// Its start, at the client.
    pub at: Duration,
    /// Its cost.
    pub lost: Duration,
}

/// Returns the waits of a transaction that starts at `start`.
fn waits_in(start: Duration, transaction: &Transaction) -> Vec<Wait> {
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
    fn series_costs_one_round_trip_and_one_more_per_waiting_request() {
        let path = Path::from(&Network::named("fast-internet").unwrap());
        let transaction = minimum::transaction(&path, &EXCHANGE);
        let mut series = Series::independent(vec![transaction.clone(); 3]);
        assert_eq!(series.elapsed(), path.rtt + transaction.working() * 3);
        series.waits = 2;
        assert_eq!(series.elapsed(), path.rtt * 3 + transaction.working() * 3);
        assert_eq!(Series::independent(Vec::new()).elapsed(), Duration::ZERO);
    }

    #[test]
    fn waits_transmission_and_one_round_trip_add_up_to_the_total() {
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
