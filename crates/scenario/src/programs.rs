//! Behaviour of the programs at both ends: the CPU time of their work, the sizes of their writes, their way
//! to close, and their socket options.
//!
//! TCP is the stack's. The engine chooses values that are not set: a program then takes no time, writes a
//! message in one call, and leaves its sockets as the stack makes them.

mod codings;
mod ways;

use std::fmt;
use std::num::{NonZeroU32, NonZeroUsize};

use http1::message::WritePolicy;
use http1::server::Closing;
use http1::site::Compression;
use pageload::robot::{FirstBytes, Flush, Pipelining};
use quantity::ValueError;
use wire::{Bytes, Duration};

use crate::Stack;
use crate::dhttp::DhttpWays;
use crate::robot;
pub use codings::Codings;
pub use ways::{HeadWrite, Validation};
use ways::{Switch, Way, named};

/// Behaviour of the programs at both ends; `None` leaves the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Programs {
    /// Client: time before a connection is opened.
    pub client_setup: Option<Duration>,
    /// Client: time before each request.
    pub client_think: Option<Duration>,
    /// Client: time per KiB read.
    pub client_reading: Option<Duration>,
    /// Client: maximum bytes of pipelined requests that leave together.
    pub client_buffer: Option<NonZeroUsize>,
    /// Client: maximum time for which pipelined requests wait for one another.
    pub client_flush: Option<Duration>,
    /// Client: explicit flush of pipelined requests.
    pub client_flush_explicit: Option<Flush>,
    /// Client: number of first bytes of each object whose arrival is reported, and whether they are requested
    /// before the rest of any.
    pub client_first_bytes: Option<FirstBytes>,
    /// Client: validation of cached objects; default: by entity tags in HTTP/1.1, and by dates in HTTP/1.0,
    /// which has no tags.
    pub client_validation: Option<Validation>,
    /// Client: accepted content codings; default: no `Accept-Encoding`, bodies uncoded.
    pub client_codings: Option<Codings>,
    /// Server: time per connection, before its first request is read.
    pub server_setup: Option<Duration>,
    /// Server: time per write, except for a header section sent separately: reading the file, copying. A file
    /// mapped into memory is one write; a file read through a buffer takes as many as it needs.
    pub server_write: Option<Duration>,
    /// Server: when the header section of a response leaves.
    pub server_head: Option<HeadWrite>,
    /// Server: maximum bytes per write; default: one write per response.
    pub server_buffer: Option<NonZeroUsize>,
    /// Server: when bodies are compressed; default: in advance.
    pub server_compression: Option<Compression>,
    /// Server: maximum number of requests per connection; default: unlimited.
    pub server_requests: Option<NonZeroU32>,
    /// Server: connection closing.
    pub server_close: Option<Closing>,
    /// DHTTP settings of client and server; default: as in the paper.
    pub dhttp: Option<DhttpWays>,
    /// Whether Nagle's algorithm is on, at both ends (`TCP_NODELAY` turns it off); default: the stack's.
    pub nagle: Option<bool>,
    /// Send buffer of either program (`SO_SNDBUF`); default: the stack's.
    pub send_buffer: Option<Bytes>,
}

/// Key of a setting of the programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProgramKey {
    /// The client's time per connection.
    ClientSetup,
    /// The client's time per request.
    ClientThink,
    /// The client's time per KiB read.
    ClientReading,
    /// Maximum bytes of pipelined requests that leave together.
    ClientBuffer,
    /// Maximum time for which pipelined requests wait.
    ClientFlush,
    /// Explicit flush of pipelined requests.
    ClientFlushExplicit,
    /// First bytes of objects.
    ClientFirstBytes,
    /// Validation of cached objects.
    ClientValidation,
    /// Accepted content codings.
    ClientCodings,
    /// The server's time per connection.
    ServerSetup,
    /// The server's time per write.
    ServerWrite,
    /// Whether header sections leave separately.
    ServerHead,
    /// Maximum bytes per write.
    ServerBuffer,
    /// When bodies are compressed.
    ServerCompression,
    /// Maximum number of requests per connection.
    ServerRequests,
    /// Connection closing.
    ServerClose,
    /// DHTTP settings of client and server.
    Dhttp,
    /// Whether Nagle's algorithm is on.
    Nagle,
    /// Send buffer.
    SendBuffer,
}

impl ProgramKey {
    /// Every key, in the order of lists.
    pub const ALL: [Self; 19] = [
        Self::ClientSetup,
        Self::ClientThink,
        Self::ClientReading,
        Self::ClientBuffer,
        Self::ClientFlush,
        Self::ClientFlushExplicit,
        Self::ClientFirstBytes,
        Self::ClientValidation,
        Self::ClientCodings,
        Self::ServerSetup,
        Self::ServerWrite,
        Self::ServerHead,
        Self::ServerBuffer,
        Self::ServerCompression,
        Self::ServerRequests,
        Self::ServerClose,
        Self::Dhttp,
        Self::Nagle,
        Self::SendBuffer,
    ];

