//! A segment as the bytes of an IP packet, as captures and taps get it.
//!
//! Sequence numbers start at 0. Hosts get 10.0.0.1 and up in the order in which they were added.

use core::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::io;

use tcp::Segment;
use tcp::segment::{self, ConnectionCount, FastOpen, Framing, Options, SynOptions, Timestamps};
use wire::packet::{Flags, TcpBuilder, TcpOption, UdpBuilder};

use super::{Address, CLIENT};

/// "No operation" (RFC 9293, section 3.1).
const PADDING: TcpOption<'static> = TcpOption::Other { kind: 1, data: &[] };

/// Options that have no names in `wire`, by kind: Transaction TCP's counts (RFC 1644, section 3.1), Fast Open's cookie
/// (RFC 7413, section 4.1.1).
#[derive(Default)]
struct Rare(Vec<(u8, Vec<u8>)>);

impl Rare {
    fn of(syn: &SynOptions) -> Self {
        let SynOptions { mss: _, window_scale: _, sack_permitted: _, connection_count, fast_open } = *syn;
        let count = |kind, count: u32| (kind, count.to_be_bytes().to_vec());
        let mut rare = match connection_count {
            None => Vec::new(),
            Some(ConnectionCount::Current(own)) => vec![count(11, own)],
            Some(ConnectionCount::New(own)) => vec![count(12, own)],
            Some(ConnectionCount::Echo { count: own, echo }) => vec![count(11, own), count(13, echo)],
        };
        rare.extend(fast_open.map(|fast_open| match fast_open {
            FastOpen::Request => (34, Vec::new()),
            FastOpen::Cookie(cookie) => (34, cookie.to_be_bytes().to_vec()),
        }));
        Self(rare)
    }
}

/// Appends a segment as an IP packet.
pub(crate) fn packet(from: Address, to: Address, segment: &Segment, into: &mut Vec<u8>) -> io::Result<()> {
    let Segment { sequence, acknowledgement, window, flags, options, framing, payload } = segment;
    let udp = UdpBuilder { source: socket(from), destination: socket(to) };
    match framing {
        Framing::Tcp => {}
        Framing::Ardp => {
            return udp.write(&ardp(from, to, segment), into).map_err(io::Error::other);
        }
        Framing::Datagram => return udp.write(payload, into).map_err(io::Error::other),
    }
    let rare = options.syn.as_deref().map(Rare::of).unwrap_or_default();
    let builder = TcpBuilder {
        source: socket(from),
        destination: socket(to),
        seq: low(*sequence),
        ack: if flags.ack { low(*acknowledgement) } else { 0 },
        flags: Flags::from(*flags),
        window: *window,
        options: &list(options, *acknowledgement, &rare),
    };
    builder.write(payload, into).map_err(io::Error::other)
}

/// Encodes ARDP's header and the data. The client's port is also the connection identifier: it is random enough here.
fn ardp(from: Address, to: Address, segment: &Segment) -> Vec<u8> {
    let Segment { sequence, acknowledgement, window, flags, options, framing: _, payload } = segment;
    let client = if from.host == CLIENT { from } else { to };
    let segment::Flags { syn, ack, fin, rst, psh } = *flags;
    // Version 1; from the lowest bit: first, last, reset, acknowledges, ends a message's part.
    let bits = [syn, fin, rst, ack, psh].iter().rev().fold(0, |bits, is_set| bits << 1 | u8::from(*is_set));
    let mut bytes = vec![1 << 5 | bits];
    bytes.extend(client.port.to_be_bytes());
    bytes.extend(low(*sequence).to_be_bytes());
    bytes.extend(low(*acknowledgement).to_be_bytes());
    bytes.extend(window.to_be_bytes());
    for (start, end) in options.sack.ranges(*acknowledgement) {
        bytes.extend(low(start).to_be_bytes());
        bytes.extend(low(end).to_be_bytes());
    }
    bytes.extend_from_slice(payload);
    bytes
}

/// The options in order, padded as stacks do: every number aligned to a 32-bit word, and SACK-permitted
/// before the timestamps if both are present.
fn list<'a>(options: &Options, acknowledgement: u64, rare: &'a Rare) -> Vec<TcpOption<'a>> {
    let Options { timestamps, sack, syn } = options;
    let SynOptions { mss, window_scale, sack_permitted, connection_count: _, fast_open: _ } =
        syn.as_deref().copied().unwrap_or_default();
    let mut list: Vec<TcpOption<'a>> = mss.into_iter().map(TcpOption::Mss).collect();
    if sack_permitted {
        list.push(TcpOption::SackPermitted);
    }
    if sack_permitted != timestamps.is_some() {
        list.extend([PADDING; 2]);
    }
    list.extend(timestamps.map(|Timestamps { value, echo }| TcpOption::Timestamps { value, echo }));
    list.extend(window_scale.into_iter().flat_map(|bits| [PADDING, TcpOption::WindowScale(bits)]));
    for (kind, data) in &rare.0 {
        list.extend([PADDING, PADDING, TcpOption::Other { kind: *kind, data }]);
    }
    if !sack.is_empty() {
        let mut blocks = [None; 4];
        let ranges = sack.ranges(acknowledgement).map(|(start, end)| Some((low(start), low(end))));
        blocks.iter_mut().zip(ranges).for_each(|(block, range)| *block = range);
        list.extend([PADDING, PADDING, TcpOption::Sack(blocks)]);
    }
    list
}

