//! Invariants for any bytes as a capture that is diagnosed: reading ends, every finding lies within its connection, and all
//! time is accounted for, from the beginning or from any time on. Not a generator: the bytes are a file.

use diagnose::report::Protocol;
use diagnose::{Diagnosis, FlowReport, Options, PacketPosition};
use packets::{Reader, tunnel};
use wire::packet::Packet;
use wire::{Duration, Time};

/// Panics if these bytes violate an invariant.
pub(crate) fn check(bytes: &[u8]) {
    match Reader::new(bytes) {
        Ok(_) => {}
        Err(reason) => {
            assert!(!reason.to_string().is_empty());
            return;
        }
    }
    let (frames, flows) = diagnosed(bytes, Time::ZERO);
    for flow in &flows {
        assert_eq!(flow.account.total(), flow.elapsed);
        assert!(flow.packets <= frames && flow.packets > 0);
        for finding in &flow.findings {
            assert!(finding.lost <= flow.elapsed && finding.at >= flow.started);
            assert!(!finding.evidence.is_empty());
            assert!(finding.packets.iter().all(|packet| (1..=frames).contains(packet)));
        }
        let is_tcp = flow.protocol == Protocol::Tcp;
        assert_eq!(flow.plot.is_some(), is_tcp);
        assert!(flow.plot.as_ref().is_none_or(|plot| plot.points.len() as u64 <= flow.packets));
    }
    let Some(first) = flows.first() else { return };
    let since = first.started + Duration::from_nanos(first.elapsed.as_nanos() / 2);
    for flow in diagnosed(bytes, since).1 {
        let end = flow.started + flow.elapsed;
        assert_eq!(flow.account.total(), flow.elapsed.min(end.since(since)));
        assert!(flow.findings.iter().all(|finding| finding.at + finding.lost > since));
    }
}

/// The connections, as far as they are later than `since`, and the number of packets.
fn diagnosed(bytes: &[u8], since: Time) -> (u64, Vec<FlowReport>) {
    let mut reader = Reader::new(bytes).expect("it was read before");
    let mut diagnosis = Diagnosis::new(Options { is_plotted: true, since });
    let mut frames = 0;
    while let Ok(Some(frame)) = reader.read() {
        frames += 1;
        assert_eq!(frame.number, frames);
        if let Some(Ok(packet)) = frame.ip().map(Packet::read) {
            let (packet, _) = tunnel::innermost(packet);
            let seen = PacketPosition { frame: frame.number, interface: frame.interface };
            diagnosis.handle(frame.at, seen, &packet);
        }
        // Every packet has a header, so there are no more of them than that.
        assert!(frames <= bytes.len() as u64 / 12);
    }
    assert!(matches!(reader.read(), Ok(None)), "after the end, or an error, there is nothing");
    diagnosis.end();
    (frames, std::iter::from_fn(|| diagnosis.poll()).collect())
}
