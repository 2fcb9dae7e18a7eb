//! Invariants of every link, for any configuration and any packets. For links that preserve the order of packets, a
//! second, slower calculation in exact fractions must agree to the nanosecond.

use std::collections::VecDeque;
use std::sync::Arc;

use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use wire::link::{
    CoDel, Config, Counters, DeliverySchedule, Jitter, Loss, OfferResult, Order, Output, Pipe,
    QueueDiscipline, QueueLimit, Reordering, Tally,
};
use wire::{Bytes, Duration, Probability, Rate, Seed, Time};

/// Packet to offer: the time since the previous one, and its size.
type OfferedPacket = (Duration, Bytes);

/// Outcome of a run: packets by number, from 0.
#[derive(Debug, PartialEq, Eq)]
struct RunOutcome {
    delivered: Vec<(usize, Time)>,
    dropped: Vec<usize>,
    lost: Vec<usize>,
    /// Dropped or lost after they were accepted.
    discarded: Vec<usize>,
    counters: Counters,
}

/// Drives a pipe according to its contract, and asserts at each step that no packet vanishes and none is early.
fn drive(config: &Config, seed: u64, offers: &[OfferedPacket]) -> RunOutcome {
    let mut pipe = Pipe::new(config, Seed::new(seed), 0).unwrap();
    let mut outcome = RunOutcome {
        delivered: Vec::new(),
        dropped: Vec::new(),
        lost: Vec::new(),
        discarded: Vec::new(),
        counters: Counters::default(),
    };
    let mut now = Time::ZERO;
    for (number, (gap, size)) in offers.iter().enumerate() {
        now += *gap;
        let _ = collect(&mut pipe, now, &mut outcome);
        match pipe.handle(now, number, *size) {
            OfferResult::Accepted => {}
            OfferResult::Dropped(packet) => outcome.dropped.push(packet),
            OfferResult::Lost(packet) => outcome.lost.push(packet),
        }
    }
    while let Some(next) = collect(&mut pipe, now, &mut outcome) {
        assert!(next > now, "a timeout in the past");
        now = next;
    }
    assert_eq!(pipe.in_transit(), 0);
    outcome.counters = *pipe.counters();
    outcome
}

fn collect(pipe: &mut Pipe<usize>, now: Time, outcome: &mut RunOutcome) -> Option<Time> {
    loop {
        let output = pipe.poll(now);
        let Counters { offered, dropped, lost, duplicated, delivered, queue_peak: _ } = pipe.counters();
        let finished = dropped.packets + lost.packets + delivered.packets;
        assert_eq!(offered.packets + duplicated.packets, finished + pipe.in_transit() as u64);
        match output {
            Output::Deliver { packet, due } => {
                assert!(due <= now, "{packet} was delivered before it was due");
                outcome.delivered.push((packet, due));
            }
            Output::Discard(packet) => outcome.discarded.push(packet),
            Output::Timeout(next) => return next,
        }
    }
}

/// Computes the same link without carries: times are fractions of a nanosecond over the rate.
fn in_exact_fractions(config: &Config, offers: &[OfferedPacket]) -> (Vec<(usize, Time)>, Vec<usize>, Tally) {
    let rate = config.rate.map_or(1, |rate| u128::from(rate.millibits_per_second()));
    let (mut now, mut free) = (0_u128, 0_u128);
    let mut transmissions: Vec<(u128, u64)> = Vec::new();
    let (mut delivered, mut dropped, mut peak) = (Vec::new(), Vec::new(), Tally::default());
    for (number, (gap, size)) in offers.iter().enumerate() {
        now += u128::from(gap.as_nanos()) * rate;
        let start = now.max(free);
        if start > now {
            let queued = transmissions.iter().filter(|(start, _)| *start > now);
            let packets = queued.clone().count() as u64 + 1;
            let bytes = Bytes::new(queued.map(|(_, size)| size).sum::<u64>() + size.get());
            let QueueLimit { bytes: max_bytes, packets: max_packets } = config.queue;
            if max_bytes.is_some_and(|max| bytes > max) || max_packets.is_some_and(|max| packets > max) {
                dropped.push(number);
                continue;
            }
            peak = Tally { packets: peak.packets.max(packets), bytes: peak.bytes.max(bytes) };
        }
        transmissions.push((start, size.get()));
        let framed = u128::from(size.get().saturating_add_signed(i64::from(config.framing)));
        free = start + if config.rate.is_some() { framed * 8_000_000_000_000 } else { 0 };
        let sent = Time::from_nanos(u64::try_from(free.div_ceil(rate)).unwrap());
        delivered.push((number, sent + config.delay));
    }
    (delivered, dropped, peak)
}

