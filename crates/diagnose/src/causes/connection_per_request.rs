//! A new connection for each request: a round trip for each, and a window that starts anew.
//!
//! **Rule**: a client opens a connection to a server soon after one that carried at most one request had ended, or
//! while it was ending. **Evidence**: the connection before. **Refuted by**: a connection before that carried several
//! requests (it ended for another reason), or that is still in use (connections side by side are a choice).
//!
//! **Saved** is the set-up, the waits for a window that was open there, and the wait for that one's end where the client opened
//! this one at once then.

use wire::Duration;

use crate::cause::{CauseInfo, Fix, Party};

pub(crate) const ABOUT: CauseInfo = CauseInfo {
    what: "The client opened a new connection though it had just closed one to the same server after one request.",
    fixes: &[
        Fix {
            who: Party::ClientApplication,
            change: "use one session or pool for all requests (Python requests.Session, Go one http.Client with the \
                     body read to its end, Node an agent with keepAlive: true, Java one HttpClient, curl one handle)",
        },
        Fix {
            who: Party::ServerApplication,
            change: "respond with HTTP/1.1 and without Connection: close (nginx keepalive_timeout 75s and, towards \
                     upstreams, keepalive 32 with proxy_http_version 1.1; Apache KeepAlive On; Python \
                     protocol_version = \"HTTP/1.1\")",
        },
    ],
    is_fault: true,
    least: Duration::ZERO,
};

/// Maximum time before the previous connection began to close; one opened earlier than that was concurrent.
pub(crate) const RIGHT_BEFORE: Duration = Duration::from_millis(5);

/// A connection opened later than this after the one before was opened for another reason.
pub(crate) const SOON: Duration = Duration::from_secs(2);

/// So long after that end a client that waited for it opens the next.
pub(crate) const AT_ONCE: Duration = Duration::from_millis(20);
