//! Packets of a datagram, by their long headers (RFC 9000, section 17.2; RFC 9369, section 3.2).

use wire::varint;

use crate::{VERSION_1, VERSION_2};

/// Type of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketType {
    /// The first packets of both sides: Client Hello and Server Hello.
    Initial,
    /// Early data.
    ZeroRtt,
    /// The rest of the handshake.
    Handshake,
    /// The server requests a token that proves the client's address.
    Retry,
    /// The server does not support the client's version.
    VersionNegotiation,
    /// A short header: after the handshake.
    OneRtt,
}

/// A packet, as far as its header shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Its type.
    pub kind: PacketType,
    /// The version; 0 of Version Negotiation and short headers.
    pub version: u32,
    /// The destination's connection ID; empty for short headers, which do not show its length.
    pub destination: &'a [u8],
    /// The source's connection ID.
    pub source: &'a [u8],
    /// The address validation token of an Initial or a Retry.
    pub token: &'a [u8],
    /// The whole packet, as far as it was captured.
    pub bytes: &'a [u8],
    /// Position of the packet number in these bytes.
    pub number_at: usize,
}

/// Maximum length of a connection ID (RFC 9000, section 17.2).
const MAX_ID_BYTES: u8 = 20;
/// Maximum number of packets read from a datagram; four encryption levels fit into one.
const MAX_PACKETS: usize = 16;
/// Bytes of a Retry's integrity tag.
const RETRY_TAG_BYTES: usize = 16;
/// Minimum length of a short packet: a packet number, and a sample of 16 bytes after the longest one (RFC 9001, section 5.4.2).
const MIN_SHORT_BYTES: usize = 21;
const LONG: u8 = 0x80;
const FIXED: u8 = 0x40;

/// Returns whether a datagram begins with a long header of a known version, or with Version Negotiation.
pub fn is_long(datagram: &[u8]) -> bool {
    let &[first, a, b, c, d, ..] = datagram else { return false };
    let version = u32::from_be_bytes([a, b, c, d]);
    first & LONG != 0 && (version == 0 || (is_known(version) && first & FIXED != 0))
}

/// Returns whether these rules hold for a version.
pub const fn is_known(version: u32) -> bool {
    matches!(version, VERSION_1 | VERSION_2)
}

/// Iterates over the packets of a datagram, up to the first that cannot be read.
pub fn packets(datagram: &[u8]) -> impl Iterator<Item = Packet<'_>> {
    iterate(datagram, false)
}

/// Iterates over the packets of a datagram that belongs to a connection: their fixed bits may have either value (RFC 9287).
pub fn packets_of_connection(datagram: &[u8]) -> impl Iterator<Item = Packet<'_>> {
    iterate(datagram, true)
}

fn iterate(datagram: &[u8], is_of_connection: bool) -> impl Iterator<Item = Packet<'_>> {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        let (packet, after) = read(rest, is_of_connection)?;
        rest = after;
        Some(packet)
    })
    .take(MAX_PACKETS)
}

/// Returns a short packet whose destination's connection ID has this length; `None` if it is too short.
pub(crate) fn short_packet(bytes: &[u8], id_length: usize) -> Option<Packet<'_>> {
    let destination = bytes.get(1..1 + id_length)?;
    let empty = &[][..];
    let kind = PacketType::OneRtt;
    let number_at = 1 + id_length;
    Some(Packet { kind, version: 0, destination, source: empty, token: empty, bytes, number_at })
}

/// Returns the frames of a packet without encryption, which only has its sizes ([`crate::sealer`]). `id_length` is that of the ID in a
/// short header.
pub fn frames_in_the_clear<'a>(packet: &Packet<'a>, id_length: usize) -> Option<&'a [u8]> {
    const TAG_BYTES: usize = 16;
    let number_at = if packet.kind == PacketType::OneRtt { 1 + id_length } else { packet.number_at };
    let number_bytes = usize::from(*packet.bytes.first()? & 3) + 1;
    packet.bytes.get(number_at + number_bytes..packet.bytes.len().checked_sub(TAG_BYTES)?)
}

