//! Inputs, outputs and refusals of a client.
//!
//! Not the state machine itself: that is [`super::Client`].

use core::net::{IpAddr, SocketAddr};

use wire::Time;

use crate::{Id, Malformed};
use http1::message::ResponseHead;

/// Id of a connection that a server opened to this client; the driver assigns it, and never reuses one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionId(pub u64);

/// Input from the sockets. It may concern a connection that the client no longer knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input<'a> {
    /// A datagram came in.
    Datagram(SocketAddr, &'a [u8]),
    /// ICMP reported this address and port as unreachable.
    Unreachable(SocketAddr),
    /// The driver accepted a connection.
    Accepted(ConnectionId, SocketAddr),
    /// Bytes arrived on it.
    Received(ConnectionId, &'a [u8]),
    /// A connection was closed or broke; nothing more follows.
    Ended(ConnectionId),
    /// The driver does not read a connection until [`Input::Resumed`], because the caller does not take its response.
    Paused(ConnectionId),
    /// The driver reads it again.
    Resumed(ConnectionId),
    /// Bytes that arrived from this host on connections outside this client, such as plain HTTP: the host is not
    /// silent.
    Heard(IpAddr, usize),
}

/// Action for the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send this datagram.
    Send(SocketAddr, Vec<u8>),
    /// For the caller: a response begins, from this source.
    Head(Id, Source, ResponseHead),
    /// For the caller: a part of its body, at least one byte.
    Body(Id, Vec<u8>),
    /// For the caller: it is complete.
    End(Id),
    /// For the caller: retry over plain HTTP; nothing of a response was delivered.
    Fallback(Id, Reason),
    /// For the caller: the response broke off after its header section; retry if it is still wanted.
    Failed(Id, Failure),
    /// Close this connection without sending anything on it; no later output refers to it.
    Close(ConnectionId),
    /// For the log: discarded input.
    Discarded(SocketAddr, Discard),
    /// No action before the next input or this time, when to poll again.
    Timeout(Option<Time>),
}

/// Source of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A datagram from this address.
    Datagram(SocketAddr),
    /// A connection from this address.
    Connection(SocketAddr),
}

/// Reason for a fallback to plain HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The server requests it, by the bare id of eight bytes.
    Referred,
    /// Nothing listens on the UDP port.
    Unreachable,
    /// The last resend got no response.
    Silence,
    /// A connection of the server is not read ([`Input::Paused`]), and the response may be queued on it.
    Paused,
}

/// Reason why a response broke off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Its connection was closed.
    Ended,
    /// Its connection was silent for too long.
    Stalled,
    /// Its bytes are not valid HTTP.
    Malformed(Malformed),
}

/// Reason why input was discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discard {
    /// No request has its id: forged, or older than the memory.
    Unknown,
    /// Its request has a response already.
    Late,
    /// It comes from a host that may not respond.
    Stranger,
    /// It is not a valid response.
    Malformed(Malformed),
    /// The maximum number of connections is open.
    Crowded,
}

/// Reason why a request does not go over UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Its method is not safe, so it must not be repeated: use plain HTTP.
    #[error("only GET, HEAD and OPTIONS go over UDP; send this request over plain HTTP")]
    Unsafe,
    /// It has a body, an `Expect` or an `Upgrade`: use plain HTTP.
    #[error("a request with a body or an Upgrade does not fit UDP; send it over plain HTTP")]
    NotAlone,
    /// It identifies the user, and everyone on the path could read it: use plain HTTP, or better, encryption.
    #[error("Authorization and Cookie do not go over UDP, where others read them; use HTTPS")]
    Credentials,
    /// It does not fit a datagram: use plain HTTP.
    #[error("the request does not fit a datagram; send it over plain HTTP")]
    TooLarge,
    /// The maximum number of requests is in flight: retry later.
    #[error("too many requests in progress; wait for a response")]
    Crowded,
    /// The id is in use or was recently: generate another.
    #[error("the request's id is in use; generate another")]
    IdInUse,
}
