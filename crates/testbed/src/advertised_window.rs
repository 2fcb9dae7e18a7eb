//! Advertised window of a host of 1996, in place of Linux's: a shim between the link and the sender.
//!
//! It provides two things that no setting does. *A fixed buffer*: Linux adapts its window to the memory that
//! a byte takes, whatever the route or the socket is set to; here it never exceeds the profile's. *4.3BSD's
//! slow start*: Linux opens its congestion window by the number of segments that an ACK confirms, 4.3BSD by
//! one per ACK (`papers/heidemann-model#figure-3`: flights of 2, 3, 3, 6). So the advertised window is
//! reduced to what 4.3BSD's congestion window would be. A sender may have the smaller of the two in flight,
//! and Linux's own is never the smaller without loss.
//!
//! It is no congestion control: after a loss Linux's own window is the smaller, and applies. No clock, no socket.
//! Checksums are updated as in RFC 1624.

use std::collections::BTreeMap;

/// Reduces the windows in packets to one sender.
#[derive(Clone, Debug)]
pub struct AdvertisedWindow {
    /// Maximum window, bytes.
    largest: u16,
    slow_start: Option<SlowStart>,
    // Bounded by the number of port pairs: one entry per pair, reset by each SYN.
    connections: BTreeMap<Ports, Opening>,
}

/// 4.3BSD's slow start: one segment more for each ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowStart {
    /// Bytes in a full segment.
    pub mss: u32,
    /// Segments in the first flight.
    pub initial: u16,
}

/// Source and destination port, as encoded in the packet.
type Ports = [u8; 4];

/// Progress of one connection's slow start.
#[derive(Clone, Copy, Debug)]
struct Opening {
    /// Highest acknowledgement number so far.
    acknowledged: u32,
    /// Number of ACKs that confirmed new data.
    acks: u32,
}

impl AdvertisedWindow {
    /// Shim with a maximum of `largest` bytes, reduced further by slow start.
    pub const fn new(largest: u16, slow_start: Option<SlowStart>) -> Self {
        Self { largest, slow_start, connections: BTreeMap::new() }
    }

    /// Reduces the window of an IPv4 TCP packet that leaves the link; leaves every other packet unchanged.
    pub fn cut(&mut self, packet: &mut [u8]) {
        let Some(tcp) = tcp_of(packet) else { return };
        let Some((header, _)) = tcp.split_first_chunk_mut::<TCP_HEADER>() else { return };
        let [p0, p1, p2, p3, _, _, _, _, a0, a1, a2, a3, _, flags, w0, w1, c0, c1, _, _] = header;
        let acks = self.count([*p0, *p1, *p2, *p3], u32::from_be_bytes([*a0, *a1, *a2, *a3]), *flags);
        let limit = self.limit(acks);
        let advertised = u16::from_be_bytes([*w0, *w1]);
        if advertised > limit {
            [*w0, *w1] = limit.to_be_bytes();
            [*c0, *c1] = updated_checksum(u16::from_be_bytes([*c0, *c1]), advertised, limit).to_be_bytes();
        }
    }

    /// Number of ACKs that have confirmed new data, this one included.
    fn count(&mut self, ports: Ports, acknowledged: u32, flags: u8) -> u32 {
        if flags & SYN != 0 {
            self.connections.remove(&ports);
        }
        if flags & (SYN | ACK) == SYN {
            return 0;
        }
        // The first is the ACK of the SYN-ACK, or, where the sender opened the connection, the SYN-ACK: it
        // confirms no data.
        let opening = self.connections.entry(ports).or_insert(Opening { acknowledged, acks: 0 });
        if (1..1 << 31).contains(&acknowledged.wrapping_sub(opening.acknowledged)) {
            opening.acknowledged = acknowledged;
            opening.acks = opening.acks.saturating_add(1);
        }
        opening.acks
    }

    fn limit(&self, acks: u32) -> u16 {
        match self.slow_start {
            // Until data is acknowledged the sender's own initial window applies, and the advertised one
            // stays: Linux uses half of the largest window it saw as the upper limit of a segment.
            Some(SlowStart { mss, initial }) if acks > 0 => {
                let window = acks.saturating_add(u32::from(initial)).saturating_mul(mss);
                u16::try_from(window).unwrap_or(u16::MAX).min(self.largest)
            }
            Some(SlowStart { mss: _, initial: _ }) | None => self.largest,
        }
    }
}

/// The TCP segment of a whole IPv4 packet.
fn tcp_of(packet: &mut [u8]) -> Option<&mut [u8]> {
    const FRAGMENT: u16 = 0x3fff;
    let header: [u8; IPV4_HEADER] = *packet.first_chunk()?;
    let is_fragment = u16::from_be_bytes([header[6], header[7]]) & FRAGMENT != 0;
    let length = usize::from(header[0] & 0x0f) * 4;
    let is_whole_tcp = header[0] >> 4 == 4 && header[9] == TCP && !is_fragment && length >= IPV4_HEADER;
    if is_whole_tcp { packet.get_mut(length..) } else { None }
}

