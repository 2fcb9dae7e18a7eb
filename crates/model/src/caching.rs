//! Persistent connections (P-HTTP, HTTP/1.1), or cached TCP state (T/TCP): the same formulas
//! (`papers/heidemann-model#section-iv-d`).
//!
//! A hit costs the minimum: the formulas assume that the window is fully open after the first exchange. Otherwise
//! [`crate::notes`] reports it.

use scenario::Connection;

use crate::{Exchange, Path, SlowStart, Transaction, minimum, tcp};

/// Returns the terms of equations (10) and (11): the first exchange misses unless the connection is warm, all others hit.
///
/// `T_cache-miss = T_TCP` (8); `T_cache-hit = T_min` (9).
pub fn transactions(
    path: &Path,
    start: &SlowStart,
    connection: Connection,
    exchanges: &[Exchange],
) -> Vec<Transaction> {
    let mut transactions: Vec<_> =
        exchanges.iter().map(|exchange| minimum::transaction(path, exchange)).collect();
    match (connection, transactions.first_mut(), exchanges.first()) {
        (Connection::Cold, Some(first), Some(exchange)) => *first = tcp::transaction(path, start, exchange),
        (Connection::Cold | Connection::Warm, _, _) => {}
    }
    transactions
}
