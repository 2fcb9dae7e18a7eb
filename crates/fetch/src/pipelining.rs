//! Flushing of pipelined requests: they share a write while waiting for one another costs less than it saves.
//!
//! The bytes wait in the connection's write buffer. From `papers/w3c#pipelining` and
//! `papers/w3c#buffer-tuning`.

use std::num::NonZeroUsize;

use wire::Duration;

/// Policy by which requests share writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pipelining {
    /// Size of the buffer: requests leave when it is full, and are split there. Default 1024: two
    /// segments of 512 bytes, and most of one of 1460.
    pub buffer: NonZeroUsize,
    /// Maximum time that a request waits in the buffer. Default 50 ms; Table 3 was measured with 1 s.
    pub flush_after: Duration,
    /// Explicit flush by the client.
    pub flush: Flush,
}

/// Explicit flush by the client, which knows more than the buffer does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flush {
    /// Never: only when the buffer is full, or its time is over. Table 3 was measured so.
    Never,
    /// After the page's first request, on which all others depend.
    First,
    /// Flushes when no request can follow before a response: after the page's first request, if it must be
    /// parsed to know the others, and after the last.
    #[default]
    Idle,
}

impl Default for Pipelining {
    fn default() -> Self {
        Self {
            buffer: const { NonZeroUsize::new(1_024).unwrap() },
            flush_after: Duration::from_millis(50),
            flush: Flush::default(),
        }
    }
}
