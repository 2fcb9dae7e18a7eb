//! Small responses in one datagram, large ones over TCP that the server opens (`papers/dhttp#section-iii`).
//!
//! The DHTTP paper has no formulas; these use the terms of `papers/heidemann-model`.
//!
//! A **small** response is one datagram each way: `T = rtt + req_min + processing + reply_min`, which is
//! `T_min`.
//!
//! A **large** response on a **cold** path. The request leaves at 0 and is at the server after half a round
//! trip and `req_min`. The response's size determines that it needs TCP, so the server's SYN leaves after
//! `processing`. It is at the client half a round trip later, and the SYN-ACK is back at the server after one
//! and a half. The response's first byte is at the client after two:
//! `T = 2 rtt + req_min + processing + slowstart + reply_min`, which is `T_TCP`. In HTTP the handshake
//! precedes the request, here the request precedes the handshake; the number of round trips is the same (the
//! paper's Fig. 1). The window is as after a passive open: the SYN-ACK acknowledges the server's SYN, which
//! opens it by one.
//!
//! A **large** response on a **warm** path goes over the connection that an earlier large response opened.
//! It costs `T_min`, and assumes an open window, as P-HTTP's hits do.
//!
//! The sums are an upper bound: a page's small responses can arrive during the handshake for the large one, and a server
//! may begin the handshake before the response is complete.
//!
//! A request too large for a datagram goes over TCP that the client opens, as plain HTTP: `T_TCP` again.

use scenario::Connection;
use wire::Bytes;

use crate::{Exchange, Path, SlowStart, Transaction, minimum, tcp};

/// Limits of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Maximum UDP payload, in either direction: 1460 bytes in the papers' profile.
    pub limit: Bytes,
    /// Size of a response's headers, which the formulas do not otherwise count.
    pub response_head: Bytes,
}

impl Datagram {
    /// Size of DHTTP's request header: id, port, flags.
    pub const REQUEST_HEADER: Bytes = Bytes::new(8 + 2 + 1);
    /// Size of DHTTP's response header: the id.
    pub const RESPONSE_HEADER: Bytes = Bytes::new(8);

    /// Returns whether both the request and its response are one datagram.
    pub fn fits(&self, exchange: &Exchange) -> bool {
        exchange.request + Self::REQUEST_HEADER <= self.limit
            && exchange.reply + self.response_head + Self::RESPONSE_HEADER <= self.limit
    }
}

/// Returns one transaction for each exchange: the first large one includes connection set-up unless the path is warm.
pub fn transactions(
    path: &Path,
    start: &SlowStart,
    connection: Connection,
    datagram: &Datagram,
    exchanges: &[Exchange],
) -> Vec<Transaction> {
    let opens = match connection {
        Connection::Cold => exchanges.iter().position(|exchange| !datagram.fits(exchange)),
        Connection::Warm => None,
    };
    exchanges
        .iter()
        .enumerate()
        .map(|(index, exchange)| match opens {
            Some(first_large) if first_large == index => tcp::transaction(path, start, exchange),
            Some(_) | None => minimum::transaction(path, exchange),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use ::tcp::stack::Growth;
    use scenario::Network;
    use wire::Duration;

    use super::*;
    use crate::slow_start::Policy;

    const PAPER: Datagram = Datagram { limit: Bytes::new(1460), response_head: Bytes::new(226) };
    const START: SlowStart = SlowStart {
        acks: Policy::EverySegment,
        growth: Growth::PerAcknowledgement,
        initial_window: 2,
        ssthresh: None,
    };

    fn exchange(reply: u64) -> Exchange {
        Exchange { request: Bytes::new(256), processing: Duration::ZERO, reply: Bytes::new(reply) }
    }

    fn setups(connection: Connection, replies: &[u64]) -> Vec<bool> {
        let path = Path::from(&Network::named("fast-internet").unwrap());
        let exchanges: Vec<_> = replies.iter().map(|reply| exchange(*reply)).collect();
        transactions(&path, &START, connection, &PAPER, &exchanges)
            .iter()
            .map(|transaction| transaction.setup > Duration::ZERO)
            .collect()
    }

    #[test]
    fn response_is_small_if_id_headers_and_body_fit_the_datagram() {
        assert!(PAPER.fits(&exchange(1460 - 226 - 8)));
        assert!(!PAPER.fits(&exchange(1460 - 226 - 7)));
        assert!(!PAPER.fits(&Exchange { request: Bytes::new(1450), ..exchange(1) }));
    }

    #[test]
    fn only_the_first_large_response_on_a_cold_path_waits_for_a_connection() {
        assert_eq!(setups(Connection::Cold, &[100, 200]), [false, false]);
        assert_eq!(setups(Connection::Cold, &[100, 9000, 8000, 50]), [false, true, false, false]);
        assert_eq!(setups(Connection::Warm, &[100, 9000, 8000, 50]), [false, false, false, false]);
    }
}
