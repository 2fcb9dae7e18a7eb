//! The critical path: the chain of waits that ends with the last response.
//!
//! An object whose request waited in the browser's queue waited for the response that ended when the request left; any other
//! waited for the object that made it known. The time of the page is the sum of the waits along the chain, each from the
//! moment at which the previous object let it go on.

use std::collections::BTreeMap;

use wire::Duration;

use super::{MAX_REACTION, ObjectCourse, Phase, Wait};

/// Waits of an object on the path, with their times there.
pub(super) type Waits = BTreeMap<Wait, Duration>;

/// Positions on the path with their waits, the first first; `None` without courses.
pub(super) fn path(courses: &[ObjectCourse]) -> Option<Vec<(usize, Waits)>> {
    let mut at = (0..courses.len()).max_by_key(|position| courses[*position].end())?;
    let mut until = courses[at].end();
    let mut path: Vec<(usize, Waits)> = Vec::new();
    loop {
        let course = &courses[at];
        let is_new = |before: usize| before != at && path.iter().all(|(known, _)| *known != before);
        let before = predecessor(courses, at).filter(|(before, _)| is_new(*before));
        let since = before.map_or(Duration::ZERO, |(_, since)| since.min(until));
        let mut waits = Waits::new();
        for Phase { wait, from, to } in &course.phases {
            let (from, to) = ((*from).max(since), (*to).min(until));
            *waits.entry(*wait).or_insert(Duration::ZERO) += to.saturating_sub(from);
        }
        path.push((at, waits));
        let Some((before, _)) = before else { break };
        (at, until) = (before, since);
    }
    path.reverse();
    Some(path)
}

/// The course that a course waited for, and the time at which that let it go on.
fn predecessor(courses: &[ObjectCourse], at: usize) -> Option<(usize, Duration)> {
    let course = &courses[at];
    let queue = course.phases.iter().rfind(|phase| phase.wait == Wait::Queue);
    let released = queue.filter(|queue| queue.to.saturating_sub(queue.from) > MIN_QUEUE).and_then(|queue| {
        let others = courses.iter().enumerate().filter(|(other, _)| *other != at);
        let ends = others.filter(|(_, other)| {
            let end = other.end();
            end > queue.from && end <= queue.to && queue.to.saturating_sub(end) <= MAX_REACTION
        });
        // Of simultaneous ones, that on the same connection.
        let released = ends.max_by_key(|(_, other)| (other.end(), other.connection == course.connection));
        released.map(|(other, released)| (other, released.end()))
    });
    released.or_else(|| course.after.map(|after| (after, course.known)))
}

/// Shortest time in the queue that counts.
const MIN_QUEUE: Duration = Duration::from_micros(100);

#[cfg(test)]
mod tests {
    use wire::Bytes;

    use super::*;

    fn course(known: u64, after: Option<usize>, waits: &[(Wait, u64)]) -> ObjectCourse {
        let mut at = Duration::from_millis(known);
        let phases = waits.iter().map(|(wait, millis)| {
            let from = at;
            at += Duration::from_millis(*millis);
            Phase { wait: *wait, from, to: at }
        });
        let phases = phases.collect();
        let known = Duration::from_millis(known);
        ObjectCourse {
            object: 0,
            name: String::new(),
            size: Bytes::ZERO,
            known,
            after,
            phases,
            connection: 0,
        }
    }

    #[test]
    fn path_follows_what_made_an_object_known_and_what_freed_its_connection() {
        let courses = [
            course(0, None, &[(Wait::Connect, 10), (Wait::Request, 10), (Wait::Transfer, 30)]),
            // Known when half of the document had arrived.
            course(35, Some(0), &[(Wait::Request, 10), (Wait::Transfer, 40)]),
            course(50, Some(0), &[(Wait::Queue, 35), (Wait::Request, 10), (Wait::Server, 5)]),
            course(50, Some(0), &[(Wait::Request, 10)]),
        ];
        let path = path(&courses).unwrap();
        let waits: Vec<(usize, Wait, u64)> = path
            .into_iter()
            .flat_map(|(at, waits)| {
                waits.into_iter().map(move |(wait, time)| (at, wait, time.as_nanos() / 1_000_000))
            })
            .filter(|(_, _, millis)| *millis > 0)
            .collect();
        // 100 ms: the document until 35, the object until 85, the last one after its queue.
        let expected = [
            (0, Wait::Connect, 10),
            (0, Wait::Request, 10),
            (0, Wait::Transfer, 15),
            (1, Wait::Request, 10),
            (1, Wait::Transfer, 40),
            (2, Wait::Request, 10),
            (2, Wait::Server, 5),
        ];
        assert_eq!(waits, expected);
    }

    #[test]
    fn page_without_responses_has_no_path() {
        assert_eq!(path(&[]), None);
    }
}
