//! Captures, diagnosed: files in, a value that every output shows.
//!
//! | module | what it holds |
//! | --- | --- |
//! | (here) | [`Capture`]: one file, read and diagnosed |
//! | [`open`] | files, pipes, compressed or not |
//! | [`filter`] | what is asked for of it |
//! | [`advice`] | fixes, by who can make them |
//! | [`text`] | for a person, at night |
//! | [`json`], [`csv`] | for programs |
//! | [`page`] | one HTML file |
//! | [`sequence`] | time-sequence plots as SVG |
//! | [`xpl`] | the same for xplot |
//!
//! Not the diagnosis itself: that is the crate `diagnose`.

pub mod advice;
pub mod csv;
pub mod filter;
pub mod json;
pub mod open;
pub mod page;
pub mod sequence;
pub mod text;
pub mod xpl;

use std::path::Path;

use ::diagnose::{Account, Cause, Diagnosis, FlowReport, Options, Seen};
use trace::capture::{Reader, Unreadable};
use wire::Time;
use wire::packet::Packet;

use crate::failure::Failure;

use filter::Filter;

/// One capture, diagnosed.
#[derive(Debug)]
pub struct Capture {
    /// The file, as it was named.
    pub name: String,
    /// Packets of all kinds.
    pub packets: u64,
    /// IP packets that could not be read.
    pub unreadable: u64,
    /// When the first was captured.
    pub started: Time,
    /// The connections, as far as they were asked for.
    pub flows: Vec<FlowReport>,
    /// How many there were.
    pub connections: u64,
    /// Where the time went of those without findings that are too many to be kept.
    left_out: Account,
    quiet: u64,
    /// What is wrong with the file, from some packet on.
    pub damage: Option<String>,
    /// What there was too much of to be kept.
    pub warnings: Vec<String>,
}

/// In captures of more connections, fewer findings of each are listed ...
const MANY_FLOWS: usize = 1_000;
/// ... namely so many of each cause.
const WORST: usize = 4;

fn keep_the_worst(flow: &mut FlowReport) {
    flow.findings.sort_by_key(|finding| (finding.cause, std::cmp::Reverse(finding.lost)));
    let mut kept: Vec<(Cause, usize)> = Vec::new();
    flow.findings.retain(|finding| match kept.last_mut() {
        Some((cause, count)) if *cause == finding.cause => {
            *count += 1;
            *count <= WORST
        }
        Some(_) | None => {
            kept.push((finding.cause, 1));
            true
        }
    });
    flow.findings.sort_by_key(|finding| (finding.at, finding.cause));
    flow.findings.shrink_to_fit();
}

/// Connections in which nothing was found are listed up to this many.
const MOST_QUIET: u64 = 20_000;

impl Capture {
    /// Reads the file `path` (or standard input, `-`) to its end, or to where it is damaged.
    pub fn read(path: &Path, filter: &Filter, options: Options) -> Result<Self, Failure> {
        let name = path.display().to_string();
        let unreadable = |error: Unreadable| match error {
            Unreadable::Io(error) => Failure::Read { path: path.to_owned(), error },
            other => Failure::Value(format!("{name}: {other}")),
        };
        let source = open::open(path).map_err(|error| Failure::Read { path: path.to_owned(), error })?;
        let mut reader = Reader::new(source).map_err(unreadable)?;
        let mut capture = Self {
            name: name.clone(),
            packets: 0,
            unreadable: 0,
            started: Time::ZERO,
            flows: Vec::new(),
            connections: 0,
            left_out: Account::default(),
            quiet: 0,
            damage: None,
            warnings: Vec::new(),
        };
        let mut diagnosis = Diagnosis::new(options);
        loop {
            match reader.read() {
                Ok(Some(frame)) => {
                    if capture.packets == 0 {
                        capture.started = frame.at;
                    }
                    capture.packets += 1;
                    match frame.ip().map(Packet::read) {
                        Some(Ok(packet)) => {
                            let seen = Seen { frame: frame.number, interface: frame.interface };
                            diagnosis.handle(frame.at, seen, &packet);
                        }
                        Some(Err(_)) => capture.unreadable += 1,
                        None => {}
                    }
                }
                Ok(None) => break,
                Err(error) if capture.packets == 0 => return Err(unreadable(error)),
                Err(error) => {
                    capture.damage = Some(error.to_string());
                    break;
                }
            }
            capture.take(&mut diagnosis, filter);
        }
        diagnosis.end();
        capture.take(&mut diagnosis, filter);
        capture.flows.sort_by_key(|flow| (flow.started, flow.first_packet));
        if capture.quiet > MOST_QUIET {
            let left_out = capture.quiet - MOST_QUIET;
            capture.warnings.push(format!(
                "{left_out} connections without findings are not listed: there are too many; their time is counted"
            ));
        }
        let evicted = diagnosis.totals().evicted;
        if evicted > 0 {
            capture.warnings.push(format!(
                "more connections at once than are kept: {evicted} silent ones were diagnosed before their end"
            ));
        }
        if capture.unreadable > 0 {
            let count = capture.unreadable;
            capture
                .warnings
                .push(format!("{count} packets have headers that cannot be read; they are left out"));
        }
        Ok(capture)
    }

    fn take(&mut self, diagnosis: &mut Diagnosis, filter: &Filter) {
        while let Some(mut flow) = diagnosis.poll() {
            self.connections += 1;
            if !filter.wants(&flow) {
                continue;
            }
            filter.narrow(&mut flow);
            if self.flows.len() >= MANY_FLOWS {
                keep_the_worst(&mut flow);
            }
            self.quiet += u64::from(flow.findings.is_empty());
            if flow.findings.is_empty() && self.quiet > MOST_QUIET {
                self.left_out.merge(&flow.account);
            } else {
                self.flows.push(flow);
            }
        }
    }

    /// Milliseconds since the first packet, as Wireshark shows them.
    pub fn millis(&self, at: Time) -> f64 {
        at.since(self.started).as_millis_f64()
    }

    /// All connections together.
    pub fn account(&self) -> Account {
        let mut all = self.left_out;
        self.flows.iter().for_each(|flow| all.merge(&flow.account));
        all
    }

    /// Whether something was found that is worth fixing.
    pub fn is_worth_fixing(&self) -> bool {
        self.flows.iter().any(FlowReport::is_worth_fixing)
    }
}
