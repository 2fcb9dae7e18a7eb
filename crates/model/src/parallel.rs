//! Several connections at once (`papers/heidemann-model#section-iv-e`).
//!
//! The paper's approximation, and no more: "treating rtt as if it were rtt/n, for n concurrent connections". What
//! connections that share a path do to each other's windows is for `simulate`.

use wire::Duration;

use crate::Path;

/// The path as each of `connections` connections is taken to see it. 0 counts as 1.
pub fn path(path: &Path, connections: u64) -> Path {
    Path { rtt: path.rtt / connections.max(1), ..*path }
}

/// The approximation's result, which goes below the minimum with enough connections, held to the minimum.
pub fn at_least(minimum: Duration, elapsed: Duration) -> Duration {
    elapsed.max(minimum)
}
