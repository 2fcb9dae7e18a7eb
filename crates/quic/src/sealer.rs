//! Encryption of packets that only have sizes: readable headers, frames in the clear, tags of any value, as a simulation without
//! ciphers writes them. Sizes stay; what comes out is read by [`Opener`](crate::opener::Opener) with the same secrets.

use std::fmt::Write as _;

use tls::KeyLog;
use tls::decrypt::Sender;
use tls::keylog::{Random, Secret, Secrets};
use tls::suite::Suite;

use crate::key::{Protection, Unmasked, protect};
use crate::packet::{Packet, PacketType, packets, short_packet};

/// Cipher suite of every connection: TLS_AES_128_GCM_SHA256.
const SUITE: Suite = Suite(0x1301);

/// Random value of every Client Hello of `tls::session`, and of others that only have sizes.
pub const RANDOM: Random = [1; 32];

/// Secrets that all connections without ciphers have, as they have the same random value, and a key log with them.
#[derive(Debug)]
pub struct KnownSecrets {
    /// The key log.
    pub key_log: String,
    /// The secrets.
    pub secrets: Secrets,
}

impl Default for KnownSecrets {
    fn default() -> Self {
        /// The secrets, each of 32 such bytes.
        const SECRETS: [(&str, u8); 5] = [
            ("CLIENT_EARLY_TRAFFIC_SECRET", 1),
            ("CLIENT_HANDSHAKE_TRAFFIC_SECRET", 2),
            ("SERVER_HANDSHAKE_TRAFFIC_SECRET", 3),
            ("CLIENT_TRAFFIC_SECRET_0", 4),
            ("SERVER_TRAFFIC_SECRET_0", 5),
        ];
        let (mut key_log, mut log) = (String::new(), KeyLog::default());
        let digits = |byte: u8| format!("{byte:02x}").repeat(32);
        for (label, secret) in SECRETS {
            // Writing to a string does not fail.
            let _ = writeln!(key_log, "{label} {} {}", digits(RANDOM[0]), digits(secret));
        }
        log.read(key_log.as_bytes());
        let secrets = log.secrets(&RANDOM).copied().unwrap_or_default();
        Self { key_log, secrets }
    }
}

/// Returns a packet that only has its size: its first byte, IDs of one byte, a packet number of one byte, and frames in the clear.
pub fn readable_packet(first: u8, number: u8, frames: &[u8]) -> Vec<u8> {
    const ID: u8 = 9;
    let is_long = first & 0x80 != 0;
    let mut packet = if is_long { vec![first, 0, 0, 0, 1, 1, ID, 1, ID] } else { vec![first, ID] };
    // An Initial packet without a token.
    packet.extend((first & 0xb0 == 0x80).then_some(0));
    // The number and the tag are part of the length; beyond its maximum the packet is cut.
    let length = u16::try_from(frames.len() + 17).unwrap_or(u16::MAX).min(0x3fff);
    packet.extend(is_long.then(|| (0x4000 | length).to_be_bytes()).into_iter().flatten());
    [&packet[..], &[number], frames, &[0; 16]].concat()
}

/// Encryption of the connections between two ports, one after another.
#[derive(Debug)]
pub struct Sealer {
    /// Secrets of each.
    secrets: Secrets,
    /// The latest last.
    connections: Vec<Connection>,
}

/// Encryption of one connection.
#[derive(Debug)]
struct Connection {
    /// Destination of the client's first packet.
    first_id: Vec<u8>,
    client: Half,
    server: Half,
}

/// Keys of one sender's packets by type, and their numbers.
#[derive(Debug)]
struct Half {
    initial: Option<Protection>,
    early: Option<Protection>,
    handshake: Option<Protection>,
    data: Option<Protection>,
    /// The largest number in each space: Initial, Handshake, application data.
    largest: [Option<u64>; 3],
    /// Connection ID by which its peer addresses it, once it has sent.
    id: Option<Vec<u8>>,
}

