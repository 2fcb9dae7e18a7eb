//! Lower bound of all protocols (`papers/heidemann-model#section-iv-a`).
//!
//! Not a protocol: there is no set-up and no window limits the response.

use crate::{Exchange, Path, Transaction};

/// `T_min = rtt + req_min + processing + reply_min`, equation (1).
pub fn transaction(path: &Path, exchange: &Exchange) -> Transaction {
    Transaction::bare(path, exchange)
}
