//! Facts about a connection as a whole, for the rules in `causes/` that add a note at its end.

use dissect::path::Path;
use dissect::{Mark, Side};
use wire::{Bytes, Duration, Time};

use crate::cause::Cause;
use crate::report::Oddities;
use trace::account::{Account, Share};

/// The connection at its end.
#[derive(Debug)]
pub(crate) struct WholeFacts<'a> {
    pub(crate) started: Time,
    pub(crate) ended: Time,
    pub(crate) bytes: Bytes,
    pub(crate) is_ipv6: bool,
    /// The first SYN, and the first SYN/ACK.
    pub(crate) opened: Option<Mark>,
    pub(crate) answered: Option<Mark>,
    /// The largest segments that each side accepts, of the server's data: offered and accepted.
    pub(crate) mss: Option<(u16, u16)>,
    /// The direction of which nothing was captured, although the other acknowledges it.
    pub(crate) missing: Option<Side>,
    pub(crate) oddities: &'a Oddities,
    pub(crate) path: &'a Path,
    pub(crate) account: &'a Account,
    /// Whether a standing queue was found.
    pub(crate) has_queue: bool,
}

impl WholeFacts<'_> {
    /// Returns the time spent on round trips, the handshake and slow start, and the round trip, if that is most of the time and
    /// the server is not near.
    pub(crate) fn path_time(&self) -> Option<(Duration, Duration)> {
        const FAR: Duration = Duration::from_millis(20);
        let of = |share| self.account.of(share);
        let setup = of(Share::Stall(Cause::ConnectionSetup));
        let path_time = of(Share::RoundTrip) + setup + of(Share::Stall(Cause::SlowStart));
        let round_trip = self.path.round_trip().unwrap_or_default();
        (path_time * 2 >= self.account.waited() && round_trip >= FAR).then_some((path_time, round_trip))
    }
}
