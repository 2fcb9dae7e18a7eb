//! Application of a host, and its use of TCP and UDP: the calls of a socket, as values.
//!
//! The contract of every state machine: `handle(now, input)`, then `poll(now)` until it returns a timeout;
//! only then `handle` again. A host has one application, whatever its number of connections. It is also the
//! host's one CPU: while it works, events wait.

use tcp::{Failure, Payload};
use wire::{Duration, Time};

use crate::world::Address;

/// Program that runs on a host.
pub trait Application {
    /// Handles an event.
    fn handle(&mut self, now: Time, input: Input);

    /// Next action. `fresh` is the identifier of a connection that is opened now.
    fn poll(&mut self, now: Time, fresh: SocketId) -> Action;
}

/// Identifier of a host's connection; counts from 0, unique per host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SocketId(pub u32);

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A client's connection, on this port and from there, is open.
    Accepted(SocketId, u16, Address),
    /// A connection that this application opened is open.
    Connected(SocketId),
    /// Bytes, in order; they have been read.
    Data(SocketId, Payload),
    /// The peer will send no more.
    Finished(SocketId),
    /// The last write is in the send buffer; the next may follow.
    Written(SocketId),
    /// The connection has closed in order.
    Closed(SocketId),
    /// The connection has failed.
    Failed(SocketId, Failure),
    /// A datagram for this port.
    Datagram(Datagram),
}

/// A UDP datagram as an application sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// The other end: source or destination.
    pub peer: Address,
    /// The port at this end.
    pub port: u16,
    /// Its payload.
    pub payload: Payload,
}

/// Next action of an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Wait for connections on this port.
    Listen(u16),
    /// Drop the SYNs for this port until the next [`Action::Listen`], as a kernel does whose backlog is full.
    DropSyns(u16),
    /// Take datagrams for this port.
    Bind(u16),
    /// Send a datagram.
    Send(Datagram),
    /// Open a connection; its identifier is `fresh`.
    Connect(Address),
    /// Write, in one call. The next write should wait for [`Input::Written`].
    Write(SocketId, Payload),
    /// Write and shut down, in one call.
    WriteLast(SocketId, Payload),
    /// Send no more, still receive.
    Shutdown(SocketId),
    /// Close.
    Close(SocketId),
    /// Close with a reset.
    Abort(SocketId),
    /// Use the CPU for this long; then poll again.
    Work(Duration),
    /// End this run; the next run continues.
    Finish,
    /// No action before the next input, or this time.
    Wait(Option<Time>),
}
