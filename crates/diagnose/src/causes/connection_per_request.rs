//! A new connection for each request: each costs a round trip, and a new initial window.
//!
//! **Rule**: a client opens a connection to a server soon after one with at most one request had closed, or while that
//! one was closing. **Evidence**: the previous connection. **Refuted by**: a previous connection with several requests
//! (it closed for another reason), or one that is still in use (concurrent connections are deliberate).
//!
//! **Saved** are the set-up, the waits that the previous connection's open window would have spared, and the wait for
//! its close, if the client opened this one immediately after that.

use wire::Duration;

use crate::cause::{CauseInfo, Fix, Party};

pub(crate) const ABOUT: CauseInfo = CauseInfo {
    description: "The client opened a new connection though it had just closed one to the same server after one request.",
    fixes: &[
        Fix {
            party: Party::ClientApplication,
            change: "use one session or pool for all requests (Python requests.Session, Go one http.Client with the \
                     body read to its end, Node an agent with keepAlive: true, Java one HttpClient, curl one handle)",
        },
        Fix {
            party: Party::ServerApplication,
            change: "respond with HTTP/1.1 and without Connection: close (nginx keepalive_timeout 75s and, towards \
                     upstreams, keepalive 32 with proxy_http_version 1.1; Apache KeepAlive On; Python \
                     protocol_version = \"HTTP/1.1\")",
        },
    ],
    is_fault: true,
    min_duration: Duration::ZERO,
};

/// Maximum time before the previous connection began to close; a connection opened earlier than that was concurrent.
pub(crate) const RIGHT_BEFORE: Duration = Duration::from_millis(5);

/// Maximum time since the previous connection; one opened later was opened for another reason.
pub(crate) const SOON: Duration = Duration::from_secs(2);

/// Maximum time after that close within which a client that waited for it opens the next connection.
pub(crate) const IMMEDIATE: Duration = Duration::from_millis(20);
