//! Packet-by-packet diagnosis: the caller passes packets, and gets a [`Capture`] at the end.
//!
//! Packets come from `packets`, or from a live capture. Memory does not grow with the packets: finished connections leave the diagnosis as they close, and with many connections less of each is
//! retained.

use std::io::Read;
use std::sync::Arc;

use diagnose::{Account, Cause, FlowReport, KeyLog, Options, find_alternatives, weigh_shared_links};
use packets::clock::{Clock, Verdict};
use packets::{Frame, LinkType, Reader, Unreadable};
use trace::text::counted;
use wire::Time;

use crate::Capture;
use crate::filter::Filter;
use crate::in_between::OtherPrograms;
use crate::kernel::KernelStats;
use crate::keys::KeyReport;
use crate::shard::Shard;
use crate::skipped::SkippedPackets;

/// A diagnosis in progress. A caller that divides the packets among several [`Shard`]s uses its parts.
pub struct CaptureReader<'a> {
    /// The capture so far.
    pub capture: Capture,
    shard: Shard,
    filter: &'a Filter,
    is_plotted: bool,
    quiet: u64,
    /// Times of the packets so far.
    pub clock: Clock,
    /// A packet whose time is in doubt until the next one arrives.
    doubtful: Option<Box<DoubtfulPacket>>,
    /// Number of packets of an unsupported link type, and that type.
    unknown_links: u64,
    unknown_link: u32,
}

/// A packet held until the next one.
#[derive(Debug)]
pub struct DoubtfulPacket {
    number: u64,
    interface: u32,
    link: LinkType,
    bytes: Vec<u8>,
}

impl DoubtfulPacket {
    /// Copies a packet.
    pub fn new(frame: &Frame<'_>) -> Self {
        let Frame { number, at: _, interface, link, bytes } = *frame;
        Self { number, interface, link, bytes: bytes.to_vec() }
    }

    /// Returns the packet with the time that it gets.
    pub fn frame(&self, at: Time) -> Frame<'_> {
        let Self { number, interface, link, bytes } = self;
        Frame { number: *number, at, interface: *interface, link: *link, bytes }
    }
}

/// Number of connections from which on at most [`WORST`] findings of each cause are listed.
const MANY_FLOWS: usize = 1_000;
/// Maximum number of listed findings of one cause, with many connections.
const WORST: usize = 4;
/// Maximum number of listed connections without findings.
const MAX_QUIET: u64 = 20_000;

/// Reads a capture to its end, or up to damage, on the calling thread.
///
/// # Errors
/// Damage before the first packet.
pub fn read<R: Read>(
    name: String,
    reader: Reader<R>,
    filter: &Filter,
    is_plotted: bool,
) -> Result<Capture, Unreadable> {
    read_into(CaptureReader::new(name, filter, is_plotted), reader)
}

/// As [`read`], into a reader that may have a key log.
///
/// # Errors
/// Damage before the first packet.
pub fn read_into<R: Read>(
    mut reading: CaptureReader<'_>,
    mut reader: Reader<R>,
) -> Result<Capture, Unreadable> {
    let end = loop {
        match reader.read_with(&mut |text| reading.read_secrets(text)) {
            Ok(Some(frame)) => reading.handle(&frame),
            Ok(None) => break None,
            Err(error) if reading.is_empty() => return Err(error),
            Err(error) => break Some(error.to_string()),
        }
    };
    let mut capture = reading.finish();
    capture.damage = end;
    Ok(capture)
}

impl<'a> CaptureReader<'a> {
    /// Creates a reader without packets.
    pub fn new(name: String, filter: &'a Filter, is_plotted: bool) -> Self {
        let capture = Capture {
            name,
            packets: 0,
            unreadable: 0,
            started: Time::ZERO,
            flows: Vec::new(),
            connections: 0,
            selected: 0,
            is_command_stopped: false,
            left_out: Account::default(),
            watched: None,
            command: None,
            others: OtherPrograms::default(),
            kernel: KernelStats::default(),
            damage: None,
            skipped: SkippedPackets::default(),
            warnings: Vec::new(),
            keys: None,
        };
        Self {
            capture,
            shard: Shard::default(),
            filter,
            is_plotted,
            quiet: 0,
            clock: Clock::default(),
            doubtful: None,
            unknown_links: 0,
            unknown_link: 0,
        }
    }

    /// Sets the key log with which connections of TLS are read.
    pub fn with_keys(mut self, keys: Option<Arc<KeyLog>>) -> Self {
        self.capture.keys = keys.as_ref().map(|_| KeyReport::default());
        let left_out = keys.as_ref().and_then(|keys| keys.left_out());
        self.capture.warnings.extend(left_out.map(|sentence| format!("key log: {sentence}")));
        self.shard.diagnosis.keys = keys;
        self
    }

    /// Returns the key log.
    pub const fn keys(&self) -> Option<&Arc<KeyLog>> {
        self.shard.diagnosis.keys.as_ref()
    }

    /// Adds the lines of a key log that the capture has before the next packet.
    pub fn read_secrets(&mut self, text: &[u8]) {
        self.capture.keys.get_or_insert_default();
        self.shard.read_secrets(text);
    }

