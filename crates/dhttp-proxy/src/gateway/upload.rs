//! A request's body, sent to a server of plain HTTP.
//!
//! The response, which may come before the end of the body, is read in `upstream`.

use std::io;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dhttp::counters::count_shared;
use http1::gateway;
use http1::message::{Event, Framing, PeerFault};

use super::blocking_exchange::BlockingExchange;
use super::upstream;

/// Reason why a request's body did not reach the server whole.
pub(super) enum Upload {
    /// The body was invalid.
    Faulty(PeerFault),
    /// One of the connections broke.
    Broken,
}

impl From<io::Error> for Upload {
    fn from(_: io::Error) -> Self {
        Self::Broken
    }
}

impl BlockingExchange<'_> {
    /// Sends the request's body as it arrives, and sets `has_progressed` with each part.
    pub(super) fn upload(
        &mut self,
        to: &TcpStream,
        framing: Framing,
        has_progressed: &AtomicBool,
    ) -> Result<(), Upload> {
        let config = self.shared.config();
        let (begun, timeout, min_rate, mut bytes) =
            (self.shared.clock.now(), config.timeout, config.min_upload_rate, 0_u64);
        loop {
            let mut input = self.incoming.unread();
            let before = input.len();
            let event = self.reader.read(&mut input);
            let used = before - input.len();
            let (mut is_over, mut is_dry) = (false, false);
            match event.map_err(Upload::Faulty)? {
                Some(Event::Body(part)) => upstream::send_part(to, framing, part)?,
                Some(Event::End) => is_over = true,
                None => is_dry = true,
                Some(Event::Head(..)) => {}
            }
            self.incoming.consume(used);
            bytes += used as u64;
            if used > 0 {
                has_progressed.store(true, Ordering::Relaxed);
            }
            if is_over {
                return Ok(upstream::send_end(to, framing, &gateway::trailers(self.reader.trailers()))?);
            }
            // Minimum rate: a trickle would hold this thread and the server's connection for ever.
            let elapsed = Duration::from_nanos(self.shared.clock.now().since(begun).as_nanos());
            if is_dry && elapsed > timeout && bytes < min_rate.saturating_mul(elapsed.as_secs()) {
                count_shared(&self.shared.counters.slow);
                return Err(Upload::Faulty(PeerFault::TooSlow));
            }
            if is_dry && !self.incoming.fill(timeout)? {
                return Err(Upload::Faulty(PeerFault::Truncated));
            }
        }
    }
}
