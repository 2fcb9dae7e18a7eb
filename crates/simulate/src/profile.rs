//! Translation of a stack profile: `scenario::Stack` in, [`Config`] out.
//!
//! Every setting is honoured here or refused: the profile is destructured exhaustively. The profiles
//! themselves, and their sources, are in `scenario`.

use scenario::Stack;
use tcp::config::{
    Acks, Avoidance, Config, Congestion, Estimator, Growth, Handshake, Idle, IdleSince, OddSegmentAck,
    ReceiveBuffer, Rto, Ticks,
};
use tcp::stack;
use tcp::stack::packets::{self, AckDelay, Packets};
use wire::{Bytes, Duration, Seed};

use crate::world::HostConfig;

/// Phases of a host's clocks at time zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clocks {
    /// The delayed-ACK heartbeat's first tick.
    pub heartbeat: Duration,
    /// The slow timer's first tick.
    pub slow: Duration,
}

impl Clocks {
    /// Random phases within the clocks' periods, as of a host that was started some time ago. Hosts that
    /// share a seed take different `index`es.
    pub fn random(seed: Seed, index: u64) -> Self {
        let mut random = seed.stream("host-clocks", index);
        let mut within = |period: Duration| Duration::from_nanos(random.next_u64() % period.as_nanos());
        Self { heartbeat: within(HEARTBEAT), slow: within(Ticks::BSD_SLOW.period) }
    }
}

/// BSD's fast timer, which sends delayed acknowledgements (Stevens vol. 2, section 25.4).
const HEARTBEAT: Duration = Duration::from_millis(200);
/// Linux's `tcp_rmem[2]`, and its initial window.
const LINUX_RECEIVE: ReceiveBuffer = ReceiveBuffer::Growing { initial: 65_535, max: 6_291_456 };

/// A host with this stack: see [`config`].
pub fn host(stack: &Stack, mss: Bytes, segment_time: Duration, clocks: Clocks) -> HostConfig {
    HostConfig { tcp: config(stack, mss, segment_time, clocks), wake_up: stack.packets.wake_up }
}

/// TCP configuration of a stack with segments of `mss` on a path where a full one takes `segment_time`.
pub fn config(stack: &Stack, mss: Bytes, segment_time: Duration, clocks: Clocks) -> Config {
    let Stack {
        name: _,
        initial_window,
        acks,
        growth,
        congestion,
        idle,
        nagle,
        sack,
        timestamps,
        window_scaling,
        receive_buffer,
        packets,
    } = stack;
    let Packets {
        send_buffer,
        occupancy,
        unsent_limit,
        nagle: nagle_rule,
        ack_delay,
        counting,
        handshake_opens,
        handshake_timeouts,
        initial_threshold,
        recovery,
        restart,
        cwnd_validation,
        sharing,
        rto,
        termination,
        wake_up: _, // A setting of the host: [`host`].
    } = packets;
    Config {
        mss: u16::try_from(mss.get()).unwrap_or(u16::MAX),
        send_buffer: saturate(*send_buffer),
        occupancy: *occupancy,
        unsent_limit: unsent_limit.map(saturate),
        receive_buffer: receive_buffer.map_or(LINUX_RECEIVE, |bytes| ReceiveBuffer::Fixed(saturate(bytes))),
        timestamps: *timestamps,
        window_scaling: *window_scaling,
        acks: acknowledging(*acks, *ack_delay, segment_time, clocks),
        nagle: nagle.then_some(*nagle_rule),
        congestion: Congestion {
            initial_window: initial_window.saturating_sub(u16::from(*handshake_opens)).max(1),
            handshake_opens: *handshake_opens,
            handshake_timeouts: *handshake_timeouts,
            initial_threshold: initial_threshold.map(saturate),
            counting: *counting,
            growth: growth_of(*growth),
            avoidance: match congestion {
                stack::Congestion::Reno => Avoidance::Reno,
                stack::Congestion::Cubic => Avoidance::Cubic { hystart: true },
            },
            cwnd_validation: *cwnd_validation,
        },
        recovery: if *sack { recovery.with_sack() } else { recovery.without_sack() },
        idle: match (idle, restart) {
            (stack::Idle::Unchanged, _) => Idle::Unchanged,
            (stack::Idle::Paced, _) => Idle::Paced,
            (stack::Idle::Restarted, packets::Restart::AfterSending) => {
                Idle::Restarted { segments: 1, since: IdleSince::Sent }
            }
            (stack::Idle::Restarted, packets::Restart::AfterReceiving) => {
                Idle::Restarted { segments: 1, since: IdleSince::Received }
            }
            (stack::Idle::Restarted, packets::Restart::Decaying) => Idle::Decayed,
        },
        idle_after: None,
        rto: timer(*rto, clocks),
        termination: *termination,
        handshake: Handshake::ThreeWay,
        sharing: *sharing,
    }
}

