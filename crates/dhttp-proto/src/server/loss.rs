//! UDP or TCP: the paper's four steps (`papers/dhttp#section-iii-c`).
//!
//! Not congestion control: lost responses are requested again and sent over TCP, which has it. Fresh requests are those
//! with a response by UDP; resent requests are all resends that arrive. Their ratio is the estimate of loss. The paper
//! counts all clients in aggregate and names finer counting as future work; here it may be done by prefix.

use core::net::IpAddr;

use wire::{Duration, Time};

use super::config::{LossConfig, Scope};
use super::prefixes::Prefixes;

/// The two channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChannelKind {
    Udp,
    Tcp,
}

/// Estimates of loss.
#[derive(Debug)]
pub(super) struct Losses {
    threshold_ppm: u32,
    fades_after: Option<u64>,
    counters: Counters,
}

#[derive(Debug)]
enum Counters {
    Aggregate(Counter),
    /// Counters of prefixes that resent a request recently; the others have no known losses.
    Prefix {
        counters: Prefixes<Counter>,
        credit: u64,
        half_life: Duration,
    },
}

/// Fresh and resent requests, and the share of UDP that is due to small responses in high loss, in millionths of one
/// response.
#[derive(Clone, Copy, Debug, Default)]
struct Counter {
    fresh: u64,
    resent: u64,
    due_ppm: u32,
    /// When it began, or was last halved.
    halved: Time,
}

const MILLION: u32 = 1_000_000;

impl Losses {
    pub(super) fn new(config: LossConfig, key: [u8; 16]) -> Self {
        let LossConfig { threshold_ppm, scope, fades_after } = config;
        let counters = match scope {
            Scope::Aggregate => Counters::Aggregate(Counter::default()),
            Scope::Prefix { prefixes, credit, half_life } => {
                let counters = Prefixes::new(key, prefixes, Counter::weight);
                Counters::Prefix { counters, credit, half_life }
            }
        };
        Self { threshold_ppm: threshold_ppm.min(MILLION), fades_after, counters }
    }

    /// Whether a resend counts whose response has gone by TCP, or is still being produced. Nothing was lost by UDP then:
    /// the response waits in a queue, or behind others on its connection. The paper counts every resend.
    pub(super) const fn counts_late_resends(&self) -> bool {
        match self.counters {
            Counters::Aggregate(_) => true,
            Counters::Prefix { .. } => false,
        }
    }

    /// Counts a resent request.
    pub(super) fn count_resent(&mut self, now: Time, client: IpAddr) {
        self.counters.fade(now, client);
        let counter = match &mut self.counters {
            Counters::Aggregate(counter) => Some(counter),
            Counters::Prefix { counters, credit, half_life: _ } => {
                let begun = Counter { fresh: *credit, halved: now, ..Counter::default() };
                counters.find_or_begin(client, begun)
            }
        };
        if let Some(counter) = counter {
            counter.resent += 1;
        }
    }

    /// Discounts resent requests that had another reason than loss.
    pub(super) fn forgive(&mut self, client: IpAddr, resent: u64) {
        if let Some(counter) = self.counters.of(client) {
            counter.resent = counter.resent.saturating_sub(resent);
        }
    }

    /// Counts a response to a fresh request that was sent by UDP.
    pub(super) fn count_fresh(&mut self, client: IpAddr) {
        let fades_after = self.fades_after;
        let Some(counter) = self.counters.of(client) else { return };
        counter.fresh += 1;
        if fades_after.is_some_and(|max| counter.fresh >= max) {
            counter.halve(1);
        }
    }

    /// Chooses the channel of a response.
    pub(super) fn choose(
        &mut self,
        now: Time,
        client: IpAddr,
        is_large: bool,
        is_resend: bool,
    ) -> ChannelKind {
        let threshold_ppm = self.threshold_ppm;
        // Step 1.
        if is_large || is_resend {
            return ChannelKind::Tcp;
        }
        self.counters.fade(now, client);
        // Step 2: high loss or low loss.
        let counter = self.counters.of(client).filter(|counter| counter.is_above(threshold_ppm));
        // Step 3.
        let Some(counter) = counter else { return ChannelKind::Udp };
        // Step 4: a fraction L of the small responses by UDP, to keep measuring; the others by TCP.
        counter.due_ppm += threshold_ppm;
        if counter.due_ppm < MILLION {
            return ChannelKind::Tcp;
        }
        counter.due_ppm -= MILLION;
        ChannelKind::Udp
    }
}

impl Counters {
    /// Returns the counter of a client, if there is one.
    fn of(&mut self, client: IpAddr) -> Option<&mut Counter> {
        match self {
            Self::Aggregate(counter) => Some(counter),
            Self::Prefix { counters, credit: _, half_life: _ } => counters.find(client),
        }
    }

    /// Ages the counter of a prefix by time: a prefix of few clients might never reach a hundred fresh requests.
    fn fade(&mut self, now: Time, client: IpAddr) {
        let Self::Prefix { counters, credit, half_life } = self else { return };
        let Some(counter) = counters.find(client) else { return };
        let halvings = now.since(counter.halved).as_nanos().checked_div(half_life.as_nanos()).unwrap_or(0);
        if halvings > 0 {
            counter.halve(u32::try_from(halvings).unwrap_or(u32::MAX));
            counter.fresh = counter.fresh.max(*credit);
            counter.halved = now;
        }
        if counter.resent == 0 {
            counters.forget(client);
        }
    }
}

