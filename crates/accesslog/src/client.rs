//! A client as a number: the hash of its text, or of its address truncated to a prefix.
//!
//! Not an anonymiser. Among a million clients, the chance that any two 64-bit hashes
//! collide is 3 in 10^8. The same text has the same hash in every run and on every host, so that parts of a
//! log counted separately agree.

use core::net::{IpAddr, Ipv6Addr};

/// A client: equal texts are equal clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Client(u64);

/// Number of leading bits of an address that identify a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// Of 32.
    pub v4: u8,
    /// Of 128.
    pub v6: u8,
}

impl Client {
    /// The client with this text as its whole name.
    #[inline]
    pub fn of(text: &[u8]) -> Self {
        Self(hash(text))
    }

    /// The network of the address in `text`; a text that is not an address is a client of its own.
    pub fn within(text: &[u8], prefix: Prefix) -> Self {
        let address = std::str::from_utf8(text).ok().and_then(|text| text.parse::<IpAddr>().ok());
        match address {
            Some(IpAddr::V4(address)) => {
                let retained = u32::MAX.checked_shl(32 - u32::from(prefix.v4.min(32))).unwrap_or(0);
                Self(hash(&(u32::from(address) & retained).to_be_bytes()))
            }
            Some(IpAddr::V6(address)) => {
                let retained = u128::MAX.checked_shl(128 - u32::from(prefix.v6.min(128))).unwrap_or(0);
                Self(hash(&Ipv6Addr::from(u128::from(address) & retained).octets()))
            }
            None => Self::of(text),
        }
    }

    /// A client by its number, for synthetic logs.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Its number.
    #[inline]
    pub const fn bits(self) -> u64 {
        self.0
    }
}

/// Digits of pi, as arbitrary constants (the round constants of Blowfish begin with them).
const PI: [u64; 2] = [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344];

/// Hash over words of eight bytes, each folded into a 128-bit product. Addresses mostly have nine to sixteen
/// bytes: those take two overlapping words, and no loop.
#[inline]
pub(super) fn hash(text: &[u8]) -> u64 {
    let mut state = PI[0] ^ text.len() as u64;
    if let (Some(first), Some(last), 9..=16) = (text.first_chunk(), text.last_chunk(), text.len()) {
        let [first, last] = [*first, *last].map(u64::from_le_bytes);
        return fold(fold(state ^ first, PI[1] ^ last.rotate_left(32)), PI[0]);
    }
    let mut words = text.chunks_exact(8);
    for word in &mut words {
        state = fold(state ^ little_endian(word), PI[1]);
    }
    let rest = words.remainder();
    if !rest.is_empty() {
        // The last eight bytes, less those already folded in, are the rest; no loop is needed.
        let word = match text.last_chunk::<8>() {
            Some(last) => u64::from_le_bytes(*last) >> (64 - 8 * rest.len()),
            None => rest_of(rest),
        };
        state = fold(state ^ word, PI[1]);
    }
    fold(state, PI[0])
}

#[inline]
fn fold(one: u64, other: u64) -> u64 {
    let product = u128::from(one) * u128::from(other);
    // The low and the high half.
    #[expect(clippy::cast_possible_truncation)]
    let (low, high) = (product as u64, (product >> 64) as u64);
    low ^ high
}

#[inline]
fn little_endian(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

/// Up to eight bytes as a number.
#[inline]
fn rest_of(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// Definition of a client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientDefinition {
    /// Leading bits of its address; its whole text if not given.
    pub prefix: Option<Prefix>,
    /// Name of the client's field, where the format has names; the format's default if not given.
    pub field: Option<String>,
}

impl ClientDefinition {
    /// The client of a field's text.
    #[inline]
    pub fn client(&self, text: &[u8]) -> Client {
        match self.prefix {
            None => Client::of(text),
            Some(prefix) => Client::within(text, prefix),
        }
    }
}

/// `192.0.2.1:2817` and `[2001:db8::1]:2817` without the port.
pub fn without_port(address: &[u8]) -> &[u8] {
    match address.iter().rposition(|byte| *byte == b':') {
        // An IPv6 address without brackets has colons of its own.
        Some(colon) if address.starts_with(b"[") || !address[..colon].contains(&b':') => {
            let host = &address[..colon];
            host.strip_prefix(b"[").and_then(|host| host.strip_suffix(b"]")).unwrap_or(host)
        }
        Some(_) | None => address,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ports_are_cut_off() {
        let cut = |address: &str| String::from_utf8(without_port(address.as_bytes()).to_vec()).unwrap();
        assert_eq!(cut("192.0.2.1:80"), "192.0.2.1");
        assert_eq!(cut("[2001:db8::1]:80"), "2001:db8::1");
        assert_eq!(cut("2001:db8::1"), "2001:db8::1");
        assert_eq!(cut("host"), "host");
    }

    #[test]
    fn a_quarter_million_addresses_are_as_many_clients() {
        let mut seen = BTreeSet::new();
        for host in 0..=u16::MAX {
            for first in [10, 11, 172, 192] {
                let [a, b] = host.to_be_bytes();
                assert!(
                    seen.insert(Client::of(format!("{first}.0.{a}.{b}").as_bytes())),
                    "{first}.0.{a}.{b}"
                );
            }
        }
    }

    #[test]
    fn a_prefix_groups_neighbouring_addresses_and_leaves_names_unchanged() {
        let within = |text: &str| Client::within(text.as_bytes(), Prefix { v4: 24, v6: 64 });
        assert_eq!(within("192.0.2.1"), within("192.0.2.254"));
        assert_ne!(within("192.0.2.1"), within("192.0.3.1"));
        assert_eq!(within("2001:db8::1"), within("2001:db8:0:0:ffff::2"));
        assert_ne!(within("2001:db8::1"), within("2001:db8:0:1::1"));
        assert_eq!(within("pppa006.compuserve.com"), Client::of(b"pppa006.compuserve.com"));
    }

    #[test]
    fn longest_prefix_keeps_addresses_apart_and_shortest_joins_all() {
        let all = Prefix { v4: 0, v6: 0 };
        assert_eq!(Client::within(b"10.0.0.1", all), Client::within(b"192.0.2.1", all));
        let one = Prefix { v4: 32, v6: 128 };
        assert_ne!(Client::within(b"10.0.0.1", one), Client::within(b"10.0.0.2", one));
    }

    #[test]
    fn rest_is_the_same_number_from_short_and_long_texts() {
        for text in ["::1", "1.0.0.1", "pppa006.compuserve.com", "2001:db8::1:2:3:4"] {
            let words = text.as_bytes().chunks(8).map(rest_of);
            let state = words.fold(PI[0] ^ text.len() as u64, |state, word| fold(state ^ word, PI[1]));
            assert_eq!(Client::of(text.as_bytes()).bits(), fold(state, PI[0]), "{text}");
        }
    }

    #[test]
    fn regress_a_client_keeps_its_number() {
        assert_eq!(Client::of(b"192.0.2.1").bits(), Client::of(b"192.0.2.1").bits());
        assert_ne!(Client::of(b""), Client::of(b"\0"));
    }
}
