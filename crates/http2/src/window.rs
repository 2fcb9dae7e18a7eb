//! Flow control of one sender (RFC 9113, section 5.2): the connection's window and its streams' windows.

use std::collections::BTreeMap;

use crate::DEFAULT_WINDOW;

/// Windows that limit the DATA of one sender. Its peer sets them by SETTINGS and WINDOW_UPDATE.
#[derive(Clone, Debug)]
pub struct SendWindows {
    connection: i64,
    initial: i64,
    /// Windows that differ from the initial one.
    streams: BTreeMap<u32, i64>,
    /// Largest value of the connection's window.
    pub widest: i64,
}

/// A window that stops a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowLimit {
    /// The connection's window.
    Connection,
    /// The window of this stream.
    Stream(u32),
}

/// Maximum number of streams that are followed; the oldest are forgotten.
const MAX_STREAMS: usize = 1_024;

impl Default for SendWindows {
    fn default() -> Self {
        let window = i64::from(DEFAULT_WINDOW);
        Self { connection: window, initial: window, streams: BTreeMap::new(), widest: window }
    }
}

impl SendWindows {
    /// Returns the connection's window in bytes.
    pub const fn connection(&self) -> i64 {
        self.connection
    }

    /// Returns the window of a stream in bytes: negative after SETTINGS that reduce it.
    pub fn stream(&self, stream: u32) -> i64 {
        self.streams.get(&stream).copied().unwrap_or(self.initial)
    }

    /// Returns the initial window of streams.
    pub const fn initial(&self) -> i64 {
        self.initial
    }

    /// Returns the bytes that may be sent on a stream.
    pub fn available(&self, stream: u32) -> u64 {
        u64::try_from(self.connection.min(self.stream(stream))).unwrap_or_default()
    }

    /// Returns the window that stops the stream, if one does.
    pub fn limit(&self, stream: u32) -> Option<WindowLimit> {
        match (self.connection <= 0, self.stream(stream) <= 0) {
            (_, true) => Some(WindowLimit::Stream(stream)),
            (true, false) => Some(WindowLimit::Connection),
            (false, false) => None,
        }
    }

    /// Handles the sender's DATA: `length` includes padding.
    pub fn sent(&mut self, stream: u32, length: u32) {
        self.connection -= i64::from(length);
        self.change(stream, -i64::from(length));
    }

    /// Handles a WINDOW_UPDATE of its peer; stream 0 is the connection.
    pub fn updated(&mut self, stream: u32, increment: u32) {
        let increment = i64::from(increment & 0x7fff_ffff);
        if stream == 0 {
            self.connection += increment;
            self.widest = self.widest.max(self.connection);
        } else {
            self.change(stream, increment);
        }
    }

    /// Handles SETTINGS_INITIAL_WINDOW_SIZE of its peer: open streams change by the difference.
    pub fn set_initial(&mut self, size: u32) {
        let difference = i64::from(size) - self.initial;
        self.initial += difference;
        self.streams.values_mut().for_each(|window| *window += difference);
    }

    /// Forgets a stream that has ended.
    pub fn close(&mut self, stream: u32) {
        self.streams.remove(&stream);
    }

    fn change(&mut self, stream: u32, by: i64) {
        let initial = self.initial;
        *self.streams.entry(stream).or_insert(initial) += by;
        if self.streams.len() > MAX_STREAMS {
            self.streams.pop_first();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_windows_limit_a_stream() {
        let mut windows = SendWindows::default();
        windows.sent(1, 65_535);
        assert_eq!(windows.limit(1), Some(WindowLimit::Stream(1)));
        assert_eq!(windows.limit(3), Some(WindowLimit::Connection));
        windows.updated(0, 1_000);
        assert_eq!((windows.limit(3), windows.available(3)), (None, 1_000));
    }

    /// RFC 9113, section 6.9.2: a smaller initial window can make a stream's window negative.
    #[test]
    fn smaller_initial_window_can_make_a_window_negative() {
        let mut windows = SendWindows::default();
        windows.sent(1, 60_000);
        windows.set_initial(16_384);
        assert_eq!((windows.stream(1), windows.available(1)), (16_384 - 60_000, 0));
        windows.updated(1, 43_617);
        assert_eq!(windows.stream(1), 1);
    }
}
