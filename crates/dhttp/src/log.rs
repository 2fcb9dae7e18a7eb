//! An access log: the combined format, followed by the channel of each response.
//!
//! Every parser of that format accepts these lines, `roundtrip connections` among them. Not for diagnosis of the server itself:
//! that is [`mod@crate::counters`].

use std::fmt;
use std::io::{BufWriter, Write};
use std::net::IpAddr;
use std::sync::Mutex;

use wire::{Duration, calendar};

use crate::handler::Request;

/// Channel of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// One datagram.
    Udp,
    /// A connection that the server opened.
    TcpOpened,
    /// A connection that the client opened.
    TcpClient,
    /// None: it came from a cache.
    Cache,
    /// A fallback message of eight bytes: the client was referred to plain HTTP.
    Overload,
}

impl Channel {
    /// Returns the name in the log.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::TcpOpened => "tcp-opened",
            Self::TcpClient => "tcp-client",
            Self::Cache => "cache",
            Self::Overload => "overload",
        }
    }
}

/// A log that all threads of a server write to.
pub struct Log {
    out: Mutex<BufWriter<Box<dyn Write + Send>>>,
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Log")
    }
}

impl Log {
    /// Creates a log that writes to `out`.
    pub fn new(out: Box<dyn Write + Send>) -> Self {
        Self { out: Mutex::new(BufWriter::with_capacity(1 << 16, out)) }
    }

    /// Logs one response. A write error is ignored: a full disk must not stop a server.
    pub fn line(
        &self,
        seconds: u64,
        client: IpAddr,
        request: &Request<'_>,
        status: u16,
        bytes: u64,
        channel: Channel,
    ) {
        let (method, target, time) = (
            request.method,
            QuotedBytes(request.target.as_bytes()),
            calendar::common_log(Duration::from_secs(seconds)),
        );
        let referer = QuotedBytes(request.field("Referer").unwrap_or(b"-"));
        let agent = QuotedBytes(request.field("User-Agent").unwrap_or(b"-"));
        let (client, channel) = (client.to_canonical(), channel.name());
        if let Ok(mut out) = self.out.lock() {
            let _ = writeln!(
                out,
                "{client} - - [{time}] \"{method} {target} HTTP/1.1\" {status} {bytes} \"{referer}\" \"{agent}\" {channel}"
            );
        }
    }

    /// Logs something other than a response.
    pub fn write_event(&self, time: Duration, event: &dyn fmt::Display) {
        let time = calendar::common_log(time);
        if let Ok(mut out) = self.out.lock() {
            let _ = writeln!(out, "[{time}] {event}");
        }
    }

    /// Writes the buffered lines.
    pub fn flush(&self) {
        if let Ok(mut out) = self.out.lock() {
            let _ = out.flush();
        }
    }
}

/// Bytes, escaped so that they neither end a field nor control a terminal.
struct QuotedBytes<'a>(&'a [u8]);

impl fmt::Display for QuotedBytes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0 {
            match byte {
                b'"' | b'\\' => write!(f, "\\{}", char::from(*byte))?,
                b' '..=b'~' => write!(f, "{}", char::from(*byte))?,
                _ => write!(f, "\\x{byte:02x}")?,
            }
        }
        Ok(())
    }
}
