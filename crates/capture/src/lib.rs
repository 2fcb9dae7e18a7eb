//! Capture sessions: packets of a file, or of this host while a command runs, made into a diagnosed [`Capture`].
//!
//! Input: a path or a [`live::LiveOptions`]. Output: a value that every report format uses. Read in this order:
//!
//! | module | contents |
//! | --- | --- |
//! | (here) | [`Capture`]: one file, read and diagnosed |
//! | [`reading`] | packets in, from any source |
//! | `shard` | one part of the connections, diagnosed |
//! | `parallel` | parts of a large capture on several threads |
//! | [`live`] | packets as they pass, while a command runs |
//! | [`isolated`] | a private network for a command |
//! | [`kernel`] | the kernel's view of the sockets during a live capture |
//! | [`sniffer`] | packets on this host's interfaces |
//! | [`sockets`] | the kernel's statistics of TCP sockets |
//! | [`open`](mod@open) | files, pipes, compressed or not |
//! | [`filter`] | selection of connections, causes and times |
//! | [`headline`] | what dominates where nothing is worth fixing |
//! | [`oddity`] | what is odd about the capture itself |
//! | [`skipped`] | packets that are not TCP, and tunnels |
//! | [`group`] | findings by cause: which costs most |
//! | [`advice`] | fixes, by the party that can apply them |
//! | [`span`] | durations, formatted for users |
//! | [`report`] | text, JSON, CSV, a page and plots |
//! | [`watch`] | stalls of live sockets, without packets |
//! | [`verdict`] | the findings that fail a build |
//! | [`ci`] | a verdict in the formats of continuous integration |
//! | [`error`] | errors of a capture |
//!
//! Not the diagnosis itself: that is `diagnose`'s.
//!
//! ```
//! use std::path::Path;
//!
//! use roundtrip_capture::Capture;
//! use roundtrip_capture::filter::Filter;
//!
//! let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/capture/nagle");
//! let capture = Capture::read(Path::new(path), &Filter::default(), false)?;
//! assert!(capture.is_worth_fixing());
//! assert_eq!(capture.flows.len(), 1);
//! # Ok::<(), roundtrip_capture::Error>(())
//! ```

pub mod advice;
pub mod ci;
pub mod error;
pub mod filter;
pub mod group;
pub mod headline;
pub mod isolated;
pub mod kernel;
pub mod live;
pub mod oddity;
pub mod open;
mod parallel;
pub mod reading;
pub mod report;
mod shard;
pub mod skipped;
pub mod sniffer;
pub mod sockets;
pub mod span;
pub mod verdict;
pub mod watch;

use std::num::NonZeroUsize;
use std::path::Path;

use diagnose::{Account, Doubts, FlowReport};
use packets::{Reader, Unreadable};
use wire::Time;

pub use error::Error;

use filter::Filter;
use kernel::KernelStats;
use live::CommandExit;
use reading::CaptureReader;
use skipped::SkippedPackets;

/// A diagnosed capture.
#[derive(Debug)]
pub struct Capture {
    /// The file's name, as given.
    pub name: String,
    /// Packets of all kinds.
    pub packets: u64,
    /// IP packets that could not be read.
    pub unreadable: u64,
    /// Time of the first packet.
    pub started: Time,
    /// The selected connections.
    pub flows: Vec<FlowReport>,
    /// Number of connections.
    pub connections: u64,
    /// Account of the connections without findings that are too many to be listed.
    pub left_out: Account,
    /// Exit of the command that was run, if any.
    pub command: Option<CommandExit>,
    /// The watch of the command's sockets that took the place of packets.
    pub watched: Option<watch::session::Report>,
    /// The kernel's counters, if captured live.
    pub kernel: KernelStats,
    /// Damage of the file, from a certain packet on.
    pub damage: Option<String>,
    /// Packets that belong to no connection.
    pub skipped: SkippedPackets,
    /// Limits that were reached.
    pub warnings: Vec<String>,
}

impl Capture {
    /// Reads the file `path` (or standard input, `-`) to its end, or up to damage. Large captures are read by a thread
    /// for each CPU.
    ///
    /// # Errors
    /// [`Error`] if the file cannot be read at all.
    pub fn read(path: &Path, filter: &Filter, is_plotted: bool) -> Result<Self, Error> {
        let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Self::read_with_threads(path, filter, is_plotted, threads)
    }

    /// As [`Capture::read`], on at most `threads` threads beside the one that reads; 0 or 1: on that one alone. The result
    /// does not depend on it.
    ///
    /// # Errors
    /// [`Error`] if the file cannot be read at all.
    pub fn read_with_threads(
        path: &Path,
        filter: &Filter,
        is_plotted: bool,
        threads: usize,
    ) -> Result<Self, Error> {
        let unreadable = |error: Unreadable| match error {
            Unreadable::Io(error) => Error::Unreadable { path: path.to_owned(), error },
            error => Error::NotACapture { path: path.to_owned(), error },
        };
        let source = open::open(path).map_err(|error| Error::Unreadable { path: path.to_owned(), error })?;
        let reader = Reader::new(source).map_err(unreadable)?;
        let reading = CaptureReader::new(path.display().to_string(), filter, is_plotted);
        parallel::read(reader, reading, threads).map_err(unreadable)
    }

    /// Returns milliseconds since the first packet, as in Wireshark.
    pub fn millis(&self, at: Time) -> f64 {
        at.since(self.started).as_millis_f64()
    }

    /// Returns the account of all connections together. Connections reported by a DHTTP dialogue are counted only
    /// there.
    pub fn account(&self) -> Account {
        let mut all = self.left_out.clone();
        let flows = self.flows.iter().filter(|flow| !flow.is_within_dialogue);
        flows.for_each(|flow| all.merge(&flow.account));
        all
    }

    /// Returns the reasons for unknown time, of listed connections.
    pub fn doubts(&self) -> Doubts {
        let mut all = Doubts::default();
        let flows = self.flows.iter().filter(|flow| !flow.is_within_dialogue);
        flows.for_each(|flow| all.merge(&flow.doubts));
        all
    }

    /// Returns whether any finding is worth fixing.
    pub fn is_worth_fixing(&self) -> bool {
        self.flows.iter().any(FlowReport::is_worth_fixing)
    }
}
