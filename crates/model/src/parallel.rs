//! Several connections at once (`papers/heidemann-model#section-iv-e`).
//!
//! The paper's approximation, and no more: "treating rtt as if it were rtt/n, for n concurrent connections". What
//! connections that share a path do to each other's windows is for `simulate`.

use crate::Path;

/// The path as each of `connections` connections is taken to see it. 0 counts as 1.
///
/// With no more connections than objects the result stays above the minimum: the objects' shares add up to a whole
/// round trip or more, and one share is paid for all.
pub fn path(path: &Path, connections: u64) -> Path {
    Path { rtt: path.rtt / connections.max(1), ..*path }
}
