//! Plan of an access log's replay: the same requests, by the same users, for the same number of files, at the same times.
//!
//! Names are not retained: each target of the log is a separate file, by the rules of [`crate::log_sample`]. Where a log
//! has whole seconds, the requests of a second are spread over it evenly, in order.

use std::collections::BTreeMap;

use wire::{Duration, Time};

use crate::log_sample::{LogSample, ResponseKind, SampledRequest, files, has_whole_seconds};
pub use crate::plan::MAX_DURATION;
use crate::plan::{MAX_FILES, MAX_REQUESTS, ObjectRequest, Page, PageStart, Plan, PlanError, PlanSpec};
use crate::schedule::Schedule;

/// Returns the plan that replays these requests, `speed` times as fast as logged.
///
/// # Errors
/// [`PlanError`] if there are no requests, or more than a plan can have.
pub fn replay_plan(lines: LogSample, speed: f64) -> Result<Plan, PlanError> {
    if lines.len() as f64 > MAX_REQUESTS {
        return Err(PlanError::TooManyRequests(lines.len() as f64));
    }
    let lines = lines.sorted();
    let times: Vec<Time> = lines.iter().map(|line| line.time).collect();
    let (due, duration) = due_times(&times, speed)?;
    let logged_files = files(&lines);
    let count = u32::try_from(logged_files.len()).unwrap_or(u32::MAX);
    if count > MAX_FILES {
        return Err(PlanError::TooManyFiles(count));
    }
    let numbers: BTreeMap<_, u32> = logged_files.iter().map(|(target, _)| *target).zip(0..).collect();
    // The size of a file that was never sent is unknown.
    let mut sizes: Vec<u64> = logged_files.iter().map(|(_, usage)| usage.size().unwrap_or(0)).collect();
    // A site has at least two files.
    sizes.resize(sizes.len().max(2), sizes.first().copied().unwrap_or(0));
    let mut users = BTreeMap::new();
    let mut pages = Vec::with_capacity(lines.len());
    for (SampledRequest { time: _, client, file, response }, at) in lines.iter().zip(due) {
        // The number of users fits 32 bits, as the number of requests does.
        let next = u32::try_from(users.len()).unwrap_or(u32::MAX);
        let user = *users.entry(*client).or_insert(next);
        let file = file.and_then(|file| numbers.get(&file).copied()).unwrap_or(0);
        let request = ObjectRequest {
            file,
            after: Duration::ZERO,
            is_conditional: *response == ResponseKind::Unchanged,
        };
        pages.push(Page { user, start: PageStart::At(at), objects: vec![request], ends_session: false });
    }
    let count = u32::try_from(sizes.len()).unwrap_or(u32::MAX);
    let spec = PlanSpec { files: count, schedule: Schedule::Replay(speed), duration, ..PlanSpec::default() };
    Ok(Plan { spec, files: sizes, pages })
}

/// Returns the times at which requests are due, given the times at which they were logged, in order, and a speed; and
/// the total duration.
///
/// # Errors
/// [`PlanError`] if there are no requests, or they take longer than [`MAX_DURATION`].
pub fn due_times(times: &[Time], speed: f64) -> Result<(Vec<Time>, Duration), PlanError> {
    let (Some(first), Some(last)) = (times.first(), times.last()) else { return Err(PlanError::EmptyLog) };
    let scaled = |since: f64| in_micros(Duration::from_secs_f64(since / speed).unwrap_or(Duration::MAX));
    let duration = scaled(last.since(*first).as_secs_f64() + 1.0);
    if duration > MAX_DURATION {
        return Err(PlanError::TooLong(duration));
    }
    let due = |(time, spread): (&Time, f64)| Time::ZERO + scaled(time.since(*first).as_secs_f64() + spread);
    Ok((times.iter().zip(spread(times)).map(due).collect(), duration))
}

/// Returns, for each request, the part of a second by which it is later than logged.
fn spread(times: &[Time]) -> impl Iterator<Item = f64> {
    let is_whole = has_whole_seconds(times.iter().copied());
    let seconds = times.chunk_by(|a, b| a == b);
    seconds.flat_map(move |second| {
        let count = second.len() as f64;
        (0..second.len()).map(move |index| if is_whole { index as f64 / count } else { 0.0 })
    })
}