fn offers() -> impl Strategy<Value = Vec<OfferedPacket>> {
    let gap = prop_oneof![Just(0), 0..2_000_u64, 0..5_000_000_u64].prop_map(Duration::from_nanos);
    let size = prop_oneof![Just(40), Just(1500), 0..=65_535_u64].prop_map(Bytes::new);
    vec((gap, size), 0..120)
}

fn probability() -> impl Strategy<Value = Probability> {
    prop_oneof![Just(0.0), Just(1.0), 0.0..=1.0].prop_map(|p| Probability::new(p).unwrap())
}

fn loss() -> impl Strategy<Value = Loss> {
    let states = (probability(), probability(), probability(), probability());
    prop_oneof![
        Just(Loss::None),
        probability().prop_map(Loss::Independent),
        btree_set(1..130_u64, 0..20).prop_map(Loss::Exactly),
        states.prop_map(|(to_bad, to_good, loss_in_good, loss_in_bad)| Loss::GilbertElliott {
            to_bad,
            to_good,
            loss_in_good,
            loss_in_bad
        }),
    ]
}

/// Links without randomness: rate, framing, queue and delay.
fn plain() -> impl Strategy<Value = Config> {
    let rate = option::of(
        (1_000_000_u64..20_000_000_000_000).prop_map(|r| Rate::from_millibits_per_second(r).unwrap()),
    );
    let limit = (option::of((0..200_000_u64).prop_map(Bytes::new)), option::of(0..40_u64));
    let queue = limit.prop_map(|(bytes, packets)| QueueLimit { bytes, packets });
    let delay = (0..200_000_000_u64).prop_map(Duration::from_nanos);
    (rate, -60..60_i32, queue, delay).prop_map(|(rate, framing, queue, delay)| Config {
        rate,
        framing,
        queue,
        delay,
        ..Config::default()
    })
}

/// Links with every feature that preserves the order of packets.
fn ordered() -> impl Strategy<Value = Config> {
    let jitter = option::of(
        (0..10_000_000_u64)
            .prop_map(|nanos| Jitter { up_to: Duration::from_nanos(nanos), order: Order::Preserved }),
    );
    (plain(), jitter, loss(), probability()).prop_map(|(plain, jitter, loss, duplication)| Config {
        jitter,
        loss,
        duplication,
        ..plain
    })
}

/// Links with all features.
fn any_link() -> impl Strategy<Value = Config> {
    let order = prop_oneof![Just(Order::Preserved), Just(Order::Free)];
    let jitter = option::of(
        (0..10_000_000_u64, order)
            .prop_map(|(nanos, order)| Jitter { up_to: Duration::from_nanos(nanos), order }),
    );
    let reordering = option::of(
        (probability(), 1..10_000_000_u64)
            .prop_map(|(probability, nanos)| Reordering { probability, by: Duration::from_nanos(nanos) }),
    );
    (ordered(), jitter, reordering).prop_map(|(ordered, jitter, reordering)| Config {
        jitter,
        reordering,
        ..ordered
    })
}

/// Links whose queue decides about packets when they leave it, at a rate or with delivery opportunities.
fn managed() -> impl Strategy<Value = Config> {
    let codel = (1..5_000_000_u64, 0..50_000_000_u64).prop_map(|(target, more)| CoDel {
        target: Duration::from_nanos(target),
        interval: Duration::from_nanos(target + more),
    });
    let discipline = prop_oneof![
        Just(QueueDiscipline::DropTail),
        codel.clone().prop_map(QueueDiscipline::CoDel),
        codel.prop_map(QueueDiscipline::FqCoDel),
    ];
    (any_link(), option::of(schedule()), discipline).prop_map(|(link, schedule, discipline)| Config {
        rate: link.rate.filter(|_| schedule.is_none()),
        schedule: schedule.map(Arc::new),
        discipline,
        ..link
    })
}

fn schedule() -> impl Strategy<Value = DeliverySchedule> {
    vec(0..30_u32, 1..40).prop_map(|mut times| {
        times.sort_unstable();
        times.push(30);
        DeliverySchedule::new(times).unwrap()
    })
}

