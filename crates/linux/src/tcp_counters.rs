//! The kernel's counters of all TCP segments and connections of a network namespace (RFC 4022, `/proc/net/snmp`).
//!
//! Reading them costs some microseconds, whatever the number of sockets: they show that nothing happened.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// Counters of the network namespace in which the file was opened.
#[derive(Debug)]
pub struct TcpCounters {
    /// `None` where the host hides it.
    file: Option<File>,
}

/// Totals since the namespace exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpTotals {
    /// Connections opened, by either side: a SYN sent, or a handshake completed.
    pub opened: u64,
    /// Segments sent and received, retransmissions included.
    pub segments: u64,
}

impl TcpCounters {
    /// Opens the counters of the calling thread's network namespace.
    pub fn open() -> Self {
        Self { file: File::open("/proc/thread-self/net/snmp").ok() }
    }

    /// Returns the totals, if the host shows them.
    pub fn read(&self) -> Option<TcpTotals> {
        /// The counters of TCP are within it.
        const LENGTH: usize = 4_096;
        let mut text = [0; LENGTH];
        let length = self.file.as_ref()?.read_at(&mut text, 0).ok()?;
        TcpTotals::parse(std::str::from_utf8(text.get(..length)?).ok()?)
    }
}

impl TcpTotals {
    /// Reads a line of names, and one of values.
    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines().filter_map(|line| line.strip_prefix("Tcp: "));
        let (names, values) = (lines.next()?, lines.next()?);
        let mut totals = Self::default();
        for (name, value) in names.split(' ').zip(values.split(' ')) {
            match name {
                "ActiveOpens" | "PassiveOpens" => totals.opened += value.parse::<u64>().ok()?,
                "InSegs" | "OutSegs" | "RetransSegs" => totals.segments += value.parse::<u64>().ok()?,
                _another => {}
            }
        }
        Some(totals)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn connection_is_counted_with_its_segments() {
        let counters = TcpCounters::open();
        let before = counters.read().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let after = counters.read().unwrap();
        assert!(after.opened >= before.opened + 2, "{before:?}, {after:?}");
        assert!(after.segments >= before.segments + 3, "{before:?}, {after:?}");
    }

    #[test]
    fn other_protocols_and_unknown_counters_are_skipped() {
        let text = "Ip: Forwarding\nIp: 1\nTcp: MaxConn ActiveOpens PassiveOpens InSegs OutSegs RetransSegs New\nTcp: -1 2 3 10 20 5 9\n";
        assert_eq!(TcpTotals::parse(text), Some(TcpTotals { opened: 5, segments: 35 }));
        assert_eq!(TcpTotals::parse("Tcp: ActiveOpens\n"), None);
        assert_eq!(TcpTotals::parse("Tcp: ActiveOpens\nTcp: x\n"), None);
    }
}
