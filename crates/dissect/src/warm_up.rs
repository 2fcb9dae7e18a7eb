//! First requests that take long once, because the program loads code, compiles it, or fills caches.
//!
//! Only what comes later shows that: alike requests that are quick from then on.

use wire::{Duration, Time};

/// The responses of one connection, by their order.
#[derive(Clone, Copy, Debug, Default)]
pub struct WarmUp {
    /// The longest of the first responses, and its request.
    longest: Duration,
    request: RequestShape,
    /// End of the last of them, and their number.
    until: Time,
    slow: u16,
    /// Number of quick responses to alike requests after them, and of those to the same command.
    quick: u16,
    same: u16,
    is_refuted: bool,
}

/// Responses in this time are quick, whatever the first ones took.
const QUICK: Duration = Duration::from_millis(30);
/// Maximum number of slow responses at the beginning, and the quick ones that must follow each, and all of them.
const MAX_SLOW: u16 = 3;
const QUICK_FOR_EACH: u16 = 3;
const MIN_QUICK: u16 = 4;
/// Maximum difference in bytes between alike requests, and what a client sends once with its first: the end of a handshake,
/// a preface, fields that are not in the table yet.
const ALIKE: u64 = 16;
const ONCE: u64 = 256;

/// As much of a request as is known.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestShape {
    /// Its bytes.
    pub bytes: u64,
    /// A hash of its target, where it can be read.
    pub target: Option<u64>,
    /// A hash of its command, where a connection has several.
    pub command: Option<u64>,
}

impl RequestShape {
    /// Returns a hash of a target: requests for one path are alike, whatever their query and the numbers of their items.
    pub(crate) fn of_target(target: &str) -> u64 {
        let path = target.bytes().take_while(|byte| *byte != b'?').map(|byte| match byte {
            b'0'..=b'9' => b'0',
            other => other,
        });
        let (hash, _) = path.fold((0_u64, 0), |(hash, before), byte| match (before, byte) {
            (b'0', b'0') => (hash, byte),
            _ => (hash.wrapping_mul(31).wrapping_add(byte.into()), byte),
        });
        hash
    }

    fn is_like(self, first: Self) -> bool {
        match (self.target, first.target) {
            (Some(target), Some(first)) => target == first,
            _ => (first.bytes.saturating_sub(ONCE)..=first.bytes + ALIKE).contains(&self.bytes),
        }
    }
}

impl WarmUp {
    /// Handles the first byte of a response at `at`, `took` after the request.
    pub fn responds(&mut self, at: Time, took: Duration, request: RequestShape) {
        let is_quick = took < QUICK || took < self.longest / 4;
        if is_quick {
            self.is_refuted |= self.slow == 0;
            let is_like = request.is_like(self.request);
            self.quick = self.quick.saturating_add(u16::from(is_like));
            let is_same = is_like && request.command == self.request.command;
            self.same = self.same.saturating_add(u16::from(is_same));
            return;
        }
        self.is_refuted |= self.quick > 0;
        if took > self.longest {
            (self.longest, self.request) = (took, request);
        }
        (self.until, self.slow) = (at, self.slow.saturating_add(1));
    }

    /// Returns when the warm-up ended and how long its longest response took, if later ones show it.
    pub fn ended(&self) -> Option<(Time, Duration)> {
        let is_shown = self.same >= MIN_QUICK.max(self.slow.saturating_mul(QUICK_FOR_EACH));
        (!self.is_refuted && (1..=MAX_SLOW).contains(&self.slow) && is_shown)
            .then_some((self.until, self.longest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(responses: &[(u64, u64)]) -> Option<u64> {
        let mut warm_up = WarmUp::default();
        let mut at = Time::ZERO;
        for (millis, request) in responses {
            let took = Duration::from_millis(*millis);
            at += took;
            warm_up.responds(at, took, RequestShape { bytes: *request, ..RequestShape::default() });
        }
        warm_up.ended().map(|(at, _)| at.as_nanos() / 1_000_000)
    }

    #[test]
    fn alike_requests_that_are_quick_later_show_a_warm_up() {
        assert_eq!(ended(&[(400, 80), (2, 80), (3, 81), (2, 80), (1, 80)]), Some(400));
        assert_eq!(
            ended(&[(400, 80), (120, 80), (20, 80), (9, 80), (3, 80), (2, 80), (2, 80), (1, 80)]),
            Some(520)
        );
    }

    #[test]
    fn few_quick_requests_or_other_ones_show_nothing() {
        assert_eq!(ended(&[(400, 80), (2, 80), (3, 80)]), None);
        assert_eq!(ended(&[(400, 80), (2, 200), (3, 200), (2, 200), (2, 200)]), None, "another request");
        let [one, other] =
            [1, 2].map(|target| RequestShape { bytes: 80, target: Some(target), command: None });
        assert!(one.is_like(one) && !one.is_like(other));
    }

    #[test]
    fn targets_that_differ_in_numbers_are_alike() {
        let hash = RequestShape::of_target;
        assert_eq!(hash("/item/7/name?a=1"), hash("/item/123/name"));
        assert_ne!(hash("/item/7"), hash("/order/7"));
        assert_ne!(hash("/item/7"), hash("/item"));
    }

    #[test]
    fn program_that_is_slow_again_or_was_quick_before_does_not_warm_up() {
        assert_eq!(ended(&[(400, 80), (2, 80), (2, 80), (2, 80), (2, 80), (300, 80)]), None);
        assert_eq!(ended(&[(2, 80), (400, 80), (2, 80), (2, 80), (2, 80), (2, 80)]), None);
    }
}
