//! PPP frames on a serial port: RFC 1662's framing with its check sequence, its escapes for the two special bytes, and
//! RFC 1332's protocol number. Control characters are not escaped.

const FLAG: u8 = 0x7e;
const ESCAPE: u8 = 0x7d;
/// "All stations", "unnumbered information", and the first byte of the protocol.
const HEADER: [u8; 3] = [0xff, 0x03, 0x00];
/// Protocol of uncompressed packets.
pub(super) const IP: u8 = 0x21;

/// Appends a packet of this protocol in its frame; the flag that ends it also begins the next.
pub(super) fn append(protocol: u8, packet: &[u8], out: &mut Vec<u8>) {
    let header = HEADER.iter().chain([&protocol]);
    let check = !header.clone().chain(packet).fold(0xffff, |check, byte| step(check, *byte));
    let bytes = header.chain(packet).copied().chain(check.to_le_bytes());
    for byte in bytes {
        match byte {
            FLAG | ESCAPE => out.extend([ESCAPE, byte ^ 0x20]),
            byte => out.push(byte),
        }
    }
    out.push(FLAG);
}

/// Adds a byte to a CRC-16 with the polynomial x^16 + x^12 + x^5 + 1, low bits first (RFC 1662, appendix C.1).
fn step(check: u16, byte: u8) -> u16 {
    (0..8).fold(check ^ u16::from(byte), |check, _| {
        let shifted = check >> 1;
        if check & 1 == 1 { shifted ^ 0x8408 } else { shifted }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc1662_check_sequence_over_itself_is_the_magic_number() {
        let mut framed = Vec::new();
        append(IP, b"123456789", &mut framed);
        let (flag, bytes) = framed.split_last().unwrap();
        assert_eq!((*flag, bytes.len()), (FLAG, 4 + 9 + 2));
        assert_eq!(bytes.iter().fold(0xffff, |check, byte| step(check, *byte)), 0xf0b8);
    }

    #[test]
    fn special_bytes_are_escaped() {
        let mut framed = Vec::new();
        append(IP, &[0x7e, 0x20, 0x7d], &mut framed);
        assert_eq!(framed[4..9], [0x7d, 0x5e, 0x20, 0x7d, 0x5d]);
    }
}
