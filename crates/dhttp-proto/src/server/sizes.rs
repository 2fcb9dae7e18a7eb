//! Maximum datagram size on the path to a client: the size threshold, S, where it adapts.
//!
//! The paper fixes S at one Ethernet packet. On a path that carries less, every response between the two sizes is lost
//! silently, and the client waits for a timeout. There are two signals: resends for large responses but not for others,
//! and errors of the local link. ICMP messages are ignored because anyone can forge them, as in packetization layer
//! path MTU discovery (RFC 8899), whose raise timer is used here. S never exceeds the profile's value.

use core::net::IpAddr;

use wire::{Duration, Time};

use super::prefixes::Prefixes;

/// Adaptation of S.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Adaptation {
    /// Minimum of S, in bytes; losses of smaller responses are not attributed to size.
    pub min: u64,
    /// Maximum number of prefixes with an entry.
    pub prefixes: usize,
    /// Lifetime of an entry, after which the largest size is tried again.
    pub lasts: Duration,
}

impl Adaptation {
    /// 512 bytes, 1,024 prefixes, ten minutes (RFC 8899, section 5.1.1: `PMTU_RAISE_TIMER`).
    pub const USUAL: Self = Self { min: 512, prefixes: 1_024, lasts: Duration::from_secs(600) };
}

/// Size thresholds of paths.
#[derive(Debug)]
pub(super) struct Sizes {
    max: u64,
    known: Option<(Adaptation, Prefixes<PathSizes>)>,
}

/// Entry for the path to a prefix.
#[derive(Clone, Copy, Debug, Default)]
struct PathSizes {
    /// S, if it is less than the profile's.
    max: Option<u64>,
    /// Number of resends for large responses since the first of them, and the size of the smallest.
    count_resend: u64,
    smallest: u64,
    /// Responses of at least that size that were sent since the first resend.
    sent: u64,
    since: Time,
}

/// Values of S below the profile's: packets of 1,280 bytes (IPv6), 1,024, 768 and 576, without the headers of IP and
/// UDP and what tunnels add.
const STEPS: [u64; 4] = [1_232, 976, 720, 512];

/// Number of strikes that lowers S, if they are also more than half of the responses sent.
const MIN_RESENDS: u64 = 2;

impl Sizes {
    pub(super) fn new(max: u64, adapts: Option<Adaptation>, key: [u8; 16]) -> Self {
        let known = adapts.map(|adapts| (adapts, Prefixes::new(key, adapts.prefixes, PathSizes::weight)));
        Self { max, known }
    }

    /// S for a client.
    pub(super) fn max(&mut self, now: Time, client: IpAddr) -> u64 {
        let Some((adapts, prefixes)) = &mut self.known else { return self.max };
        let Some(known) = prefixes.find(client) else { return self.max };
        if now.since(known.since) >= adapts.lasts {
            prefixes.forget(client);
            return self.max;
        }
        known.max.map_or(self.max, |max| max.min(self.max))
    }

    /// Counts a response of this size that was sent by UDP.
    pub(super) fn sent(&mut self, client: IpAddr, size: u64) {
        if let Some((_, prefixes)) = &mut self.known
            && let Some(known) = prefixes.find(client)
            && size >= known.smallest
        {
            known.sent += 1;
        }
    }

    /// Counts a resend for a response of this size that went by UDP or would have. Returns the number of such resends
    /// if they are now attributed to the size: those were not lost to congestion.
    pub(super) fn count_resend(&mut self, now: Time, client: IpAddr, size: u64) -> Option<u64> {
        let (adapts, prefixes) = self.known.as_mut()?;
        if size <= adapts.min {
            // Small responses are lost as well: the cause is not size.
            if prefixes.find(client).is_some_and(|known| known.max.is_none()) {
                prefixes.forget(client);
            }
            return None;
        }
        let initial = PathSizes { smallest: size, sent: 1, since: now, ..PathSizes::default() };
        let known = prefixes.find_or_begin(client, initial)?;
        known.count_resend += 1;
        known.smallest = known.smallest.min(size);
        if known.count_resend < MIN_RESENDS || known.count_resend * 2 <= known.sent {
            return None;
        }
        let count_resend = known.count_resend;
        self.lower(now, client, size);
        Some(count_resend)
    }

