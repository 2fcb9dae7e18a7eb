//! Diagnoses a capture as any program may that depends on `roundtrip-diagnose`, `roundtrip-trace` and `roundtrip-wire`:
//! `cargo run -p roundtrip-diagnose --example diagnose_capture -- slow.pcapng`.
//!
//! Not the command line's `diagnose`: it has no decompression, no correction of clock jumps, no kernel counters.

use std::error::Error;
use std::fs::File;

use packets::{Reader, tunnel};
use roundtrip_diagnose::{Diagnosis, FlowReport, Options, PacketPosition};
use wire::packet::Packet;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("name a capture: a pcap or pcapng file")?;
    let mut capture = Reader::new(File::open(path)?)?;
    let mut diagnosis = Diagnosis::new(Options::default());
    while let Some(frame) = capture.read()? {
        if let Some(Ok(packet)) = frame.ip().map(Packet::read) {
            let seen = PacketPosition { frame: frame.number, interface: frame.interface };
            diagnosis.handle(frame.at, seen, &tunnel::innermost(packet).0);
            print(diagnosis.poll());
        }
    }
    diagnosis.end();
    while let Some(report) = diagnosis.poll() {
        print(Some(report));
    }
    println!("{} packets", diagnosis.totals().packets);
    Ok(())
}

fn print(report: Option<FlowReport>) {
    let Some(report) = report else { return };
    println!("{} to {}: {}", report.client, report.server, report.elapsed);
    for finding in &report.findings {
        println!("  {}, {} lost: {}", finding.cause.name(), finding.lost, finding.evidence);
    }
}