/// Delivers packets at opportunities as mahimahi's loop does: each millisecond's opportunities carry 1,500 bytes of the packets
/// that arrived before, the rest of a packet follows with the next.
fn as_mahimahi(
    times: &[u32],
    offers: &[OfferedPacket],
    limit: Option<u64>,
) -> (Vec<(usize, Time)>, Vec<usize>) {
    let (mut waiting, mut begun) = (VecDeque::new(), None::<(usize, u64)>);
    let (mut delivered, mut dropped) = (Vec::new(), Vec::new());
    let mut now = Time::ZERO;
    let mut arrivals = offers
        .iter()
        .enumerate()
        .map(|(number, (gap, size))| {
            now += *gap;
            (number, now, size.get())
        })
        .peekable();
    let period = u64::from(*times.last().unwrap());
    for cycle in 0.. {
        for at in times {
            let at = Time::ZERO + Duration::from_millis(cycle * period + u64::from(*at));
            while let Some((number, _, size)) = arrivals.next_if(|(_, arrival, _)| *arrival < at) {
                let is_busy = !waiting.is_empty() || begun.is_some();
                match limit.is_some_and(|limit| is_busy && waiting.len() as u64 >= limit) {
                    true => dropped.push(number),
                    false => waiting.push_back((number, size)),
                }
            }
            let mut left = 1_500;
            while left > 0 {
                let Some((number, size)) = begun.take().or_else(|| waiting.pop_front()) else { break };
                let sent = size.min(left);
                left -= sent;
                match size - sent {
                    0 => delivered.push((number, at)),
                    rest => begun = Some((number, rest)),
                }
            }
            if arrivals.peek().is_none() && waiting.is_empty() && begun.is_none() {
                return (delivered, dropped);
            }
        }
    }
    unreachable!("the cycles are endless")
}

