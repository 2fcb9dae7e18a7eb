//! A request and its response, in the report of their connection.

use dissect::http::Exchange;
use wire::{Duration, Time};

use trace::account::Account;

/// A request and its response.
#[derive(Clone, Debug)]
pub struct ExchangeReport {
    /// The method and the target, the latter's first 200 characters.
    pub request: String,
    /// The response's status; `None` if it was not seen.
    pub status: Option<u16>,
    /// When the request was sent.
    pub at: Time,
    /// Time until the response's last byte.
    pub elapsed: Duration,
    /// The first and the last packet.
    pub packets: (u64, u64),
    /// Where the connection's time went during the exchange.
    pub account: Account,
}

impl ExchangeReport {
    pub(crate) fn new(exchange: Exchange<Account>, account: &Account) -> Self {
        let Exchange { method, target, status, requested, ended, context: before, .. } = exchange;
        Self {
            request: format!("{method} {target}"),
            status,
            at: requested.at,
            elapsed: ended.at.since(requested.at),
            packets: (requested.frame, ended.frame),
            account: account.since(&before),
        }
    }

    /// Retains the `most` longest exchanges.
    pub(crate) fn retain_longest(exchanges: &mut Vec<Self>, most: usize) {
        if exchanges.len() > most + most / 2 {
            exchanges.sort_by_key(|exchange| std::cmp::Reverse(exchange.elapsed));
            exchanges.truncate(most);
        }
    }
}
