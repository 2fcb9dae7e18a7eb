//! Pages as graphs: an object is requested when everything that it waits for has happened, and not before.

use std::num::NonZeroU16;

use page::{Dependency, Moment};
use roundtrip_fetch::{PageEvent, Plan, Release, Report, Shape};
use wire::{Bytes, Duration, Time};

use super::back_to_back::{Listener, plan};

/// Milliseconds at which each object of a page is requested, if each response takes 10 ms.
fn requested(sizes: &[u64], after: &[&[Dependency]]) -> Vec<f64> {
    let parallel = NonZeroU16::new(6).unwrap();
    let mut plan = Plan { release: Release::Graph, ..plan(sizes, Shape::Http11Parallel { parallel }) };
    for (object, after) in plan.objects.iter_mut().zip(after) {
        object.after = after.to_vec();
    }
    let fetched = Listener { processing: Duration::from_millis(10), ..Listener::new(sizes) }.fetch(plan);
    let sent = |index: usize| {
        let is_sent = |report: &&Report| matches!(report.event, PageEvent::RequestSent { object, connection: _ } if object == index);
        fetched.reports.iter().find(is_sent).unwrap().at.since(Time::ZERO).as_millis_f64()
    };
    (0..sizes.len()).map(sent).collect()
}

fn on(on: usize, at: Moment, plus_ms: u64) -> Dependency {
    Dependency { on, at, plus: Duration::from_millis(plus_ms) }
}

#[test]
fn object_is_requested_when_all_that_it_waits_for_has_happened() {
    let after: [&[Dependency]; 5] = [
        &[],
        &[on(0, Moment::Begun, 3)],
        &[on(0, Moment::Delivered(Bytes::new(2_000)), 0)],
        &[on(1, Moment::Ended, 0), on(2, Moment::Ended, 5)],
        // It stands last and waits for less than the object before it.
        &[on(0, Moment::Ended, 1)],
    ];
    assert_eq!(requested(&[5_000, 100, 100, 100, 100], &after), [0.0, 3.0, 10.0, 25.0, 11.0]);
}

#[test]
fn object_that_waits_for_more_than_arrives_is_requested_at_the_end() {
    let beyond = on(0, Moment::Delivered(Bytes::new(6_000)), 2);
    assert_eq!(requested(&[5_000, 100], &[&[], &[beyond]]), [0.0, 12.0]);
}
