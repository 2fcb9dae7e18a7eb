//! No byte is lost, doubled or invented, whatever the link does; every connection ends.

use proptest::prelude::*;
use simulate::world::{ObservationPoint, Record, RunEnd};
use tcp::Config;
use tcp::config::*;
use wire::link::{self, Jitter, Loss, Order, QueueLimit, Reordering};
use wire::{Duration, Probability, Rate};

use super::setup::*;

fn lossy() -> impl Strategy<Value = link::Config> {
    let rate = prop_oneof![Just(None), (10_000_u64..100_000_000).prop_map(Some)];
    let percent = prop_oneof![Just(0.0), 0.0..0.3];
    (
        rate,
        0_u64..200,
        percent.clone(),
        percent.clone(),
        0.0..0.2,
        proptest::option::of(1_u64..20),
        any::<bool>(),
    )
        .prop_map(|(rate, delay, loss, reordering, doubled, queue, is_jittery)| link::Config {
            rate: rate.and_then(Rate::from_bits_per_second),
            framing: -40,
            queue: QueueLimit { bytes: None, packets: queue },
            delay: Duration::from_millis(delay),
            jitter: is_jittery.then_some(Jitter { up_to: Duration::from_millis(30), order: Order::Free }),
            loss: Loss::Independent(Probability::new(loss).unwrap()),
            reordering: Some(Reordering {
                probability: Probability::new(reordering).unwrap(),
                by: Duration::from_millis(20),
            }),
            duplication: Probability::new(doubled).unwrap(),
            ..link::Config::default()
        })
}

fn any_config() -> impl Strategy<Value = Config> {
    let base = prop_oneof![Just(period()), Just(linux())];
    let recovery = prop_oneof![
        Just(Recovery::Tahoe),
        Just(Recovery::Reno),
        Just(Recovery::NewReno),
        Just(Recovery::Sack),
        Just(Recovery::Rack)
    ];
    let nagle = prop_oneof![
        Just(None),
        Just(Some(Nagle::OnEntry)),
        Just(Some(Nagle::PerSegment)),
        Just(Some(Nagle::Minshall))
    ];
    let acks = prop_oneof![
        Just(Acks::EverySegment),
        Just(Acks::Linux),
        Just(Acks::Counted { segments: 2, odd: OddSegmentAck::After(Duration::from_millis(50)) }),
        Just(Acks::ReadBytes {
            odd: OddSegmentAck::OnTick(Ticks { period: Duration::from_millis(200), phase: Duration::ZERO })
        }),
        Just(Acks::Counted { segments: 2, odd: OddSegmentAck::Never }),
    ];
    let idle = prop_oneof![
        Just(Idle::Unchanged),
        Just(Idle::Decayed),
        Just(Idle::Paced),
        Just(Idle::Restarted { segments: 1, since: IdleSince::Sent })
    ];
    let avoidance = prop_oneof![Just(Avoidance::Reno), Just(Avoidance::Cubic { hystart: true })];
    (base, recovery, nagle, acks, idle, avoidance, 20_u16..1461, 1_u32..20, 1_u32..20).prop_map(
        |(base, recovery, nagle, acks, idle, avoidance, mss, send, receive)| Config {
            mss,
            send_buffer: u32::from(mss) * send,
            receive_buffer: ReceiveBuffer::Fixed(u32::from(mss) * receive),
            recovery,
            nagle,
            acks,
            idle,
            congestion: Congestion { avoidance, ..base.congestion },
            rto: Rto { data_retries: 30, syn_retries: 30, ..base.rto },
            ..base
        },
    )
}

/// Bytes that differ from their neighbours, so that a slip shows.
fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|n| ((n * 7 + n / 251) % 256).try_into().unwrap()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn no_byte_is_lost_duplicated_or_invented(
        sender in any_config(),
        receiver in any_config(),
        up in lossy(),
        down in lossy(),
        sizes in proptest::collection::vec(1_usize..20_000, 0..6),
        has_handshake in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let handshake = if has_handshake { Handshake::ThreeWay } else { Handshake::Ardp };
        let [sender, receiver] = [sender, receiver].map(|config| Config { handshake, ..config });
        let all = bytes(sizes.iter().sum());
        let mut rest = all.as_slice();
        let writes = sizes.iter().map(|size| {
            let (write, others) = rest.split_at(*size);
            rest = others;
            write.to_vec()
        });
        let mut world = world(sender, receiver, &up, &down, writes.collect(), seed);
        world.record();
        let ended = world.run(HOURS);
        prop_assert_eq!(ended, RunEnd::Quiet, "at {:?}", world.now());
        if let Some(beyond) = beyond_window(world.records()) {
            prop_assert!(false, "{beyond:?}");
        }
        prop_assert!(source(&world).end.is_some());
        let received = &sink(&world).received;
        prop_assert!(all.starts_with(received), "{} of {}", received.len(), all.len());
        if source(&world).end == Some(Ok(())) {
            prop_assert_eq!(received.len(), all.len());
        }
    }
}

/// First segment that a sender sent beyond the widest window advertised to it.
fn beyond_window(records: &[Record]) -> Option<&Record> {
    let mut edges = [0; 2];
    let mut scales = [0; 2];
    records.iter().find(|record| {
        let segment = &record.segment;
        let [from, to] = [record.from, record.to].map(|address| usize::from(address.host.0));
        match record.seen {
            ObservationPoint::Received if segment.flags.rst => false,
            ObservationPoint::Received => {
                if let Some(options) = &segment.options.syn {
                    scales[from] = options.window_scale.unwrap_or(0);
                }
                let scale = if segment.flags.syn { 0 } else { scales[from] };
                let reported = segment.acknowledgement.max(1) + (u64::from(segment.window) << scale);
                edges[to] = edges[to].max(reported);
                false
            }
            ObservationPoint::Sent => {
                let end = segment.sequence + segment.payload.len() as u64;
                !segment.payload.is_empty() && !segment.flags.syn && end > edges[from]
            }
            ObservationPoint::Lost => false,
        }
    })
}

#[test]
fn the_same_seed_gives_the_same_packets_at_the_same_times() {
    let loss = Loss::Independent(Probability::new(0.05).unwrap());
    let link = link::Config {
        rate: Rate::from_bits_per_second(1_000_000),
        delay: Duration::from_millis(40),
        loss,
        ..link::Config::default()
    };
    let records = |seed| {
        let mut world = world(linux(), linux(), &link, &link, vec![bytes(200_000)], seed);
        world.record();
        assert_eq!(world.run(HOURS), RunEnd::Quiet);
        world.records().to_vec()
    };
    assert_eq!(records(1), records(1));
    assert_ne!(records(1), records(2));
}

#[test]
fn connection_times_out_on_a_link_that_drops_everything() {
    for config in [period(), linux()] {
        let nothing =
            link::Config { loss: Loss::Independent(Probability::ALWAYS), ..link::Config::default() };
        let mut world = world(config.clone(), config, &nothing, &nothing, vec![bytes(1)], 1);
        assert_eq!(world.run(HOURS), RunEnd::Quiet);
        assert_eq!(source(&world).end, Some(Err(tcp::Failure::TimedOut)));
    }
}
