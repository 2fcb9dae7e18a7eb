//! Notes of a client about everything it sends and receives: the output of `-v`.
//!
//! Not the responses: those are [`super::Event`]s.

use std::fmt;
use std::net::SocketAddr;

use dhttp_proto::client::{Discard, Reason};

/// Something sent, received or detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// A request sent by UDP: its destination, its bytes, and whether it is a resend.
    Sent(SocketAddr, usize, bool),
    /// The same request for the missing parts of its response.
    RequestedMissing(SocketAddr, usize),
    /// A datagram received: its source and its bytes.
    Received(SocketAddr, usize),
    /// The fallback message: its source and its bytes.
    FallbackMessage(SocketAddr, usize),
    /// A datagram with a part of a response.
    Part(SocketAddr, usize),
    /// A server connected; `true` if its first bytes came in its SYN (TCP Fast Open).
    Connected(SocketAddr, bool),
    /// Fast Open is off for listeners: the value of `net.ipv4.tcp_fastopen`, whose bit 1 is not set.
    NoFastOpen(u32),
    /// A server's connection is not read, until the caller takes more of the response.
    Paused(SocketAddr),
    /// A server's connection was closed.
    Ended(SocketAddr),
    /// A message was discarded: its source, and the reason.
    Discarded(SocketAddr, Discard),
    /// The request falls back to plain HTTP, for this reason.
    Fallback(Reason),
    /// Connecting for plain HTTP.
    Connecting(SocketAddr),
}

impl Note {
    /// Whether every successful request has one: too many for a log line each.
    pub(super) const fn is_of_a_datagram(&self) -> bool {
        match self {
            Self::Sent(..)
            | Self::RequestedMissing(..)
            | Self::Received(..)
            | Self::FallbackMessage(..)
            | Self::Part(..) => true,
            Self::Connected(..) | Self::NoFastOpen(_) | Self::Paused(_) | Self::Ended(_) => false,
            Self::Discarded(..) | Self::Fallback(_) | Self::Connecting(_) => false,
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sent(to, bytes, false) => write!(f, "> udp {to}: request, {bytes} bytes"),
            Self::Sent(to, bytes, true) => write!(f, "> udp {to}: request resent, {bytes} bytes"),
            Self::RequestedMissing(to, bytes) => write!(f, "> udp {to}: missing parts, {bytes} bytes"),
            Self::Part(from, bytes) => write!(f, "< udp {from}: part of a response, {bytes} bytes"),
            Self::FallbackMessage(from, bytes) => {
                write!(f, "< udp {from}: fallback message, {bytes} bytes: use plain HTTP")
            }
            Self::Received(from, bytes) => write!(f, "< udp {from}: response, {bytes} bytes"),
            Self::Connected(from, false) => write!(f, "< tcp {from}: server connected"),
            Self::Connected(from, true) => write!(f, "< tcp {from}: server connected, with data in its SYN"),
            Self::NoFastOpen(value) => {
                write!(
                    f,
                    "* TCP Fast Open is off for servers: net.ipv4.tcp_fastopen is {value}; {} enables it",
                    value | 2
                )
            }
            Self::Paused(from) => write!(f, "* tcp {from}: paused, the caller reads slowly"),
            Self::Ended(from) => write!(f, "< tcp {from}: closed"),
            Self::Discarded(from, reason) => write!(f, "* {from}: dropped, {}", discarded(*reason)),
            Self::Fallback(Reason::Referred) => f.write_str("* the server requests plain HTTP"),
            Self::Fallback(Reason::Unreachable) => f.write_str("* UDP port unreachable: plain HTTP"),
            Self::Fallback(Reason::Silence) => f.write_str("* no response by UDP: plain HTTP"),
            Self::Fallback(Reason::Paused) => f.write_str("* the server's connection is paused: plain HTTP"),
            Self::Connecting(to) => write!(f, "> tcp {to}: connecting, plain HTTP"),
        }
    }
}

const fn discarded(reason: Discard) -> &'static str {
    match reason {
        Discard::Unknown => "no matching request",
        Discard::Late => "duplicate response",
        Discard::Stranger => "unexpected source address",
        Discard::Malformed(_) => "malformed response",
        Discard::Crowded => "too many connections",
    }
}