const fn growth_of(growth: stack::Growth) -> Growth {
    match growth {
        stack::Growth::PerAcknowledgement => Growth::PerAck,
        stack::Growth::PerSegment => Growth::PerByte { max_segments: u8::MAX },
    }
}

/// The model's two bounds need the end of a flight. A segment is the last if none follows for twice the
/// time of one segment.
fn acknowledging(acks: stack::Acks, delay: AckDelay, segment_time: Duration, clocks: Clocks) -> Acks {
    let (period, timer) = match delay {
        AckDelay::Fixed(delay) => (delay, OddSegmentAck::After(delay)),
        AckDelay::Estimated => (HEARTBEAT, OddSegmentAck::Estimated),
    };
    let heartbeat = Ticks { period, phase: clocks.heartbeat };
    match acks {
        stack::Acks::EverySegment => Acks::EverySegment,
        stack::Acks::Delayed => Acks::Counted { segments: 2, odd: OddSegmentAck::After(segment_time * 2) },
        stack::Acks::NoDelayed => Acks::Counted { segments: 2, odd: OddSegmentAck::Never },
        stack::Acks::Heartbeat => Acks::ReadBytes { odd: OddSegmentAck::OnTick(heartbeat) },
        stack::Acks::Timer => Acks::Counted { segments: 2, odd: timer },
        stack::Acks::QuickThenDelayed => Acks::Linux,
    }
}

/// The stack's timer, with the phase of this host's clock.
fn timer(rto: Rto, clocks: Clocks) -> Rto {
    let estimator = match rto.estimator {
        Estimator::Coarse(ticks) => Estimator::Coarse(Ticks { phase: clocks.slow, ..ticks }),
        Estimator::Fine | Estimator::FineVariation => rto.estimator,
    };
    Rto { estimator, ..rto }
}

/// Converts to 32 bits, saturating: no buffer needs more than 4 GiB.
fn saturate(bytes: Bytes) -> u32 {
    u32::try_from(bytes.get()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_is_possible_at_every_network_of_the_papers() {
        let clocks = Clocks::random(Seed::default(), 0);
        for (stack, mss) in Stack::ALL.into_iter().flat_map(|stack| [(stack.clone(), 512), (stack, 1460)]) {
            let config = config(&stack, Bytes::new(mss), Duration::from_millis(1), clocks);
            assert_eq!(config.check(), Ok(()), "{} at {mss}", stack.name);
        }
    }

    #[test]
    fn a_server_of_bsd_starts_with_two_segments_and_its_client_with_one() {
        let period = Stack::named("period").unwrap();
        let config = config(&period, Bytes::new(512), Duration::ZERO, Clocks::random(Seed::default(), 0));
        assert_eq!((config.congestion.initial_window, config.congestion.handshake_opens), (1, true));
    }

    fn sentence(change: impl FnOnce(&mut Config)) -> String {
        let period = Stack::named("period").unwrap();
        let clocks = Clocks::random(Seed::default(), 0);
        let mut config = config(&period, Bytes::new(512), Duration::ZERO, clocks);
        change(&mut config);
        config.check().map_or_else(|error| error.to_string(), |()| "possible".to_owned())
    }

    #[test]
    fn rejects_impossible_profiles_with_a_remedy() {
        assert_eq!(sentence(|_| {}), "possible");
        assert_eq!(
            sentence(|config| config.send_buffer = 511),
            "send buffer of 511 bytes: smaller than a segment; give at least the mss, 512"
        );
        assert_eq!(
            sentence(|config| config.congestion.initial_window = 0),
            "initial window of 0 segments: nothing is ever sent; give at least 1"
        );
        assert_eq!(
            sentence(|config| config.rto.initial = Duration::ZERO),
            "initial retransmission timeout of 0: invalid; give a time above zero"
        );
        assert_eq!(sentence(|config| config.mss = 0), "mss 0: no space for data; give at least 1");
    }
}
