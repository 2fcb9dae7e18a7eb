//! A client's connection, and what the event loop lends to its steps.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use http1::message::{Limits, RequestHead, RequestReader};
use wire::Time;

use super::completions::Completions;
use super::{Shared, log_response};
use crate::cache::streaming_fill::ThreadCache;
use dhttp::counters::count_shared;
use dhttp::log::{Channel, Log};

/// A program's connection, in any state.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) peer: SocketAddr,
    pub(super) stream: Arc<TcpStream>,
    pub(super) reader: RequestReader,
    /// Bytes received and not read yet: pipelined requests.
    pub(super) unread: Vec<u8>,
    /// Whether the kernel's send timeout is set.
    pub(super) has_send_timeout: bool,
    /// Whether it has sent a request.
    pub(super) has_requested: bool,
}

impl Connection {
    pub(super) fn new(peer: SocketAddr, stream: TcpStream) -> Self {
        let (stream, reader) = (Arc::new(stream), RequestReader::new(Limits::default()));
        Self { peer, stream, reader, unread: Vec::new(), has_send_timeout: false, has_requested: false }
    }

    /// Reads the end of a request without a body, which needs no more bytes.
    pub(super) fn skip_end(&mut self) {
        let mut no_input: &[u8] = &[];
        // Without input the reader can only report the end of the message.
        let _ = self.reader.read(&mut no_input);
    }
}

/// Context of the watching thread.
pub(super) struct ConnectionContext<'a> {
    pub(super) now: Time,
    pub(super) shared: &'a Arc<Shared>,
    pub(super) completions: &'a Arc<Completions>,
    /// Number of the connection.
    pub(super) number: u64,
    pub(super) cache: Option<&'a mut ThreadCache>,
    /// Buffer for bytes that are sent together; empty.
    pub(super) out: &'a mut Vec<u8>,
    pub(super) log: Option<&'a Log>,
    pub(super) peer: SocketAddr,
}

impl ConnectionContext<'_> {
    /// Counts and logs a response of the gateway itself.
    pub(super) fn report_own(&self, head: &RequestHead, status: u16, bytes: u64) {
        count_shared(&self.shared.counters.own);
        if let Some(log) = self.log {
            log_response(log, self.peer, head, status, bytes, Channel::TcpClient);
        }
    }

    /// Counts and logs a response.
    pub(super) fn report(&self, head: &RequestHead, status: u16, bytes: u64, channel: Channel) {
        count_shared(self.shared.counters.responses(channel));
        if let Some(log) = self.log {
            log_response(log, self.peer, head, status, bytes, channel);
        }
    }
}
