//! A plan from an access log: the same requests, of the same users, for answers of the same sizes, at the same times.
//!
//! Not from laws, and not of the same names: what was asked for is not read from a log (see [`crate::access_log`]), so answers of
//! one size are one file. Where a log has whole seconds, the requests of a second are spread over it evenly, in their order.

use std::collections::BTreeMap;

use wire::{Duration, Time};

use super::plan::{Ask, Begins, MOST_FILES, MOST_REQUESTS, Page, Plan, Unfit, Wanted};
use super::schedule::Schedule;
use crate::access_log::{Client, Record};

/// A longer plan nobody waits for.
pub const LONGEST: Duration = Duration::from_secs(3 * 3_600);

/// What a plan takes of a log.
#[derive(Clone, Debug, PartialEq)]
pub struct Replayed {
    /// The plan.
    pub plan: Plan,
    /// Records that are not in it: neither whole nor unchanged answers, or of a size that the log does not say.
    pub left_out: u64,
}

/// A request of the log.
struct Line {
    time: Time,
    client: Client,
    /// `None`: nothing had changed.
    size: Option<u64>,
}

/// The plan of these records, `speed` times as fast as they were.
///
/// # Errors
/// [`Unfit`] if there is nothing in them, or more than a plan can have.
pub fn replayed(records: impl IntoIterator<Item = Record>, speed: f64) -> Result<Replayed, Unfit> {
    let (mut lines, mut left_out) = (Vec::new(), 0);
    for Record { time, client, status, size, covers: _, taken: _ } in records {
        let size = match (status, size) {
            (304, _) => None,
            (0 | 200 | 206, Some(size)) => Some(size.get()),
            _ => {
                left_out += 1;
                continue;
            }
        };
        lines.push(Line { time, client, size });
        if lines.len() as f64 > MOST_REQUESTS {
            return Err(Unfit::TooManyRequests(lines.len() as f64));
        }
    }
    lines.sort_by_key(|line| line.time);
    let (Some(first), Some(last)) = (lines.first().map(|line| line.time), lines.last().map(|line| line.time))
    else {
        return Err(Unfit::Nothing);
    };
    let scaled = |since: f64| Duration::from_secs_f64(since / speed).unwrap_or(Duration::MAX);
    let lasts = in_micros(scaled(last.since(first).as_secs_f64() + 1.0));
    if lasts > LONGEST {
        return Err(Unfit::TooLong(lasts));
    }
    let (files, numbers) = files(&lines)?;
    let mut users = BTreeMap::new();
    let mut pages = Vec::with_capacity(lines.len());
    for (Line { time, client, size }, spread) in lines.iter().zip(spread(&lines)) {
        // There are as many users as fit 32 bits: requests are not more.
        let next = u32::try_from(users.len()).unwrap_or(u32::MAX);
        let user = *users.entry(*client).or_insert(next);
        let at = in_micros(scaled(time.since(first).as_secs_f64() + spread));
        let file = size.and_then(|size| numbers.get(&size).copied()).unwrap_or(0);
        let ask = Ask { file, after: Duration::ZERO, is_conditional: size.is_none() };
        pages.push(Page {
            user,
            begins: Begins::At(Time::ZERO + at),
            objects: vec![ask],
            ends_session: false,
        });
    }
    let count = u32::try_from(files.len()).unwrap_or(u32::MAX);
    let wanted = Wanted { files: count, schedule: Schedule::Replay(speed), lasts, ..Wanted::default() };
    Ok(Replayed { plan: Plan { wanted, files, pages }, left_out })
}

/// The sizes of the files, those that are asked for most first, and the number of each.
fn files(lines: &[Line]) -> Result<(Vec<u64>, BTreeMap<u64, u32>), Unfit> {
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    for size in lines.iter().filter_map(|line| line.size) {
        *counts.entry(size).or_default() += 1;
    }
    let mut files: Vec<u64> = counts.keys().copied().collect();
    files.sort_by_key(|size| std::cmp::Reverse(counts[size]));
    // A site has two at least.
    files.resize(files.len().max(2), files.first().copied().unwrap_or(0));
    let count = u32::try_from(files.len()).unwrap_or(u32::MAX);
    if count > MOST_FILES {
        return Err(Unfit::TooManyFiles(count));
    }
    let mut numbers = BTreeMap::new();
    for (size, number) in files.iter().zip(0..) {
        numbers.entry(*size).or_insert(number);
    }
    Ok((files, numbers))
}

/// For each request, the part of a second by which it is later than the log says.
fn spread(lines: &[Line]) -> impl Iterator<Item = f64> {
    let is_whole =
        lines.iter().all(|line| line.time.since(Time::ZERO).as_nanos().is_multiple_of(1_000_000_000));
    let seconds = lines.chunk_by(|one, other| one.time == other.time);
    seconds.flat_map(move |second| {
        let count = second.len() as f64;
        (0..second.len()).map(move |place| if is_whole { place as f64 / count } else { 0.0 })
    })
}

/// Times in a plan are whole microseconds, so that its file says them exactly.
fn in_micros(span: Duration) -> Duration {
    Duration::from_micros(span.as_nanos() / 1_000)
}

#[cfg(test)]
mod tests {
    use wire::Bytes;

    use super::super::text;
    use super::*;
    use crate::access_log::Covers;

    fn record(seconds: u64, client: &str, status: u16, size: Option<u64>) -> Record {
        Record {
            time: Time::ZERO + Duration::from_secs(800_000_000 + seconds),
            client: Client::of(client.as_bytes()),
            status,
            size: size.map(Bytes::new),
            covers: Covers::Body,
            taken: None,
        }
    }

    #[test]
    fn requests_keep_their_users_sizes_and_times_at_another_speed() {
        let records = [
            record(4, "b", 200, Some(70)),
            record(0, "a", 200, Some(500)),
            record(0, "b", 200, Some(70)),
            record(1, "a", 304, None),
            record(2, "c", 404, Some(9)),
            record(2, "c", 200, None),
        ];
        let Replayed { plan, left_out } = replayed(records, 2.0).unwrap();
        assert_eq!((left_out, &plan.files[..]), (2, &[70, 500][..]));
        let at = |page: &Page| match page.begins {
            Begins::At(at) => at.since(Time::ZERO).as_secs_f64(),
            Begins::After(_) => f64::NAN,
        };
        let seen: Vec<_> =
            plan.pages.iter().map(|page| (at(page), page.user, page.objects[0].file)).collect();
        assert_eq!(seen, [(0.0, 0, 1), (0.25, 1, 0), (0.5, 0, 0), (2.0, 1, 0)]);
        assert!(plan.pages[2].objects[0].is_conditional);
        let mut written = String::new();
        text::write(&plan, &mut written).unwrap();
        assert_eq!(text::read(&written), Ok(plan));
    }

    #[test]
    fn a_log_of_nothing_or_of_a_month_is_no_plan() {
        assert_eq!(replayed([record(0, "a", 404, Some(1))], 1.0), Err(Unfit::Nothing));
        let month = [record(0, "a", 200, Some(1)), record(2_600_000, "a", 200, Some(1))];
        let said = replayed(month, 1.0).unwrap_err().to_string();
        assert!(said.contains("can last 10800 s") || said.contains("can last"), "{said}");
        assert!(replayed(month, 1_000.0).is_ok());
    }
}
