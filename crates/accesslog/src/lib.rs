//! Access logs: bytes in, requests out, and the connections that a server would hold.
//!
//! A server's log says who asked for how much, and when; the simulation of `papers/dhttp#section-vi-a` needs no more.
//! In flow blocks of whole lines; out flow [`Record`]s, as numbers, and a [`Tally`] of what could not be read. Read in
//! this order:
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`format`](mod@format) | the formats, by name or by format string, and the one door to their readers |
//! | [`mod@recognise`] | which format a log is in |
//! | [`clf`] | Common and Combined, the fast one |
//! | [`template`] | nginx's and Apache's format strings, compiled |
//! | [`w3c`] | W3C extended: IIS, CloudFront |
//! | [`json`] | a JSON object a line: nginx, Caddy, Traefik |
//! | [`alb`] | AWS load balancers |
//! | `columns` | tables: Arrow record batches (feature `arrow`) |
//! | [`field`] | what fields are called, where they have names |
//! | [`clock`] | times as logs write them |
//! | [`number`] | sizes and spans as logs write them |
//! | [`client`] | who asked: addresses, prefixes, names |
//! | [`target`] | the logged requests, where they are wanted |
//! | [`tally`] | lines counted, bad ones by reason, with examples |
//! | [`sizing`] | a record made into a request of so many bytes |
//! | [`connections`] | requests counted: connections held and opened, for every timeout |
//!
//! ```
//! use roundtrip_accesslog::{Reader, Who, recognise};
//!
//! let log = b"198.51.100.7 - - [22/Nov/2026:10:00:00 +0000] \"GET / HTTP/1.1\" 200 5120\n";
//! let format = recognise(log, &Who::default()).expect("Common Log Format");
//! let mut records = Vec::new();
//! let tally = Reader::new(format, Who::default()).read(log, |record| records.push(record));
//! assert_eq!((records[0].status, tally.lines), (200, 1));
//! ```
//!
//! What it is not: it opens no file and decompresses nothing; and it is no validator of requests: what was asked for
//! is passed over, unread, or hashed.

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

pub use client::{Client, Prefix};
pub use format::{Format, Reader, Who};
pub use recognise::recognise;
pub use sizing::{HeaderBytes, MissingSize, Request, Sizing};
pub use tally::{Reason, Tally};
pub use target::{LoggedRequest, Target};

use wire::{Bytes, Duration, Time};

/// One line of a log, as numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Since 1970, UTC.
    pub time: Time,
    /// Who asked.
    pub client: Client,
    /// The answer's status code, 100 to 999; 0 where the log has none.
    pub status: u16,
    /// How much was sent; `None` where the log does not say, which is not 0.
    pub size: Option<Bytes>,
    /// What that counts.
    pub covers: Covers,
    /// How long it took, where the log says so.
    pub taken: Option<Duration>,
}

/// What a log's sizes count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Covers {
    /// The body alone (`%b`, `$body_bytes_sent`).
    Body,
    /// The answer's head too (`%O`, `$bytes_sent`, `sc-bytes`).
    Whole,
}
