//! Request and response over UDP with TCP's slow start (`papers/heidemann-model#section-iv-f`).
//!
//! The Asynchronous Reliable Delivery Protocol has no handshake and, as the paper found it, drops the window
//! after each exchange: every response slow-starts.

use crate::{Exchange, Path, SlowStart, Transaction};

/// `T_ARDP = rtt + req_min + processing + slowstart + reply_min`, equation (14).
pub fn transaction(path: &Path, start: &SlowStart, exchange: &Exchange) -> Transaction {
    Transaction::bare(path, exchange).in_slow_start(path, start, exchange)
}
