//! Shares of a limited resource, such as connections or fetches, by the networks of those that hold it.
//!
//! The holder of one address of IPv6 often has a whole network of them (RFC 6177), so a limit of each address binds no one
//! there. Each network that an address is part of therefore has a share: in full while at most half of the total is in use, and
//! then less and less, so that something is left for newcomers. Not which holder loses its part: that is the owner's choice.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::collections::BTreeMap;

use super::address::is_private;

/// Parts of a resource in use, by network.
#[derive(Debug)]
pub struct Shares {
    holders: Holders,
    of: BTreeMap<Network, u64>,
    total: u64,
}

/// Kind of those that hold parts of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holders {
    /// Hosts of the Internet: a client is an IPv4 address or an IPv6 /64.
    Internet,
    /// Hosts behind a router, where a whole site may be one /64: a client is an address.
    Inside,
}

/// Limits of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShareLimits {
    /// Limit of all together.
    pub total: u64,
    /// Limit of one client: an address, or a /64.
    pub client: u64,
    /// Whether larger networks have shares: not if all clients may have one address.
    pub has_networks: bool,
}

/// A network: its first address, and the bits of its prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Network {
    first: IpAddr,
    bits: u32,
}

/// Reason for a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShareRefusal {
    /// All together have as many as they may.
    Total,
    /// The client has.
    Client(Network),
    /// A network of the client's has.
    Network(Network),
}

/// Prefixes with a share, by length, and their share in 16ths of the total. Providers have a /16 or a /32, sites a /24, a /48
/// (RFC 6177) or a /56.
const SHARES_V4: [(u32, u64); 2] = [(24, 4), (16, 8)];
const SHARES_V6: [(u32, u64); 3] = [(56, 3), (48, 4), (32, 8)];
/// The same behind a router, whose only network leaves half for others: a link has a /24 or a /64.
const INSIDE_V4: [(u32, u64); 2] = [(24, 8), (16, 12)];
const INSIDE_V6: [(u32, u64); 2] = [(64, 8), (56, 12)];

/// A client may have this many, however full the total is: a new connection beside one that it has closed, or keeps alive. Its
/// networks may have twice, four times and eight times as many: a stranger in one of them does not lock it out.
const MIN_CLIENT: u64 = 2;

impl Network {
    /// Returns the client of an address in the Internet: itself, or its /64.
    pub fn client(address: IpAddr) -> Self {
        Holders::Internet.client(address)
    }

    fn of(address: IpAddr, bits: u32) -> Self {
        let first = match address.to_canonical() {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32 - bits.min(32)).unwrap_or(0);
                Ipv4Addr::from_bits(address.to_bits() & mask).into()
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128 - bits.min(128)).unwrap_or(0);
                Ipv6Addr::from_bits(address.to_bits() & mask).into()
            }
        };
        Self { first, bits }
    }

    /// Returns its first address.
    pub const fn first(self) -> IpAddr {
        self.first
    }

    /// Whether an address is part of it.
    pub fn contains(self, address: IpAddr) -> bool {
        Self::of(address, self.bits) == self
    }
}

impl Holders {
    fn client(self, address: IpAddr) -> Network {
        let bits = match (address.to_canonical(), self) {
            (IpAddr::V4(_), _) => 32,
            (IpAddr::V6(_), Self::Internet) => 64,
            (IpAddr::V6(_), Self::Inside) => 128,
        };
        Network::of(address, bits)
    }

    /// Returns the larger networks of an address that have a share, with it. In the Internet those of one site
    /// (RFC 1918, RFC 4193) have none: all its hosts may be there.
    fn larger(self, address: IpAddr) -> impl Iterator<Item = (Network, u64)> {
        let shares: &[(u32, u64)] = match (address.to_canonical(), self) {
            (address, Self::Internet) if is_private(address) => &[],
            (IpAddr::V4(_), Self::Internet) => &SHARES_V4,
            (IpAddr::V6(_), Self::Internet) => &SHARES_V6,
            (IpAddr::V4(_), Self::Inside) => &INSIDE_V4,
            (IpAddr::V6(_), Self::Inside) => &INSIDE_V6,
        };
        shares.iter().map(move |(bits, share)| (Network::of(address, *bits), *share))
    }
}

