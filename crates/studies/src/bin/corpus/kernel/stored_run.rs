//! A stored run: a capture at each vantage point as pcapng, which any program reads, and a file with the true causes.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

use diagnose::{Diagnosis, FlowReport, Options, PacketPosition};
use packets::Reader;
use packets::writer::{self, Writer};
use testbed::emulator::{Capture, Observation as SeenAt};
use trace::{Cause, Stall};
use wire::packet::Packet;
use wire::{Duration, Time};

use super::Run;
use super::cases::Case;
use super::hosts::reported;
use super::truth::{self, Truth};
use super::watch::Frame;
use crate::judge::Pause;
use crate::vantage::Vantage;

/// Stored run.
pub(crate) struct StoredRun {
    pub(crate) number: usize,
    pub(crate) name: String,
    pub(crate) rtt_ms: f64,
    pub(crate) truth: Truth,
    /// Captures in the order of [`Vantage::ALL`].
    pub(crate) captures: Vec<Vec<u8>>,
}

/// Whether a capture is truncated to 68 bytes per packet: a quarter of them are.
pub(crate) const fn is_cut(number: usize, vantage_index: usize) -> bool {
    (number / 4 + number + vantage_index) % 4 == 1
}

impl StoredRun {
    pub(crate) fn of(number: usize, case: &Case, run: &Run) -> Self {
        let capture = |(vantage_index, vantage): (usize, &Vantage)| {
            let frames = match vantage {
                Vantage::Client => run.frames[0].clone(),
                Vantage::Server => run.frames[1].clone(),
                Vantage::Middle => mid_path(&run.capture, case.rtt / 2),
            };
            to_pcapng(&frames, is_cut(number, vantage_index)).expect("there is memory")
        };
        let captures = Vantage::ALL.iter().enumerate().map(capture).collect();
        let (name, rtt_ms) = (case.name.clone(), case.rtt.as_millis_f64());
        Self { number, name, rtt_ms, truth: truth::of(case, run), captures }
    }

    /// Findings in one of its captures.
    pub(crate) fn found(&self, vantage_index: usize) -> Vec<FlowReport> {
        let mut reader =
            Reader::new(self.captures[vantage_index].as_slice()).expect("it was written as a capture");
        let mut diagnosis = Diagnosis::new(Options::default());
        while let Some(frame) = reader.read().expect("it is whole") {
            let packet = Packet::read(frame.ip().expect("it is IP")).expect("the kernel's packets are whole");
            diagnosis.handle(
                frame.at,
                PacketPosition { frame: frame.number, interface: frame.interface },
                &packet,
            );
        }
        diagnosis.end();
        std::iter::from_fn(|| diagnosis.poll()).collect()
    }

    pub(crate) fn save(&self, directory: &Path) -> io::Result<()> {
        let Self { number, name, rtt_ms, truth, captures } = self;
        for (vantage, capture) in Vantage::ALL.iter().zip(captures) {
            fs::write(directory.join(format!("{number}-{}.pcapng", vantage.name())), capture)?;
        }
        let Truth { began, elapsed_ms, stalls, repairs, unexplained, unwatched } = truth;
        let mut text = format!("run,{name},{rtt_ms},{},{elapsed_ms}\n", began.as_nanos());
        for (kind, stalls) in [("stall", stalls), ("repair", repairs)] {
            for Stall { cause, at_ms, lost_ms } in stalls {
                let _ = writeln!(text, "{kind},{cause},{at_ms},{lost_ms}");
            }
        }
        for (kind, pauses) in [("unexplained", unexplained), ("unwatched", unwatched)] {
            for Pause { at_ms, lost_ms } in pauses {
                let _ = writeln!(text, "{kind},{kind},{at_ms},{lost_ms}");
            }
        }
        fs::write(directory.join(format!("{number}.csv")), text)
    }

    /// Reads a run; `None` if it does not exist.
    pub(crate) fn load(directory: &Path, number: usize) -> Result<Option<Self>, String> {
        let Ok(text) = fs::read_to_string(directory.join(format!("{number}.csv"))) else { return Ok(None) };
        let mut stored =
            Self { number, name: String::new(), rtt_ms: 0.0, truth: Truth::default(), captures: Vec::new() };
        for line in text.lines() {
            stored
                .line(&line.split(',').collect::<Vec<_>>())
                .ok_or_else(|| format!("{number}.csv: invalid line: {line}"))?;
        }
        for vantage in Vantage::ALL {
            let capture =
                fs::read(directory.join(format!("{number}-{}.pcapng", vantage.name()))).map_err(reported)?;
            stored.captures.push(capture);
        }
        Ok(Some(stored))
    }

    fn line(&mut self, fields: &[&str]) -> Option<()> {
        match fields {
            ["run", name, rtt_ms, began, elapsed_ms] => {
                (self.name, self.rtt_ms) = ((*name).to_owned(), rtt_ms.parse().ok()?);
                self.truth.began = Time::from_nanos(began.parse().ok()?);
                self.truth.elapsed_ms = elapsed_ms.parse().ok()?;
            }
            [kind, cause, at_ms, lost_ms] => {
                let (at_ms, lost_ms) = (at_ms.parse().ok()?, lost_ms.parse().ok()?);
                let stall = || Some(Stall { cause: Cause::by_name(cause)?, at_ms, lost_ms });
                match *kind {
                    "stall" => self.truth.stalls.push(stall()?),
                    "repair" => self.truth.repairs.push(stall()?),
                    "unexplained" => self.truth.unexplained.push(Pause { at_ms, lost_ms }),
                    "unwatched" => self.truth.unwatched.push(Pause { at_ms, lost_ms }),
                    _ => return None,
                }
            }
            _ => return None,
        }
        Some(())
    }
}

fn to_pcapng(frames: &[Frame], is_cut: bool) -> io::Result<Vec<u8>> {
    /// 68 bytes without the 14 of Ethernet.
    const CUT: usize = 54;
    let mut writer = Writer::new(Vec::new(), "roundtrip", None)?;
    let interface = writer.interface("card")?;
    for Frame { at, bytes } in frames {
        let stored = if is_cut { bytes.get(..CUT).unwrap_or(bytes) } else { bytes };
        writer.packet(&writer::Packet {
            interface,
            at: at.since(Time::ZERO),
            bytes: stored,
            original_length: bytes.len(),
            comment: None,
        })?;
    }
    writer.finish()
}

/// Returns each packet halfway along the path, after the link's queue; every second lost packet is lost after that point.
fn mid_path(capture: &Capture, one_way_delay: Duration) -> Vec<Frame> {
    let mut lost = 0_u32;
    let mut frames: Vec<Frame> = Vec::new();
    for (at, _, seen, bytes) in capture.iter() {
        let at = match seen {
            SeenAt::Sent | SeenAt::Dropped => continue,
            SeenAt::Delivered => Time::ZERO + (at.since(Time::ZERO) - one_way_delay / 2),
            SeenAt::Lost => {
                lost += 1;
                if lost.is_multiple_of(2) {
                    continue;
                }
                at + one_way_delay / 2
            }
        };
        frames.push(Frame { at, bytes: bytes.to_vec() });
    }
    frames.sort_by_key(|frame| frame.at);
    frames
}