proptest! {
    #[test]
    fn codel_without_a_standing_queue_is_drop_tail(config in ordered(), offers in offers(), seed: u64) {
        // No packet of these runs waits for an hour.
        let patient = CoDel { target: CoDel::MAX_INTERVAL, interval: CoDel::MAX_INTERVAL };
        let plain = drive(&config, seed, &offers);
        let codel = drive(&Config { discipline: QueueDiscipline::CoDel(patient), ..config }, seed, &offers);
        prop_assert_eq!(codel.delivered, plain.delivered);
        prop_assert_eq!(codel.dropped, plain.dropped);
        prop_assert_eq!(codel.discarded, plain.lost);
        prop_assert_eq!(codel.counters, plain.counters);
    }

    #[test]
    fn managed_queue_accounts_for_every_packet_once(config in managed(), offers in offers(), seed: u64) {
        let RunOutcome { delivered, dropped, lost, discarded, counters } = drive(&config, seed, &offers);
        prop_assert!(delivered.is_sorted_by_key(|(_, due)| *due));
        let mut numbers: Vec<usize> = delivered.iter().map(|(number, _)| *number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers.extend(dropped.iter().chain(&lost).chain(&discarded));
        numbers.sort_unstable();
        prop_assert!(numbers.into_iter().eq(0..offers.len()));
        let refused = (dropped.len() + lost.len() + discarded.len()) as u64;
        prop_assert_eq!(counters.dropped.packets + counters.lost.packets, refused);
        prop_assert_eq!(drive(&config, seed, &offers).delivered, delivered);
    }

    #[test]
    fn managed_queue_stays_within_its_limits(config in managed(), offers in offers(), seed: u64) {
        let QueueLimit { bytes, packets } = config.queue;
        let peak = drive(&config, seed, &offers).counters.queue_peak;
        // An idle link accepts any packet, which waits for the next opportunity.
        let max = offers.iter().map(|(_, size)| *size).max().unwrap_or_default();
        prop_assert!(bytes.is_none_or(|limit| peak.bytes <= limit.max(max)));
        prop_assert!(packets.is_none_or(|limit| peak.packets <= limit.max(1)));
    }

    #[test]
    fn opportunities_carry_packets_as_in_mahimahi(
        times in vec(0..30_u32, 1..40), offers in offers(), limit in option::of(0..20_u64),
    ) {
        let mut times = times;
        times.sort_unstable();
        times.push(30);
        // Arrivals at the time of an opportunity come after it: mahimahi's clock has milliseconds only.
        let (delivered, dropped) = as_mahimahi(&times, &offers, limit);
        let schedule = Some(Arc::new(DeliverySchedule::new(times).unwrap()));
        let queue = QueueLimit { bytes: None, packets: limit };
        let outcome = drive(&Config { schedule, queue, ..Config::default() }, 1, &offers);
        prop_assert_eq!(outcome.delivered, delivered);
        prop_assert_eq!(outcome.dropped, dropped);
    }
}

proptest! {
    #[test]
    fn plain_link_is_exact_to_the_nanosecond(config in plain(), offers in offers()) {
        let (delivered, dropped, peak) = in_exact_fractions(&config, &offers);
        let outcome = drive(&config, 1, &offers);
        prop_assert_eq!(outcome.delivered, delivered);
        prop_assert_eq!(outcome.dropped, dropped);
        prop_assert_eq!(outcome.counters.queue_peak, peak);
    }

    #[test]
    fn every_packet_is_accounted_for_once(config in any_link(), offers in offers(), seed: u64) {
        let RunOutcome { delivered, dropped, lost, discarded: _, counters } = drive(&config, seed, &offers);
        let mut numbers: Vec<usize> = delivered.iter().map(|(number, _)| *number).collect();
        numbers.sort_unstable();
        let with_copies = numbers.len();
        numbers.dedup();
        prop_assert_eq!((with_copies - numbers.len()) as u64, counters.duplicated.packets);
        numbers.extend(dropped.iter().chain(&lost));
        numbers.sort_unstable();
        prop_assert!(numbers.into_iter().eq(0..offers.len()));
        let bytes = |packets: &[usize]| packets.iter().map(|packet| offers[*packet].1).sum::<Bytes>();
        prop_assert_eq!(counters.dropped, Tally { packets: dropped.len() as u64, bytes: bytes(&dropped) });
        prop_assert_eq!(counters.lost, Tally { packets: lost.len() as u64, bytes: bytes(&lost) });
        let arrivals: Vec<usize> = delivered.into_iter().map(|(number, _)| number).collect();
        prop_assert_eq!(counters.delivered, Tally { packets: arrivals.len() as u64, bytes: bytes(&arrivals) });
    }

    #[test]
    fn no_packet_arrives_earlier_than_without_jitter(
        config in any_link(), offers in offers(), seed: u64,
    ) {
        let (earliest, _, _) = in_exact_fractions(&config, &offers);
        let outcome = drive(&config, seed, &offers);
        for (number, due) in outcome.delivered {
            let index = earliest.binary_search_by_key(&number, |(number, _)| *number);
            prop_assert!(index.is_ok_and(|index| earliest[index].1 <= due));
        }
    }

    #[test]
    fn packets_keep_their_order_unless_reordering_is_configured(
        config in ordered(), offers in offers(), seed: u64,
    ) {
        let outcome = drive(&config, seed, &offers);
        prop_assert!(outcome.delivered.is_sorted());
    }

    #[test]
    fn arrivals_are_polled_in_the_order_they_are_due(config in any_link(), offers in offers(), seed: u64) {
        let outcome = drive(&config, seed, &offers);
        prop_assert!(outcome.delivered.is_sorted_by_key(|(_, due)| *due));
    }

    #[test]
    fn the_queue_never_holds_more_than_its_limits(config in any_link(), offers in offers(), seed: u64) {
        let peak = drive(&config, seed, &offers).counters.queue_peak;
        prop_assert!(config.queue.bytes.is_none_or(|max| peak.bytes <= max));
        prop_assert!(config.queue.packets.is_none_or(|max| peak.packets <= max));
    }

    #[test]
    fn same_seed_gives_the_same_outcome(config in any_link(), offers in offers(), seed: u64) {
        prop_assert_eq!(drive(&config, seed, &offers), drive(&config, seed, &offers));
    }

    #[test]
    fn losses_depend_on_the_loss_model_only(config in any_link(), offers in offers(), seed: u64) {
        let lossy = Config { loss: config.loss.clone(), ..Config::default() };
        let outcome = drive(&config, seed, &offers);
        let mut expected = drive(&lossy, seed, &offers).lost;
        expected.retain(|packet| !outcome.dropped.contains(packet));
        prop_assert_eq!(outcome.lost, expected);
    }
}

#[test]
fn busy_link_sends_a_million_packets_exactly_at_its_rate() {
    for millibits in [1_064_960_000, 999_999_999_989] {
        let rate = Rate::from_millibits_per_second(millibits);
        let mut pipe = Pipe::new(&Config { rate, ..Config::default() }, Seed::default(), 0).unwrap();
        let mut now = Time::ZERO;
        for _ in 0..1_000_000 {
            // Two packets in the pipe keep the transmitter busy; each delivery is followed by the next packet.
            while pipe.in_transit() < 2 {
                pipe.handle(now, (), Bytes::new(552));
            }
            while let Output::Timeout(Some(next)) = pipe.poll(now) {
                now = next;
            }
        }
        let exact = (552 * 8 * 1_000_000 * 1_000_000_000_000_u128).div_ceil(u128::from(millibits));
        assert_eq!(u128::from(now.as_nanos()), exact, "{millibits}");
    }
}