/// The address of a host's port in captures, and for programs on simulated hosts.
pub(crate) fn socket(Address { host, port }: Address) -> SocketAddr {
    let [high, low] = host.0.saturating_add(1).to_be_bytes();
    SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::new(10, 0, high, low), port))
}

/// A sequence number as encoded on the wire: its low 32 bits.
fn low(number: u64) -> u32 {
    let [_, _, _, _, a, b, c, d] = number.to_be_bytes();
    u32::from_be_bytes([a, b, c, d])
}

#[cfg(test)]
mod tests {
    use tcp::Payload;
    use tcp::segment::SackBlocks;

    use super::*;
    use crate::world::HostId;

    const ADDRESSES: [Address; 2] =
        [Address { host: HostId(0), port: 1025 }, Address { host: HostId(1), port: 80 }];

    fn segment(options: Options) -> Segment {
        Segment {
            sequence: (1 << 32) + 7,
            acknowledgement: 9,
            window: 512,
            flags: segment::Flags { ack: true, psh: true, ..segment::Flags::default() },
            options,
            framing: Framing::Tcp,
            payload: Payload::from(&b"odd"[..]),
        }
    }

    #[test]
    fn captured_packet_has_its_length_on_the_link_with_any_options() {
        let mut sack = SackBlocks::default();
        sack.push(9, 20, 30);
        let syn = |sack_permitted, connection_count, fast_open| {
            let (mss, window_scale) = (Some(1460), Some(7));
            Some(Box::new(SynOptions { mss, window_scale, sack_permitted, connection_count, fast_open }))
        };
        let syns = [
            None,
            syn(true, None, None),
            syn(false, Some(ConnectionCount::Current(1)), None),
            syn(true, None, Some(FastOpen::Cookie(5))),
        ];
        for syn in syns {
            for timestamps in [None, Some(Timestamps { value: 1, echo: 2 })] {
                let options = Options { timestamps, sack: SackBlocks::default(), syn: syn.clone() };
                check(&segment(options));
            }
        }
        check(&segment(Options { timestamps: Some(Timestamps { value: 1, echo: 2 }), sack, syn: None }));
    }

    fn check(segment: &Segment) {
        let mut bytes = Vec::new();
        packet(ADDRESSES[0], ADDRESSES[1], segment, &mut bytes).unwrap();
        assert_eq!(bytes.len() as u64, segment.ip_bytes(), "{segment:?}");
        let wire::packet::Transport::Tcp(read) = wire::packet::Packet::read(&bytes).unwrap().transport else {
            panic!("{bytes:?}")
        };
        assert_eq!((read.seq, read.ack, read.window, read.payload), (7, 9, 512, &b"odd"[..]));
        assert_eq!(read.flags, Flags::ACK | Flags::PSH);
        assert_eq!(read.options.mss(), segment.options.syn.as_ref().and_then(|syn| syn.mss));
        assert_eq!(
            read.options.window_scale(),
            segment.options.syn.as_ref().and_then(|syn| syn.window_scale)
        );
    }

    #[test]
    fn ardp_datagram_has_its_size_on_the_link() {
        let mut sack = SackBlocks::default();
        sack.push(9, 20, 30);
        let options = Options { timestamps: None, sack, syn: None };
        let segment = Segment { framing: Framing::Ardp, ..segment(options) };
        assert_eq!(ardp(ADDRESSES[0], ADDRESSES[1], &segment)[..3], [0b11_1000, 4, 1]);
        let mut bytes = Vec::new();
        packet(ADDRESSES[0], ADDRESSES[1], &segment, &mut bytes).unwrap();
        assert_eq!(bytes.len() as u64, segment.ip_bytes());
        let wire::packet::Transport::Udp(read) = wire::packet::Packet::read(&bytes).unwrap().transport else {
            panic!("{bytes:?}")
        };
        assert_eq!((read.source_port, read.destination_port), (1025, 80));
        assert!(read.payload.ends_with(b"odd"));
        assert_eq!(read.payload[3..11], [0, 0, 0, 7, 0, 0, 0, 9]);
    }

    #[test]
    fn datagram_holds_exactly_the_sent_payload() {
        let segment = Segment::datagram(Payload::from(&b"odd"[..]));
        let mut bytes = Vec::new();
        packet(ADDRESSES[0], ADDRESSES[1], &segment, &mut bytes).unwrap();
        assert_eq!(bytes.len() as u64, segment.ip_bytes());
        let wire::packet::Transport::Udp(read) = wire::packet::Packet::read(&bytes).unwrap().transport else {
            panic!("{bytes:?}")
        };
        assert_eq!((read.source_port, read.destination_port, read.payload), (1025, 80, &b"odd"[..]));
    }
}
