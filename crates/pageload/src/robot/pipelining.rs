//! When pipelined requests leave: together, as far as waiting for one another costs less than it saves.
//!
//! Not a queue: the bytes wait in the connection's write buffer. From `papers/w3c#pipelining` and
//! `papers/w3c#buffer-tuning`.

use std::num::NonZeroUsize;

use wire::Duration;

/// How requests share writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pipelining {
    /// Requests leave when there are so many bytes of them, cut there. Default 1024: two segments of 512 bytes, and
    /// most of one of 1460.
    pub buffer: NonZeroUsize,
    /// They leave when the oldest has waited so long. Default 50 ms; Table 3 was measured with 1 s.
    pub flush_after: Duration,
    /// When the robot itself says that they are to leave.
    pub flush: Flush,
}

/// When a robot says that its requests are to leave, because it knows more than the buffer does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flush {
    /// Never: when the buffer is full, or its time is over. Table 3 was measured so.
    Never,
    /// Behind the first of the page, on which all others depend.
    First,
    /// Whenever none can follow before something has arrived: behind the first of the page, if the others are not
    /// known before it is there, and behind the last.
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