impl Default for Shares {
    fn default() -> Self {
        Self::of_holders(Holders::Internet)
    }
}

impl Shares {
    /// Shares of such holders, of which none is in use.
    pub const fn of_holders(holders: Holders) -> Self {
        Self { holders, of: BTreeMap::new(), total: 0 }
    }

    /// Counts one more for this address, if it may have one.
    ///
    /// # Errors
    /// The reason why it may not; nothing is counted.
    pub fn take(&mut self, address: IpAddr, limits: ShareLimits) -> Result<(), ShareRefusal> {
        self.check(address, limits)?;
        self.add(address);
        Ok(())
    }

    /// Checks whether this address may have one more.
    ///
    /// # Errors
    /// The reason why it may not.
    pub fn check(&self, address: IpAddr, limits: ShareLimits) -> Result<(), ShareRefusal> {
        if self.total >= limits.total {
            return Err(ShareRefusal::Total);
        }
        let client = self.holders.client(address);
        let of_client = self.of(client);
        let max = if limits.has_networks { self.scaled(limits.client, limits.total) } else { limits.client };
        if of_client >= max.max(MIN_CLIENT).min(limits.client) {
            return Err(ShareRefusal::Client(client));
        }
        if limits.has_networks {
            for (floor, (network, share)) in (1..).zip(self.holders.larger(address)) {
                // A network has at least what one client in it may have.
                let share = (limits.total / 16).saturating_mul(share).max(limits.client);
                if self.of(network) >= self.scaled(share, limits.total).max(MIN_CLIENT << floor) {
                    return Err(ShareRefusal::Network(network));
                }
            }
        }
        Ok(())
    }

    /// Counts one more for this address, whatever the limits.
    pub fn add(&mut self, address: IpAddr) {
        self.total += 1;
        for network in self.counted(address) {
            *self.of.entry(network).or_default() += 1;
        }
    }

    /// Counts one fewer.
    pub fn give_back(&mut self, address: IpAddr) {
        self.total = self.total.saturating_sub(1);
        for network in self.counted(address) {
            if let Some(count) = self.of.get_mut(&network) {
                *count -= 1;
                if *count == 0 {
                    self.of.remove(&network);
                }
            }
        }
    }

    /// Returns the number in use by a network.
    pub fn of(&self, network: Network) -> u64 {
        self.of.get(&network).copied().unwrap_or(0)
    }

    /// Returns the number in use by the largest network of an address: one with a share.
    pub fn of_largest(&self, address: IpAddr) -> u64 {
        self.holders.larger(address).map(|(network, _)| self.of(network)).max().unwrap_or(0)
    }

    /// Returns the number in use.
    pub const fn total(&self) -> u64 {
        self.total
    }

    fn counted(&self, address: IpAddr) -> impl Iterator<Item = Network> + use<> {
        let larger = self.holders.larger(address).map(|(network, _)| network);
        std::iter::once(self.holders.client(address)).chain(larger)
    }