/// Checksum after 16 of the bits it covers have changed (RFC 1624, equation 3).
fn updated_checksum(checksum: u16, before: u16, after: u16) -> u16 {
    let sum = u32::from(!checksum) + u32::from(!before) + u32::from(after);
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    !u16::try_from(folded & 0xffff).expect("masked to 16 bits")
}

const IPV4_HEADER: usize = 20;
const TCP_HEADER: usize = 20;
const TCP: u8 = 6;
const SYN: u8 = 2;
const ACK: u8 = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BSD: Option<SlowStart> = Some(SlowStart { mss: 512, initial: 2 });
    const MAX_WINDOW: u16 = 16_384;
    const ADVERTISED: u16 = 20_000;

    /// A bare segment with a correct checksum over its own header (addresses are zero, so the pseudo-header
    /// is the protocol and the length).
    fn packet(flags: u8, acknowledged: u32) -> Vec<u8> {
        let mut packet = vec![0; IPV4_HEADER + TCP_HEADER];
        packet[0] = 0x45;
        packet[9] = TCP;
        packet[20..24].copy_from_slice(&[0x80, 0x01, 0, 80]);
        packet[28..32].copy_from_slice(&acknowledged.to_be_bytes());
        packet[32] = 5 << 4;
        packet[33] = flags;
        packet[34..36].copy_from_slice(&ADVERTISED.to_be_bytes());
        let checksum = !sum(&packet);
        packet[36..38].copy_from_slice(&checksum.to_be_bytes());
        packet
    }

    fn sum(packet: &[u8]) -> u16 {
        let pseudo = u32::from(TCP) + 20;
        let mut total =
            packet[20..].chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum::<u32>()
                + pseudo;
        while total > 0xffff {
            total = (total & 0xffff) + (total >> 16);
        }
        u16::try_from(total).unwrap()
    }

    fn window_after(window: &mut AdvertisedWindow, flags: u8, acknowledged: u32) -> u16 {
        let mut packet = packet(flags, acknowledged);
        window.cut(&mut packet);
        assert_eq!(sum(&packet), 0xffff, "the checksum is right again");
        u16::from_be_bytes([packet[34], packet[35]])
    }

    #[test]
    fn paper_figure_3_the_window_opens_by_one_segment_per_ack() {
        let mut window = AdvertisedWindow::new(16_384, BSD);
        let mut windows = Vec::new();
        window_after(&mut window, SYN, 0);
        // The handshake's ACK, the request, then ACKs of 2, 2, 2, 1, 2 segments, one of them twice.
        for acknowledged in [1, 1, 1_025, 2_049, 3_073, 3_585, 3_585, 4_609] {
            windows.push(window_after(&mut window, ACK, acknowledged) / 512);
        }
        assert_eq!(windows, [32, 32, 3, 4, 5, 6, 6, 7]);
    }

    #[test]
    fn sequence_numbers_wrap_and_a_new_connection_on_old_ports_begins_anew() {
        let mut window = AdvertisedWindow::new(16_384, BSD);
        let start = u32::MAX - 100;
        assert_eq!(window_after(&mut window, ACK, start), MAX_WINDOW);
        assert_eq!(window_after(&mut window, ACK, start.wrapping_add(1_024)), 3 * 512);
        assert_eq!(window_after(&mut window, ACK, start), 3 * 512, "an old ACK opens nothing");
        assert_eq!(window_after(&mut window, SYN, 0), MAX_WINDOW);
        assert_eq!(window_after(&mut window, ACK, 7), MAX_WINDOW);
    }

    #[test]
    fn a_connection_that_the_server_opened_counts_from_its_syn_ack() {
        let mut window = AdvertisedWindow::new(16_384, BSD);
        let windows = [(SYN | ACK, 1), (ACK, 1_025), (ACK, 2_049)]
            .map(|(flags, acknowledged)| window_after(&mut window, flags, acknowledged));
        assert_eq!(windows, [MAX_WINDOW, 3 * 512, 4 * 512]);
    }

    #[test]
    fn the_window_never_grows_beyond_the_largest() {
        let mut window = AdvertisedWindow::new(16_384, BSD);
        let windows: Vec<_> = (0..100).map(|n| window_after(&mut window, ACK, n * 1_024)).collect();
        assert_eq!(windows.last(), Some(&MAX_WINDOW));
        assert!(windows[1..].is_sorted());
    }

    proptest! {
        #[test]
        fn anything_but_a_whole_tcp_header_is_left_unchanged(mut packet: Vec<u8>) {
            AdvertisedWindow::new(16_384, BSD).cut(&mut packet);
        }
    }
}
