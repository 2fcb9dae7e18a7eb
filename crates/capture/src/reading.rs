//! Packet-by-packet diagnosis: the caller passes packets, and gets a [`Capture`] at the end.
//!
//! Not a reader of files or interfaces: those are `trace::capture` and `capture::sniffer`. Finished connections are
//! taken out of the diagnosis as they close, and with many connections less of each is retained: memory does not grow
//! with the packets.

use diagnose::table::Totals;
use diagnose::{Account, Cause, Diagnosis, FlowReport, Options, PacketPosition};
use trace::capture::clock::{Clock, Verdict};
use trace::capture::{Frame, LinkType, tunnel};
use wire::Time;
use wire::packet::Packet;

use crate::Capture;
use crate::filter::Filter;
use crate::kernel::KernelStats;
use crate::skipped::SkippedPackets;

/// A diagnosis in progress.
pub struct CaptureReader<'a> {
    capture: Capture,
    diagnosis: Diagnosis,
    filter: &'a Filter,
    is_plotted: bool,
    quiet: u64,
    clock: Clock,
    /// A packet whose time is in doubt until the next one arrives.
    doubtful: Option<Box<DoubtfulPacket>>,
    /// Number of packets of an unsupported link type, and that type.
    unknown_links: u64,
    unknown_link: u32,
}

/// A packet held until the next one.
struct DoubtfulPacket {
    number: u64,
    interface: u32,
    link: LinkType,
    bytes: Vec<u8>,
}

/// Number of connections from which on fewer findings of each are listed ...
const MANY_FLOWS: usize = 1_000;
/// ... namely this many of each cause.
const WORST: usize = 4;
/// Maximum number of listed connections without findings.
const MAX_QUIET: u64 = 20_000;

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
            left_out: Account::default(),
            watched: None,
            command: None,
            kernel: KernelStats::default(),
            damage: None,
            skipped: SkippedPackets::default(),
            warnings: Vec::new(),
        };
        Self {
            capture,
            diagnosis: Diagnosis::default(),
            filter,
            is_plotted,
            quiet: 0,
            clock: Clock::default(),
            doubtful: None,
            unknown_links: 0,
            unknown_link: 0,
        }
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
                let Frame { number, at: _, interface, link, bytes } = *frame;
                self.doubtful =
                    Some(Box::new(DoubtfulPacket { number, interface, link, bytes: bytes.to_vec() }));
            }
        }
    }

    fn settle_doubtful(&mut self, at: Option<Time>) {
        if let (Some(at), Some(doubtful)) = (at, self.doubtful.take()) {
            let DoubtfulPacket { number, interface, link, bytes } = *doubtful;
            self.pass(&Frame { number, at, interface, link, bytes: &bytes });
        }
    }

    /// Diagnoses a packet whose time is valid.
    fn pass(&mut self, frame: &Frame<'_>) {
        if self.is_empty() {
            self.capture.started = frame.at;
            let since = self.filter.from(frame.at);
            self.diagnosis = Diagnosis::new(Options { is_plotted: self.is_plotted, since });
        }
        self.capture.packets += 1;
        if let LinkType::Other(number) = frame.link {
            (self.unknown_links, self.unknown_link) = (self.unknown_links + 1, number);
        }
        match frame.ip().map(Packet::read) {
            Some(Ok(packet)) => self.packet(frame, packet),
            Some(Err(_)) => self.capture.unreadable += 1,
            None => self.capture.skipped.frame(frame.link.content(frame.bytes)),
        }
        self.take();
    }

    fn packet(&mut self, frame: &Frame<'_>, packet: Packet<'_>) {
        let (packet, outermost) = tunnel::innermost(packet);
        let before = self.diagnosis.totals().followed();
        let seen = PacketPosition { frame: frame.number, interface: frame.interface };
        self.diagnosis.handle(frame.at, seen, &packet);
        if self.diagnosis.totals().followed() == before {
            self.capture.skipped.packet(&packet);
        } else if let Some(tunnel) = outermost {
            self.capture.skipped.unwrapped(tunnel);
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
        self.diagnosis.end();
        self.take();
        let Self { mut capture, diagnosis, quiet, clock, unknown_links, unknown_link, .. } = self;
        capture.flows.sort_by_key(|flow| (flow.started, flow.first_packet));
        let Totals { evicted, beyond, .. } = diagnosis.totals();
        let unlisted = quiet.saturating_sub(MAX_QUIET);
        let warnings = [
            (
                unlisted,
                "connections without findings that are not listed",
                "there are too many; their time is counted",
            ),
            (
                evicted,
                "silent connections that were diagnosed before their end",
                "more connections were open than are tracked",
            ),
            (
                beyond,
                "packets of connections that are not diagnosed",
                "more connections were active at once than are tracked",
            ),
            (
                clock.steps(),
                "packets a day or more away from the one before them",
                "a clock was set, or captures were merged; what lies across is unknown",
            ),
            (
                clock.implausible(),
                "packets with an absurd time",
                "each is taken as simultaneous with the packet before it",
            ),
            (capture.unreadable, "packets whose headers cannot be read", "they are left out"),
        ];
        let reported = warnings.into_iter().filter(|(count, _, _)| *count > 0);
        capture.warnings.extend(reported.map(|(count, what, why)| format!("{what}: {count}; {why}")));
        if unknown_links > 0 {
            capture.warnings.push(format!(
                "packets of a kind of link that is not read (number {unknown_link}): {unknown_links}; capture on Ethernet, \
                 raw IP, Linux's cooked, loopback, NFLOG or PPP"
            ));
        }
        capture
    }

    fn take(&mut self) {
        while let Some(mut flow) = self.diagnosis.poll() {
            let capture = &mut self.capture;
            capture.connections += 1;
            if !self.filter.wants(&flow, capture.started) {
                continue;
            }
            self.filter.narrow(&mut flow);
            if capture.flows.len() >= MANY_FLOWS {
                keep_the_worst(&mut flow);
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
}

fn keep_the_worst(flow: &mut FlowReport) {
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
