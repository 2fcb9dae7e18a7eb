//! How the programs at both ends work: what their work takes, how they cut what they write, how they close, and
//! what they ask of their sockets.
//!
//! Not TCP, which is the stack, and not what is fetched. What is not said is the engine's to choose: a program then
//! takes no time, writes a message in one call, and leaves its sockets as the stack makes them.

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

/// How the programs at both ends work; `None` says nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Programs {
    /// What the client takes before a connection is asked for.
    pub client_setup: Option<Duration>,
    /// What it takes before each request.
    pub client_think: Option<Duration>,
    /// What it takes for each KiB that it reads.
    pub client_reading: Option<Duration>,
    /// How many bytes of pipelined requests leave together.
    pub client_buffer: Option<NonZeroUsize>,
    /// How long pipelined requests wait for one another.
    pub client_flush: Option<Duration>,
    /// When the client itself says that they are to leave.
    pub client_flush_explicit: Option<Flush>,
    /// The first bytes of objects, and whether they are asked for before the rest of any.
    pub client_first_bytes: Option<FirstBytes>,
    /// How a client that has everything asks whether it is still the same; nothing said: by entity tags in HTTP/1.1, and
    /// by dates in HTTP/1.0, which has no tags.
    pub client_validation: Option<Validation>,
    /// What the client says it takes bodies coded in; nothing said: it says nothing, and gets them as they are.
    pub client_codings: Option<Codings>,
    /// What the server takes for each connection, before its first request is read.
    pub server_setup: Option<Duration>,
    /// What it takes for each write but a head that leaves apart: reading the file, copying. A file that is mapped
    /// into memory is one write; one that is read through a buffer is as many as that needs.
    pub server_write: Option<Duration>,
    /// When the head of an answer leaves.
    pub server_head: Option<HeadWrite>,
    /// A write of the server has at most so many bytes; nothing said: an answer is one write.
    pub server_buffer: Option<NonZeroUsize>,
    /// When the server compresses what its client takes compressed; nothing said: beforehand.
    pub server_compression: Option<Compression>,
    /// How many requests are answered on one connection; nothing said: as many as come.
    pub server_requests: Option<NonZeroU32>,
    /// How the server ends a connection.
    pub server_close: Option<Closing>,
    /// How client and server behave under DHTTP; nothing said: as in the paper.
    pub dhttp: Option<DhttpWays>,
    /// Whether Nagle's algorithm is on, at both ends (`TCP_NODELAY` turns it off); nothing said: as the stack has it.
    pub nagle: Option<bool>,
    /// What either program may write before it waits (`SO_SNDBUF`); nothing said: as the stack has it.
    pub send_buffer: Option<Bytes>,
}

/// A key that says something of the programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProgramKey {
    /// The client's time for each connection.
    ClientSetup,
    /// Its time for each request.
    ClientThink,
    /// Its time for each KiB read.
    ClientReading,
    /// How many bytes of pipelined requests leave together.
    ClientBuffer,
    /// How long they wait for one another.
    ClientFlush,
    /// When the client says that they are to leave.
    ClientFlushExplicit,
    /// The first bytes of objects.
    ClientFirstBytes,
    /// How it asks whether what it has is still the same.
    ClientValidation,
    /// What it takes bodies coded in.
    ClientCodings,
    /// The server's time for each connection.
    ServerSetup,
    /// Its time for each write.
    ServerWrite,
    /// Whether heads leave apart.
    ServerHead,
    /// How much a write takes.
    ServerBuffer,
    /// When bodies are compressed.
    ServerCompression,
    /// How many requests are answered on one connection.
    ServerRequests,
    /// How a connection is ended.
    ServerClose,
    /// How client and server behave under DHTTP.
    Dhttp,
    /// Whether Nagle's algorithm is on.
    Nagle,
    /// How much may be written before a program waits.
    SendBuffer,
}

impl ProgramKey {
    /// Every one, in the order they are listed.
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

    /// As a file has it; after two dashes, as a flag.
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

    /// A value that it may have, as a file has it.
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
    /// Says one thing more.
    ///
    /// # Errors
    /// A text that is no value for this key; nothing is changed then.
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

    /// What this says, and where it says nothing, what `below` says.
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

    /// When pipelined requests leave, if `base` says what was not said.
    pub fn pipelining(&self, base: Pipelining) -> Pipelining {
        Pipelining {
            buffer: self.client_buffer.unwrap_or(base.buffer),
            flush_after: self.client_flush.unwrap_or(base.flush_after),
            flush: self.client_flush_explicit.unwrap_or(base.flush),
        }
    }

    /// How answers are cut into writes, if `base` says what was not said.
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

    /// The stack as the programs' sockets have it: their options win over what it does by itself.
    pub fn sockets(&self, stack: &Stack) -> Stack {
        let mut stack = stack.clone();
        stack.nagle = self.nagle.unwrap_or(stack.nagle);
        stack.packets.send_buffer = self.send_buffer.unwrap_or(stack.packets.send_buffer);
        stack
    }

    /// What is said, key by key, as a flag has it.
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

    /// What is said, for a reader of results: `client-think 2ms, nagle off`; `None` if nothing is.
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
    fn what_is_said_holds_and_the_rest_is_as_it_was() {
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
    fn a_way_to_close_that_is_none_is_named_with_those_there_are() {
        let error = Programs::default().set(ProgramKey::ServerClose, "carful").unwrap_err();
        assert!(error.to_string().contains("careful"), "{error}");
    }
}
