//! Messages of the handshake over QUIC (RFC 9001), which carries them without records.
//!
//! TLS 1.3 only; sizes as over TCP, but for what a client offers there for the sake of older servers.

use super::SessionConfig;
use super::flight::{
    self, CLIENT_HELLO, FINISHED, HASH_BYTES, HYBRID_CLIENT_BYTES, TICKET_13_BYTES, X25519, X25519MLKEM768,
};

/// Type of Server Hello.
pub const SERVER_HELLO: u8 = 2;
/// Type of Encrypted Extensions.
pub const ENCRYPTED_EXTENSIONS: u8 = 8;
/// Type of Client Hello.
pub const HELLO: u8 = CLIENT_HELLO;
/// Type of Finished.
pub const END: u8 = FINISHED;
/// Extension with QUIC's transport parameters (RFC 9001, section 8.2).
const PARAMETERS: u16 = 57;
/// Extension for the maximum of early data, in a ticket (RFC 9001, section 4.6.1).
const EARLY_DATA: u16 = 42;

/// The Client Hello of Chromium over QUIC: no GREASE, three suites, and the extensions that its fingerprint `q13d0312h3` has.
pub fn client_hello(config: &SessionConfig, parameters: &[u8]) -> Vec<u8> {
    use flight::{extension, numbers, share, vector8, vector16};
    let shares = [share(X25519MLKEM768, HYBRID_CLIENT_BYTES), share(X25519, 32)].concat();
    let server_name = vector16(&[&[0][..], &vector16(config.server_name.as_bytes())].concat());
    let mut extensions = [
        extension(0, &server_name),
        extension(10, &vector16(&numbers(&[X25519MLKEM768, X25519, 23, 24]))),
        extension(16, &vector16(&vector8(config.protocol.as_bytes()))),
        extension(13, &vector16(&numbers(&flight::SIGNATURES))),
        extension(51, &vector16(&shares)),
        extension(45, &[1, 1]),
        extension(43, &vector8(&numbers(&[0x0304]))),
        extension(27, &[2, 0, 2]),
        extension(17_613, &vector16(&vector8(config.protocol.as_bytes()))),
        flight::encrypted_client_hello(),
        extension(PARAMETERS, parameters),
    ]
    .concat();
    extensions.extend(flight::ticket_extensions(config.handshake));
    let suites = vector16(&numbers(&[flight::SUITE_13, 0x1302, 0x1303]));
    let body = [&[3, 3][..], &[1; 32], &vector8(&[]), &suites, &[1, 0], &vector16(&extensions)];
    flight::message(CLIENT_HELLO, &body.concat())
}

/// The Server Hello.
pub fn server_hello(config: &SessionConfig) -> Vec<u8> {
    flight::server_hello(config, &[])
}

/// Encrypted Extensions, certificates and their signature unless it resumes, and Finished.
pub fn server_flight(config: &SessionConfig, parameters: &[u8]) -> Vec<u8> {
    let extra = flight::extension(PARAMETERS, parameters);
    flight::protected_messages(config, &extra).concat()
}

/// Finished of either end.
pub fn finished() -> Vec<u8> {
    flight::message(FINISHED, &[1; HASH_BYTES])
}

/// Tickets of the server: two, or one after a resumption.
pub fn tickets(config: &SessionConfig) -> Vec<u8> {
    let extensions = flight::vector16(&flight::extension(EARLY_DATA, &[0xff; 4]));
    let ticket = flight::vector16(&[1; TICKET_13_BYTES]);
    let body = [&[0; 8][..], &flight::vector8(&[0; 8]), &ticket, &extensions].concat();
    flight::message(4, &body).repeat(if config.handshake.is_resumed() { 1 } else { 2 })
}

/// The message at the beginning: its type, its body, and what follows; `None` if it is incomplete.
pub fn split_message(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[kind, a, b, c], rest) = bytes.split_first_chunk::<4>()?;
    let (body, rest) = rest.split_at_checked(u32::from_be_bytes([0, a, b, c]) as usize)?;
    Some((kind, body, rest))
}

/// QUIC's transport parameters of a Client Hello or of Encrypted Extensions, by type and body.
pub fn parameters(kind: u8, body: &[u8]) -> Option<&[u8]> {
    let mut rest = body;
    if kind == CLIENT_HELLO {
        // Version and random number, session, suites, compression.
        rest = rest.get(34..)?;
        take_vector(&mut rest, 1)?;
        take_vector(&mut rest, 2)?;
        take_vector(&mut rest, 1)?;
    }
    let mut extensions = take_vector(&mut rest, 2)?;
    while let Some((kind, after)) = extensions.split_first_chunk::<2>() {
        extensions = after;
        let content = take_vector(&mut extensions, 2)?;
        if u16::from_be_bytes(*kind) == PARAMETERS {
            return Some(content);
        }
    }
    None
}

/// Takes a vector whose length takes this number of bytes.
fn take_vector<'a>(from: &mut &'a [u8], bytes: usize) -> Option<&'a [u8]> {
    let (length, rest) = from.split_at_checked(bytes)?;
    let length = length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
    let (content, rest) = rest.split_at_checked(length)?;
    *from = rest;
    Some(content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Handshake;

    #[test]
    fn parameters_are_found_in_both_messages_and_nowhere_else() {
        let config = SessionConfig { protocol: "h3", ..SessionConfig::new(Handshake::Full) };
        let hello = client_hello(&config, b"parameters");
        let (kind, body, rest) = split_message(&hello).unwrap();
        assert_eq!((kind, parameters(kind, body), rest), (HELLO, Some(&b"parameters"[..]), &[][..]));
        let flight = server_flight(&config, b"others");
        let (kind, body, rest) = split_message(&flight).unwrap();
        assert_eq!((kind, parameters(kind, body)), (ENCRYPTED_EXTENSIONS, Some(&b"others"[..])));
        assert!(rest.len() > config.certificate_chain);
        for cut in 0..hello.len() {
            assert_eq!(split_message(&hello[..cut]), None);
            assert_eq!(parameters(HELLO, hello.get(4..cut).unwrap_or_default()), None);
        }
    }

    /// Two datagrams of 1,200 bytes, as captures of Chrome since version 124.
    #[test]
    fn a_client_hello_with_a_hybrid_key_share_takes_two_datagrams() {
        let config = SessionConfig { protocol: "h3", ..SessionConfig::new(Handshake::Full) };
        let length = client_hello(&config, &[0; 60]).len();
        assert!((1_600..1_900).contains(&length), "{length}");
    }
}