impl Sealer {
    /// Creates the state before the client's first packet.
    pub const fn new(secrets: Secrets) -> Self {
        Self { secrets, connections: Vec::new() }
    }

    /// Encrypts the packets of a datagram in place. What is none is left as it is.
    pub fn seal(&mut self, sender: Sender, datagram: &mut [u8]) {
        let mut parts = Vec::new();
        let mut start = 0;
        for packet in packets(datagram) {
            let Some(place) = self.connection_of(sender, &packet) else { return };
            if packet.kind == PacketType::Retry {
                self.connections[place].follow_retry(&packet);
            } else if packet.kind != PacketType::OneRtt {
                let id = &mut self.connections[place].half(sender).id;
                id.get_or_insert_with(|| packet.source.to_vec());
            }
            parts.push((place, start, packet.kind, packet.bytes.len(), packet.number_at));
            start += packet.bytes.len();
        }
        for (place, start, kind, length, number_at) in parts {
            let packet = datagram.get_mut(start..start + length).unwrap_or_default();
            self.connections[place].seal_packet(sender, kind, number_at, packet);
        }
    }

    /// Returns the place of a packet's connection; that of a client's first packet is added.
    fn connection_of(&mut self, sender: Sender, packet: &Packet<'_>) -> Option<usize> {
        let has_begun = |half: &Half| half.id.is_some();
        let is_to = |half: &Half, packet: &Packet<'_>| {
            let id = half.id.as_deref();
            // A short header does not show the length of its ID.
            let short =
                |id: &[u8]| short_packet(packet.bytes, id.len()).is_some_and(|short| short.destination == id);
            id.is_some_and(|id| {
                if packet.kind == PacketType::OneRtt { short(id) } else { packet.destination == id }
            })
        };
        let place = self.connections.iter().rposition(|connection| match (sender, packet.kind) {
            // A client without an ID has one connection at a time.
            (Sender::Server, PacketType::OneRtt) => {
                has_begun(&connection.server) && is_to(&connection.client, packet)
            }
            (Sender::Server, _) => {
                connection.server.id.as_deref().is_none_or(|id| id == packet.source)
                    && is_to(&connection.client, packet)
            }
            (Sender::Client, _) => {
                is_to(&connection.server, packet) || connection.first_id == packet.destination
            }
        });
        // The client chooses the destination of its first packets, later ones have the server's ID (RFC 9000, section 7.2).
        let is_first = sender == Sender::Client && packet.kind == PacketType::Initial;
        if place.is_none() && is_first {
            self.connections.push(Connection::new(&self.secrets, packet.version, packet.destination));
        }
        place.or_else(|| self.connections.len().checked_sub(1))
    }
}

impl Connection {
    fn new(secrets: &Secrets, version: u32, id: &[u8]) -> Self {
        let of = |secret: Option<Secret>| Protection::new(SUITE, &secret?, version);
        let half = |sender, early, handshake, data| Half {
            initial: Protection::initial(version, id, sender),
            early: of(early),
            handshake: of(handshake),
            data: of(data),
            largest: [None; 3],
            id: None,
        };
        let Secrets {
            client_early, client_handshake, server_handshake, client_traffic, server_traffic, ..
        } = *secrets;
        Self {
            first_id: id.to_vec(),
            client: half(Sender::Client, client_early, client_handshake, client_traffic),
            server: half(Sender::Server, None, server_handshake, server_traffic),
        }
    }

    /// Handles a Retry: keys of Initial packets follow from its source (RFC 9001, section 5.2).
    fn follow_retry(&mut self, packet: &Packet<'_>) {
        let initial = |sender| Protection::initial(packet.version, packet.source, sender);
        self.first_id = packet.source.to_vec();
        (self.client.initial, self.server.initial) = (initial(Sender::Client), initial(Sender::Server));
    }

    const fn half(&mut self, sender: Sender) -> &mut Half {
        match sender {
            Sender::Client => &mut self.client,
            Sender::Server => &mut self.server,
        }
    }

