//! The buffer between a state machine and its connection: the size and the time of each write.
//!
//! The TCP interactions of `papers/p-http` originate here. A header section flushed apart from its body is a short segment of
//! its own, and a body written in pieces ends in one. Each write goes to the driver, which must pass it to TCP in one
//! call.

use std::collections::VecDeque;
use std::num::NonZeroUsize;

/// Division of a message into writes. Default: one message, one write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WritePolicy {
    /// The head is sent by itself, before the first byte of the body is known. Apache 1.1b4 did so
    /// (`papers/p-http#section-2-2`), and many servers do today.
    pub head_apart: bool,
    /// Buffer size in bytes: a full buffer is sent as one write. `None`: the body is sent in the parts that
    /// the application gives, the head with the first.
    pub buffer: Option<NonZeroUsize>,
    /// A message waits for those about to follow, up to this many bytes: responses to pipelined requests then share
    /// segments (`papers/w3c#nagle-interaction`). `None`: each is sent at its end.
    pub gather: Option<NonZeroUsize>,
}

impl WritePolicy {
    /// Returns one write per message, with responses to pipelined requests joined, up to Apache's buffer of 4096 bytes
    /// (`papers/p-http#section-2-2`).
    pub fn gathering() -> Self {
        Self { gather: NonZeroUsize::new(4_096), ..Self::default() }
    }
}

/// Bytes that wait for their write, and writes that wait to be sent.
#[derive(Debug, Default)]
pub struct WriteBuffer {
    policy: WritePolicy,
    waiting: Vec<u8>,
    writes: VecDeque<Vec<u8>>,
}

impl WriteBuffer {
    /// Creates an empty buffer.
    pub fn new(policy: WritePolicy) -> Self {
        Self { policy, waiting: Vec::new(), writes: VecDeque::new() }
    }

    /// Adds a head.
    pub fn head(&mut self, encode: impl FnOnce(&mut Vec<u8>)) {
        encode(&mut self.waiting);
        if self.policy.head_apart {
            self.flush();
        } else {
            self.spill();
        }
    }

    /// Adds a part of a body, as the application gave it.
    pub fn part(&mut self, encode: impl FnOnce(&mut Vec<u8>)) {
        encode(&mut self.waiting);
        match self.policy.buffer {
            Some(_) => self.spill(),
            None => self.flush(),
        }
    }

    /// Adds a whole body; [`WriteBuffer::end_message`] comes next.
    pub fn body(&mut self, encode: impl FnOnce(&mut Vec<u8>)) {
        encode(&mut self.waiting);
        self.spill();
    }

    /// Ends a message; another may follow immediately.
    pub fn end_message(&mut self, may_follow: bool) {
        let is_full = self.policy.gather.is_none_or(|full| self.waiting.len() >= full.get());
        if is_full || !may_follow {
            self.flush();
        }
    }

    /// Turns all waiting bytes into a write.
    pub fn flush(&mut self) {
        self.spill();
        if !self.waiting.is_empty() {
            self.writes.push_back(std::mem::take(&mut self.waiting));
        }
    }

    /// Returns the number of bytes that wait for their write.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the next write.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        self.writes.pop_front()
    }

    /// Turns every full buffer into a write.
    fn spill(&mut self) {
        let Some(size) = self.policy.buffer.map(NonZeroUsize::get) else { return };
        if self.waiting.len() < size {
            return;
        }
        let waiting = std::mem::take(&mut self.waiting);
        let full = waiting.chunks_exact(size);
        self.waiting = full.remainder().to_vec();
        self.writes.extend(full.map(<[u8]>::to_vec));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the sizes of the writes for a head of 226 bytes and a body in two parts.
    fn writes(head_apart: bool, buffer: Option<usize>) -> Vec<usize> {
        let mut buffer = WriteBuffer::new(WritePolicy {
            head_apart,
            buffer: buffer.and_then(NonZeroUsize::new),
            gather: None,
        });
        buffer.head(|out| out.resize(226, b'h'));
        for part in [5_000, 3_000] {
            buffer.part(|out| out.resize(out.len() + part, b'b'));
        }
        buffer.flush();
        std::iter::from_fn(|| buffer.take()).map(|write| write.len()).collect()
    }

    #[test]
    fn a_full_buffer_leaves_before_the_message_ends() {
        let policy = WritePolicy { buffer: NonZeroUsize::new(4), ..WritePolicy::default() };
        let mut buffer = WriteBuffer::new(policy);
        buffer.head(|out| out.extend_from_slice(b"he"));
        assert_eq!(buffer.take(), None);
        buffer.part(|out| out.extend_from_slice(b"adbody"));
        assert_eq!([buffer.take(), buffer.take()], [Some(b"head".to_vec()), Some(b"body".to_vec())]);
        buffer.flush();
        assert_eq!(buffer.take(), None);
    }

    #[test]
    fn messages_gather_until_there_are_enough_or_none_follows() {
        let policy = WritePolicy { gather: NonZeroUsize::new(10), ..WritePolicy::default() };
        let mut buffer = WriteBuffer::new(policy);
        let mut sizes = Vec::new();
        for (body, may_follow) in [(2, true), (2, true), (2, true), (0, true), (9, true), (1, false)] {
            buffer.head(|out| out.push(b'h'));
            buffer.body(|out| out.resize(out.len() + body, b'b'));
            buffer.end_message(may_follow);
            sizes.push(std::iter::from_fn(|| buffer.take()).map(|write| write.len()).sum::<usize>());
        }
        assert_eq!(sizes, [0, 0, 0, 10, 10, 2]);
    }

    #[test]
    fn a_policy_cuts_a_message_into_writes() {
        assert_eq!(writes(false, None), [5_226, 3_000]);
        assert_eq!(writes(true, None), [226, 5_000, 3_000]);
        assert_eq!(writes(true, Some(4_096)), [226, 4_096, 3_904]);
        assert_eq!(writes(false, Some(4_096)), [4_096, 4_096, 34]);
    }
}
