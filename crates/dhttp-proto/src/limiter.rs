//! Response rate limiting: how many responses a prefix gets without a token, and how many bytes by UDP with one.
//!
//! Decaying counters in a table of fixed size, for three prefix lengths: a flood from many addresses of one network
//! fills the counters of its shorter prefixes. Modelled on Knot DNS. Two prefixes may share a counter; the key of the
//! table is secret, so that an attacker cannot choose to share one with a victim for long. A server has two limiters: a
//! token only proves that a host at the address has received before. That host may be an attacker behind the same NAT.
//! Clones share one table: the kernel spreads one address's ports over the threads of a server.

use core::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use wire::{Duration, Time};

use super::address::unmapped;
use super::secret::Secret;

/// Limits per prefix. A constant rate leads to a load of the rate times the half-life, divided by ln 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimiterConfig {
    /// Counters in the table, for all three lengths together.
    pub counters: usize,
    /// Time in which a counter halves if nothing is added.
    pub half_life: Duration,
    /// Capacity of the counters of an address, of a site (/24, or /64 of IPv6) and of a network (/16, /48). In responses or
    /// in units of [`UNIT_BYTES`]; 4,194,304 and more: no limit.
    pub max: [u32; 3],
    /// One of this many limited responses is replaced by the bare id of eight bytes. That refers a genuine client to
    /// plain HTTP, and sends little to a victim of spoofing. 0: none.
    pub slip: u32,
    /// Counts without limiting.
    pub is_dry_run: bool,
}

/// The unit in which bytes to clients with a token are counted.
pub const UNIT_BYTES: u64 = 64;

/// Converts bytes to units of [`UNIT_BYTES`], rounded up.
pub fn units(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX)
}

impl LimiterConfig {
    /// Limits for clients with a token, in units of [`UNIT_BYTES`]: bursts of 1 MiB per address and 4 MiB per site. The
    /// sustained rate is 0.7 of that per second. Every response beyond that is replaced by the bare id.
    ///
    /// A network has no limit. Spoofed requests need a token of each address, and the hosts that receive these tokens
    /// can load the network's link by downloads as well. Any limit below the rate of the server's own link would bind
    /// the users of a large network. A site is one host that owns a /64, or the public addresses of one translator.
    pub fn for_tokens() -> Self {
        Self { slip: 1, ..Self::default() }.of_address(1 << 20)
    }

    /// Returns the configuration with this number of responses per address, 5 times that per site, 20 times per network.
    #[must_use]
    pub fn of_responses(self, count: u32) -> Self {
        Self { max: [1, 5, 20].map(|times| count.saturating_mul(times)), ..self }
    }

    /// Returns the configuration with this burst of bytes per address, 4 times that per site, and no limit of networks.
    #[must_use]
    pub fn of_address(self, bytes: u64) -> Self {
        Self { max: [units(bytes), units(bytes.saturating_mul(4)), u32::MAX], ..self }
    }
}

impl Default for LimiterConfig {
    /// 65,536 counters (512 KiB) that halve in a second: about 70 responses per second to an address, 350 to a site,
    /// 1,400 to a network.
    fn default() -> Self {
        Self {
            counters: 65_536,
            half_life: Duration::from_secs(1),
            max: [100, 500, 2_000],
            slip: 2,
            is_dry_run: false,
        }
    }
}

/// Decision about a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowance {
    /// The response may be sent.
    Granted,
    /// The bare id is sent instead.
    Slip,
    /// Nothing is sent.
    Silence,
}

/// Response rate limiter.
#[derive(Clone, Debug)]
pub struct Limiter {
    config: LimiterConfig,
    key: Secret,
    /// Each is a [`Counter`]. Threads that update one at the same time may lose an update.
    counters: Arc<[AtomicU64]>,
    limited: u64,
}

/// Value of one counter at its last update, in 1/1024 of a response.
#[derive(Clone, Copy, Debug, Default)]
struct Counter {
    load: u32,
    /// Milliseconds, which wrap after 49 days. A counter that was idle for exactly that long seems recent again, and
    /// limits a client that has sent next to nothing.
    at_millis: u32,
}

const UNIT: u32 = 1_024;
/// Maximum time between the readings of the clock by two threads.
const MAX_SKEW_MILLIS: u32 = 1_000;

impl Counter {
    const fn to_bits(self) -> u64 {
        (self.load as u64) << 32 | self.at_millis as u64
    }

    #[expect(clippy::cast_possible_truncation, reason = "both halves have 32 bits")]
    const fn from_bits(bits: u64) -> Self {
        Self { load: (bits >> 32) as u32, at_millis: bits as u32 }
    }
}

