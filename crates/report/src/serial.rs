//! Requests one after another on one connection: a pool of one, or a query for each row.
//!
//! **Rule**: at least ten requests, each sent after the previous response and, for nine in ten, immediately.
//! **Refuted by** two requests in flight, and by pauses of the client, who then decides when it asks.

use diagnose::cause::Describe as _;
use diagnose::serial::SerialRequests;
use diagnose::{Cause, FlowReport};
use serde_json::{Value, json};
use wire::Duration;

use crate::span::shown;

/// Fewer in a row are a page or a script.
const MIN_REQUESTS: u64 = 10;
/// Minimum total time that is worth a sentence.
const MIN_TIME: Duration = Duration::from_millis(100);

/// Requests one after another on a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row<'a> {
    flow: &'a FlowReport,
    count: u64,
    total: Duration,
    /// Whether most of the time is travel, rather than the server's: several at a time would save it.
    is_travel: bool,
}

impl<'a> Row<'a> {
    /// The row of a connection; `None` if its requests do not follow one another.
    pub(crate) fn of(flow: &'a FlowReport) -> Option<Self> {
        let SerialRequests { count, total, thinking, travelling, .. } = flow.serial;
        let is_faulty =
            flow.counts.iter().any(|count| count.cause.about().is_fault && count.cause != Cause::ServerThink);
        let is_row =
            count >= MIN_REQUESTS && [0, count].contains(&flow.requests) && flow.serial.is_back_to_back();
        let is_shown = is_row && !is_faulty && total >= MIN_TIME;
        is_shown.then_some(Self { flow, count, total, is_travel: travelling > thinking })
    }

    /// The row in a sentence, with what would help.
    pub(crate) fn sentence(self) -> String {
        let Self { flow, count, total, is_travel } = self;
        let connection = format!("on one connection ({} to {})", flow.client, flow.server);
        let each = shown(total / count);
        match is_travel {
            true => format!(
                "{count} round trips of {each} in a row {connection}, {} in all: ask for several things at a time (a \
                 batch, a join, pipelining)",
                shown(total)
            ),
            false => format!(
                "{count} requests back to back {connection}, never two in flight, {each} each: if others queue for it, \
                 a larger pool of connections serves them concurrently"
            ),
        }
    }

    /// The row as JSON.
    pub(crate) fn json(self) -> Value {
        let waited_for = if self.is_travel { "round-trips" } else { "server" };
        json!({
            "count": self.count,
            "total_ms": self.total.as_millis_f64(),
            "waited_for": waited_for,
            "sentence": self.sentence(),
        })
    }
}

#[cfg(test)]
mod tests {
    use diagnose::{Diagnosis, Options, PacketPosition};
    use wire::Time;
    use wire::packet::{Flags, Packet, TcpBuilder};

    use super::*;