/// Reads the first packet; returns the bytes after it, too. Of a known connection, whatever the fixed bit is.
fn read(bytes: &[u8], is_of_connection: bool) -> Option<(Packet<'_>, &[u8])> {
    let fixed = if is_of_connection { FIXED } else { 0 };
    let marked = bytes.split_first_chunk::<5>().map(|([first, version @ ..], _)| {
        let [a, b, c, d] = *version;
        [*first | fixed, a, b, c, d]
    });
    if !marked.is_some_and(|marked| is_long(&marked)) {
        // Nothing shows where a short packet ends: it is the last of its datagram.
        let is_short = bytes.len() >= MIN_SHORT_BYTES
            && bytes.first().is_some_and(|first| (first | fixed) & (LONG | FIXED) == FIXED);
        let packet = Packet { number_at: bytes.len(), ..short_packet(bytes, 0)? };
        return is_short.then_some((packet, &[]));
    }
    let (first, version) = (*bytes.first()?, u32::from_be_bytes(*bytes.get(1..)?.first_chunk()?));
    let mut at = 5;
    let destination = connection_id(bytes, &mut at)?;
    let source = connection_id(bytes, &mut at)?;
    let kind = long_type(first, version);
    let rest = bytes.get(at..)?;
    let whole =
        |token, number_at| (Packet { kind, version, destination, source, token, bytes, number_at }, &[][..]);
    match kind {
        PacketType::VersionNegotiation => Some(whole(&[], bytes.len())),
        PacketType::Retry => Some(whole(rest.split_last_chunk::<RETRY_TAG_BYTES>()?.0, bytes.len())),
        PacketType::Initial | PacketType::ZeroRtt | PacketType::Handshake | PacketType::OneRtt => {
            let token_length = if kind == PacketType::Initial { variable(bytes, &mut at)? } else { 0 };
            let token = bytes.get(at..at.checked_add(usize::try_from(token_length).ok()?)?)?;
            at += token.len();
            let length = usize::try_from(variable(bytes, &mut at)?).ok()?;
            // A capture may have cut the datagram.
            let end = at.checked_add(length)?.min(bytes.len());
            let (bytes, after) = bytes.split_at(end);
            Some((Packet { kind, version, destination, source, token, bytes, number_at: at }, after))
        }
    }
}

const fn long_type(first: u8, version: u32) -> PacketType {
    let number = (first >> 4) & 3;
    match (version, number) {
        (0, _) => PacketType::VersionNegotiation,
        (VERSION_2, 1) => PacketType::Initial,
        (VERSION_2, 2) => PacketType::ZeroRtt,
        (VERSION_2, 3) => PacketType::Handshake,
        (VERSION_2, _) => PacketType::Retry,
        (_, 0) => PacketType::Initial,
        (_, 1) => PacketType::ZeroRtt,
        (_, 2) => PacketType::Handshake,
        (_, _) => PacketType::Retry,
    }
}

fn connection_id<'a>(bytes: &'a [u8], at: &mut usize) -> Option<&'a [u8]> {
    let length = *bytes.get(*at).filter(|length| **length <= MAX_ID_BYTES)?;
    let id = bytes.get(*at + 1..*at + 1 + usize::from(length))?;
    *at += 1 + id.len();
    Some(id)
}

/// Reads a variable-length integer (RFC 9000, section 16).
pub(crate) fn variable(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut rest = bytes.get(*at..)?;
    let value = varint::take(&mut rest)?;
    *at = bytes.len() - rest.len();
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coalesced_packets_are_separated() {
        let mut datagram = vec![0xc0, 0, 0, 0, 1, 2, 1, 2, 1, 3, 0, 4, 0, 9, 9, 9];
        datagram.extend([0xe0, 0, 0, 0, 1, 2, 1, 2, 1, 3, 3, 0, 8, 8]);
        datagram.extend([0x40; 30]);
        let kinds: Vec<PacketType> = packets(&datagram).map(|packet| packet.kind).collect();
        assert_eq!(kinds, [PacketType::Initial, PacketType::Handshake, PacketType::OneRtt]);
    }

    /// RFC 9001, appendix A.4; RFC 9369, appendix A.4.
    #[test]
    fn retries_of_both_versions_are_read() {
        for header in [[0xff, 0, 0, 0, 1], [0xcf, 0x6b, 0x33, 0x43, 0xcf]] {
            let mut datagram = header.to_vec();
            datagram.extend([0, 8, 0xf0, 0x67, 0xa5, 0x50, 0x2a, 0x42, 0x62, 0xb5]);
            datagram.extend(b"token");
            datagram.extend([1; 16]);
            let retry = packets(&datagram).next().unwrap();
            assert_eq!((retry.kind, retry.token, retry.source.len()), (PacketType::Retry, &b"token"[..], 8));
        }
    }

    #[test]
    fn other_datagrams_are_not_quic() {
        assert!(!is_long(b"\x80\x01\x02\x03\x04\x05"), "an unknown version");
        assert!(!is_long(&[0x16, 0xfe, 0xfd, 0, 0]), "DTLS");
        assert!(packets(&[0xc0, 0, 0, 0, 1, 21]).next().is_none(), "a connection ID of 21 bytes");
    }
}
