//! Request and response over UDP with TCP's slow start (`papers/heidemann-model#section-iv-f`).
//!
//! The Asynchronous Reliable Delivery Protocol has no handshake and, in the paper's version, discards the window after
//! each exchange: every response slow-starts. With the planned "simple congestion-information caching" only the first
//! response does, as with connection caching.

use scenario::Connection;

use crate::{Exchange, Path, SlowStart, Transaction, minimum};

/// Returns `T_ARDP = rtt + req_min + processing + slowstart + reply_min`, equation (14).
pub fn transaction(path: &Path, start: &SlowStart, exchange: &Exchange) -> Transaction {
    Transaction::without_overhead(path, exchange).with_slow_start(path, start, exchange)
}

/// Returns the exchanges of a page. With cached congestion information, all but the first cost the minimum; on a warm
/// start the first does, too. These are equations (9) to (11) without the handshake.
pub fn transactions(
    path: &Path,
    start: &SlowStart,
    is_cached: bool,
    connection: Connection,
    exchanges: &[Exchange],
) -> Vec<Transaction> {
    let is_open = |index: usize| match connection {
        Connection::Cold => is_cached && index > 0,
        Connection::Warm => is_cached,
    };
    let transaction = |(index, exchange)| match is_open(index) {
        true => minimum::transaction(path, exchange),
        false => transaction(path, start, exchange),
    };
    exchanges.iter().enumerate().map(transaction).collect()
}
