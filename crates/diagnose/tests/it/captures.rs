//! Real captures with labelled stalls: each must be found where it is, and none elsewhere.
//!
//! The captures are not part of the project: `ROUNDTRIP_CAPTURES` names their directory, and without it these tests
//! print that they were skipped. The labels are `labels.tsv` there.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use diagnose::{Cause, Diagnosis, Finding, FlowReport, Options, PacketPosition};
use flate2::read::MultiGzDecoder;
use packets::{Reader, tunnel};
use ruzstd::decoding::StreamingDecoder;
use wire::Duration;
use wire::packet::Packet;

#[test]
fn every_labelled_stall_is_found_in_its_place() {
    let Some(directory) = directory() else { return };
    let labels = fs::read_to_string(directory.join("labels.tsv")).unwrap();
    let mut missed = Vec::new();
    for line in labels.lines().skip(1) {
        let cells: Vec<&str> = line.split('\t').collect();
        let [file, _stream, from, to, duration, label, ..] = cells[..] else { panic!("{line}") };
        let Some(causes) = causes(label) else { continue };
        let (from, to): (u64, u64) = (from.parse().unwrap(), to.parse().unwrap());
        let labelled: f64 = duration.parse().unwrap();
        let flows = diagnosed(&directory.join(file));
        let fits = |finding: &&Finding| {
            let lost = finding.lost.as_millis_f64();
            causes.contains(&finding.cause)
                && finding.packets.iter().any(|packet| (from..=to).contains(packet))
                && (lost - labelled).abs() <= (labelled / 10.0).max(1.0)
        };
        let found = flows.iter().flat_map(|flow| &flow.findings).find(fits);
        // A handshake is a round trip wherever it was captured; it is identified by its packets alone.
        if found.is_none() {
            missed.push(line.to_owned());
        }
    }
    assert!(missed.is_empty(), "not found:\n{}", missed.join("\n"));
}

#[test]
fn duplicate_captures_are_no_retransmissions() {
    let Some(directory) = directory() else { return };
    let flows = diagnosed(&directory.join("tcptrace__hardware_dups.dmp.gz"));
    let losses = [Cause::RetransmissionTimeout, Cause::FastRetransmit, Cause::TailLossProbe];
    assert!(flows[0].counts.iter().all(|count| !losses.contains(&count.cause)), "{:?}", flows[0].counts);
    assert_eq!(flows[0].oddities.captured_twice, 486);
}

#[test]
fn an_idle_connection_is_no_stall() {
    let Some(directory) = directory() else { return };
    let flows = diagnosed(&directory.join("zeek__pipelined-requests.pcap"));
    let longest = flows[0].findings.iter().map(|finding| finding.lost).max();
    assert!(longest < Some(Duration::from_secs(1)), "{longest:?}");
}

#[test]
fn contradictory_and_disordered_segments_are_read_without_a_stall() {
    let Some(directory) = directory() else { return };
    for file in ["wireshark__http-ooo.pcap", "wireshark__tcp-badsegments.pcap"] {
        for flow in diagnosed(&directory.join(file)) {
            assert_eq!(flow.findings.len(), 0, "{file}: {:?}", flow.findings);
        }
    }
}

#[test]
fn every_nanosecond_of_every_capture_is_accounted_for() {
    let Some(directory) = directory() else { return };
    for entry in fs::read_dir(&directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "tsv" || ending == "md") {
            continue;
        }
        for flow in diagnosed(&path) {
            assert_eq!(flow.account.total(), flow.elapsed, "{}", path.display());
        }
    }
}

/// Returns the causes that match a label; `None` for a label that is not a stall.
fn causes(label: &str) -> Option<&'static [Cause]> {
    Some(match label {
        "handshake_rtt" => &[Cause::ConnectionSetup],
        "client_think" => &[Cause::ClientThink],
        "server_think" => &[Cause::ServerThink],
        "rto" | "rto_backoff" => &[Cause::RetransmissionTimeout],
        "zero_window" => &[Cause::ZeroWindow],
        "slow_start_round" => &[Cause::SlowStart],
        "expect_100_continue" => &[Cause::ExpectContinue],
        "nagle_x_delayed_ack" => &[Cause::NagleDelayedAck],
        "NEGATIVE" | "idle_keepalive" => return None,
        other => panic!("a label that is not known: {other}"),
    })
}

fn directory() -> Option<PathBuf> {
    let directory = std::env::var_os("ROUNDTRIP_CAPTURES").map(PathBuf::from);
    if directory.is_none() {
        skip::report_skip("ROUNDTRIP_CAPTURES names no directory of labelled captures");
    }
    directory
}

fn diagnosed(path: &Path) -> Vec<FlowReport> {
    let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut plain = Vec::new();
    match bytes.as_slice() {
        [0x1f, 0x8b, ..] => {
            MultiGzDecoder::new(bytes.as_slice()).read_to_end(&mut plain).unwrap();
        }
        [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            StreamingDecoder::new(bytes.as_slice()).unwrap().read_to_end(&mut plain).unwrap();
        }
        _ => plain = bytes,
    }
    let mut reader = Reader::new(plain.as_slice()).unwrap();
    let mut diagnosis = Diagnosis::new(Options::default());
    // A truncated or damaged capture is read up to the damage.
    while let Ok(Some(frame)) = reader.read() {
        if let Some(Ok(packet)) = frame.ip().map(Packet::read) {
            let (packet, _) = tunnel::innermost(packet);
            let seen = PacketPosition { frame: frame.number, interface: frame.interface };
            diagnosis.handle(frame.at, seen, &packet);
        }
    }
    diagnosis.end();
    std::iter::from_fn(|| diagnosis.poll()).collect()
}
