//! A connection over TLS or HTTP/2 on a kernel socket: the machine that the simulator drives too, and what it waits for.
//!
//! TLS has the sizes of `tls::session` and no keys, so the kernel carries the bytes that the simulator counts.

use std::os::fd::AsFd;

use fetch::serving::HttpConnection;
use http1::server::{Input, Output, RequestId};
use nix::poll::{PollFd, PollFlags};
use wire::Time;

use crate::Error;
use crate::driver::pending_requests::{PendingRequests, Progress};
use crate::driver::service::Service;
use crate::socket::Connection;

/// One connection: its socket, its state machine, and the requests without a response.
#[derive(Debug)]
pub(super) struct WebConnection {
    socket: Connection,
    http: PendingRequests,
    wakes: Option<Time>,
    is_closing: bool,
}

impl WebConnection {
    pub(super) const fn new(socket: Connection, http: HttpConnection) -> Self {
        Self { socket, http: PendingRequests::new(http), wakes: None, is_closing: false }
    }

    /// The socket, and the events to wait for.
    pub(super) fn poll_fd(&self) -> PollFd<'_> {
        PollFd::new(self.socket.as_fd(), self.socket.interest())
    }

    pub(super) const fn wakes(&self) -> Option<Time> {
        self.wakes
    }

    /// Responds to a request, if it has not been aborted.
    pub(super) fn respond(&mut self, now: Time, id: RequestId, service: &Service) {
        self.http.respond(now, id, |head, is_http2| service.respond(head, is_http2));
    }

    /// Passes the socket's events to the state machine.
    pub(super) fn handle_readiness(&mut self, now: Time, flags: PollFlags, buffer: &mut [u8]) {
        let Some(input) = self.socket.handle_readiness(flags, !self.is_closing, buffer) else { return };
        self.is_closing |= matches!(input, Input::Reset);
        self.http.handle(now, input);
    }

    /// Executes the state machine's outputs, as far as the kernel accepts them: a write follows when the one before it has been
    /// accepted, which is when HTTP/2 chooses the next DATA.
    pub(super) fn advance(&mut self, now: Time) -> Result<Progress, Error> {
        let mut progress = Progress::default();
        self.wakes = self.http.read(now, &mut progress);
        while !self.is_closing && !self.socket.has_writes() {
            let Some(output) = self.http.next_output() else { break };
            match output {
                Output::Send(bytes) => self.is_closing |= self.socket.write(bytes).is_err(),
                Output::HalfClose => self.is_closing |= self.socket.half_close().is_err(),
                Output::Close => self.is_closing = true,
                Output::Abort => {
                    self.socket.set_reset().map_err(Error::io("reset a connection"))?;
                    self.is_closing = true;
                }
                Output::Request(..)
                | Output::RequestBody(..)
                | Output::RequestEnd(_)
                | Output::RequestAborted(_)
                | Output::Fault(_)
                | Output::Timeout(_) => {}
            }
        }
        progress.is_over = self.is_closing;
        Ok(progress)
    }
}