    /// Name in a file; after two dashes, as a flag.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClientSetup => "client-setup",
            Self::ClientThink => "client-think",
            Self::ClientReading => "client-reading",
            Self::ClientBuffer => "client-buffer",
            Self::ClientFlush => "client-flush",
            Self::ClientFlushExplicit => "client-flush-explicit",
            Self::ClientFirstBytes => "client-first-bytes",
            Self::ClientValidation => "client-validation",
            Self::ClientCodings => "client-codings",
            Self::ServerSetup => "server-setup",
            Self::ServerWrite => "server-write",
            Self::ServerHead => "server-head",
            Self::ServerBuffer => "server-buffer",
            Self::ServerCompression => "server-compression",
            Self::ServerRequests => "server-requests",
            Self::ServerClose => "server-close",
            Self::Dhttp => "dhttp",
            Self::Nagle => "nagle",
            Self::SendBuffer => "send-buffer",
        }
    }

    /// Example of a value, as in a file.
    pub const fn example(self) -> &'static str {
        match self {
            Self::ClientSetup | Self::ServerSetup => "\"2ms\"",
            Self::ClientThink | Self::ServerWrite => "\"500us\"",
            Self::ClientReading => "\"100us\"",
            Self::ClientBuffer => "1024",
            Self::ClientFlush => "\"50ms\"",
            Self::ClientFlushExplicit => "\"first\"",
            Self::ClientFirstBytes => "512",
            Self::ClientValidation => "\"heads\"",
            Self::ClientCodings => "\"gzip+br\"",
            Self::ServerHead => "\"apart\"",
            Self::ServerBuffer => "4096",
            Self::ServerCompression => "\"on-the-fly\"",
            Self::ServerRequests => "5",
            Self::ServerClose => "\"naive\"",
            Self::Dhttp => "\"internet+parts\"",
            Self::Nagle => "\"off\"",
            Self::SendBuffer => "8192",
        }
    }
}

impl Programs {
    /// Sets a value.
    ///
    /// # Errors
    /// An invalid text for this key; nothing is changed then.
    pub fn set(&mut self, key: ProgramKey, text: &str) -> Result<(), ValueError> {
        match key {
            ProgramKey::ClientSetup => self.client_setup = Some(quantity::duration(text)?),
            ProgramKey::ClientThink => self.client_think = Some(quantity::duration(text)?),
            ProgramKey::ClientReading => self.client_reading = Some(quantity::duration(text)?),
            ProgramKey::ClientBuffer => self.client_buffer = Some(quantity::buffer(text)?),
            ProgramKey::ClientFlush => self.client_flush = Some(quantity::duration(text)?),
            ProgramKey::ClientFlushExplicit => self.client_flush_explicit = Some(named(text)?),
            ProgramKey::ClientFirstBytes => self.client_first_bytes = Some(robot::first_bytes(text)?),
            ProgramKey::ClientValidation => self.client_validation = Some(named(text)?),
            ProgramKey::ClientCodings => self.client_codings = Some(Codings::read(text)?),
            ProgramKey::ServerSetup => self.server_setup = Some(quantity::duration(text)?),
            ProgramKey::ServerWrite => self.server_write = Some(quantity::duration(text)?),
            ProgramKey::ServerHead => self.server_head = Some(named(text)?),
            ProgramKey::ServerBuffer => self.server_buffer = Some(quantity::buffer(text)?),
            ProgramKey::ServerCompression => self.server_compression = Some(named(text)?),
            ProgramKey::ServerRequests => self.server_requests = Some(quantity::requests(text)?),
            ProgramKey::ServerClose => self.server_close = Some(named(text)?),
            ProgramKey::Dhttp => self.dhttp = Some(DhttpWays::read(text)?),
            ProgramKey::Nagle => self.nagle = Some(named::<Switch>(text)?.is_on()),
            ProgramKey::SendBuffer => self.send_buffer = Some(quantity::send_buffer(text)?),
        }
        Ok(())
    }

    /// These settings, completed by those of `below`.
    #[must_use]
    pub fn over(self, below: Self) -> Self {
        Self {
            client_setup: self.client_setup.or(below.client_setup),
            client_think: self.client_think.or(below.client_think),
            client_reading: self.client_reading.or(below.client_reading),
            client_buffer: self.client_buffer.or(below.client_buffer),
            client_flush: self.client_flush.or(below.client_flush),
            client_flush_explicit: self.client_flush_explicit.or(below.client_flush_explicit),
            client_first_bytes: self.client_first_bytes.or(below.client_first_bytes),
            client_validation: self.client_validation.or(below.client_validation),
            client_codings: self.client_codings.or(below.client_codings),
            server_setup: self.server_setup.or(below.server_setup),
            server_write: self.server_write.or(below.server_write),
            server_head: self.server_head.or(below.server_head),
            server_buffer: self.server_buffer.or(below.server_buffer),
            server_compression: self.server_compression.or(below.server_compression),
            server_requests: self.server_requests.or(below.server_requests),
            server_close: self.server_close.or(below.server_close),
            dhttp: self.dhttp.or(below.dhttp),
            nagle: self.nagle.or(below.nagle),
            send_buffer: self.send_buffer.or(below.send_buffer),
        }
    }

