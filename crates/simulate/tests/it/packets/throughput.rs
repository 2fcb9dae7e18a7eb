//! Throughput of congestion control under loss, compared with theory.
//!
//! Mathis, Semke, Mahdavi and Ott (1997): a sender halves its window at each loss and opens it by a segment each
//! round trip. With independent loss p it sends sqrt(3/2) / sqrt(p) segments each round trip.

use simulate::world::*;
use tcp::config::*;
use tcp::{Config, Payload};
use wire::link::{self, Loss};
use wire::{Duration, Probability, Seed, Time};

use super::setup::linux;

/// Writes without end, or reads without end.
struct Bulk {
    next: Option<Action>,
    received: u64,
}

impl Application for Bulk {
    fn handle(&mut self, _now: Time, input: Input) {
        match input {
            Input::Connected(socket) | Input::Written(socket) => {
                self.next = Some(Action::Write(socket, Payload::from(vec![0; 65_536])));
            }
            Input::Data(_, payload) => self.received += payload.len() as u64,
            Input::Accepted(..)
            | Input::Finished(_)
            | Input::Closed(_)
            | Input::Failed(..)
            | Input::Datagram(_) => {}
        }
    }

    fn poll(&mut self, _now: Time, _fresh: SocketId) -> Action {
        self.next.take().unwrap_or(Action::Wait(None))
    }
}

/// Segments that arrive each round trip of 100 ms, over ten minutes.
fn segments_per_round_trip(recovery: Recovery, avoidance: Avoidance, loss: f64) -> f64 {
    let linux = linux();
    let config = Config {
        mss: 1000,
        timestamps: false,
        acks: Acks::EverySegment,
        recovery,
        congestion: Congestion {
            counting: Counting::Bytes,
            growth: Growth::PerByte { max_segments: 2 },
            avoidance,
            ..linux.congestion
        },
        ..linux
    };
    let mut world = World::new(Seed::new(7));
    let config = HostConfig::immediate(config);
    let to = Address { host: HostId(1), port: 9 };
    let source =
        world.add_host(config.clone(), Bulk { next: Some(Action::Connect(to)), received: 0 }).unwrap();
    let sink = world.add_host(config, Bulk { next: Some(Action::Listen(9)), received: 0 }).unwrap();
    let delay = Duration::from_millis(50);
    let clean = link::Config { delay, ..link::Config::default() };
    let lossy = link::Config { loss: Loss::Independent(Probability::new(loss).unwrap()), ..clean.clone() };
    for (from, to, link) in [(source, sink, &lossy), (sink, source, &clean)] {
        let link = world.add_link(link).unwrap();
        world.add_route(from, to, &[link]);
    }
    let ten_minutes = Duration::from_secs(600);
    world.run(Bounds { until: Time::ZERO + ten_minutes, events: u64::MAX });
    world.application(sink).received as f64 / 1000.0 / (ten_minutes.as_secs_f64() / 0.1)
}

#[test]
fn paper_mathis_1997_window_under_loss_agrees_with_theory() {
    for loss in [0.001_f64, 0.01] {
        let theory = 1.5_f64.sqrt() / loss.sqrt();
        for recovery in [Recovery::Rack, Recovery::Sack, Recovery::NewReno] {
            let simulated = segments_per_round_trip(recovery, Avoidance::Reno, loss);
            assert!(
                (0.75..1.15).contains(&(simulated / theory)),
                "{recovery:?} at {loss}: {simulated} against {theory}"
            );
        }
    }
}

#[test]
fn each_generation_of_recovery_does_no_worse_than_the_one_before() {
    let achieved = [Recovery::Tahoe, Recovery::Reno, Recovery::NewReno, Recovery::Sack, Recovery::Rack]
        .map(|recovery| segments_per_round_trip(recovery, Avoidance::Reno, 0.02));
    assert!(achieved.windows(2).all(|pair| pair[1] > pair[0] * 0.97), "{achieved:?}");
}

#[test]
fn cubic_does_better_than_reno_where_loss_is_rare() {
    let [reno, cubic] = [Avoidance::Reno, Avoidance::Cubic { hystart: false }]
        .map(|avoidance| segments_per_round_trip(Recovery::Sack, avoidance, 0.0005));
    assert!(cubic > reno * 1.1, "{cubic} against {reno}");
}
