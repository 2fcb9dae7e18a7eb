//! A request's body on its way to a server of plain HTTP.
//!
//! Not the answer, which may come before the last of it: that is read in `upstream`.

use std::io;
use std::net::TcpStream;

use http1::gateway;
use http1::message::{Event, Framing, PeerFault};

use super::browser::Browser;
use super::upstream;

/// Why a request's body did not reach the server whole.
pub(super) enum Upload {
    /// It was none.
    Faulty(PeerFault),
    /// One of the connections broke.
    Broken,
}

impl From<io::Error> for Upload {
    fn from(_: io::Error) -> Self {
        Self::Broken
    }
}

impl Browser<'_> {
    /// Sends the request's body as it comes.
    pub(super) fn upload(&mut self, to: &TcpStream, framing: Framing) -> Result<(), Upload> {
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
            if is_over {
                return Ok(upstream::send_end(to, framing, &gateway::trailers(self.reader.trailers()))?);
            }
            if is_dry && !self.incoming.fill(self.shared.config().patience)? {
                return Err(Upload::Faulty(PeerFault::Truncated));
            }
        }
    }
}
