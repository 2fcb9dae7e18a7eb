//! Wi-Fi frames as monitor mode captures them: IEEE 802.11, and the radiotap header before it.
//!
//! Encrypted frames, aggregates (A-MSDU) and frames without data have no IP packet here.

use super::{half, llc, word};

/// Returns the IP packet of an IEEE 802.11 frame.
pub(super) fn ip(frame: &[u8]) -> Option<&[u8]> {
    after_header(frame, false)
}

/// Returns the IP packet of a frame behind a radiotap header (<https://www.radiotap.org>).
pub(super) fn radiotap(frame: &[u8]) -> Option<&[u8]> {
    let length = usize::from(half(frame, 2)?.swap_bytes());
    after_header(frame.get(length..)?, is_padded(frame).unwrap_or_default())
}

/// Returns the IP packet after the header of IEEE 802.11 (section 9.2.4), which some cards pad to four bytes.
fn after_header(frame: &[u8], is_padded: bool) -> Option<&[u8]> {
    const TYPE: u8 = 0x0c;
    const DATA: u8 = 0x08;
    // Subtypes: without data, and with a QoS field.
    const NULL: u8 = 0x40;
    const QOS: u8 = 0x80;
    // Flags: to and from the distribution system, protected, and with an HT Control field.
    const BOTH: u8 = 0x03;
    const PROTECTED: u8 = 0x40;
    const ORDER: u8 = 0x80;
    /// In the QoS field: an A-MSDU.
    const AGGREGATE: u8 = 0x80;
    let [control, flags, ..] = *frame else { return None };
    if control & TYPE != DATA || control & NULL != 0 || flags & PROTECTED != 0 {
        return None;
    }
    let mut length = if flags & BOTH == BOTH { 30 } else { 24 };
    if control & QOS != 0 {
        if frame.get(length)? & AGGREGATE != 0 {
            return None;
        }
        length += if flags & ORDER != 0 { 6 } else { 2 };
    }
    llc(frame.get(if is_padded { length.next_multiple_of(4) } else { length }..)?)
}

/// Returns whether the radiotap flags announce padding after the frame's header; `None` without these flags.
fn is_padded(frame: &[u8]) -> Option<bool> {
    const TIMER: usize = 1;
    const FLAGS: usize = 1 << 1;
    const MORE: usize = 1 << 31;
    const PADDED: u8 = 0x20;
    let first = word(frame, 4, u32::from_le_bytes)?;
    let (mut present, mut at) = (first, 8);
    while present & MORE != 0 {
        present = word(frame, at, u32::from_le_bytes)?;
        at += 4;
    }
    if first & TIMER != 0 {
        at = at.next_multiple_of(8) + 8;
    }
    (first & FLAGS != 0).then(|| frame.get(at).map(|flags| flags & PADDED != 0)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const IP: &[u8] = &[0x45, 1, 2, 3];

    /// Returns a data frame with this control, these flags and this header length.
    fn frame(control: u8, flags: u8, header: usize) -> Vec<u8> {
        let mut frame = vec![0; header];
        (frame[0], frame[1]) = (control, flags);
        [&frame[..], &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], IP].concat()
    }

    #[test]
    fn packet_is_found_behind_headers_of_every_length() {
        for (control, flags, header) in
            [(0x08, 0x01, 24), (0x08, 0x03, 30), (0x88, 0x02, 26), (0x88, 0x03, 32), (0x88, 0x82, 30)]
        {
            assert_eq!(ip(&frame(control, flags, header)), Some(IP), "{control:#x} {flags:#x}");
        }
    }

    #[test]
    fn encrypted_aggregated_and_empty_frames_have_no_packet() {
        let mut aggregate = frame(0x88, 0, 26);
        aggregate[24] = 0x80;
        let others = [frame(0x08, 0x41, 24), frame(0x48, 1, 24), frame(0x80, 0, 24), aggregate];
        assert!(others.iter().all(|frame| ip(frame).is_none()));
    }

    #[test]
    fn radiotap_header_is_skipped_with_its_padding() {
        // Timer, flags, and a second word of present fields.
        let header = |flags: u8| [&[0, 0, 25, 0, 3, 0, 0, 0x80, 0, 0, 0, 0][..], &[0; 12], &[flags]].concat();
        assert_eq!(radiotap(&[header(0x10), frame(0x88, 0, 26)].concat()), Some(IP));
        assert_eq!(radiotap(&[header(0x20), frame(0x88, 0, 28)].concat()), Some(IP));
        for length in 0..60 {
            let _ = radiotap(&[header(0x20), frame(0x88, 0, 28)].concat()[..length]);
        }
    }
}