    fn seal_packet(
        &mut self,
        sender: Sender,
        kind: PacketType,
        number_at: usize,
        packet: &mut [u8],
    ) -> Option<()> {
        let (half, peer) = match sender {
            Sender::Client => (&mut self.client, &self.server),
            Sender::Server => (&mut self.server, &self.client),
        };
        let id_length = peer.id.as_ref().map_or(0, Vec::len);
        let (keys, space, number_at) = match kind {
            PacketType::Initial => (half.initial.as_ref()?, 0, number_at),
            PacketType::Handshake => (half.handshake.as_ref()?, 1, number_at),
            PacketType::ZeroRtt => (half.early.as_ref()?, 2, number_at),
            PacketType::OneRtt => (half.data.as_ref()?, 2, short_packet(packet, id_length)?.number_at),
            PacketType::Retry | PacketType::VersionNegotiation => return None,
        };
        let number = Unmasked::readable(packet, number_at)?.number(half.largest[space]);
        half.largest[space] = half.largest[space].max(Some(number));
        protect(keys, number_at, number, packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Frame, frames};
    use crate::opener::Opener;
    use tls::KeyLog;
    use tls::packet_keys::{HeaderKey, Labels, PacketKeys};
    use tls::session::quic as messages;
    use tls::session::{Handshake, SessionConfig};

    const KEYS: [(&str, u8); 5] = [
        ("CLIENT_EARLY_TRAFFIC_SECRET", 1),
        ("CLIENT_HANDSHAKE_TRAFFIC_SECRET", 2),
        ("SERVER_HANDSHAKE_TRAFFIC_SECRET", 3),
        ("CLIENT_TRAFFIC_SECRET_0", 4),
        ("SERVER_TRAFFIC_SECRET_0", 5),
    ];

    fn key_log() -> KeyLog {
        let line = |(label, byte): (&str, u8)| {
            format!("{label} {} {}\n", "01".repeat(32), format!("{byte:02x}").repeat(32))
        };
        let mut log = KeyLog::default();
        log.read(KEYS.map(line).concat().as_bytes());
        log
    }

    /// A packet of this type and number; the client's ID has 3 bytes, the server's 5.
    fn packet(sender: Sender, kind: u8, number: u8, frames: &[u8]) -> Vec<u8> {
        let (client, server): (&[u8], &[u8]) = (&[3, 7, 7, 7], &[5, 9, 9, 9, 9, 9]);
        let (to, from) = if sender == Sender::Client { (server, client) } else { (client, server) };
        let mut packet = match kind {
            0x40 | 0x44 => [&[kind], &to[1..]].concat(),
            _ => [&[kind, 0, 0, 0, 1], to, from].concat(),
        };
        packet.extend((kind == 0xc0).then_some(0));
        if kind & 0x80 != 0 {
            packet.extend((0x4000 | u16::try_from(frames.len() + 17).unwrap()).to_be_bytes());
        }
        packet.push(number);
        packet.extend(frames);
        packet.extend([0; 16]);
        packet
    }

    fn crypto(bytes: &[u8]) -> Vec<u8> {
        let length = (0x4000 | u16::try_from(bytes.len()).unwrap()).to_be_bytes();
        [&[6, 0], &length[..], bytes].concat()
    }

    /// A handshake and application data, sealed and opened with the key log; the numbers and frames that were read.
    fn opened(log: Option<&KeyLog>, datagrams: &[(Sender, Vec<u8>)]) -> (Vec<(u64, Vec<u8>)>, Opener) {
        let secrets = *key_log().secrets(&[1; 32]).unwrap();
        let (mut sealer, mut opener, mut read) = (Sealer::new(secrets), Opener::default(), Vec::new());
        for (sender, datagram) in datagrams {
            let mut sealed = datagram.clone();
            sealer.seal(*sender, &mut sealed);
            assert_eq!(sealed.len(), datagram.len());
            assert_ne!(sealed, *datagram);
            opener.read(*sender, &sealed, log, &mut |packet| read.push((packet.number, packet.frames)));
        }
        (read, opener)
    }

    fn handshake() -> Vec<(Sender, Vec<u8>)> {
        let config = SessionConfig { protocol: "h3", ..SessionConfig::new(Handshake::Full) };
        let hello = crypto(&messages::client_hello(&config, &[4, 2, 0x50, 0]));
        let (answer, flight) =
            (messages::server_hello(&config), messages::server_flight(&config, &[5, 1, 9]));
        let early = packet(Sender::Client, 0xd0, 0, &[0x0a, 0, 1, 5]);
        let server = [
            packet(Sender::Server, 0xc0, 0, &crypto(&answer)),
            packet(Sender::Server, 0xe0, 0, &crypto(&flight[..600])),
        ];
        vec![
            (Sender::Client, [packet(Sender::Client, 0xc0, 0, &hello), early].concat()),
            (Sender::Server, server.concat()),
            (Sender::Client, packet(Sender::Client, 0xe0, 0, &[2, 0, 0, 0, 0])),
            (Sender::Client, packet(Sender::Client, 0x40, 1, &[0x0b, 4, 2, 8, 8, 1, 1])),
            (Sender::Server, packet(Sender::Server, 0x40, 0, &[0x0b, 4, 2, 7, 7, 1, 1])),
        ]
    }

    #[test]
    fn sealed_connection_is_opened_with_its_secrets() {
        let (read, opener) = opened(Some(&key_log()), &handshake());
        assert_eq!(read.len(), 7, "{read:?}");
        assert_eq!(read[1], (0, vec![0x0a, 0, 1, 5]), "early data");
        assert_eq!((read[5].0, &read[5].1[..]), (1, &[0x0b, 4, 2, 8, 8, 1, 1][..]));
        let is_stream = |packet: &[u8]| matches!(frames(packet).next(), Some(Frame::Stream(_)));
        assert!(is_stream(&read[6].1) && opener.has_read() && opener.unread().is_none());
        assert_eq!(opener.parameters(Sender::Client).unwrap().max_data, 0x1000);
        assert_eq!(opener.parameters(Sender::Server).unwrap().max_stream_data[0], 9);
    }

    #[test]
    fn packets_are_opened_with_the_cipher_that_fits_before_the_server_hello_is_known() {
        let log = key_log();
        let mut sealer = Sealer::new(*log.secrets(&[1; 32]).unwrap());
        let (mut opener, mut read) = (Opener::default(), Vec::new());
        for (sender, mut datagram) in handshake() {
            sealer.seal(sender, &mut datagram);
            let first = packets(&datagram).next().map(|packet| (packet.kind, packet.bytes.len()));
            // The Server Hello is lost.
            let lost = first.filter(|(kind, _)| sender == Sender::Server && *kind == PacketType::Initial);
            let rest = &datagram[lost.map_or(0, |(_, length)| length)..];
            opener.read(sender, rest, Some(&log), &mut |packet| read.push(packet.kind));
        }
        let (handshake, data) = (PacketType::Handshake, PacketType::OneRtt);
        assert_eq!(read, [PacketType::Initial, PacketType::ZeroRtt, handshake, handshake, data, data]);
        assert!(opener.has_read() && opener.unread().is_none());
    }

    #[test]
    fn without_secrets_only_initial_packets_are_opened() {
        let (read, opener) = opened(None, &handshake());
        assert_eq!((read.len(), opener.has_read(), opener.unread()), (2, false, None));
        let (read, opener) = opened(Some(&KeyLog::default()), &handshake());
        assert_eq!((read.len(), opener.unread()), (2, Some(tls::decrypt::Unread::NotLogged)));
    }

    /// The sealer does not update keys: the secrets of the next phase come from a log of their own.
    #[test]
    fn updated_keys_are_followed_and_a_late_packet_of_the_phase_before_is_opened() {
        let log = key_log();
        let mut secrets = *log.secrets(&[1; 32]).unwrap();
        let mut sealer = Sealer::new(secrets);
        let next = |secret: Option<Secret>| tls::packet_keys::next_secret(SUITE, &secret?, Labels::Quic);
        (secrets.client_traffic, secrets.server_traffic) =
            (next(secrets.client_traffic), next(secrets.server_traffic));
        let (mut updated, mut opener) = (Sealer::new(secrets), Opener::default());
        for (sender, mut datagram) in handshake() {
            updated.seal(sender, &mut datagram.clone());
            sealer.seal(sender, &mut datagram);
            opener.read(sender, &datagram, Some(&log), &mut |_| {});
        }
        // The keys of a header stay those of the first phase.
        (updated.connections[0].client.data, updated.connections[0].server.data) =
            [Sender::Client, Sender::Server]
                .map(|sender| {
                    let first = log.secrets(&[1; 32]).unwrap();
                    let (first, next) = match sender {
                        Sender::Client => (first.client_traffic, secrets.client_traffic),
                        Sender::Server => (first.server_traffic, secrets.server_traffic),
                    };
                    let header = HeaderKey::new(SUITE, &first?, Labels::Quic)?;
                    Some(Protection { header, packet: PacketKeys::new(SUITE, &next?, Labels::Quic)? })
                })
                .into();
        let mut read = |sealer: &mut Sealer, kind, number| {
            let mut datagram = packet(Sender::Client, kind, number, &[0x0b, 4, 2, 8, 8, 1, 1]);
            sealer.seal(Sender::Client, &mut datagram);
            opener.read(Sender::Client, &datagram, Some(&log), &mut |_| {})
        };
        assert!(read(&mut updated, 0x44, 3), "the next phase");
        assert!(read(&mut sealer, 0x40, 2), "the phase before");
        assert!(read(&mut updated, 0x44, 4));
        assert!(!read(&mut updated, 0x40, 5), "keys of another phase than the bit's");
    }

    #[test]
    fn next_connection_between_the_same_ports_has_its_own_initial_keys() {
        let log = key_log();
        let mut sealer = Sealer::new(*log.secrets(&[1; 32]).unwrap());
        for id in [9, 7] {
            let (mut opener, mut expected) = (Opener::default(), 0);
            let mut opened = 0;
            for (sender, mut datagram) in handshake() {
                let lengths: Vec<usize> = packets(&datagram).map(|packet| packet.bytes.len()).collect();
                let mut at = 0;
                for length in lengths {
                    // The client chooses the ID of its Initial and 0-RTT packets.
                    if sender == Sender::Client && matches!(datagram[at] & 0xf0, 0xc0 | 0xd0) {
                        datagram[at + 6] = id;
                    }
                    (at, expected) = (at + length, expected + 1);
                }
                sealer.seal(sender, &mut datagram);
                opener.read(sender, &datagram, Some(&log), &mut |_| opened += 1);
            }
            assert_eq!(opened, expected, "connection of {id}");
        }
        assert_eq!(sealer.connections.len(), 2);
    }

    #[test]
    fn cut_and_damaged_packets_are_left_out() {
        let secrets = *key_log().secrets(&[1; 32]).unwrap();
        let (mut sealer, mut opener) = (Sealer::new(secrets), Opener::default());
        let log = key_log();
        for (sender, mut datagram) in handshake() {
            sealer.seal(sender, &mut datagram);
            let last = datagram.len() - 1;
            let count = |opener: &mut Opener, bytes: &[u8]| {
                let mut count = 0;
                opener.read(sender, bytes, Some(&log), &mut |_| count += 1);
                count
            };
            let whole = packets(&datagram).count();
            datagram[last] ^= 1;
            assert_eq!(count(&mut opener, &datagram), whole - 1);
            assert_eq!(count(&mut opener, &datagram[..last]), whole - 1);
            datagram[last] ^= 1;
            assert_eq!(count(&mut opener, &datagram), whole);
        }
    }
}
