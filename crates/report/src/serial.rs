//! Requests one after another on one connection: a pool of one, or a query for each row.
//!
//! **Rule**: at least ten requests, each sent after the previous response and, for nine in ten, immediately.
//! **Refuted by** two requests in flight, and by pauses of the client, who then decides when it asks.

use diagnose::cause::Describe as _;
use diagnose::report::ExchangeReport;
use diagnose::{Cause, FlowReport, Share};
use wire::Duration;

use crate::span::shown;

/// Fewer in a row are a page or a script.
const MIN_REQUESTS: usize = 10;
/// Minimum total time that is worth a sentence.
const MIN_TIME: Duration = Duration::from_millis(100);
/// Maximum time between a response and the next request that counts as immediate.
const IMMEDIATE: Duration = Duration::from_millis(1);

/// Returns a sentence on a connection whose requests follow one another; `None` if they do not.
pub fn sentence(flow: &FlowReport) -> Option<String> {
    let exchanges = &flow.exchanges;
    let is_all = usize::try_from(flow.requests) == Ok(exchanges.len());
    let is_faulty =
        flow.counts.iter().any(|count| count.cause.about().is_fault && count.cause != Cause::ServerThink);
    if !is_all || exchanges.len() < MIN_REQUESTS || is_faulty || !is_back_to_back(exchanges) {
        return None;
    }
    let total: Duration = exchanges.iter().map(|exchange| exchange.elapsed).sum();
    let count = exchanges.len();
    let of = |share| exchanges.iter().map(|exchange| exchange.account.of(share)).sum::<Duration>();
    let (thinking, travelling) = (of(Share::Stall(Cause::ServerThink)), of(Share::RoundTrip));
    let connection = format!("on one connection ({} to {})", flow.client, flow.server);
    let each = shown(total / count as u64);
    (total >= MIN_TIME).then(|| match travelling > thinking {
        true => format!(
            "{count} round trips of {each} in a row {connection}, {} in all: ask for several things at a time (a batch, a \
             join, pipelining)",
            shown(total)
        ),
        false => format!(
            "{count} requests back to back {connection}, never two in flight, {each} each: if others queue for it, a \
             larger pool of connections serves them concurrently"
        ),
    })
}

fn is_back_to_back(exchanges: &[ExchangeReport]) -> bool {
    let ends = exchanges.iter().map(|exchange| exchange.at + exchange.elapsed);
    let pairs: Vec<_> = ends.zip(exchanges.iter().skip(1)).collect();
    let is_serial = pairs.iter().all(|(end, next)| next.at >= *end);
    let immediate = pairs.iter().filter(|(end, next)| next.at.since(*end) <= IMMEDIATE).count();
    is_serial && immediate * 10 >= pairs.len() * 9
}
