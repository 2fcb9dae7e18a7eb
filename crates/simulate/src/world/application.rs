//! What runs on a host, and how it speaks to TCP and UDP: the calls of a socket, as values.
//!
//! The contract of every machine: `handle(now, input)`, then `poll(now)` until it returns a timeout; only then
//! `handle` again. A host has one application, however many connections that has; it is its one processor, too:
//! while it works, what happens waits.

use tcp::{Failure, Payload};
use wire::{Duration, Time};

use crate::world::Address;

/// What runs on a host.
pub trait Application {
    /// Something has happened.
    fn handle(&mut self, now: Time, input: Input);

    /// What to do next. `fresh` is the name that a connection will have if it is opened now.
    fn poll(&mut self, now: Time, fresh: SocketId) -> Action;
}

/// A connection of one host; they count from 0 and no number comes twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SocketId(pub u32);

/// What has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A client's connection, on this port, is open.
    Accepted(SocketId, u16),
    /// Ours is open.
    Connected(SocketId),
    /// Bytes, in order; they have been read.
    Data(SocketId, Payload),
    /// The peer will send no more.
    Finished(SocketId),
    /// The last write is in the buffer; the next may follow.
    Written(SocketId),
    /// It is gone, in good order.
    Closed(SocketId),
    /// It is gone otherwise.
    Failed(SocketId, Failure),
    /// A datagram for this port.
    Datagram(Datagram),
}

/// A UDP datagram as an application sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// The other end: where it comes from, or goes.
    pub peer: Address,
    /// The port at this end.
    pub port: u16,
    /// What it holds.
    pub payload: Payload,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Wait for connections on this port.
    Listen(u16),
    /// Take datagrams for this port.
    Bind(u16),
    /// Send a datagram.
    Send(Datagram),
    /// Open a connection; it has the name that was offered.
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
    /// Use the processor this long; then ask again.
    Work(Duration),
    /// What this run was for is done; the next run goes on.
    Finish,
    /// Nothing before the next input, or this time.
    Wait(Option<Time>),
}
