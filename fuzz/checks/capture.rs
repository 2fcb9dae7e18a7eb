//! What must hold when any bytes are read as a capture and diagnosed: reading ends, whatever is found lies within its
//! connection, and all time is accounted for. Not a generator: the bytes are a file.

use diagnose::{Diagnosis, Options, Seen};
use trace::capture::Reader;
use wire::packet::Packet;

/// Panics if something does not hold for these bytes.
pub(crate) fn check(bytes: &[u8]) {
    let mut reader = match Reader::new(bytes) {
        Ok(reader) => reader,
        Err(reason) => {
            assert!(!reason.to_string().is_empty());
            return;
        }
    };
    let mut diagnosis = Diagnosis::new(Options { is_plotted: true });
    let mut frames = 0;
    while let Ok(Some(frame)) = reader.read() {
        frames += 1;
        assert_eq!(frame.number, frames);
        if let Some(Ok(packet)) = frame.ip().map(Packet::read) {
            let seen = Seen { frame: frame.number, interface: frame.interface };
            diagnosis.handle(frame.at, seen, &packet);
        }
        // Every packet has a header, so there are no more of them than that.
        assert!(frames <= bytes.len() as u64 / 12);
    }
    assert!(matches!(reader.read(), Ok(None)), "after the end, or an error, there is nothing");
    diagnosis.end();
    while let Some(flow) = diagnosis.poll() {
        assert_eq!(flow.account.total(), flow.elapsed);
        assert!(flow.packets <= frames && flow.packets > 0);
        for finding in &flow.findings {
            assert!(finding.lost <= flow.elapsed && finding.at >= flow.started);
            assert!(!finding.evidence.is_empty());
            assert!(finding.packets.iter().all(|packet| (1..=frames).contains(packet)));
        }
        assert!(flow.plot.is_some_and(|plot| plot.points.len() as u64 <= flow.packets));
    }
}
