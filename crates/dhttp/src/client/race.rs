//! Race of plain HTTP against the first request to a server, for a client without a token of that server.
//!
//! The connection is opened together with the datagram, so its handshake measures the round trip. If no response has come half
//! a round trip later, the request is sent on it, too; after the fallback message it is sent immediately. Whichever response
//! begins first is used. Only safe methods go by UDP, so the request may run twice.
//!
//! ```text
//! Open ──► Dhttp            a response by DHTTP begins, or the caller cancels: the connection is closed
//!      ──► Plain            the response by plain HTTP begins: the request by DHTTP is cancelled
//!      ──► Alone ──► Plain  DHTTP has fallen back: plain HTTP responds, or the request fails
//!      ──► Failed           plain HTTP is not available: DHTTP goes on
//! ```

use std::sync::{Arc, Condvar, Mutex};

use wire::Duration;

use super::{PendingRequest, Shared, plain};

/// A race, shared by the client's thread and the one of plain HTTP.
#[derive(Debug, Default)]
pub(super) struct Race {
    state: Mutex<RaceState>,
    changed: Condvar,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum RaceState {
    /// Neither response has begun.
    #[default]
    Open,
    /// DHTTP has fallen back.
    Alone,
    /// The response comes by DHTTP, or none is wanted.
    Dhttp,
    /// The response comes by plain HTTP.
    Plain,
    /// Plain HTTP failed.
    Failed,
}

/// Minimum time that a server has for its response by UDP after the round trip. RFC 8305, section 5, has the same minimum
/// between two connection attempts.
const MIN_GRACE: Duration = Duration::from_millis(10);

impl Race {
    /// Opens the connection for a request, which must not have a race yet.
    pub(super) fn begin(shared: &Arc<Shared>, question: &mut PendingRequest) {
        question.race = Some(Arc::default());
        plain::send_request(shared, question.clone());
    }

    /// Waits on the open connection until the request must be sent on it; `false` if it must not. `handshake` is the time that
    /// the connection took to open.
    pub(super) fn wait(&self, handshake: Duration) -> bool {
        let grace = std::time::Duration::from_nanos((handshake / 2).max(MIN_GRACE).as_nanos());
        let Ok(state) = self.state.lock() else { return false };
        let waited = self.changed.wait_timeout_while(state, grace, |state| *state == RaceState::Open);
        waited.is_ok_and(|(state, _)| matches!(*state, RaceState::Open | RaceState::Alone))
    }

    /// Claims the response for DHTTP, or stops plain HTTP; `false` if plain HTTP has responded.
    pub(super) fn claim_for_dhttp(&self) -> bool {
        self.change(|state| match state {
            RaceState::Open | RaceState::Failed | RaceState::Dhttp => (RaceState::Dhttp, true),
            RaceState::Alone | RaceState::Plain => (state, false),
        })
    }

    /// Claims the response for plain HTTP; `false` if DHTTP has responded.
    pub(super) fn claim_for_plain(&self) -> bool {
        self.change(|state| match state {
            RaceState::Open | RaceState::Alone | RaceState::Plain => (RaceState::Plain, true),
            RaceState::Dhttp | RaceState::Failed => (state, false),
        })
    }

    /// Leaves the request to plain HTTP; `false` if that has failed already.
    pub(super) fn yield_to_plain(&self) -> bool {
        self.change(|state| match state {
            RaceState::Open => (RaceState::Alone, true),
            RaceState::Alone | RaceState::Plain => (state, true),
            RaceState::Dhttp | RaceState::Failed => (state, false),
        })
    }

    /// Records that plain HTTP has failed; whether the request has failed with it.
    pub(super) fn fail(&self) -> bool {
        self.change(|state| match state {
            RaceState::Open => (RaceState::Failed, false),
            RaceState::Alone | RaceState::Plain => (state, true),
            RaceState::Dhttp | RaceState::Failed => (state, false),
        })
    }

    fn change(&self, next: impl FnOnce(RaceState) -> (RaceState, bool)) -> bool {
        let Ok(mut state) = self.state.lock() else { return false };
        let (changed, outcome) = next(*state);
        *state = changed;
        self.changed.notify_all();
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_channel_wins_the_race() {
        let race = Race::default();
        assert!(race.claim_for_dhttp() && !race.claim_for_plain() && !race.fail());
        assert!(!race.wait(Duration::ZERO), "nothing is sent");
        let race = Race::default();
        assert!(race.wait(Duration::ZERO), "the datagram has no response yet");
        assert!(race.claim_for_plain() && !race.claim_for_dhttp());
        assert!(race.fail(), "its response broke off");
    }

    #[test]
    fn fallback_uses_the_open_connection_unless_it_failed() {
        let race = Race::default();
        assert!(race.yield_to_plain() && race.wait(Duration::from_secs(1_000)));
        assert!(race.claim_for_plain());
        let race = Race::default();
        assert!(race.yield_to_plain() && race.fail(), "no other channel is left");
        let race = Race::default();
        assert!(!race.fail() && !race.yield_to_plain(), "plain HTTP must connect again");
        let race = Race::default();
        assert!(!race.fail() && race.claim_for_dhttp());
    }
}
