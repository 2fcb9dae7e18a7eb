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
    use flight::{extension, extension_of, numbers16, share, vector16};
    let mut hello = Vec::with_capacity(2_048);
    flight::message(&mut hello, CLIENT_HELLO, |body| {
        body.extend([3, 3]);
        flight::fill(body, 1, 32);
        flight::bytes8(body, &[]);
        numbers16(body, &[flight::SUITE_13, 0x1302, 0x1303]);
        body.extend([1, 0]);
        vector16(body, |extensions| {
            flight::server_name(extensions, &config.server_name);
            extension(extensions, 10, |groups| numbers16(groups, &[X25519MLKEM768, X25519, 23, 24]));
            flight::protocols(extensions, &[config.protocol]);
            extension(extensions, 13, |algorithms| numbers16(algorithms, &flight::SIGNATURES));
            extension(extensions, 51, |content| {
                vector16(content, |shares| {
                    share(shares, X25519MLKEM768, HYBRID_CLIENT_BYTES);
                    share(shares, X25519, 32);
                });
            });
            extension_of(extensions, 45, &[1, 1]);
            extension_of(extensions, 43, &[2, 3, 4]);
            extension_of(extensions, 27, &[2, 0, 2]);
            extension(extensions, 17_613, |content| {
                vector16(content, |list| flight::bytes8(list, config.protocol.as_bytes()));
            });
            flight::encrypted_client_hello(extensions);
            extension_of(extensions, PARAMETERS, parameters);
            flight::ticket_extensions(extensions, config.handshake);
        });
    });
    hello
}

/// The Server Hello.
pub fn server_hello(config: &SessionConfig) -> Vec<u8> {
    let mut hello = Vec::with_capacity(1_280);
    flight::server_hello(&mut hello, config, &[]);
    hello
}

/// Encrypted Extensions, certificates and their signature unless it resumes, and Finished.
pub fn server_flight(config: &SessionConfig, parameters: &[u8]) -> Vec<u8> {
    let (mut extra, mut flight) = (Vec::new(), Vec::with_capacity(config.certificate_chain + 1_024));
    flight::extension_of(&mut extra, PARAMETERS, parameters);
    flight::protected_messages(config, &extra, |message| flight.extend_from_slice(message));
    flight
}

/// Finished of either end.
pub fn finished() -> Vec<u8> {
    let mut finished = Vec::with_capacity(64);
    flight::message(&mut finished, FINISHED, |body| flight::fill(body, 1, HASH_BYTES));
    finished
}

/// Tickets of the server: two, or one after a resumption.
pub fn tickets(config: &SessionConfig) -> Vec<u8> {
    let mut ticket = Vec::with_capacity(512);
    flight::message(&mut ticket, 4, |body| {
        body.extend([0; 8]);
        flight::bytes8(body, &[0; 8]);
        flight::bytes16(body, &[1; TICKET_13_BYTES]);
        flight::vector16(body, |extensions| flight::extension_of(extensions, EARLY_DATA, &[0xff; 4]));
    });
    ticket.repeat(if config.handshake.is_resumed() { 1 } else { 2 })
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
