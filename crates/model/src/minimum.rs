//! Lower bound of all protocols (`papers/heidemann-model#section-iv-a`): no connection set-up, and no window limits the
//! response.

use crate::{Exchange, Path, Transaction};

/// Returns `T_min = rtt + req_min + processing + reply_min`, equation (1).
pub fn transaction(path: &Path, exchange: &Exchange) -> Transaction {
    Transaction::without_overhead(path, exchange)
}
