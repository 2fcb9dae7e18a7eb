//! Notes of a client about everything it sends and receives: the output of `-v`.
//!
//! Not the answers: those are [`super::Event`]s.

use std::fmt;
use std::net::SocketAddr;

use dhttp_proto::client::{Discard, Reason};

/// Something that was sent, received or found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// A request by UDP, of so many bytes, to there; a resend if so.
    Sent(SocketAddr, usize, bool),
    /// The same request, for what is missing of its answer.
    AskedForMissing(SocketAddr, usize),
    /// A datagram from there.
    Received(SocketAddr, usize),
    /// One with a part of an answer.
    Part(SocketAddr, usize),
    /// A server connected from there; its first bytes came with its SYN (TCP Fast Open) if so.
    Connected(SocketAddr, bool),
    /// First bytes cannot come with SYNs: this is `net.ipv4.tcp_fastopen`, and its bit 1 is not set.
    NoFastOpen(u32),
    /// Its connection ended.
    Ended(SocketAddr),
    /// A message from there was discarded.
    Discarded(SocketAddr, Discard),
    /// Plain HTTP is asked next, for this reason.
    Fallback(Reason),
    /// A connection for plain HTTP goes there.
    Connecting(SocketAddr),
}

impl Note {
    /// Whether there is one for every request that goes well: too many for a line each.
    pub(super) const fn is_of_a_datagram(&self) -> bool {
        match self {
            Self::Sent(..) | Self::AskedForMissing(..) | Self::Received(..) | Self::Part(..) => true,
            Self::Connected(..) | Self::NoFastOpen(_) | Self::Ended(_) => false,
            Self::Discarded(..) | Self::Fallback(_) | Self::Connecting(_) => false,
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sent(to, bytes, false) => write!(f, "> udp {to}: request, {bytes} bytes"),
            Self::Sent(to, bytes, true) => write!(f, "> udp {to}: the same again, {bytes} bytes"),
            Self::AskedForMissing(to, bytes) => write!(f, "> udp {to}: what is missing, {bytes} bytes"),
            Self::Part(from, bytes) => write!(f, "< udp {from}: a part of the answer, {bytes} bytes"),
            Self::Received(from, 8) => write!(f, "< udp {from}: eight bytes, ask over plain HTTP"),
            Self::Received(from, bytes) => write!(f, "< udp {from}: answer, {bytes} bytes"),
            Self::Connected(from, false) => write!(f, "< tcp {from}: connected to us"),
            Self::Connected(from, true) => write!(f, "< tcp {from}: connected to us, with data in its SYN"),
            Self::NoFastOpen(value) => {
                write!(
                    f,
                    "* no SYN may bring data here: net.ipv4.tcp_fastopen is {value}; {} allows it",
                    value | 2
                )
            }
            Self::Ended(from) => write!(f, "< tcp {from}: closed"),
            Self::Discarded(from, why) => write!(f, "* {from}: thrown away, {}", discarded(*why)),
            Self::Fallback(Reason::Referred) => f.write_str("* the server asks for plain HTTP"),
            Self::Fallback(Reason::Unreachable) => f.write_str("* nothing listens there for UDP: plain HTTP"),
            Self::Fallback(Reason::Silence) => f.write_str("* no answer by UDP: plain HTTP"),
            Self::Connecting(to) => write!(f, "> tcp {to}: connecting, plain HTTP"),
        }
    }
}

const fn discarded(why: Discard) -> &'static str {
    match why {
        Discard::Unknown => "it answers nothing that was asked",
        Discard::Late => "it was answered before",
        Discard::Stranger => "from somebody who was not asked",
        Discard::Malformed(_) => "it is no answer",
        Discard::Crowded => "too many connections",
    }
}