impl Limiter {
    /// Limiter with an empty table; `key` comes from a CSPRNG.
    pub fn new(config: LimiterConfig, key: [u8; 16]) -> Self {
        Self {
            config,
            key: Secret(key),
            counters: (0..config.counters.max(1)).map(|_| AtomicU64::new(0)).collect(),
            limited: 0,
        }
    }

    /// Returns the number of responses limited so far, or that would have been in a dry run.
    pub const fn limited(&self) -> u64 {
        self.limited
    }

    /// Adds `weight` responses to the counters of an address, unless one of them is full.
    pub fn charge(&mut self, now: Time, address: IpAddr, weight: u32) -> Allowance {
        let indices = prefixes(address).map(|prefix| self.index(prefix));
        let counters = indices.map(|index| self.decayed(now, index));
        let weight = weight.saturating_mul(UNIT);
        let is_full = counters
            .iter()
            .zip(self.config.max)
            .any(|(counter, max)| counter.load.saturating_add(weight) > max.saturating_mul(UNIT));
        if is_full {
            self.limited += 1;
            if !self.config.is_dry_run {
                let is_slipped =
                    self.config.slip != 0 && self.limited.is_multiple_of(u64::from(self.config.slip));
                return if is_slipped { Allowance::Slip } else { Allowance::Silence };
            }
        }
        for (index, Counter { load, at_millis }) in indices.into_iter().zip(counters) {
            if let Some(counter) = self.counters.get(index) {
                let charged = Counter { load: load.saturating_add(weight), at_millis };
                counter.store(charged.to_bits(), Ordering::Relaxed);
            }
        }
        Allowance::Granted
    }

    fn index(&self, prefix: [u8; 17]) -> usize {
        self.key.index(&prefix, self.counters.len())
    }

    /// Returns a counter as it is now: halved for every whole half-life, and interpolated between.
    fn decayed(&self, now: Time, index: usize) -> Counter {
        let bits = self.counters.get(index).map_or(0, |counter| counter.load(Ordering::Relaxed));
        let Counter { load, at_millis } = Counter::from_bits(bits);
        let age = millis(now).wrapping_sub(at_millis);
        // Another thread's clock may have been read a moment later.
        if age > u32::MAX - MAX_SKEW_MILLIS {
            return Counter { load, at_millis };
        }
        let (age, at_millis) = (u64::from(age), millis(now));
        if load == 0 || age == 0 {
            return Counter { load, at_millis };
        }
        let half_life = (self.config.half_life.as_nanos() / 1_000_000).max(1);
        let halvings = u32::try_from(age / half_life).unwrap_or(u32::MAX);
        let load = load.checked_shr(halvings).unwrap_or(0);
        // 2^-x for x below 1, as 1 - x (ln 2 - x (ln 2 - 1/2)): exact at both ends, and at 0 with its slope, so that a
        // counter that is read often decays no slower than another.
        let (age, half_life) = (u128::from(age % half_life), u128::from(half_life));
        let part =
            u128::from(load) * age * (6_931 * half_life - 1_931 * age) / (10_000 * half_life * half_life);
        Counter { load: load - u32::try_from(part).unwrap_or(0), at_millis }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "it may come round: only differences count")]
const fn millis(now: Time) -> u32 {
    (now.as_nanos() / 1_000_000) as u32
}

