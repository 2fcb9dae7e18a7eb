//! What a robot tells about its page: what happened, when, and why something failed.
//!
//! Not the trace of an engine, nor the row of a table: those are made from this.

use std::fmt;

use wire::{Bytes, Time};

use super::ConnectionId;
use http1::content::DecodeFault;
use http1::message::PeerFault;

/// What happened, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// When the input came that it follows from.
    pub at: Time,
    /// What.
    pub what: What,
}

/// What happened to a page. Objects are numbered as in the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A request was handed to its connection.
    RequestSent {
        /// Which.
        object: usize,
        /// On which connection.
        connection: ConnectionId,
    },
    /// The head of the answer is there.
    HeadReceived {
        /// Of which.
        object: usize,
        /// 200 to 999.
        status: u16,
    },
    /// The document names an object that the plan does not have. It is numbered behind all others and is asked for
    /// when the plan's release says so.
    ObjectFound {
        /// Its number.
        object: usize,
        /// Its path, query included.
        path: String,
    },
    /// The document names more objects than the plan follows; told once. The others are not asked for.
    TooManyObjects {
        /// So many are followed.
        most: usize,
    },
    /// The first bytes of it are there, which tell what it is and how large ([`super::FirstBytes`]); or all of it is, or
    /// the client has had it all the time. Told once, and only if the plan says how many bytes those are.
    FirstBytesReceived {
        /// Of which.
        object: usize,
    },
    /// All of it is there, with a status below 300 and the size that was expected; or the server says (304) that what
    /// the client has is still the same.
    ObjectComplete {
        /// Which.
        object: usize,
        /// 200 to 299, or 304.
        status: u16,
        /// The body.
        body: Bytes,
    },
    /// It will not come.
    ObjectFailed {
        /// Which.
        object: usize,
        /// Why.
        failure: Failure,
    },
    /// A server did something wrong that cost no object; the connection was dropped.
    Fault {
        /// Where.
        connection: ConnectionId,
        /// What.
        fault: PeerFault,
    },
    /// Every object has arrived or failed. Connections may still be closing: see [`super::Robot::is_done`].
    Finished {
        /// Objects that failed, without those that are not there ([`Failure::Missing`]).
        failed: usize,
    },
}

/// Why an object did not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The connection ended without an answer, as often as the plan allows.
    Unanswered,
    /// The connection broke, without an answer as often as the plan allows, or in the middle of one.
    Broken(Break),
    /// The answer is not HTTP, or goes past a limit, or ends too early.
    Fault(PeerFault),
    /// The answer is none that has the object.
    Status(u16),
    /// The document names it, and the server has no such object (404, 410): the page is as whole as it can be.
    Missing,
    /// The body has another size than expected.
    Size {
        /// As in the plan.
        expected: Bytes,
        /// As it came.
        received: Bytes,
    },
    /// The server sent a part that was not asked for, or parts that do not fit together.
    Part,
    /// The document's coding cannot be undone; what it named before that is fetched.
    Content(DecodeFault),
    /// The page took too long.
    Deadline,
}

/// How a connection ends without an end of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Break {
    /// Nobody listens there.
    Refused,
    /// The server, or somebody on the way, reset it.
    Reset,
    /// No way there, or no sign of life for too long.
    Unreachable,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unanswered => f.write_str("the server closed the connection without an answer"),
            Self::Broken(Break::Refused) => f.write_str("the server refused the connection; is it running?"),
            Self::Broken(Break::Reset) => f.write_str("the connection was reset"),
            Self::Broken(Break::Unreachable) => f.write_str("the server could not be reached"),
            Self::Fault(fault) => fault.fmt(f),
            Self::Status(status) => write!(f, "the server answered with status {status}"),
            Self::Missing => f.write_str("the document names it, and the server does not have it"),
            Self::Size { expected, received } => {
                write!(f, "the server sent {received} where {expected} were expected")
            }
            Self::Part => f.write_str("the server sent another part of the object than was asked for"),
            Self::Content(fault) => fault.fmt(f),
            Self::Deadline => f.write_str("it had not arrived at the page's deadline"),
        }
    }
}
