//! A connection over TLS or HTTP/2 on a kernel socket: the machine that the simulator drives too, and what it waits for.
//!
//! TLS has the sizes of `tls::session` and no keys, so the kernel carries the bytes that the simulator counts.

use std::collections::BTreeMap;
use std::os::fd::AsFd;

use fetch::serving::{HttpConnection, Wish};
use http1::message::RequestHead;
use http1::server::{Input, Output, RequestId};
use nix::poll::{PollFd, PollFlags};
use wire::Time;

use super::Service;
use crate::Error;
use crate::socket::{Connection, ReadResult};

/// One connection: its socket, its state machine, and the requests without a response.
#[derive(Debug)]
pub(super) struct WebConnection {
    socket: Connection,
    http: HttpConnection,
    requests: BTreeMap<RequestId, RequestHead>,
    wakes: Option<Time>,
    is_closing: bool,
}

/// Progress of a connection.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Complete requests.
    pub(super) requests: Vec<RequestId>,
    /// The client's protocol errors, in sentences.
    pub(super) faults: Vec<String>,
    /// Whether the connection is over.
    pub(super) is_over: bool,
}

impl WebConnection {
    pub(super) const fn new(socket: Connection, http: HttpConnection) -> Self {
        Self { socket, http, requests: BTreeMap::new(), wakes: None, is_closing: false }
    }

    /// The socket, and the events to wait for.
    pub(super) fn poll_fd(&self) -> PollFd<'_> {
        PollFd::new(self.socket.as_fd(), self.socket.interest())
    }

    pub(super) const fn wakes(&self) -> Option<Time> {
        self.wakes
    }

    /// The target of a request that has no response yet.
    pub(super) fn target(&self, id: RequestId) -> Option<&str> {
        self.requests.get(&id).map(|head| head.target.as_str())
    }

    /// Responds to a request, if it has not been aborted.
    pub(super) fn respond(&mut self, now: Time, id: RequestId, service: &Service) {
        if let Some(head) = self.requests.remove(&id) {
            self.http.respond(now, id, service.respond(&head, self.http.is_http2()));
        }
    }

    /// Passes the socket's events to the state machine.
    pub(super) fn handle_readiness(&mut self, now: Time, flags: PollFlags, buffer: &mut [u8]) {
        if flags.contains(PollFlags::POLLOUT) && self.socket.write_pending().is_err() {
            self.http.handle(now, Input::Reset);
            self.is_closing = true;
            return;
        }
        if self.is_closing || !flags.intersects(PollFlags::POLLIN | PollFlags::POLLHUP | PollFlags::POLLERR) {
            return;
        }
        match self.socket.read(buffer) {
            Ok(ReadResult::Nothing) => {}
            Ok(ReadResult::Bytes(length)) => {
                self.http.handle(now, Input::Received(buffer.get(..length).unwrap_or_default()));
            }
            Ok(ReadResult::End) => self.http.handle(now, Input::EndOfStream),
            Err(_) => {
                self.http.handle(now, Input::Reset);
                self.is_closing = true;
            }
        }
    }

    /// Executes the state machine's outputs, as far as the kernel accepts them: a write follows when the one before it has been
    /// accepted, which is when HTTP/2 chooses the next DATA.
    pub(super) fn advance(&mut self, now: Time) -> Result<Progress, Error> {
        let mut progress = Progress::default();
        self.wakes = loop {
            match self.http.next(now) {
                Wish::Response(id, head) => {
                    self.requests.insert(id, head);
                    progress.requests.push(id);
                }
                Wish::Aborted(id) => drop(self.requests.remove(&id)),
                Wish::Fault(fault) => progress.faults.push(fault.to_string()),
                Wish::Timeout(until) => break until,
            }
        };
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