    /// When a request is sent, after how many milliseconds the server acknowledges it and responds, and both messages.
    type Exchange<'a> = (u64, [u64; 2], [&'a [u8]; 2]);

    /// Returns the sentence on a connection with these exchanges: when each request is sent, and after how many milliseconds
    /// the server acknowledges it and responds.
    fn said(exchanges: &[(u64, [u64; 2])]) -> Option<String> {
        let request = b"GET /item HTTP/1.1\r\nHost: h\r\n\r\n";
        said_of([request, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"], exchanges)
    }

    fn said_of(messages: [&[u8]; 2], exchanges: &[(u64, [u64; 2])]) -> Option<String> {
        let exchanges: Vec<_> = exchanges.iter().map(|(at, timing)| (*at, *timing, messages)).collect();
        Row::of(&reported(&exchanges)).map(Row::sentence)
    }

    /// Returns the report on a connection with these exchanges, each with its request and its response.
    fn reported(exchanges: &[Exchange<'_>]) -> FlowReport {
        let ends = [([10, 0, 0, 1], 40_000).into(), ([10, 0, 0, 2], 80).into()];
        let mut next = [100_u32, 500_u32];
        let mut packets = Vec::new();
        let mut send = |at: u64, from: usize, flags: Flags, payload: &[u8]| {
            let mut bytes = Vec::new();
            let (source, destination) = (ends[from], ends[1 - from]);
            let (seq, ack) = (next[from], next[1 - from]);
            TcpBuilder { source, destination, seq, ack, flags, window: 60_000, options: &[] }
                .write(payload, &mut bytes)
                .unwrap();
            next[from] += u32::try_from(payload.len()).unwrap() + u32::from(flags.contains(Flags::SYN));
            packets.push((at, bytes));
        };
        send(0, 0, Flags::SYN, &[]);
        send(exchanges[0].1[0], 1, Flags::SYN | Flags::ACK, &[]);
        send(exchanges[0].1[0], 0, Flags::ACK, &[]);
        for (at, [acknowledged, responded], [request, response]) in exchanges {
            send(*at, 0, Flags::ACK, request);
            send(at + acknowledged, 1, Flags::ACK, &[]);
            send(at + responded, 1, Flags::ACK, response);
        }
        let mut diagnosis = Diagnosis::new(Options::default());
        for (frame, (at, bytes)) in (1..).zip(&packets) {
            let now = Time::ZERO + Duration::from_millis(1_000 + at);
            diagnosis.handle(now, PacketPosition { frame, interface: 0 }, &Packet::read(bytes).unwrap());
        }
        diagnosis.end();
        diagnosis.poll().unwrap()
    }

    /// Requests every `apart` milliseconds.
    fn row(count: u64, apart: u64, timing: [u64; 2]) -> Vec<(u64, [u64; 2])> {
        (0..count).map(|number| (100 + number * apart, timing)).collect()
    }

    #[test]
    fn queries_in_a_row_over_a_path_are_round_trips() {
        let sentence = said(&row(30, 20, [20, 20])).unwrap();
        assert!(sentence.starts_with("30 round trips of 20 ms in a row on one connection"), "{sentence}");
        assert!(sentence.contains("a batch, a join, pipelining"), "{sentence}");
    }

    #[test]
    fn queries_of_a_database_need_not_be_read() {
        // MySQL's: a length, a number, a command; and a response of one packet.
        let query: [&[u8]; 2] = [b"\x09\0\0\0\x03SELECT 1", b"\x07\0\0\x01\0\0\0\x02\0\0\0"];
        let sentence = said_of(query, &row(30, 24, [20, 20])).unwrap();
        assert!(sentence.starts_with("30 round trips of 20 ms in a row on one connection"), "{sentence}");
        assert_eq!(said_of(query, &row(30, 26, [20, 20])), None, "the client pauses");
    }

    #[test]
    fn events_of_a_path_that_is_polled_are_not_late() {
        let is_worth_fixing = |second: &[u8]| {
            let first: [&[u8]; 2] =
                [b"GET /poll?since=1 HTTP/1.1\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"];
            let second = [second, b"HTTP/1.1 204 No Content\r\n\r\n"];
            reported(&[(100, [0, 700], first), (900, [0, 1_500], second)]).is_worth_fixing()
        };
        assert!(!is_worth_fixing(b"GET /poll?since=2 HTTP/1.1\r\n\r\n"));
        assert!(is_worth_fixing(b"GET /other HTTP/1.1\r\n\r\n"));
    }

    #[test]
    fn requests_that_queue_for_one_connection_are_told_of_the_pool() {
        let sentence = said(&row(32, 40, [0, 40])).unwrap();
        assert!(sentence.starts_with("32 requests back to back on one connection"), "{sentence}");
        assert!(sentence.contains("a larger pool of connections"), "{sentence}");
    }

    #[test]
    fn pauses_of_the_client_and_few_requests_are_no_queue() {
        assert_eq!(said(&row(32, 60, [0, 40])), None, "the client pauses");
        assert_eq!(said(&row(9, 40, [0, 40])), None, "a page or a script");
        assert_eq!(said(&row(32, 2, [0, 2])), None, "64 ms in all");
    }
}
