//! Bytes received before their turn, and whether more can come. Not a reader: it only buffers.

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

    /// Marks all but the last `left` bytes as read.
    pub(super) fn retain_last(&mut self, left: usize) {
        self.read = self.bytes.len() - left;
    }
}
