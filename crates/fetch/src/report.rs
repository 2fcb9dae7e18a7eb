//! Reports on a page: events, their times, and reasons of failures.
//!
//! An engine's trace and a table's row are derived from them.

use std::fmt;

use wire::{Bytes, Time};

use crate::transport::id::ConnectionId;
use http1::content::DecodeFault;
use http1::message::PeerFault;

/// An event, and its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Time of the input that caused it.
    pub at: Time,
    /// The event.
    pub event: PageEvent,
}

/// An event of a page. Objects are numbered as in the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageEvent {
    /// A request was passed to its connection.
    RequestSent {
        /// The object.
        object: usize,
        /// The connection.
        connection: ConnectionId,
    },
    /// The response's headers have arrived.
    HeadReceived {
        /// The object.
        object: usize,
        /// Status code, 200 to 999.
        status: u16,
    },
    /// The document references an object that the plan does not have. It is numbered after all others and is
    /// requested when the plan's release allows.
    ObjectFound {
        /// Number of the object.
        object: usize,
        /// Path with query.
        path: String,
    },
    /// The document references more objects than the plan's maximum; reported once. The others are not
    /// requested.
    TooManyObjects {
        /// The maximum.
        max: usize,
    },
    /// The first bytes of an object have arrived, which identify its type and dimensions
    /// ([`crate::FirstBytes`]); or all of it has, or the client's cached copy is valid. Reported once, and
    /// only if the plan has a number of first bytes.
    FirstBytesReceived {
        /// The object.
        object: usize,
    },
    /// An object has arrived completely, with a status below 300 and the expected size; or the server
    /// confirmed the client's cached copy (304).
    ObjectComplete {
        /// The object.
        object: usize,
        /// Status code, 200 to 299, or 304.
        status: u16,
        /// Size of the body.
        body: Bytes,
    },
    /// An object has failed.
    ObjectFailed {
        /// The object.
        object: usize,
        /// The reason.
        failure: Failure,
    },
    /// A server's protocol error that affected no object; the connection was closed.
    Fault {
        /// The connection.
        connection: ConnectionId,
        /// The protocol error.
        fault: PeerFault,
    },
    /// Every object has arrived or failed. Connections may still be closing: see [`crate::Fetcher::is_done`].
    Finished {
        /// Number of objects that failed, without missing ones ([`Failure::Missing`]).
        failed: usize,
    },
}

/// Reason why an object failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The connection ended without a response, in all tries.
    Unanswered,
    /// The connection broke, without a response in all tries, or in the middle of one.
    Broken(Break),
    /// The response is not valid HTTP, exceeds a limit, or ends too early.
    Fault(PeerFault),
    /// The response's status does not indicate success.
    Status(u16),
    /// The document references it, and the server has no such object (404, 410): the page is as complete as
    /// possible.
    Missing,
    /// The body has another size than expected.
    Size {
        /// Size in the plan.
        expected: Bytes,
        /// Size received.
        received: Bytes,
    },
    /// The server sent an unsolicited part, or parts that do not fit together.
    Part,
    /// The document's content coding cannot be decoded; objects discovered before that are fetched.
    Content(DecodeFault),
    /// The page's deadline passed.
    Deadline,
}

/// Failure of a connection, without an end of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Break {
    /// Connection refused.
    Refused,
    /// Connection reset, by the server or by a middlebox.
    Reset,
    /// Host unreachable, or connection timed out.
    Unreachable,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unanswered => f.write_str("the server closed the connection without a response"),
            Self::Broken(Break::Refused) => f.write_str("the server refused the connection; is it running?"),
            Self::Broken(Break::Reset) => f.write_str("the connection was reset"),
            Self::Broken(Break::Unreachable) => f.write_str("the server could not be reached"),
            Self::Fault(fault) => fault.fmt(f),
            Self::Status(status) => write!(f, "the server responded with status {status}"),
            Self::Missing => f.write_str("the document references it, and the server lacks it"),
            Self::Size { expected, received } => {
                write!(f, "the server sent {received} where {expected} were expected")
            }
            Self::Part => f.write_str("the server sent another part of the object than requested"),
            Self::Content(fault) => fault.fmt(f),
            Self::Deadline => f.write_str("it had not arrived at the page's deadline"),
        }
    }
}
