//! A TCP connection for every object (`papers/heidemann-model#section-iv-c`).
//!
//! Not simulated as packets: headers, connection closing and loss cost nothing here.

use crate::{Exchange, Path, SlowStart, Transaction};

/// `T_TCP = 2 rtt + req_min + processing + slowstart + reply_min`, equation (5).
pub fn transaction(path: &Path, start: &SlowStart, exchange: &Exchange) -> Transaction {
    Transaction::bare(path, exchange).after_handshake(path).in_slow_start(path, start, exchange)
}
