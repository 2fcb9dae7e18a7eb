//! One TCP connection per object (`papers/heidemann-model#section-iv-c`).
//!
//! Headers, connection closing and loss are not counted.

use crate::{Exchange, Path, SlowStart, Transaction};

/// Returns `T_TCP = 2 rtt + req_min + processing + slowstart + reply_min`, equation (5).
pub fn transaction(path: &Path, start: &SlowStart, exchange: &Exchange) -> Transaction {
    Transaction::without_overhead(path, exchange).with_handshake(path).with_slow_start(path, start, exchange)
}
