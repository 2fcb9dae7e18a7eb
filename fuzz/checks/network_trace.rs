//! Invariants for any file as a network trace: it is rejected with a sentence, or a link with its delivery opportunities
//! delivers packets in order, each at a whole millisecond, and no more than the opportunities carry. Not a generator: the bytes
//! are the file.

use std::sync::Arc;

use scenario::network::trace_file;
use wire::link::schedule::OPPORTUNITY_BYTES;
use wire::link::{Config, DeliverySchedule, OfferResult, Output, Pipe};
use wire::{Bytes, Duration, Seed, Time};

/// Packets offered to the link.
const PACKETS: u64 = 40;

/// Panics if these bytes violate an invariant.
pub(crate) fn check(data: &[u8]) {
    match trace_file::read(data) {
        Ok(schedule) => check_link(schedule),
        Err(error) => assert!(!error.to_string().contains(char::is_control), "{error:?}"),
    }
}

fn check_link(schedule: DeliverySchedule) {
    let (period, opportunities) = (schedule.period(), schedule.opportunities() as u64);
    assert!(period > Duration::ZERO && opportunities > 0);
    let config = Config { schedule: Some(Arc::new(schedule)), ..Config::default() };
    let mut pipe = Pipe::new(&config, Seed::default(), 0).expect("a schedule alone is a link");
    for number in 0..PACKETS {
        let size = Bytes::new(number * 97 % 3_000);
        assert_eq!(pipe.handle(Time::ZERO, number, size), OfferResult::Accepted);
    }
    let (mut now, mut arrived, mut bytes) = (Time::ZERO, 0, 0);
    loop {
        match pipe.poll(now) {
            Output::Deliver { packet, due } => {
                assert_eq!((packet, due), (arrived, now));
                assert_eq!(due.as_nanos() % 1_000_000, 0);
                arrived += 1;
                bytes += packet * 97 % 3_000;
                let periods = now.as_nanos() / period.as_nanos() + 1;
                assert!(bytes <= periods * opportunities * OPPORTUNITY_BYTES);
            }
            Output::Discard(packet) => panic!("packet {packet} was dropped from an unlimited queue"),
            Output::Timeout(Some(next)) => {
                assert!(next > now);
                now = next;
            }
            Output::Timeout(None) => break,
        }
    }
    assert_eq!(arrived, PACKETS);
}