    /// A share of the total as far as the total is free: all of it, or less from half of the total on.
    fn scaled(&self, share: u64, total: u64) -> u64 {
        let free = total.saturating_sub(self.total);
        if free >= total / 2 { share } else { share.saturating_mul(2).saturating_mul(free) / total.max(1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: ShareLimits = ShareLimits { total: 1_600, client: 100, has_networks: true };

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// Takes until nothing is granted, from one address after the other; returns the number granted.
    fn take_all(shares: &mut Shares, addresses: impl Iterator<Item = IpAddr> + Clone) -> u64 {
        let before = shares.total();
        while addresses.clone().filter(|address| shares.take(*address, LIMITS).is_ok()).count() > 0 {}
        shares.total() - before
    }

    fn nets(count: u128, shift: u32) -> impl Iterator<Item = IpAddr> + Clone {
        let first = u128::from_be_bytes(Ipv6Addr::new(0x2a0f, 0, 0, 0, 0, 0, 0, 1).octets());
        (0..count).map(move |number| Ipv6Addr::from_bits(first + (number << shift)).into())
    }

    #[test]
    fn a_site_of_ipv6_has_its_share_however_many_networks_it_uses() {
        let taken = |addresses: Vec<IpAddr>| take_all(&mut Shares::default(), addresses.into_iter());
        assert_eq!(taken(nets(1, 64).collect()), 100, "a /64 is a client");
        assert_eq!(taken(nets(256, 64).collect()), 300, "a /56");
        assert_eq!(taken(nets(256, 72).collect()), 400, "a /48");
        assert_eq!(taken(nets(256, 80).collect()), 800, "a /32");
        let hosts = |bits: u32| {
            (0..250).map(move |number: u32| Ipv4Addr::from_bits(0x0b00_0001 + (number << bits)).into())
        };
        assert_eq!(taken(hosts(0).collect()), 400, "a /24");
        assert_eq!(taken(hosts(8).collect()), 800, "a /16");
    }

    #[test]
    fn shares_shrink_so_that_newcomers_have_some_left() {
        let mut shares = Shares::default();
        let taken = take_all(&mut shares, nets(64, 96));
        assert!((1_200..1_600).contains(&taken), "64 networks: {taken}");
        assert_eq!(shares.take(address("198.51.100.7"), LIMITS), Ok(()), "a newcomer");
        let last = nets(1, 96).next().unwrap();
        assert!(shares.take(last, LIMITS).is_err());
    }

    #[test]
    fn a_client_has_a_second_one_however_full_the_total_is() {
        let mut shares = Shares::default();
        assert_eq!(take_all(&mut shares, nets(3_000, 96)), LIMITS.total);
        let client = address("198.51.100.7");
        let refusal = ShareRefusal::Client(Network::client(client));
        for (evicted, expected) in nets(3, 96).zip([Ok(()), Ok(()), Err(refusal)]) {
            shares.give_back(evicted);
            assert_eq!(shares.take(client, LIMITS), expected);
        }
    }

    #[test]
    fn what_is_given_back_leaves_no_trace() {
        let mut shares = Shares::default();
        for text in ["2a0f::1", "::ffff:192.0.2.1", "192.0.2.1"] {
            shares.take(address(text), LIMITS).unwrap();
        }
        assert_eq!((shares.total(), shares.of(Network::client(address("192.0.2.1")))), (3, 2));
        assert_eq!(
            (shares.of_largest(address("192.0.2.200")), shares.of_largest(address("192.1.0.0"))),
            (2, 0)
        );
        for text in ["2a0f::1", "192.0.2.1", "192.0.2.1"] {
            shares.give_back(address(text));
        }
        assert!(shares.of.is_empty() && shares.total() == 0);
    }

    #[test]
    fn clients_behind_one_address_have_the_total() {
        let limits = ShareLimits { total: 50, client: u64::MAX, has_networks: false };
        let mut shares = Shares::default();
        let taken = (0..100).filter(|_| shares.take(address("10.0.0.1"), limits).is_ok()).count();
        assert_eq!((taken, shares.take(address("10.0.0.1"), limits)), (50, Err(ShareRefusal::Total)));
    }

    #[test]
    fn a_network_behind_a_router_leaves_half_to_others_and_each_address_is_a_client() {
        for first in ["fd00::", "2a0f::", "10.0.0.0"] {
            let first = address(first);
            let hosts = (1..200_u8).map(|number| match first {
                IpAddr::V4(first) => Ipv4Addr::from_bits(first.to_bits() + u32::from(number)).into(),
                IpAddr::V6(first) => Ipv6Addr::from_bits(first.to_bits() + u128::from(number)).into(),
            });
            let mut shares = Shares::of_holders(Holders::Inside);
            assert_eq!(take_all(&mut shares, hosts.clone().take(1)), 100, "{first}: a host");
            assert_eq!(take_all(&mut shares, hosts), 700, "{first}: its network");
            assert_eq!(shares.take(address("10.9.0.1"), LIMITS), Ok(()), "another network");
        }
    }

    #[test]
    fn networks_contain_their_addresses() {
        let site = Network::of(address("2a0f:0:0:ff00::1"), 56);
        assert!(site.contains(address("2a0f:0:0:ffff::2")) && !site.contains(address("2a0f:0:0:fe00::2")));
        assert!(!site.contains(address("192.0.2.1")));
    }
}
