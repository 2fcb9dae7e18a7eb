//! Response rate limiting: how many responses a prefix gets without a token, and how many bytes by UDP with one.
//!
//! Decaying counters in a table of fixed size, for three prefix lengths: a flood from many addresses of one network
//! fills the counters of its shorter prefixes. Modelled on Knot DNS. Two prefixes may share a counter; the key of the
//! table is secret, so that an attacker cannot choose to share one with a victim for long. A server has two limiters: a
//! token only proves that a host at the address has received before, maybe an attacker behind the same address
//! translator.

use core::net::{IpAddr, Ipv6Addr};

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
    /// Capacity of the counters of an address, of a site (/24, or /64 of IPv6) and of a network (/16, /48), in responses or
    /// in units of [`UNIT_BYTES`]; less than 4,194,304.
    pub most: [u32; 3],
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
    /// Limits for clients with a token, in units of [`UNIT_BYTES`]: bursts of 1 MiB per address, 4 MiB per site and 16
    /// MiB per network. The sustained rate is 0.7 of that per second. Every response beyond that is replaced by the
    /// bare id.
    pub fn for_tokens() -> Self {
        let [address, site, network] = [1_u64 << 20, 4 << 20, 16 << 20].map(units);
        Self { most: [address, site, network], slip: 1, ..Self::default() }
    }
}

impl Default for LimiterConfig {
    /// 65,536 counters (512 KiB) that halve in a second: about 70 responses per second to an address, 350 to a site,
    /// 1,400 to a network.
    fn default() -> Self {
        Self {
            counters: 65_536,
            half_life: Duration::from_secs(1),
            most: [100, 500, 2_000],
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
#[derive(Debug)]
pub struct Limiter {
    config: LimiterConfig,
    key: Secret,
    counters: Vec<Counter>,
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

impl Limiter {
    /// Limiter with an empty table; `key` comes from a CSPRNG.
    pub fn new(config: LimiterConfig, key: [u8; 16]) -> Self {
        Self {
            config,
            key: Secret(key),
            counters: vec![Counter::default(); config.counters.max(1)],
            limited: 0,
        }
    }

    /// Returns the number of responses limited so far, or that would have been in a dry run.
    pub const fn limited(&self) -> u64 {
        self.limited
    }

    /// Adds `weight` responses to the counters of an address, unless one of them is full.
    pub fn charge(&mut self, now: Time, address: IpAddr, weight: u32) -> Allowance {
        let places = prefixes(address).map(|prefix| self.place(prefix));
        let loads = places.map(|place| self.decayed(now, place));
        let weight = weight.saturating_mul(UNIT);
        let is_full = loads
            .iter()
            .zip(self.config.most)
            .any(|(load, most)| load.saturating_add(weight) > most.saturating_mul(UNIT));
        if is_full {
            self.limited += 1;
            if !self.config.is_dry_run {
                let slips = self.config.slip != 0 && self.limited.is_multiple_of(u64::from(self.config.slip));
                return if slips { Allowance::Slip } else { Allowance::Silence };
            }
        }
        for (place, load) in places.into_iter().zip(loads) {
            if let Some(counter) = self.counters.get_mut(place) {
                *counter = Counter { load: load.saturating_add(weight), at_millis: millis(now) };
            }
        }
        Allowance::Granted
    }

    fn place(&self, prefix: [u8; 17]) -> usize {
        self.key.place(&prefix, self.counters.len())
    }

    /// Returns the current load: halved for every whole half-life, and interpolated between.
    fn decayed(&self, now: Time, place: usize) -> u32 {
        let Some(&Counter { load, at_millis }) = self.counters.get(place) else { return 0 };
        let age = u64::from(millis(now).wrapping_sub(at_millis));
        if load == 0 || age == 0 {
            return load;
        }
        let half_life = (self.config.half_life.as_nanos() / 1_000_000).max(1);
        let halvings = u32::try_from(age / half_life).unwrap_or(u32::MAX);
        let load = load.checked_shr(halvings).unwrap_or(0);
        // 2^-x for x below 1, as 1 - x (ln 2 - x (ln 2 - 1/2)): exact at both ends, and at 0 with its slope, so that a
        // counter that is read often decays no slower than another.
        let (age, half_life) = (u128::from(age % half_life), u128::from(half_life));
        let part =
            u128::from(load) * age * (6_931 * half_life - 1_931 * age) / (10_000 * half_life * half_life);
        load - u32::try_from(part).unwrap_or(0)
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
    fn a_token_is_good_for_a_mebibyte_at_once_and_two_thirds_of_one_a_second() {
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
        assert_eq!((limiter.counters.len(), limiter.counters.capacity()), (64, 64));
    }
}
