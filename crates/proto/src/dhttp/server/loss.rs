//! UDP or TCP: the paper's four steps (`papers/dhttp#section-iii-c`).
//!
//! Not congestion control: what is lost is asked for again and answered over TCP, which has it. Fresh requests are
//! those answered by UDP, resent ones all that come in; their ratio is what is known of loss.

use core::net::IpAddr;

use super::config::{LossConfig, Scope};
use crate::dhttp::address::unmapped;
use crate::dhttp::secret::Secret;

/// The two channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Udp,
    Tcp,
}

/// What is known of loss.
#[derive(Debug)]
pub(super) struct Losses {
    config: LossConfig,
    key: Secret,
    counters: Vec<Counter>,
}

/// Fresh and resent requests, and what small answers over UDP are due in high loss, in millionths of one.
#[derive(Clone, Copy, Debug, Default)]
struct Counter {
    fresh: u64,
    resent: u64,
    due_ppm: u32,
}

/// Which counter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place(usize);

const MILLION: u32 = 1_000_000;

impl Losses {
    pub(super) fn new(config: LossConfig, key: [u8; 16]) -> Self {
        let counters = match config.scope {
            Scope::Aggregate => 1,
            Scope::Prefix { counters } => counters.max(1),
        };
        Self { config, key: Secret(key), counters: vec![Counter::default(); counters] }
    }

    /// Where a client's counter is.
    pub(super) fn place(&self, client: IpAddr) -> Place {
        Place(match self.config.scope {
            Scope::Aggregate => 0,
            Scope::Prefix { counters: _ } => self.key.place(&prefix(client), self.counters.len()),
        })
    }

    /// A resent request came in.
    pub(super) fn count_resent(&mut self, Place(place): Place) {
        if let Some(counter) = self.counters.get_mut(place) {
            counter.resent += 1;
        }
    }

    /// An answer to a fresh request left by UDP.
    pub(super) fn count_fresh(&mut self, Place(place): Place) {
        let fades_after = self.config.fades_after;
        let Some(counter) = self.counters.get_mut(place) else { return };
        counter.fresh += 1;
        if fades_after.is_some_and(|most| counter.fresh >= most) {
            counter.fresh /= 2;
            counter.resent /= 2;
        }
    }

    /// The channel for an answer.
    pub(super) fn choose(&mut self, Place(place): Place, is_large: bool, is_resend: bool) -> Kind {
        let threshold_ppm = self.config.threshold_ppm.min(MILLION);
        // Step 1.
        if is_large || is_resend {
            return Kind::Tcp;
        }
        let Some(counter) = self.counters.get_mut(place) else { return Kind::Tcp };
        // Step 2: high loss or low loss.
        if !counter.is_above(threshold_ppm) {
            // Step 3.
            return Kind::Udp;
        }
        // Step 4: L of the small answers by UDP, to keep watching; the others by TCP.
        counter.due_ppm += threshold_ppm;
        if counter.due_ppm < MILLION {
            return Kind::Tcp;
        }
        counter.due_ppm -= MILLION;
        Kind::Udp
    }
}

impl Counter {
    fn is_above(self, threshold_ppm: u32) -> bool {
        u128::from(self.resent) * u128::from(MILLION) > u128::from(self.fresh) * u128::from(threshold_ppm)
    }
}

/// The first three bytes of an IPv4 address, the first six of IPv6.
fn prefix(client: IpAddr) -> [u8; 6] {
    match unmapped(client) {
        IpAddr::V4(address) => {
            let [a, b, c, _] = address.octets();
            [a, b, c, 0, 0, 4]
        }
        IpAddr::V6(address) => {
            let [a, b, c, d, e, f, ..] = address.octets();
            [a, b, c, d, e, f]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;

    const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
    const NEIGHBOUR: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
    const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 9, 1));

    fn losses(scope: Scope, fades_after: Option<u64>) -> Losses {
        Losses::new(LossConfig { threshold_ppm: 10_000, scope, fades_after }, [3; 16])
    }

    /// The channels of so many small answers, as UDP's share.
    fn over_udp(losses: &mut Losses, client: IpAddr, answers: u32) -> usize {
        (0..answers).filter(|_| losses.choose(losses.place(client), false, false) == Kind::Udp).count()
    }

    #[test]
    fn paper_large_answers_and_answers_to_resends_go_by_tcp() {
        let mut losses = losses(Scope::Aggregate, None);
        assert_eq!(losses.choose(losses.place(CLIENT), true, false), Kind::Tcp);
        assert_eq!(losses.choose(losses.place(CLIENT), false, true), Kind::Tcp);
        assert_eq!(losses.choose(losses.place(CLIENT), false, false), Kind::Udp);
    }

    #[test]
    fn paper_loss_is_high_when_the_ratio_exceeds_one_in_a_hundred() {
        let mut losses = losses(Scope::Aggregate, None);
        (0..200).for_each(|_| losses.count_fresh(losses.place(CLIENT)));
        (0..2).for_each(|_| losses.count_resent(losses.place(OTHER)));
        assert_eq!(over_udp(&mut losses, CLIENT, 1_000), 1_000, "exactly 1% is not above it");
        losses.count_resent(losses.place(OTHER));
        assert_eq!(over_udp(&mut losses, CLIENT, 1_000), 10, "1% by UDP, to keep watching");
    }

    #[test]
    fn paper_what_is_watched_brings_udp_back() {
        let mut losses = losses(Scope::Aggregate, None);
        losses.count_resent(losses.place(CLIENT));
        let mut small = 0;
        while over_udp(&mut losses, CLIENT, 1) + over_udp(&mut losses, CLIENT, 1) < 2 {
            small += 2;
            if over_udp(&mut losses, CLIENT, 1) == 1 {
                losses.count_fresh(losses.place(CLIENT));
            }
            assert!(small < 100_000, "it stays with TCP for ever");
        }
    }

    #[test]
    fn a_prefix_suffers_only_for_itself() {
        let mut losses = losses(Scope::Prefix { counters: 4_096 }, None);
        losses.count_resent(losses.place(CLIENT));
        assert_eq!(over_udp(&mut losses, NEIGHBOUR, 100), 1);
        assert_eq!(over_udp(&mut losses, OTHER, 100), 100);
    }

    #[test]
    fn the_past_fades() {
        let mut losses = losses(Scope::Aggregate, Some(100));
        (0..2).for_each(|_| losses.count_resent(losses.place(CLIENT)));
        (0..150).for_each(|_| losses.count_fresh(losses.place(CLIENT)));
        assert_eq!(over_udp(&mut losses, CLIENT, 100), 100);
    }
}