    /// Handles the next packet.
    pub fn handle(&mut self, frame: &Frame<'_>) {
        match self.clock.read(frame.at) {
            Verdict::Good { doubtful } => {
                self.settle_doubtful(doubtful);
                self.pass(frame);
            }
            Verdict::Doubtful { before } => {
                self.settle_doubtful(before);
                self.doubtful = Some(Box::new(DoubtfulPacket::new(frame)));
            }
        }
    }

    fn settle_doubtful(&mut self, at: Option<Time>) {
        if let (Some(at), Some(doubtful)) = (at, self.doubtful.take()) {
            self.pass(&doubtful.frame(at));
        }
    }

    /// Diagnoses a packet whose time is valid.
    fn pass(&mut self, frame: &Frame<'_>) {
        if self.is_empty() {
            let keys = self.keys().cloned();
            self.shard = Shard::new(self.options(frame.at));
            self.shard.diagnosis.keys = keys;
        }
        self.counts(frame);
        self.shard.handle(frame);
        while let Some(flow) = self.shard.poll() {
            self.take(flow);
        }
    }

    /// Returns the options of a capture that begins at `started`.
    pub fn options(&self, started: Time) -> Options {
        Options { is_plotted: self.is_plotted, since: self.filter.from(started) }
    }

    /// Counts a packet whose time is valid.
    pub fn counts(&mut self, frame: &Frame<'_>) {
        if self.is_empty() {
            self.capture.started = frame.at;
        }
        self.capture.packets += 1;
        if let LinkType::Other(number) = frame.link {
            (self.unknown_links, self.unknown_link) = (self.unknown_links + 1, number);
        }
    }

    /// Returns whether there was no packet yet.
    pub const fn is_empty(&self) -> bool {
        self.capture.packets == 0
    }

    /// Finishes the capture.
    pub fn finish(mut self) -> Capture {
        let last = self.clock.end();
        self.settle_doubtful(last);
        let mut shard = std::mem::take(&mut self.shard);
        shard.diagnosis.end();
        while let Some(flow) = shard.poll() {
            self.take(flow);
        }
        self.finish_with(&[shard])
    }

    /// Finishes the capture with the counts of its shards, whose reports were taken.
    pub fn finish_with(self, shards: &[Shard]) -> Capture {
        let Self { mut capture, quiet, clock, unknown_links, unknown_link, .. } = self;
        capture.flows.sort_by_key(|flow| (flow.started, flow.first_packet));
        weigh_shared_links(&mut capture.flows);
        find_alternatives(&mut capture.flows);
        let (mut evicted, mut beyond) = (0, 0);
        for shard in shards {
            capture.skipped.merge(&shard.skipped);
            capture.unreadable += shard.unreadable;
            let totals = shard.diagnosis.totals();
            (evicted, beyond) = (evicted + totals.evicted, beyond + totals.beyond);
        }
        let unlisted = quiet.saturating_sub(MAX_QUIET);
        let warnings = [
            (unlisted, "connection", "without findings not listed; the time is counted"),
            (evicted, "silent connection", "diagnosed before the end: more were open than are tracked"),
            (beyond, "packet", "of connections not diagnosed: more were active at once than are tracked"),
            (
                clock.steps(),
                "packet",
                "a day or more away from the one before: a clock was set, or captures were merged; the time between \
                 is unknown",
            ),
            (
                clock.implausible(),
                "packet",
                "with an absurd time, taken as simultaneous with the packet before",
            ),
            (capture.unreadable, "packet", "with unreadable headers left out"),
        ];
        let reported = warnings.into_iter().filter(|(count, _, _)| *count > 0);
        capture.warnings.extend(reported.map(|(count, of, why)| format!("{} {why}", counted(count, of))));
        if unknown_links > 0 {
            capture.warnings.push(format!(
                "packets of a kind of link that is not read (number {unknown_link}): {unknown_links}; capture on Ethernet, \
                 raw IP, Linux's cooked, loopback, NFLOG or PPP"
            ));
        }
        capture
    }

    /// Adds a finished connection, as far as it is selected and not too much.
    pub fn take(&mut self, mut flow: FlowReport) {
        let capture = &mut self.capture;
        capture.connections += 1;
        if !self.filter.selects(&flow, capture.started) {
            return;
        }
        capture.selected += 1;
        if let Some(used) = flow.keys {
            capture.keys.get_or_insert_default().add(used);
        }
        if !self.filter.has_cause(&flow) {
            return;
        }
        self.filter.narrow(&mut flow);
        if capture.flows.len() >= MANY_FLOWS {
            retain_worst(&mut flow);
        }
        self.quiet += u64::from(flow.findings.is_empty());
        if flow.findings.is_empty() && self.quiet > MAX_QUIET {
            if !flow.is_within_dialogue {
                capture.left_out.merge(&flow.account);
            }
        } else {
            capture.flows.push(flow);
        }
    }
}

fn retain_worst(flow: &mut FlowReport) {
    flow.findings.sort_by_key(|finding| (finding.cause, std::cmp::Reverse(finding.lost)));
    let mut retained: Vec<(Cause, usize)> = Vec::new();
    flow.findings.retain(|finding| match retained.last_mut() {
        Some((cause, count)) if *cause == finding.cause => {
            *count += 1;
            *count <= WORST
        }
        Some(_) | None => {
            retained.push((finding.cause, 1));
            true
        }
    });
    flow.findings.sort_by_key(|finding| (finding.at, finding.cause));
    flow.findings.shrink_to_fit();
}