/// Prefixes of the address, its site and its network, each with its length.
fn prefixes(address: IpAddr) -> [[u8; 17]; 3] {
    let (bits, lengths) = match unmapped(address) {
        IpAddr::V4(address) => (address.to_ipv6_mapped().to_bits(), [128, 96 + 24, 96 + 16]),
        IpAddr::V6(address) => (address.to_bits(), [128, 64, 48]),
    };
    lengths.map(|length: u8| {
        let prefix = bits & (u128::MAX << (128 - u32::from(length)));
        let mut named = [length; 17];
        named[..16].copy_from_slice(&Ipv6Addr::from_bits(prefix).octets());
        named
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    fn limiter(config: LimiterConfig) -> Limiter {
        Limiter::new(config, [7; 16])
    }

    fn granted(limiter: &mut Limiter, now: Time, addresses: impl Iterator<Item = String>) -> usize {
        addresses
            .filter(|address| limiter.charge(now, address.parse().unwrap(), 1) == Allowance::Granted)
            .count()
    }

    #[test]
    fn an_address_a_site_and_a_network_each_have_their_share() {
        let all = |make: fn(u32) -> String| {
            granted(&mut limiter(LimiterConfig::default()), at(0), (0..10_000).map(make))
        };
        assert_eq!(all(|_| "198.51.100.1".into()), 100);
        assert_eq!(all(|n| format!("198.51.100.{}", n % 256)), 500);
        assert_eq!(all(|n| format!("198.51.{}.{}", n / 256 % 256, n % 256)), 2_000);
        assert_eq!(all(|n| format!("2600::{:x}", n + 1)), 500);
        assert_eq!(all(|n| format!("2600:0:0:{n:x}::1")), 2_000);
    }

    #[test]
    fn a_load_halves_in_its_half_life() {
        let mut limiter = limiter(LimiterConfig::default());
        let same = || (0..200).map(|_| "198.51.100.1".to_owned());
        let by_time = [0, 1_000, 3_000, 3_500, 60_000].map(|now| granted(&mut limiter, at(now), same()));
        assert_eq!(by_time, [100, 50, 75, 29, 100]);
    }

    #[test]
    fn every_second_limited_response_slips() {
        let mut limiter = limiter(LimiterConfig::default());
        let address = "198.51.100.1".parse().unwrap();
        for _ in 0..100 {
            assert_eq!(limiter.charge(at(0), address, 1), Allowance::Granted);
        }
        let reported: Vec<Allowance> = (0..4).map(|_| limiter.charge(at(0), address, 1)).collect();
        assert_eq!(reported, [Allowance::Silence, Allowance::Slip, Allowance::Silence, Allowance::Slip]);
        assert_eq!(limiter.limited(), 4);
    }

    #[test]
    fn dry_run_counts_without_limiting() {
        let mut limiter = limiter(LimiterConfig { is_dry_run: true, ..LimiterConfig::default() });
        assert_eq!(granted(&mut limiter, at(0), (0..150).map(|_| "198.51.100.1".to_owned())), 150);
        assert_eq!(limiter.limited(), 50);
    }

    #[test]
    fn a_token_allows_a_mebibyte_immediately_and_two_thirds_of_one_a_second() {
        let mut limiter = limiter(LimiterConfig::for_tokens());
        let address = "198.51.100.1".parse().unwrap();
        let weight = units(1_232 + 28);
        let mut bytes = |from: u64, to: u64| -> u64 {
            let requested = (from * 10..to * 10).flat_map(|tick| (0..4_000).map(move |_| at(tick * 100)));
            let granted = requested.filter(|now| limiter.charge(*now, address, weight) == Allowance::Granted);
            granted.count() as u64 * u64::from(weight) * UNIT_BYTES
        };
        let [first, later] = [bytes(0, 1), bytes(1, 11)];
        assert!((1 << 20..2 << 20).contains(&first), "{first}");
        assert!((6 << 20..8 << 20).contains(&later), "{later} in ten seconds");
        assert_eq!(limiter.charge(at(10_900), address, weight), Allowance::Slip);
    }

    #[test]
    fn the_table_never_grows() {
        let mut limiter = limiter(LimiterConfig { counters: 64, ..LimiterConfig::default() });
        granted(&mut limiter, at(0), (0..10_000).map(|n| format!("10.{}.{}.1", n / 256, n % 256)));
        assert_eq!(limiter.counters.len(), 64);
    }

    #[test]
    fn a_network_with_tokens_has_no_limit_beside_those_of_its_addresses_and_sites() {
        let weight = units(1_232 + 28);
        let megabytes = |make: fn(u32) -> String| {
            let mut limiter = limiter(LimiterConfig { counters: 1 << 20, ..LimiterConfig::for_tokens() });
            let granted = (0..60_000).map(make).filter(|address| {
                limiter.charge(at(0), address.parse().unwrap(), weight) == Allowance::Granted
            });
            (granted.count() as u64 * u64::from(weight) * UNIT_BYTES) >> 20
        };
        assert_eq!(megabytes(|_| "198.51.100.1".into()), 0);
        assert_eq!(megabytes(|n| format!("198.51.100.{}", n % 256)), 3);
        assert_eq!(megabytes(|n| format!("2600::{:x}", n + 1)), 3);
        let all = (60_000 * u64::from(weight) * UNIT_BYTES) >> 20;
        assert_eq!(megabytes(|n| format!("198.51.{}.{}", n % 256, n / 256)), all);
        assert_eq!(megabytes(|n| format!("2600:0:0:{n:x}::1")), all);
    }

    #[test]
    fn clones_share_the_table_and_a_slow_clock_changes_nothing() {
        let mut threads = vec![limiter(LimiterConfig::default())];
        threads.push(threads[0].clone());
        let address = "198.51.100.1".parse().unwrap();
        let granted = (0..1_000).filter(|n| {
            let now = at(1_000 + n % 2);
            threads[usize::try_from(n % 2).unwrap()].charge(now, address, 1) == Allowance::Granted
        });
        assert_eq!(granted.count(), 100);
    }
}
