//! Access logs: bytes in, requests out, and the connections that a server would hold.
//!
//! A server's log records the client, the size and the time of each response; the simulation of
//! `papers/dhttp#section-vi-a` needs no more. In flow blocks of whole lines; out flow [`Record`]s, as
//! numbers, and a [`Tally`] of rejected lines. Read in this order:
//!
//! | module | contents |
//! | --- | --- |
//! | [`format`](mod@format) | the formats, by name or by format string, and the single entry point of their readers |
//! | [`mod@recognise`] | detection of a log's format |
//! | [`clf`] | Common and Combined, the fastest reader |
//! | [`template`] | nginx's and Apache's format strings, compiled |
//! | [`w3c`] | W3C extended: IIS, CloudFront |
//! | [`json`] | a JSON object a line: nginx, Caddy, Traefik |
//! | [`alb`] | AWS load balancers |
//! | `columns` | tables: Arrow record batches (feature `arrow`) |
//! | [`field`] | names of fields, where formats have them |
//! | [`clock`] | times as logs write them |
//! | [`number`] | sizes and spans as logs write them |
//! | [`client`] | clients: addresses, prefixes, names |
//! | [`target`] | the logged requests, on demand |
//! | [`tally`] | counts of lines, rejected ones by reason, with examples |
//! | [`sizing`] | a record converted to a request with its size |
//! | [`connections`] | requests counted: connections held and opened, for every timeout |
//!
//! ```
//! use roundtrip_accesslog::{Reader, ClientDefinition, recognise};
//!
//! let log = b"198.51.100.7 - - [22/Nov/2026:10:00:00 +0000] \"GET / HTTP/1.1\" 200 5120\n";
//! let format = recognise(log, &ClientDefinition::default()).expect("Common Log Format");
//! let mut records = Vec::new();
//! let tally = Reader::new(format, ClientDefinition::default()).read(log, |record| records.push(record));
//! assert_eq!((records[0].status, tally.lines), (200, 1));
//! ```
//!
//! It opens no file, decompresses nothing, and does not validate requests: the requested path is skipped
//! unread, or hashed.

pub mod alb;
pub mod clf;
pub mod client;
pub mod clock;
#[cfg(feature = "arrow")]
pub mod columns;
pub mod connections;
pub mod field;
pub mod format;
pub mod json;
pub mod number;
pub mod recognise;
pub mod sizing;
pub mod tally;
pub mod target;
pub mod template;
pub mod w3c;

pub use client::ClientDefinition;
pub use client::{Client, Prefix};
pub use format::{Format, Reader};
pub use recognise::recognise;
pub use sizing::{HeaderBytes, MissingSize, Request, Sizing};
pub use tally::{Reason, Tally};
pub use target::{LoggedRequest, Target};

use wire::{Bytes, Duration, Time};

/// One line of a log, as numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Time of the request or response, as the format defines it; UTC.
    pub time: Time,
    /// The client.
    pub client: Client,
    /// Status code of the response, 100 to 999; 0 where the log has none.
    pub status: u16,
    /// Bytes sent; `None` where the log does not record it, which is not 0.
    pub size: Option<Bytes>,
    /// Parts of the response that the size covers.
    pub covers: SizeScope,
    /// Duration, where the log records it.
    pub taken: Option<Duration>,
}

/// Parts of a response that a log's sizes cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeScope {
    /// The body alone (`%b`, `$body_bytes_sent`).
    Body,
    /// Header section and body (`%O`, `$bytes_sent`, `sc-bytes`).
    Whole,
}
