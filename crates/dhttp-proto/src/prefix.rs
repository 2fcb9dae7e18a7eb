//! A network by the first bits of its addresses: `203.0.113.0/24`, or one address alone (RFC 4632, RFC 4291).
//!
//! Not a route: it only selects addresses. What kind of address one is, [`super::address`] decides.

use core::net::IpAddr;
use core::str::FromStr;
use std::fmt;

/// Addresses with the same first bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Prefix {
    address: IpAddr,
    bits: u8,
}

impl Prefix {
    /// Whether this is a prefix of IPv6 addresses.
    pub const fn is_ipv6(&self) -> bool {
        self.address.is_ipv6()
    }

    /// Whether an address is in this network. An IPv4-mapped IPv6 address counts as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                (own.to_bits() ^ other.to_bits()).leading_zeros() >= u32::from(self.bits)
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                (own.to_bits() ^ other.to_bits()).leading_zeros() >= u32::from(self.bits)
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

/// Set of at most [`Prefixes::MAX_PREFIXES`] prefixes, stored inline so that configurations remain `Copy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefixes([Option<Prefix>; Self::MAX_PREFIXES]);

impl Prefixes {
    /// Maximum number of prefixes; enough for a list written by hand.
    pub const MAX_PREFIXES: usize = 8;

    /// A set of these prefixes; `None` if there are more than [`Self::MAX_PREFIXES`].
    pub fn new(prefixes: &[Prefix]) -> Option<Self> {
        let mut all = [None; Self::MAX_PREFIXES];
        for (index, prefix) in prefixes.iter().enumerate() {
            *all.get_mut(index)? = Some(*prefix);
        }
        Some(Self(all))
    }

    /// Iterates over the prefixes.
    pub fn iter(&self) -> impl Iterator<Item = &Prefix> {
        self.0.iter().flatten()
    }

    /// Whether one of the networks contains an address.
    pub fn contain(&self, address: IpAddr) -> bool {
        self.iter().any(|prefix| prefix.contains(address))
    }
}

impl FromStr for Prefix {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Self, PrefixError> {
        let (address, bits) =
            text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| PrefixError)?;
        let max = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(max), str::parse).map_err(|_| PrefixError)?;
        if bits <= max { Ok(Self { address, bits }) } else { Err(PrefixError) }
    }
}

/// Parse error: neither an address nor a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is neither an address nor a network, such as 203.0.113.0/24")]
pub struct PrefixError;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_contains_exactly_its_addresses() {
        let contains = |prefix: &str, address: &str| {
            prefix.parse::<Prefix>().unwrap().contains(address.parse().unwrap())
        };
        for (prefix, address) in [
            ("203.0.113.0/24", "203.0.113.255"),
            ("203.0.113.7", "203.0.113.7"),
            ("203.0.113.0/24", "::ffff:203.0.113.9"),
            ("0.0.0.0/0", "192.0.2.1"),
            ("2001:db8::/32", "2001:db8:ffff::1"),
        ] {
            assert!(contains(prefix, address), "{prefix} {address}");
        }
        for (prefix, address) in [
            ("203.0.113.0/24", "203.0.114.0"),
            ("203.0.113.7", "203.0.113.6"),
            ("0.0.0.0/0", "2001:db8::1"),
            ("2001:db8::/32", "2001:db9::1"),
        ] {
            assert!(!contains(prefix, address), "{prefix} {address}");
        }
        for text in ["", "203.0.113.0/33", "203.0.113.0/", "203.0.113/24", "::/129", "203.0.113.0/-1"] {
            assert_eq!(text.parse::<Prefix>(), Err(PrefixError), "{text}");
        }
    }
}
