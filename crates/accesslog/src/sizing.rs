//! Conversion of a record to a request with its size: rules for missing sizes and for headers.
//!
//! The number of packets, retransmissions and acknowledgements on the wire is not in a log.

use wire::{Bytes, Duration, Time};

use crate::{Client, Record, SizeScope};

/// Fields of a line that the counting of connections uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Time, since 1970.
    pub time: Time,
    /// The client.
    pub client: Client,
    /// Bytes sent, headers included.
    pub bytes: Bytes,
    /// Duration; zero where the log does not record it.
    pub taken: Duration,
}

/// Rules for sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizing {
    /// For a size that the log lacks.
    pub missing: MissingSize,
    /// Bytes added to each response.
    pub headers: HeaderBytes,
}

/// Treatment of a response of unknown size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingSize {
    /// The response is not counted.
    #[default]
    LeaveOut,
    /// Only the headers were sent.
    Zero,
    /// Larger than any threshold, and no bytes to count.
    Large,
}

/// Bytes that headers add to a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HeaderBytes {
    /// By status: the headers of Apache 1.3's responses, and an IP header of 20 bytes. "We add an
    /// appropriate number of bytes to the size of the response for response and IP headers (the actual
    /// number depends on the response code)" (`papers/dhttp#section-vi-a`). The paper does not print its
    /// numbers. Where the log's sizes include headers, only the IP header is added.
    #[default]
    ByStatus,
    /// The same for every response.
    Fixed(Bytes),
}

/// Size above every threshold.
pub const LARGE: Bytes = Bytes::new(u64::MAX);

impl Sizing {
    /// The request of a record; `None` if it is to be left out.
    #[inline]
    pub fn request(&self, record: &Record) -> Option<Request> {
        let Record { time, client, status, size, covers, taken } = *record;
        let bytes = match (size, self.missing) {
            (Some(size), _) => size + self.headers.of(status, covers),
            (None, MissingSize::LeaveOut) => return None,
            (None, MissingSize::Zero) => self.headers.of(status, SizeScope::Body),
            (None, MissingSize::Large) => LARGE,
        };
        Some(Request { time, client, bytes, taken: taken.unwrap_or(Duration::ZERO) })
    }
}

impl HeaderBytes {
    /// Bytes added to a response of this status.
    #[inline]
    fn of(self, status: u16, covers: SizeScope) -> Bytes {
        match (self, covers) {
            (Self::Fixed(bytes), _) => bytes,
            (Self::ByStatus, SizeScope::Whole) => IP,
            (Self::ByStatus, SizeScope::Body) => IP + Bytes::new(head(status).len() as u64),
        }
    }
}

/// An IPv4 header without options (RFC 791, section 3.1).
const IP: Bytes = Bytes::new(20);

/// The header section that Apache 1.3.6, the paper's server, sends with a status.
const fn head(status: u16) -> &'static str {
    match status {
        304 => NOT_MODIFIED,
        300..=399 => REDIRECT,
        400.. => ERROR,
        _ => OK,
    }
}

const OK: &str = "HTTP/1.1 200 OK\r\n\
    Date: Tue, 01 Aug 1995 06:00:00 GMT\r\n\
    Server: Apache/1.3.6 (Unix)\r\n\
    Last-Modified: Tue, 01 Aug 1995 06:00:00 GMT\r\n\
    ETag: \"2f5cd-964-381e1bd6\"\r\n\
    Accept-Ranges: bytes\r\n\
    Content-Length: 13312\r\n\
    Keep-Alive: timeout=15, max=100\r\n\
    Connection: Keep-Alive\r\n\
    Content-Type: text/html\r\n\r\n";
const NOT_MODIFIED: &str = "HTTP/1.1 304 Not Modified\r\n\
    Date: Tue, 01 Aug 1995 06:00:00 GMT\r\n\
    Server: Apache/1.3.6 (Unix)\r\n\
    Connection: Keep-Alive\r\n\
    Keep-Alive: timeout=15, max=100\r\n\
    ETag: \"2f5cd-964-381e1bd6\"\r\n\r\n";
const REDIRECT: &str = "HTTP/1.1 302 Found\r\n\
    Date: Tue, 01 Aug 1995 06:00:00 GMT\r\n\
    Server: Apache/1.3.6 (Unix)\r\n\
    Location: http://www.example.com/index.html\r\n\
    Keep-Alive: timeout=15, max=100\r\n\
    Connection: Keep-Alive\r\n\
    Transfer-Encoding: chunked\r\n\
    Content-Type: text/html\r\n\r\n";
const ERROR: &str = "HTTP/1.1 404 Not Found\r\n\
    Date: Tue, 01 Aug 1995 06:00:00 GMT\r\n\
    Server: Apache/1.3.6 (Unix)\r\n\
    Keep-Alive: timeout=15, max=100\r\n\
    Connection: Keep-Alive\r\n\
    Transfer-Encoding: chunked\r\n\
    Content-Type: text/html\r\n\r\n";

#[cfg(test)]
mod tests {
    use super::*;

    fn record(status: u16, size: Option<u64>, covers: SizeScope) -> Record {
        let (time, client) = (Time::ZERO, Client::of(b"c"));
        Record { time, client, status, size: size.map(Bytes::new), covers, taken: None }
    }

    fn bytes(sizing: Sizing, record: Record) -> Option<u64> {
        sizing.request(&record).map(|request| request.bytes.get())
    }

    #[test]
    fn header_bytes_depend_on_the_status() {
        let added = |status| bytes(Sizing::default(), record(status, Some(0), SizeScope::Body)).unwrap();
        assert_eq!([200, 304, 302, 404].map(added), [306, 200, 263, 222]);
        assert_eq!(bytes(Sizing::default(), record(200, Some(100), SizeScope::Whole)), Some(120));
        let fixed = Sizing { headers: HeaderBytes::Fixed(Bytes::new(7)), ..Sizing::default() };
        assert_eq!(bytes(fixed, record(200, Some(100), SizeScope::Whole)), Some(107));
    }

    #[test]
    fn missing_size_is_left_out_or_zero_or_large() {
        let with =
            |missing| bytes(Sizing { missing, ..Sizing::default() }, record(304, None, SizeScope::Whole));
        let all = [MissingSize::LeaveOut, MissingSize::Zero, MissingSize::Large].map(with);
        assert_eq!(all, [None, Some(200), Some(u64::MAX)]);
    }
}