impl Counter {
    fn is_above(&self, threshold_ppm: u32) -> bool {
        u128::from(self.resent) * u128::from(MILLION) > u128::from(self.fresh) * u128::from(threshold_ppm)
    }

    fn halve(&mut self, times: u32) {
        (self.fresh, self.resent) =
            (self.fresh.checked_shr(times).unwrap_or(0), self.resent.checked_shr(times).unwrap_or(0));
    }

    fn weight(&self) -> u64 {
        self.fresh + self.resent
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;
    use proptest::prelude::*;

    const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
    const NEIGHBOUR: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
    const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 9, 1));

    fn by_prefix() -> Scope {
        Scope::Prefix { prefixes: 4_096, credit: 100, half_life: Duration::from_secs(60) }
    }

    fn losses(scope: Scope, fades_after: Option<u64>) -> Losses {
        Losses::new(LossConfig { threshold_ppm: 10_000, scope, fades_after }, [3; 16])
    }

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    /// Returns how many of this number of small responses go by UDP.
    fn over_udp(losses: &mut Losses, now: Time, client: IpAddr, responses: u32) -> usize {
        (0..responses).filter(|_| losses.choose(now, client, false, false) == ChannelKind::Udp).count()
    }

    #[test]
    fn paper_large_responses_and_responses_to_resends_go_by_tcp() {
        let mut losses = losses(Scope::Aggregate, None);
        assert_eq!(losses.choose(at(0), CLIENT, true, false), ChannelKind::Tcp);
        assert_eq!(losses.choose(at(0), CLIENT, false, true), ChannelKind::Tcp);
        assert_eq!(losses.choose(at(0), CLIENT, false, false), ChannelKind::Udp);
    }

    #[test]
    fn paper_loss_is_high_when_the_ratio_exceeds_one_in_a_hundred() {
        let mut losses = losses(Scope::Aggregate, None);
        (0..200).for_each(|_| losses.count_fresh(CLIENT));
        (0..2).for_each(|_| losses.count_resent(at(0), OTHER));
        assert_eq!(over_udp(&mut losses, at(0), CLIENT, 1_000), 1_000, "exactly 1% is not above it");
        losses.count_resent(at(0), OTHER);
        assert_eq!(over_udp(&mut losses, at(0), CLIENT, 1_000), 10, "1% by UDP, to keep watching");
        assert_eq!(over_udp(&mut losses, at(86_400), CLIENT, 1_000), 10, "time alone changes nothing");
    }

    #[test]
    fn paper_sampled_udp_responses_bring_udp_back() {
        let mut losses = losses(Scope::Aggregate, None);
        losses.count_resent(at(0), CLIENT);
        let mut small = 0;
        while over_udp(&mut losses, at(0), CLIENT, 2) < 2 {
            small += 2;
            if over_udp(&mut losses, at(0), CLIENT, 1) == 1 {
                losses.count_fresh(CLIENT);
            }
            assert!(small < 100_000, "it stays with TCP for ever");
        }
    }

    #[test]
    fn loss_of_a_prefix_affects_only_that_prefix() {
        let mut losses = losses(by_prefix(), None);
        losses.count_resent(at(0), CLIENT);
        assert_eq!(
            over_udp(&mut losses, at(0), NEIGHBOUR, 100),
            100,
            "one loss after a hundred responses without"
        );
        losses.count_resent(at(0), CLIENT);
        assert_eq!(over_udp(&mut losses, at(0), NEIGHBOUR, 100), 1);
        assert_eq!(over_udp(&mut losses, at(0), OTHER, 100), 100);
    }

    #[test]
    fn a_prefix_of_few_clients_comes_back_to_udp_when_it_has_been_quiet() {
        let mut losses = losses(by_prefix(), Some(10_000));
        (0..5).for_each(|_| losses.count_resent(at(0), CLIENT));
        assert_eq!(over_udp(&mut losses, at(59), CLIENT, 100), 1);
        assert_eq!(over_udp(&mut losses, at(60), CLIENT, 100), 1, "two are left");
        assert_eq!(over_udp(&mut losses, at(120), CLIENT, 100), 100, "one is left");
        assert_eq!(over_udp(&mut losses, at(180), CLIENT, 100), 100);
        assert!(losses.counters.of(CLIENT).is_none(), "forgotten");
    }

    #[test]
    fn old_losses_decay() {
        let mut losses = losses(Scope::Aggregate, Some(100));
        (0..2).for_each(|_| losses.count_resent(at(0), CLIENT));
        (0..150).for_each(|_| losses.count_fresh(CLIENT));
        assert_eq!(over_udp(&mut losses, at(0), CLIENT, 100), 100);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn losses_real_or_claimed_in_many_prefixes_move_no_other_client_to_tcp(
            resends in prop::collection::vec((any::<[u8; 3]>(), 1_u32..50), 0..2_000),
            quiet in any::<[u8; 3]>(),
        ) {
            let mut losses = losses(by_prefix(), Some(10_000));
            let address = |[a, b, c]: [u8; 3], host| IpAddr::V4(Ipv4Addr::new(a, b, c, host));
            for (net, times) in resends {
                if net != quiet {
                    (0..times).for_each(|_| losses.count_resent(at(0), address(net, 1)));
                }
            }
            prop_assert_eq!(over_udp(&mut losses, at(0), address(quiet, 2), 100), 100);
        }
    }
}
