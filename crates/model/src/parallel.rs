//! Several concurrent connections (`papers/heidemann-model#section-iv-e`).
//!
//! The paper's approximation: "treating rtt as if it were rtt/n, for n concurrent connections". `simulate` models the
//! interaction of connections that share a path.
//!
//! Persistent connections (`http11-parallel`) combine it with connection caching, equations (8) to (11). For
//! each of `k` connections the first exchange misses and all others hit, with `rtt/k` instead of `rtt`:
//!
//! ```text
//! independent: S = rtt/k + sum of (T(i) - rtt/k);  T(i) = T_cache-miss for i < k, T_cache-hit for the others
//! dependent:   S = T(0) + sum of T(i), i > 0;      the same, but T(0) with the whole rtt: it references the others
//! ```
//!
//! `k` is the number allowed, or the number of objects requested concurrently if it is smaller. With one
//! connection both are the sums for HTTP/1.1. Independent requests on warm connections have nothing to
//! divide: they cost the minimum.

use scenario::{Client, Connection, Requests};
use wire::Duration;

use crate::{Exchange, Path, SlowStart, Transaction, minimum, tcp};

/// Returns the path as assumed for each of `connections` connections. 0 counts as 1.
///
/// With no more connections than objects the result stays above the minimum. The objects' shares, rounded up,
/// add up to a whole round trip or more, and one share is counted for all.
pub fn path(path: &Path, connections: u64) -> Path {
    Path { rtt: Duration::from_nanos(path.rtt.as_nanos().div_ceil(connections.max(1))), ..*path }
}

/// Returns the number of persistent connections that a page of `objects` objects uses: `k`, at least 1.
pub fn connections(client: &Client, objects: usize) -> u64 {
    let concurrent = match client.requests {
        Requests::Independent => objects,
        Requests::AfterDocument | Requests::Dependent => objects.saturating_sub(1),
    };
    u64::from(client.parallel).min(concurrent as u64).max(1)
}

/// Returns the terms of the sums above.
pub fn persistent(
    undivided: &Path,
    start: &SlowStart,
    client: &Client,
    exchanges: &[Exchange],
) -> Vec<Transaction> {
    let connections = connections(client, exchanges.len());
    let divided = match (client.connection, client.requests) {
        (Connection::Warm, Requests::Independent) => *undivided,
        (Connection::Warm, Requests::AfterDocument | Requests::Dependent) | (Connection::Cold, _) => {
            path(undivided, connections)
        }
    };
    let first = match client.requests {
        Requests::Independent => divided,
        Requests::AfterDocument | Requests::Dependent => *undivided,
    };
    let transaction = |(index, exchange)| {
        let path = if index == 0 { &first } else { &divided };
        match client.connection {
            Connection::Cold if (index as u64) < connections => tcp::transaction(path, start, exchange),
            Connection::Cold | Connection::Warm => minimum::transaction(path, exchange),
        }
    };
    exchanges.iter().enumerate().map(transaction).collect()
}