/// Rounds down to microseconds, the resolution of a plan's text.
fn in_micros(span: Duration) -> Duration {
    Duration::from_micros(span.as_nanos() / 1_000)
}

#[cfg(test)]
mod tests {
    use accesslog::{Client, Record, SizeScope, Target};
    use wire::Bytes;

    use super::*;
    use crate::text;

    fn record(seconds: u64, client: &str, status: u16, size: Option<u64>) -> Record {
        Record {
            time: Time::ZERO + Duration::from_secs(800_000_000 + seconds),
            client: Client::of(client.as_bytes()),
            status,
            size: size.map(Bytes::new),
            covers: SizeScope::Body,
            taken: None,
        }
    }

    fn lines(records: &[(Record, Option<&str>)]) -> LogSample {
        let mut lines = LogSample::default();
        for (record, target) in records {
            lines.push(record, target.and_then(|target| Target::of(target.as_bytes())));
        }
        lines
    }

    #[test]
    fn each_target_is_a_file_of_the_size_of_its_largest_whole_response() {
        let plan = replay_plan(
            lines(&[
                (record(0, "a", 200, Some(70)), Some("/a")),
                (record(1, "a", 206, Some(90)), Some("/a")),
                (record(2, "a", 200, Some(60)), Some("/a")),
                (record(3, "a", 200, Some(70)), Some("/b")),
                (record(4, "a", 304, None), Some("/b")),
                (record(5, "a", 206, Some(20)), Some("/c")),
                (record(6, "a", 304, None), Some("/d")),
            ]),
            1.0,
        );
        let plan = plan.unwrap();
        let mut sizes = plan.files.clone();
        assert_eq!(sizes[..2], [70, 70], "the same size, and yet two files");
        sizes.sort_unstable();
        assert_eq!(sizes, [0, 20, 70, 70]);
        let requests: Vec<_> =
            plan.object_requests().map(|request| (request.file, request.is_conditional)).collect();
        assert_eq!(requests[..5], [(0, false), (0, false), (0, false), (1, false), (1, true)]);
        assert_eq!(plan.size(requests[6].0), 0, "never sent");
    }

    #[test]
    fn replay_without_targets_preserves_users_and_sizes_and_scales_times() {
        let records = [
            record(4, "b", 200, Some(70)),
            record(0, "a", 200, Some(500)),
            record(0, "b", 200, Some(70)),
            record(1, "a", 304, None),
            record(2, "c", 404, Some(9)),
            record(2, "c", 200, None),
        ];
        let lines = lines(&records.map(|record| (record, None)));
        assert_eq!((lines.skipped, lines.with_target), (2, 0));
        let plan = replay_plan(lines, 2.0).unwrap();
        assert_eq!(plan.files, [70, 500]);
        let at = |page: &Page| match page.start {
            PageStart::At(at) => at.since(Time::ZERO).as_secs_f64(),
            PageStart::After(_) => f64::NAN,
        };
        let logged_files: Vec<_> =
            plan.pages.iter().map(|page| (at(page), page.user, page.objects[0].file)).collect();
        assert_eq!(logged_files, [(0.0, 0, 1), (0.25, 1, 0), (0.5, 0, 0), (2.0, 1, 0)]);
        assert!(plan.pages[2].objects[0].is_conditional);
        let mut written = String::new();
        text::write(&plan, &mut written).unwrap();
        assert_eq!(text::read(&written), Ok(plan));
    }

    #[test]
    fn rejects_an_empty_log_and_one_of_a_month() {
        assert_eq!(
            replay_plan(lines(&[(record(0, "a", 404, Some(1)), None)]), 1.0),
            Err(PlanError::EmptyLog)
        );
        let month =
            lines(&[(record(0, "a", 200, Some(1)), None), (record(2_600_000, "a", 200, Some(1)), None)]);
        let message = replay_plan(month.clone(), 1.0).unwrap_err().to_string();
        assert!(message.contains("can last 10800 s") || message.contains("can last"), "{message}");
        assert!(replay_plan(month, 1_000.0).is_ok());
    }
}
