//! An end where there is none: QUIC's state machine does not build for this target.

use core::net::SocketAddr;
use std::sync::Arc;

use http2::Priority;
use wire::Time;

use crate::{ClientConfig, ConnectionId, Event, Recovery, ServerConfig, Unavailable};

/// An end of connections, which does not exist.
#[derive(Debug)]
pub enum Endpoint {}

impl Endpoint {
    /// A client.
    ///
    /// # Errors
    /// Always [`Unavailable::WebAssembly`].
    pub fn client(_: ClientConfig) -> Result<Self, Unavailable> {
        Err(Unavailable::WebAssembly)
    }

    /// A server.
    ///
    /// # Errors
    /// Always [`Unavailable::WebAssembly`].
    pub fn server(_: ServerConfig) -> Result<Self, Unavailable> {
        Err(Unavailable::WebAssembly)
    }

    /// Records the state of recovery from now on.
    pub fn record(&mut self) {
        match *self {}
    }

    /// Changes of recovery.
    pub fn recoveries(&self) -> &[Recovery] {
        match *self {}
    }

    /// Opens a connection.
    pub fn connect(&mut self, _: Time, _: SocketAddr, _: &str) -> Option<ConnectionId> {
        match *self {}
    }

    /// Whether a request may leave now.
    pub fn can_request(&mut self, _: ConnectionId) -> bool {
        match *self {}
    }

    /// Sends a request.
    pub fn request<'a>(
        &mut self,
        _: ConnectionId,
        _: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
        _: Priority,
        _: Arc<[u8]>,
    ) -> Option<u64> {
        match *self {}
    }

    /// Sends a response.
    pub fn respond<'a>(
        &mut self,
        _: ConnectionId,
        _: u64,
        _: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
        _: Priority,
        _: Arc<[u8]>,
    ) {
        match *self {}
    }

    /// Resets a stream.
    pub fn reset(&mut self, _: ConnectionId, _: u64) {
        match *self {}
    }

    /// Closes a connection.
    pub fn close(&mut self, _: Time, _: ConnectionId) {
        match *self {}
    }

    /// Handles a datagram.
    pub fn receive(&mut self, _: Time, _: SocketAddr, _: &[u8], _: &mut dyn FnMut(Event<'_>)) {
        match *self {}
    }

    /// Handles what is due.
    pub fn expire(&mut self, _: Time, _: &mut dyn FnMut(Event<'_>)) {
        match *self {}
    }

    /// Next datagram.
    pub fn next_datagram(&mut self, _: Time) -> Option<(SocketAddr, Vec<u8>)> {
        match *self {}
    }

    /// Time of the next timer.
    pub fn timeout(&self) -> Option<Time> {
        match *self {}
    }
}
