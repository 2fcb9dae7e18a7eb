//! Properties of the packet parser: no input makes it panic or contradict itself. Built packets are parsed again, whole
//! or truncated at any byte.

use std::net::{IpAddr, SocketAddr};

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use wire::Bytes;
use wire::packet::{
    Flags, Packet, ParseError, SackBlocks, TcpBuilder, TcpOption, TcpOptions, Transport, UdpBuilder,
};

#[path = "../../../../fuzz/checks/packet.rs"]
mod check;
use check::check;

/// Random bytes that resemble a packet, so that some pass the first check.
fn nearly_a_packet() -> impl Strategy<Value = Vec<u8>> {
    let first = prop_oneof![Just(0x45_u8), 0x40..=0x4f_u8, Just(0x60), Just(0x6f)];
    let protocol = prop_oneof![Just(6_u8), Just(17), Just(44), Just(51), Just(0), Just(60), any::<u8>()];
    (first, protocol, vec(any::<u8>(), 0..200), any::<bool>()).prop_map(
        |(first, protocol, mut bytes, has_valid_length)| {
            let length = u8::try_from(bytes.len()).unwrap_or(u8::MAX);
            let offset = if first < 0x60 { 9 } else { 6 };
            [(0, first), (offset, protocol)].iter().for_each(|(offset, value)| {
                if let Some(byte) = bytes.get_mut(*offset) {
                    *byte = *value;
                }
            });
            // Half of the packets have their true length and are not fragments.
            if let (true, 0x40..0x60, [_, _, high, low, _, _, fragment, offset, ..]) =
                (has_valid_length, first, &mut bytes[..])
            {
                (*high, *low, *fragment, *offset) = (0, length, 0, 0);
            }
            bytes
        },
    )
}

fn socket_pair() -> impl Strategy<Value = (SocketAddr, SocketAddr)> {
    let v4 = (any::<[u8; 4]>(), any::<[u8; 4]>()).prop_map(|(a, b)| (IpAddr::from(a), IpAddr::from(b)));
    let v6 = (any::<[u8; 16]>(), any::<[u8; 16]>()).prop_map(|(a, b)| (IpAddr::from(a), IpAddr::from(b)));
    (prop_oneof![v4, v6], any::<u16>(), any::<u16>())
        .prop_map(|((a, b), from, to)| (SocketAddr::new(a, from), SocketAddr::new(b, to)))
}

fn tcp_option() -> impl Strategy<Value = TcpOption<'static>> {
    prop_oneof![
        any::<u16>().prop_map(TcpOption::Mss),
        any::<u8>().prop_map(TcpOption::WindowScale),
        Just(TcpOption::SackPermitted),
        (any::<(u32, u32)>(), option::of(any::<(u32, u32)>()))
            .prop_map(|(first, second)| TcpOption::Sack(SackBlocks::from([Some(first), second, None, None]))),
        any::<(u32, u32)>().prop_map(|(value, echo)| TcpOption::Timestamps { value, echo }),
        Just(TcpOption::Other { kind: 11, data: &[0, 0, 0, 1] }),
    ]
}

fn flags() -> impl Strategy<Value = Flags> {
    let all =
        [Flags::FIN, Flags::SYN, Flags::RST, Flags::PSH, Flags::ACK, Flags::URG, Flags::ECE, Flags::CWR];
    proptest::sample::subsequence(all.to_vec(), 0..=8)
        .prop_map(|set| set.into_iter().fold(Flags::default(), |all, flag| all | flag))
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in vec(any::<u8>(), 0..200)) {
        check(&bytes);
    }

    #[test]
    fn bytes_resembling_a_packet_never_panic(bytes in nearly_a_packet()) {
        check(&bytes);
    }

    #[test]
    fn random_options_never_panic(bytes in vec(any::<u8>(), 0..=40)) {
        prop_assert!(TcpOptions::new(&bytes).iter().count() <= 20);
    }

    #[test]
    fn built_segment_is_parsed_whole_or_truncated(
        (source, destination) in socket_pair(),
        (seq, ack, window) in any::<(u32, u32, u16)>(),
        flags in flags(),
        options in vec(tcp_option(), 0..3),
        payload in vec(any::<u8>(), 0..100),
        missing in 0..100_usize,
    ) {
        let mut bytes = Vec::new();
        let builder = TcpBuilder { source, destination, seq, ack, flags, window, options: &options };
        builder.write(&payload, &mut bytes).unwrap();
        let packet = Packet::read(&bytes).unwrap();
        prop_assert_eq!(packet.sockets(), Some((source, destination)));
        prop_assert_eq!(packet.ip_length, Bytes::new(bytes.len() as u64));
        let segment = packet.tcp().unwrap();
        prop_assert_eq!((segment.seq, segment.ack, segment.window), (seq, ack, window));
        prop_assert_eq!(segment.flags, flags);
        prop_assert_eq!(segment.options.iter().collect::<Vec<_>>(), options);
        prop_assert_eq!(segment.payload, &payload[..]);

        let retained = bytes.len().saturating_sub(missing);
        check(&bytes[..retained]);
        match Packet::read(&bytes[..retained]) {
            Ok(part) => {
                prop_assert_eq!(part.payload_length(), packet.payload_length());
                let segment = part.tcp().unwrap();
                prop_assert_eq!(segment.payload, &payload[..payload.len().saturating_sub(missing)]);
                prop_assert_eq!(segment.options.is_truncated(), missing > payload.len());
            }
            Err(reason) => {
                prop_assert!(missing > payload.len());
                prop_assert!(matches!(reason, ParseError::Truncated { header: _, captured: _ }), "{}", reason);
            }
        }
    }

    #[test]
    fn built_datagram_is_parsed((source, destination) in socket_pair(), payload in vec(any::<u8>(), 0..100)) {
        let mut bytes = Vec::new();
        UdpBuilder { source, destination }.write(&payload, &mut bytes).unwrap();
        let packet = Packet::read(&bytes).unwrap();
        prop_assert_eq!(packet.sockets(), Some((source, destination)));
        let Transport::Udp(datagram) = packet.transport else { panic!("{packet:?}") };
        prop_assert_eq!((datagram.payload, datagram.payload_length), (&payload[..], Bytes::new(payload.len() as u64)));
    }
}
