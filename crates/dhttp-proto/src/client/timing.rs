//! Timeout of a request before it is resent.
//!
//! Round trips are measured as in RFC 6298. A response by UDP is never a response to a resend, which goes by TCP. It
//! therefore measures a round trip even if the request was resent: Karn's rule (RFC 8085, section 3.1.1) excludes only
//! ambiguous samples. A response by TCP takes one round trip more than one by UDP, so the timeout covers two.
//!
//! A timeout means that a datagram was lost, or that it waits in a queue. In the queue of a slow link, data ahead of the
//! response keeps arriving from the same server meanwhile: [`ReceivedTraffic`]. Not a congestion window: lost responses
//! are sent over TCP, which has one.

use wire::{Duration, Time};

use super::config::Resend;

/// Traffic received from a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ReceivedTraffic {
    /// Bytes on any channel, over all time.
    pub(super) bytes: u64,
    /// Bytes of responses on connections that it opened.
    pub(super) in_connections: u64,
    /// When the last bytes arrived.
    pub(super) at: Time,
    /// When the latest request was sent whose response came in a datagram.
    pub(super) by_datagram: Time,
    /// The same for requests whose response has begun on a connection that it opened.
    pub(super) by_connection: Time,
}

/// State of a request's timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ResponseTimer {
    /// When the request was first sent.
    pub(super) began: Time,
    /// Traffic from the server by then.
    before: ReceivedTraffic,
    /// When data that may precede the response last arrived, and the bytes received by then.
    last: (Time, u64),
    /// Whether it is known that no response is in flight.
    is_vain: bool,
}

/// Bytes below which traffic counts as silence: the smallest packet that every link carries (RFC 791). Small events of
/// a stream fill no queue.
const SILENCE: u64 = 576;

impl ResponseTimer {
    /// Starts the timer.
    pub(super) const fn new(now: Time, received: ReceivedTraffic) -> Self {
        Self { began: now, before: received, last: (now, received.bytes), is_vain: false }
    }

    /// Ends all extensions: there is nothing more to wait for.
    pub(super) const fn end(&mut self) {
        self.is_vain = true;
    }

    /// Whether nothing but its response, of `response` bytes, arrived meanwhile: then it took one round trip, and was
    /// not queued behind this client's traffic.
    pub(super) const fn was_quiet(&self, received: ReceivedTraffic, response: usize) -> bool {
        let others = received.bytes.saturating_sub(self.before.bytes).saturating_sub(response as u64);
        others < SILENCE
    }

    /// Returns the time until which the response may still be queued behind arriving data, unless there is silence for
    /// `wait`. It is at most a quarter of `wait` ahead: arriving data may show that the response is not queued.
    pub(super) fn extend(
        &mut self,
        now: Time,
        received: ReceivedTraffic,
        wait: Duration,
        resend: &Resend,
    ) -> Option<Time> {
        let Resend::Adaptive { first: _, min: _, max: _, times: _, queue, queued } = *resend else {
            return None;
        };
        // A datagram may be in a queue of the network, unless one for a later request has arrived. A response on a
        // connection may be behind others there even then.
        let may_be_behind =
            received.by_datagram <= self.began || received.in_connections > self.before.in_connections;
        if may_be_behind && received.bytes.saturating_sub(self.last.1) >= SILENCE {
            self.last = (received.at, received.bytes);
        }
        let due = (self.last.0 + wait).min(now + wait / 4);
        let is_extended = !self.is_vain
            && due > now
            && received.by_connection <= self.began
            && received.bytes.saturating_sub(self.before.bytes) < queue
            && now.since(self.began) < queued;
        is_extended.then_some(due)
    }
}

/// Estimate of the round trips to a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RoundTrips(Option<Estimate>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Estimate {
    srtt: Duration,
    rttvar: Duration,
}

impl RoundTrips {
    /// Adds a sample (RFC 6298, section 2).
    pub(super) fn measured(&mut self, rtt: Duration) {
        let estimate = match self.0 {
            None => Estimate { srtt: rtt, rttvar: rtt / 2 },
            Some(Estimate { srtt, rttvar }) => {
                let off = srtt.saturating_sub(rtt) + rtt.saturating_sub(srtt);
                Estimate { srtt: (srtt * 7 + rtt) / 8, rttvar: (rttvar * 3 + off) / 4 }
            }
        };
        self.0 = Some(estimate);
    }

    /// Returns the timeout after `resends` resends; `None` if the last has passed.
    pub(super) fn wait(&self, resend: &Resend, resends: u8) -> Option<Duration> {
        match *resend {
            Resend::Fixed { waits: [first, second] } => match resends {
                0 => Some(first),
                1 | 2 => Some(second),
                3.. => None,
            },
            Resend::Adaptive { first, min, max, times, queue: _, queued: _ } => {
                let base = self.0.map_or(first, |Estimate { srtt, rttvar }| srtt * 2 + rttvar * 4);
                let doubled = base.max(min) * 1_u64.checked_shl(u32::from(resends)).unwrap_or(u64::MAX);
                (resends <= times).then_some(doubled.min(max))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ClientConfig;

    fn waits(round_trips: &RoundTrips, resend: &Resend) -> Vec<u64> {
        (0..)
            .map_while(|resends| round_trips.wait(resend, resends))
            .map(|wait| wait.as_nanos() / 1_000_000)
            .collect()
    }

    #[test]
    fn paper_a_request_is_resent_after_5_and_after_10_seconds() {
        let waits = waits(&RoundTrips::default(), &ClientConfig::paper().resend);
        assert_eq!(waits, [5_000, 10_000, 10_000], "and abandoned after 10 more");
    }

    #[test]
    fn the_first_timeout_is_a_second_until_a_round_trip_is_measured_and_doubles() {
        let resend = ClientConfig::internet().resend;
        let mut round_trips = RoundTrips::default();
        assert_eq!(waits(&round_trips, &resend), [1_000, 2_000, 4_000, 8_000]);
        for _ in 0..100 {
            round_trips.measured(Duration::from_millis(200));
        }
        assert_eq!(waits(&round_trips, &resend), [400, 800, 1_600, 3_200], "two round trips");
        for _ in 0..100 {
            round_trips.measured(Duration::from_millis(1));
        }
        assert_eq!(waits(&round_trips, &resend)[0], 300, "never below the least");
    }

    #[test]
    fn paper_the_estimate_is_that_of_rfc_6298() {
        let mut round_trips = RoundTrips::default();
        round_trips.measured(Duration::from_millis(100));
        round_trips.measured(Duration::from_millis(180));
        let expected = Estimate { srtt: Duration::from_millis(110), rttvar: Duration::from_micros(57_500) };
        assert_eq!(round_trips.0, Some(expected));
    }
}
