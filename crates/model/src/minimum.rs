//! What no protocol can beat (`papers/heidemann-model#section-iv-a`).
//!
//! Not a protocol: nothing is set up and no window limits the answer.

use crate::{Exchange, Path, Transaction};

/// `T_min = rtt + req_min + processing + reply_min`, equation (1).
pub fn transaction(path: &Path, exchange: &Exchange) -> Transaction {
    Transaction::bare(path, exchange)
}