    /// When pipelined requests leave; `base` has the defaults.
    pub fn pipelining(&self, base: Pipelining) -> Pipelining {
        Pipelining {
            buffer: self.client_buffer.unwrap_or(base.buffer),
            flush_after: self.client_flush.unwrap_or(base.flush_after),
            flush: self.client_flush_explicit.unwrap_or(base.flush),
        }
    }

    /// Division of responses into writes; `base` has the defaults.
    pub fn writes(&self, base: WritePolicy) -> WritePolicy {
        let head_apart = self.server_head.map(|head| match head {
            HeadWrite::Together => false,
            HeadWrite::Apart => true,
        });
        WritePolicy {
            head_apart: head_apart.unwrap_or(base.head_apart),
            buffer: self.server_buffer.or(base.buffer),
            gather: base.gather,
        }
    }

    /// The stack with the programs' socket options, which override it.
    pub fn sockets(&self, stack: &Stack) -> Stack {
        let mut stack = stack.clone();
        stack.nagle = self.nagle.unwrap_or(stack.nagle);
        stack.packets.send_buffer = self.send_buffer.unwrap_or(stack.packets.send_buffer);
        stack
    }

    /// The values that are set, key by key, as flags.
    pub fn said(&self) -> impl Iterator<Item = (ProgramKey, String)> {
        let time = |time: Option<Duration>| time.map(|time| time.to_string());
        let size = |size: Option<NonZeroUsize>| size.map(|size| size.to_string());
        let name = |name: Option<&str>| name.map(str::to_owned);
        let Self {
            client_setup,
            client_think,
            client_reading,
            client_buffer,
            client_flush,
            client_flush_explicit,
            client_first_bytes,
            client_validation,
            client_codings,
            server_setup,
            server_write,
            server_head,
            server_buffer,
            server_compression,
            server_requests,
            server_close,
            dhttp,
            nagle,
            send_buffer,
        } = *self;
        let values = [
            time(client_setup),
            time(client_think),
            time(client_reading),
            size(client_buffer),
            time(client_flush),
            name(client_flush_explicit.map(Way::name)),
            client_first_bytes.map(robot::first_bytes_said),
            name(client_validation.map(Way::name)),
            client_codings.map(|codings| codings.to_string()),
            time(server_setup),
            time(server_write),
            name(server_head.map(Way::name)),
            size(server_buffer),
            name(server_compression.map(Way::name)),
            server_requests.map(|requests| requests.to_string()),
            name(server_close.map(Way::name)),
            dhttp.map(|ways| ways.to_string()),
            name(nagle.map(|is_on| Switch::of(is_on).name())),
            send_buffer.map(|size| size.get().to_string()),
        ];
        ProgramKey::ALL.into_iter().zip(values).filter_map(|(key, value)| Some((key, value?)))
    }

    /// The values that are set, for a reader of results: `client-think 2ms, nagle off`; `None` if there are
    /// none.
    pub fn described(&self) -> Option<String> {
        let said: Vec<String> = self.said().map(|(key, value)| format!("{key} {value}")).collect();
        (!said.is_empty()).then(|| said.join(", "))
    }
}

impl fmt::Display for ProgramKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_values_hold_and_others_stay_default() {
        let mut said = Programs::default();
        for (key, text) in [
            (ProgramKey::ServerHead, "apart"),
            (ProgramKey::ServerBuffer, "4kib"),
            (ProgramKey::ClientFlush, "1s"),
            (ProgramKey::ClientFlushExplicit, "first"),
            (ProgramKey::ClientValidation, "heads"),
            (ProgramKey::ServerClose, "naive"),
            (ProgramKey::Nagle, "off"),
        ] {
            said.set(key, text).unwrap();
        }
        let writes = said.writes(WritePolicy::gathering());
        assert_eq!(writes.buffer, NonZeroUsize::new(4_096));
        assert!(writes.head_apart && writes.gather == WritePolicy::gathering().gather);
        let pipelining = said.pipelining(Pipelining::default());
        assert_eq!(pipelining.flush_after, Duration::from_secs(1));
        assert_eq!((pipelining.buffer, pipelining.flush), (Pipelining::default().buffer, Flush::First));
        let described = "client-flush 1s, client-flush-explicit first, client-validation heads, server-head apart, server-buffer 4096, server-close naive, nagle off";
        assert_eq!(said.described().as_deref(), Some(described));
        assert_eq!(Programs::default().described(), None);
    }

    #[test]
    fn unknown_closing_is_rejected_with_the_known_ones() {
        let error = Programs::default().set(ProgramKey::ServerClose, "carful").unwrap_err();
        assert!(error.to_string().contains("careful"), "{error}");
    }
}
