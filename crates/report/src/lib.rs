//! A diagnosed capture in every format that people and programs read, and the verdict on it.
//!
//! Packets of a capture flow in; a [`Capture`] and strings flow out. Files, threads, and standard output are the caller's.
//! Read in this order:
//!
//! | module | contents |
//! | --- | --- |
//! | (here) | [`Capture`]: one capture, diagnosed |
//! | [`reading`], [`shard`] | packets in; one part of the connections, diagnosed |
//! | [`filter`] | selection of connections, causes and times |
//! | [`skipped`] | packets that are not TCP, and tunnels |
//! | [`command`], [`kernel`], [`watched`] | a live capture's command, kernel counters, and watched sockets |
//! | [`keys`] | connections that a key log decrypts |
//! | [`headline`] | what dominates where nothing is worth fixing |
//! | [`group`] | findings by cause: which costs most |
//! | [`advice`] | fixes, by the party that can apply them |
//! | [`in_between`] | connections of other programs, such as a proxy's second hop |
//! | [`request`] | the request that a finding is about |
//! | [`serial`] | requests one after another on one connection |
//! | [`oddity`] | what is odd about the capture itself |
//! | [`span`] | durations, formatted for users |
//! | [`text`], [`json`], [`csv`] | for a terminal, for programs |
//! | [`har`] | exchanges as an HTTP archive |
//! | [`mod@page`], [`sequence`] | one HTML file; time-sequence plots, as SVG and for xplot |
//! | [`waterfall`] | exchanges in time, as SVG |
//! | [`verdict`], [`ci`] | the findings that fail a build, in the formats of continuous integration |
//!
//! Not the diagnosis itself: that is `diagnose`'s.
//!
//! ```
//! use roundtrip_report::filter::Filter;
//! use roundtrip_report::reading;
//!
//! let bytes = include_bytes!("../../../fuzz/corpus/capture/nagle").as_slice();
//! let reader = packets::Reader::new(bytes)?;
//! let capture = reading::read("nagle".to_owned(), reader, &Filter::default(), false)?;
//! assert!(capture.is_worth_fixing());
//! assert_eq!(capture.flows.len(), 1);
//! # Ok::<(), packets::Unreadable>(())
//! ```

pub mod advice;
pub mod ci;
pub mod command;
pub mod csv;
pub mod filter;
pub mod group;
pub mod har;
pub mod headline;
pub mod in_between;
pub mod json;
pub mod kernel;
pub mod keys;
pub mod oddity;
pub mod page;
pub mod reading;
pub mod request;
pub mod sequence;
pub mod serial;
pub mod shard;
pub mod skipped;
pub mod span;
pub mod text;
pub mod verdict;
pub mod watched;
pub mod waterfall;

use diagnose::{Account, Doubts, FlowReport};
use wire::Time;

use command::CommandExit;
use in_between::OtherPrograms;
use kernel::KernelStats;
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
    /// Number of connections that are selected, whatever their causes.
    pub selected: u64,
    /// Exit of the command that was run, if any.
    pub command: Option<CommandExit>,
    /// Whether the command was ended because the time was up, or by Ctrl-C.
    pub is_command_stopped: bool,
    /// The watch of the command's sockets that took the place of packets.
    pub watched: Option<watched::WatchReport>,
    /// Connections of other programs, if captured live.
    pub others: OtherPrograms,
    /// The kernel's counters, if captured live.
    pub kernel: KernelStats,
    /// Damage of the file, from a certain packet on.
    pub damage: Option<String>,
    /// Packets that belong to no connection.
    pub skipped: SkippedPackets,
    /// Limits that were reached.
    pub warnings: Vec<String>,
    /// Use of a key log, if there is one.
    pub keys: Option<keys::KeyReport>,
}

impl Capture {
    /// Returns milliseconds since the first packet, as in Wireshark.
    pub fn millis(&self, at: Time) -> f64 {
        at.since(self.started).as_millis_f64()
    }

    /// Returns the account of all connections together. Connections reported by a DHTTP dialogue are counted only
    /// there; those of other programs, while the command waits for them, not at all.
    pub fn account(&self) -> Account {
        let mut all = self.left_out.clone();
        let flows = self.flows.iter().filter(|flow| !flow.is_within_dialogue && !self.others.has(flow));
        flows.for_each(|flow| all.merge(&flow.account));
        all
    }

    /// Returns the reasons for unknown time, of listed connections.
    pub fn doubts(&self) -> Doubts {
        let mut all = Doubts::default();
        let flows = self.flows.iter().filter(|flow| !flow.is_within_dialogue && !self.others.has(flow));
        flows.for_each(|flow| all.merge(&flow.doubts));
        all
    }

    /// Returns whether any finding is worth fixing.
    pub fn is_worth_fixing(&self) -> bool {
        self.flows.iter().any(FlowReport::is_worth_fixing)
    }
}

#[cfg(test)]
mod tests {
    use super::Capture;
    use super::filter::Filter;
    use super::reading;

    /// Reads a capture of the fuzz target's corpus.
    pub(crate) fn stored(name: &str) -> Capture {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/capture/").to_owned() + name;
        diagnosed(name, &std::fs::read(path).unwrap())
    }

    /// Reads the bytes of a capture.
    pub(crate) fn diagnosed(name: &str, bytes: &[u8]) -> Capture {
        let reader = packets::Reader::new(bytes).unwrap();
        reading::read(name.to_owned(), reader, &Filter::default(), true).unwrap()
    }
}
