//! A sender by itself: its sequence positions, its knowledge over time, holes and retransmissions.

use super::*;

const START: u64 = 1 << 40;

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

fn send(sender: &mut Sender, start: u64, end: u64, frame: u64, millis: u64) -> SequenceRelation {
    sender.send(start, end, Mark { at: at(millis), frame }, 0, Duration::from_millis(5))
}

fn sender() -> Sender {
    let mut sender = Sender::default();
    sender.mss.offered = Some(1_000);
    for (frame, millis) in [(1, 0), (2, 1)] {
        let start = START + 1_000 * (frame - 1);
        assert!(matches!(send(&mut sender, start, start + 1_000, frame, millis), SequenceRelation::New));
    }
    sender
}

/// A segment without data.
const NOTHING: (u32, u64) = (0, 0);

#[test]
fn numbers_are_placed_nearest_to_what_was_sent() {
    let mut sender = Sender::default();
    let first = sender.position(u32::MAX);
    send(&mut sender, first, first + 1, 1, 0);
    assert_eq!(sender.position(0), first + 1);
    assert_eq!(sender.position(u32::MAX - 9), first - 9);
}

#[test]
fn a_sender_knows_an_acknowledgement_once_it_has_arrived() {
    let mut sender = sender();
    sender.acknowledge(START + 1_000, Some(4_000), Mark { at: at(20), frame: 3 }, None).unwrap();
    assert_eq!(
        sender.receive_acks(at(40), Duration::from_millis(30), [Duration::ZERO; 2], None, NOTHING).acks,
        0
    );
    assert_eq!(sender.in_flight(), 2_000);
    let learned = sender.receive_acks(at(50), Duration::from_millis(30), [Duration::ZERO; 2], None, NOTHING);
    assert_eq!((learned.known, learned.acks), (START, 1));
    assert_eq!(sender.flight(learned.known).segments, 2);
    sender.forget(64);
    assert_eq!((sender.in_flight(), sender.edge), (1_000, Some(START + 5_000)));
}

#[test]
fn a_sender_that_repeats_data_or_echoes_an_earlier_timestamp_had_not_heard_of_it() {
    let stamp = |value| Some(AckStamp { value, is_bare: true });
    let mut sender = sender();
    sender.acknowledge(START + 1_000, Some(4_000), Mark { at: at(20), frame: 3 }, stamp(7)).unwrap();
    sender.acknowledge(START + 2_000, Some(4_000), Mark { at: at(21), frame: 4 }, stamp(9)).unwrap();
    let again = (u32::try_from(START & 0xffff_ffff).unwrap(), 1_000);
    assert_eq!(sender.repeats(again.0, again.1), Some(START));
    assert_eq!(
        sender.receive_acks(at(60), Duration::from_millis(30), [Duration::ZERO; 2], Some(5), again).acks,
        0
    );
    // Without a repetition both seem to have arrived, until a segment echoes the first of them.
    assert_eq!(
        sender.receive_acks(at(61), Duration::from_millis(30), [Duration::ZERO; 2], Some(5), NOTHING).acks,
        2
    );
    sender.echoes_bare = true;
    assert!(
        sender
            .receive_acks(at(90), Duration::from_millis(30), [Duration::ZERO; 2], Some(7), NOTHING)
            .was_late
    );
    assert!(
        !sender
            .receive_acks(at(91), Duration::from_millis(30), [Duration::ZERO; 2], Some(9), NOTHING)
            .was_late
    );
}

#[test]
fn acknowledgement_shows_what_it_covers() {
    let mut sender = sender();
    let ack = sender.acknowledge(START + 1_000, None, Mark { at: at(20), frame: 3 }, None).unwrap();
    assert_eq!(ack.after(), Some(Duration::from_millis(20)));
    assert_eq!(ack.not_covered(), Some(Duration::from_millis(19)));
    assert!(sender.acknowledge(START + 1_000, None, Mark { at: at(21), frame: 4 }, None).is_none());
    let late = Ack { at: at(3_020), ..ack };
    assert_eq!((ack.round_trip(true), late.round_trip(true)), (ack.after(), None));
    assert_eq!(late.round_trip(false), Some(Duration::from_millis(3_020)));
}

#[test]
fn holes_are_filled_and_retransmissions_found() {
    let mut sender = sender();
    send(&mut sender, START + 3_000, START + 4_000, 3, 2);
    assert!(matches!(send(&mut sender, START + 2_000, START + 2_500, 4, 3), SequenceRelation::Filled(_)));
    assert!(matches!(send(&mut sender, START + 2_500, START + 3_000, 5, 3), SequenceRelation::Filled(_)));
    let SequenceRelation::Retransmission(Some(before)) = send(&mut sender, START, START + 1_000, 6, 200)
    else {
        panic!()
    };
    assert_eq!((before.frame, before.times), (1, 1));
    let SequenceRelation::Retransmission(Some(before)) = send(&mut sender, START, START + 1_000, 7, 600)
    else {
        panic!()
    };
    assert_eq!((before.times, before.last_sent_at), (2, at(200)));
}

#[test]
fn immediate_repetition_is_a_duplicate_capture() {
    let mut sender = sender();
    assert!(matches!(send(&mut sender, START + 1_000, START + 2_000, 3, 2), SequenceRelation::Twice));
}

#[test]
fn tolerance_applies_only_without_another_explanation() {
    let round_trip = Duration::from_millis(100);
    let slack = Duration::from_millis(25);
    let acks = |times: &[u64], now| {
        let mut sender = sender();
        for (to, passed) in (1..).zip(times) {
            sender.acknowledge(START + 1_000 * to, None, Mark { at: at(*passed), frame: 2 + to }, None);
        }
        sender.receive_acks(at(now), round_trip, [slack, Duration::ZERO], None, NOTHING).acks
    };
    // The first had arrived by then and triggered it; the next, 15 ms too early, did not.
    assert_eq!(acks(&[20, 35], 120), 1);
    // The only one did trigger it: the path is shorter than the few samples show.
    assert_eq!(acks(&[35], 120), 1);
    assert_eq!(acks(&[60], 120), 0);
}

#[test]
fn probe_is_no_retransmission() {
    let mut sender = sender();
    sender.acknowledge(START + 2_000, Some(0), Mark { at: at(20), frame: 3 }, None);
    for length in [0, 1] {
        let probe = send(&mut sender, START + 1_999, START + 1_999 + length, 4, 300);
        assert!(matches!(probe, SequenceRelation::Probe));
    }
}

/// The reply to a keep-alive probe arrives ten minutes later.
#[test]
fn reply_to_a_probe_is_no_round_trip_sample() {
    let mut sender = sender();
    assert!(!sender.is_probed_by(2_000));
    assert!(sender.is_probed_by(1_999));
    let ack = sender.acknowledge(START + 2_000, None, Mark { at: at(600_000), frame: 4 }, None).unwrap();
    assert_eq!(ack.after(), None);
}
