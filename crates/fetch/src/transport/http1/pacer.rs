//! Pacing of a browser's requests: each takes a token, of which a bucket holds a burst.

use std::collections::BTreeMap;

use wire::Time;

use crate::browser::Pacing;
use crate::transport::RequestId;

/// Tokens of requests that have not ended.
#[derive(Debug)]
pub(super) struct Pacer {
    /// Time at which the bucket is full.
    full_at: Time,
    tokens: BTreeMap<RequestId, Time>,
}

impl Pacer {
    pub(super) const fn new() -> Self {
        Self { full_at: Time::ZERO, tokens: BTreeMap::new() }
    }

    /// Time at which a request has its token: at its first call it takes the next that no other has.
    pub(super) fn token(&mut self, now: Time, request: RequestId, pacing: &Pacing) -> Time {
        let Self { full_at, tokens } = self;
        *tokens.entry(request).or_insert_with(|| {
            let others = pacing.interval * u64::from(pacing.burst.saturating_sub(1));
            let missing = full_at.since(now);
            *full_at = now + missing + pacing.interval;
            now + missing.saturating_sub(others)
        })
    }

    /// Forgets a request that has ended.
    pub(super) fn forget(&mut self, request: RequestId) {
        self.tokens.remove(&request);
    }
}
