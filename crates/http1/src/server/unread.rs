//! Buffer of bytes that are received and not parsed yet, and whether more can follow.

/// Bytes received and not read yet.
#[derive(Debug, Default)]
pub(super) struct UnreadBytes {
    bytes: Vec<u8>,
    /// Number of these bytes that have been read.
    read: usize,
    /// Whether the client will send no more.
    pub(super) ended: bool,
}

impl UnreadBytes {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.read);
        self.read = 0;
        self.bytes.extend_from_slice(bytes);
    }

    pub(super) fn rest(&self) -> &[u8] {
        &self.bytes[self.read..]
    }

    /// Marks all but the last `count` bytes as read.
    pub(super) fn retain_last(&mut self, count: usize) {
        self.read = self.bytes.len() - count;
    }
}