    /// Handles an error of the local link, which carries no datagram of this size to the client.
    pub(super) fn refused(&mut self, now: Time, client: IpAddr, size: u64) {
        self.lower(now, client, size);
    }

    /// Lowers S below the smallest size known not to arrive.
    fn lower(&mut self, now: Time, client: IpAddr, size: u64) {
        let Some((adapts, prefixes)) = &mut self.known else { return };
        let initial = PathSizes { smallest: size, ..PathSizes::default() };
        let Some(known) = prefixes.find_or_begin(client, initial) else { return };
        let smallest = known.smallest.min(size);
        let step = STEPS.into_iter().find(|step| *step < smallest).unwrap_or(adapts.min);
        let max = known.max.map_or(step, |max| max.min(step)).max(adapts.min);
        *known = PathSizes { max: Some(max), count_resend: 0, smallest: max, sent: 0, since: now };
    }
}

impl PathSizes {
    fn weight(&self) -> u64 {
        self.count_resend + if self.max.is_some() { MIN_RESENDS } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;

    const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
    const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 1, 1));

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    fn sizes() -> Sizes {
        Sizes::new(1_460, Some(Adaptation::USUAL), [5; 16])
    }

    /// Sends responses of these sizes over a path that carries `carries` bytes, until S is stable; returns S and the
    /// number of lost responses.
    fn paths_over(carries: u64, responses: &[u64]) -> (u64, u64) {
        let (mut sizes, mut lost) = (sizes(), 0);
        for size in responses.iter().cycle().take(100) {
            if *size <= sizes.max(at(1), CLIENT) {
                sizes.sent(CLIENT, *size);
                if *size > carries {
                    lost += 1;
                    sizes.count_resend(at(1), CLIENT, *size);
                }
            }
        }
        (sizes.max(at(1), CLIENT), lost)
    }

    #[test]
    fn a_path_that_carries_less_is_found_at_the_cost_of_a_few_responses() {
        assert_eq!(paths_over(1_460, &[1_460, 700, 1_200]), (1_460, 0));
        assert_eq!(paths_over(1_300, &[1_460, 700, 1_200]), (1_232, 2));
        assert_eq!(paths_over(1_000, &[1_460]), (1_232, 2), "what it does not send it need not know");
        assert_eq!(paths_over(1_000, &[1_100, 1_300]), (976, 2));
        assert_eq!(paths_over(600, &[1_400, 1_100, 900, 700, 300]), (512, 4));
        assert_eq!(paths_over(0, &[2_000, 1_400]).0, 1_232);
    }

    #[test]
    fn loss_is_not_taken_for_a_smaller_path_mtu() {
        let mut sizes = sizes();
        for response in 0..10_000 {
            let size = if response % 2 == 0 { 1_400 } else { 300 };
            sizes.sent(CLIENT, size);
            // One in five, of either size.
            if response % 5 == 0 {
                assert_eq!(sizes.count_resend(at(1), CLIENT, size), None);
            }
        }
        assert_eq!(sizes.max(at(1), CLIENT), 1_460);
    }

    #[test]
    fn loss_concerns_one_prefix_and_udp_is_retried() {
        let mut sizes = sizes();
        sizes.refused(at(0), CLIENT, 1_400);
        assert_eq!((sizes.max(at(599), CLIENT), sizes.max(at(0), OTHER)), (1_232, 1_460));
        assert_eq!(sizes.max(at(600), CLIENT), 1_460);
        sizes.refused(at(600), CLIENT, 100);
        assert_eq!(sizes.max(at(600), CLIENT), 512, "and no less");
    }

    #[test]
    fn resends_attributed_to_the_size_are_reported() {
        let mut sizes = sizes();
        assert_eq!(sizes.count_resend(at(0), CLIENT, 1_400), None);
        sizes.sent(CLIENT, 1_400);
        assert_eq!(sizes.count_resend(at(1), CLIENT, 1_400), Some(2));
    }
}
