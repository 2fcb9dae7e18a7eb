//! Inputs, outputs and refusals of a client.
//!
//! Not the machine itself: that is [`super::Client`].

use core::net::{IpAddr, SocketAddr};
use std::error::Error;
use std::fmt;

use wire::Time;

use crate::{Id, Malformed};
use http1::message::ResponseHead;

/// A connection that a server opened to this client, by a name that the driver gives it and never gives again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionId(pub u64);

/// Input from the sockets. It may concern a connection that the client no longer knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input<'a> {
    /// A datagram came in.
    Datagram(SocketAddr, &'a [u8]),
    /// ICMP says that nothing listens there.
    Unreachable(SocketAddr),
    /// A connection came in.
    Accepted(ConnectionId, SocketAddr),
    /// Bytes came in on it.
    Received(ConnectionId, &'a [u8]),
    /// It ended or broke; nothing more comes.
    Ended(ConnectionId),
    /// So many bytes have come from there on connections that are not this client's, as plain HTTP: it is not silent.
    Heard(IpAddr, usize),
}

/// Action for the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send this datagram.
    Send(SocketAddr, Vec<u8>),
    /// Caller: the answer to this begins; it comes from there, by that channel.
    Head(Id, Source, ResponseHead),
    /// Caller: a part of its body, at least one byte.
    Body(Id, Vec<u8>),
    /// Caller: it is complete.
    End(Id),
    /// Caller: ask for this over plain HTTP; nothing of an answer has come.
    Fallback(Id, Reason),
    /// Caller: the answer broke off after its head; ask again if it is still wanted.
    Failed(Id, Failure),
    /// Close this connection, and say nothing on it; it will not be spoken of again.
    Close(ConnectionId),
    /// Log: what was thrown away.
    Discarded(SocketAddr, Discard),
    /// Nothing more before the next input, or this time, when to poll again.
    Timeout(Option<Time>),
}

/// Where an answer comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A datagram from there.
    Datagram(SocketAddr),
    /// A connection from there.
    Connection(SocketAddr),
}

/// Why plain HTTP is the way to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The server asks for it: the answer of eight bytes.
    Referred,
    /// Nothing listens on the UDP port.
    Unreachable,
    /// The last resend has no answer.
    Silence,
}

/// Why an answer broke off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Its connection ended.
    Ended,
    /// Its connection was silent for too long.
    Stalled,
    /// It is not HTTP any more.
    Malformed(Malformed),
}

/// Why something was thrown away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discard {
    /// It answers nothing that was asked: forged, or older than the memory.
    Unknown,
    /// It answers what has been answered.
    Late,
    /// It comes from somebody who was not asked.
    Stranger,
    /// It is not an answer.
    Malformed(Malformed),
    /// There are as many connections as there may be.
    Crowded,
}

/// Why a request does not go over UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It may change something, and must not be done twice: plain HTTP.
    Unsafe,
    /// It has a body, expects one or wants another protocol: plain HTTP.
    NotAlone,
    /// It shows who the user is, and everybody on the path could read it: plain HTTP, or better, encrypted.
    Credentials,
    /// It does not fit a datagram: plain HTTP.
    TooLarge,
    /// As many are under way as may be: later.
    Crowded,
    /// The id is in use or was lately: draw another.
    IdInUse,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unsafe => "only GET, HEAD and OPTIONS go over UDP; send this request over plain HTTP",
            Self::NotAlone => "a request with a body or an Upgrade does not fit UDP; send it over plain HTTP",
            Self::Credentials => {
                "Authorization and Cookie do not go over UDP, where others read them; use HTTPS"
            }
            Self::TooLarge => "the request does not fit a datagram; send it over plain HTTP",
            Self::Crowded => "too many requests in progress; wait for a response",
            Self::IdInUse => "the request's id is in use; draw another",
        })
    }
}

impl Error for Refusal {}
