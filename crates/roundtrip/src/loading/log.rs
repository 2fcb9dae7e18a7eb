//! What came of a load as a file: a log of HDR histograms (V2, `.hlog`) that the usual tools read, with the rest in a comment.
//!
//! ```text
//! #[Histogram log format version 1.3]
//! #roundtrip-load 1 {"target":"http://127.0.0.1:8080/","protocol":"http11",...}
//! #[StartTime: 1795276800.000 (seconds since epoch)]
//! #[BaseTime: 1795276800.000 (seconds since epoch)]
//! #[MaxValueDivisor: 1000000.000]
//! 0.000,1.000,2.310,HISTFAAA...
//! ...
//! Tag=intended,0.000,120.000,2.310,HISTFAAA...
//! Tag=experienced,0.000,120.000,2.302,HISTFAAA...
//! Tag=lateness,0.000,120.000,0.041,HISTFAAA...
//! ```
//!
//! A line without a tag for each second: latencies from when requests were due; the others are of the whole run, with more
//! digits. All values are nanoseconds. Not for people: [`super::result`] is. What is read was written by someone else: nothing
//! here panics, and a histogram with other bounds than ours is refused.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;
use std::time::{Duration, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::interval_log::{
    IntervalLogIterator, IntervalLogWriterBuilder, LogEntry, Tag,
};
use hdrhistogram::serialization::{Deserializer, V2DeflateSerializer};
use hdrhistogram::{Counter, Histogram};
use load::audit::Limit;
use load::record::{Channel, Record, Second, Trouble};
use serde::{Deserialize, Serialize};

/// What stands before the JSON.
const MAGIC: &str = "roundtrip-load 1 ";
/// A longer run is no run of ours: a plan lasts an hour, and an answer is waited for as long at most.
const MOST_SECONDS: usize = 3 * 3_600;

/// Nothing is counted so often, and sums of as many parts as anyone has are still numbers.
const MOST: u64 = 1 << 50;

/// A run or a part of one: what was done, and what came of it.
#[derive(Clone, Debug)]
pub struct Log {
    /// What was done.
    pub about: About,
    /// What came of it.
    pub record: Record,
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// The server.
    pub target: String,
    /// How it was asked.
    pub protocol: String,
    /// What was peculiar about the users' connections, in words; empty if nothing was.
    pub clients: String,
    /// The laws' name.
    pub laws: String,
    /// The plan's seed.
    pub seed: u64,
    /// Tells plans apart: the same for all parts of one.
    pub plan: String,
    /// The parts of the plan that were run, by their numbers from 1.
    pub parts: Vec<u32>,
    /// How many there are.
    pub of: u32,
    /// When the first of them began, in seconds since 1970, and the last.
    pub began: (f64, f64),
}

/// The comment.
#[derive(Serialize, Deserialize)]
struct Comment {
    #[serde(flatten)]
    about: About,
    channels: BTreeMap<String, u64>,
    troubles: BTreeMap<String, u64>,
    again: u64,
    connections: u64,
    seconds: Vec<Counts>,
}

/// A second without its histogram.
#[derive(Serialize, Deserialize)]
struct Counts {
    due: u64,
    late: u64,
    answered: u64,
    failed: u64,
    bytes: u64,
    processor: f64,
    opened: u64,
    open: u64,
    dropped: u64,
    worst: String,
}

impl Counts {
    fn all(&self) -> [&u64; 8] {
        let Self { due, late, answered, failed, bytes, processor: _, opened, open, dropped, worst: _ } = self;
        [due, late, answered, failed, bytes, opened, open, dropped]
    }
}

/// Why a file is no such log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadLog {
    /// It has not the comment that says what was done.
    NotOurs,
    /// The comment says something impossible.
    Comment(String),
    /// A line is no histogram with our bounds.
    Histogram(usize),
    /// A histogram is missing.
    Missing(&'static str),
}

impl fmt::Display for BadLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOurs => {
                f.write_str("no line says `#roundtrip-load 1`; give logs that `load --log` wrote")
            }
            Self::Comment(why) => {
                write!(f, "the line `#roundtrip-load 1` is not whole: {why}; run the load again")
            }
            Self::Histogram(number) => {
                write!(
                    f,
                    "histogram {number} is damaged, or was written by another program; run the load again"
                )
            }
            Self::Missing(which) => {
                write!(f, "the histogram of {which} is missing: the log was cut; run the load again")
            }
        }
    }
}

impl std::error::Error for BadLog {}

/// Writes the log.
///
/// # Errors
/// Those of `out`.
pub fn write(log: &Log, mut out: &mut dyn Write) -> std::io::Result<()> {
    let Log { about, record } = log;
    let Record { began: _, seconds, experienced, intended, lateness, channels, troubles, again, connections } =
        record;
    let comment = Comment {
        about: about.clone(),
        channels: channels.iter().map(|(way, count)| (way.name().to_owned(), *count)).collect(),
        troubles: troubles.iter().map(|(trouble, count)| (trouble.name().to_owned(), *count)).collect(),
        again: *again,
        connections: *connections,
        seconds: seconds.iter().map(counts).collect(),
    };
    let comment = serde_json::to_string(&comment).map_err(std::io::Error::other)?;
    let began = Duration::try_from_secs_f64(about.began.0).unwrap_or_default();
    // A log that was read may say anything.
    let began = UNIX_EPOCH.checked_add(began).unwrap_or(UNIX_EPOCH);
    let mut serializer = V2DeflateSerializer::new();
    let mut log = IntervalLogWriterBuilder::new()
        .add_comment("[Histogram log format version 1.3]")
        .add_comment(&format!("{MAGIC}{comment}"))
        .with_start_time(began)
        .with_base_time(began)
        .with_max_value_divisor(1e6)
        .begin_log_with(&mut out, &mut serializer)?;
    let other = |error: &dyn fmt::Display| std::io::Error::other(error.to_string());
    for (second, begins) in seconds.iter().zip(0..) {
        log.write_histogram(&second.intended, Duration::from_secs(begins), Duration::from_secs(1), None)
            .map_err(|error| other(&error))?;
    }
    let lasted = Duration::from_secs(seconds.len() as u64);
    for (name, histogram) in [(INTENDED, intended), (EXPERIENCED, experienced), (LATENESS, lateness)] {
        log.write_histogram(histogram, Duration::ZERO, lasted, Tag::new(name))
            .map_err(|error| other(&error))?;
    }
    Ok(())
}

const INTENDED: &str = "intended";
const EXPERIENCED: &str = "experienced";
const LATENESS: &str = "lateness";

fn counts(second: &Second) -> Counts {
    let Second { due, late, answered, failed, bytes, intended: _, processor, opened, open, dropped, worst } =
        second;
    Counts {
        due: *due,
        late: *late,
        answered: *answered,
        failed: *failed,
        bytes: *bytes,
        processor: *processor,
        opened: *opened,
        open: *open,
        dropped: *dropped,
        worst: worst.name().to_owned(),
    }
}

/// Reads a log.
///
/// # Errors
/// [`BadLog`] if it is not one of ours, or not whole.
pub fn read(text: &str) -> Result<Log, BadLog> {
    let comment =
        text.lines().find_map(|line| line.strip_prefix('#')?.strip_prefix(MAGIC)).ok_or(BadLog::NotOurs)?;
    let comment: Comment =
        serde_json::from_str(comment).map_err(|error| BadLog::Comment(error.to_string()))?;
    let Comment { about, channels, troubles, again, connections, seconds } = comment;
    if seconds.is_empty() || seconds.len() > MOST_SECONDS {
        return Err(BadLog::Comment(format!("a run has 1 to {MOST_SECONDS} seconds")));
    }
    if about.parts.is_empty() || about.parts.iter().any(|part| !(1..=about.of).contains(part)) {
        return Err(BadLog::Comment(format!(
            "its parts are none of the {} that it says there are",
            about.of
        )));
    }
    let all = channels.values().chain(troubles.values()).chain([&again, &connections]);
    if all.chain(seconds.iter().flat_map(Counts::all)).any(|count| *count > MOST) {
        return Err(BadLog::Comment("more of something is counted than a run has".to_owned()));
    }
    let began = wire::Duration::from_secs_f64(about.began.0).unwrap_or_default();
    let mut record = Record { began, again, connections, ..Record::default() };
    record.channels = named(channels, &Channel::ALL, Channel::name)?;
    record.troubles = named(troubles, &Trouble::ALL, Trouble::name)?;
    record.seconds = seconds.into_iter().map(second).collect::<Result<_, _>>()?;
    let (mut number, mut begun, mut missing) = (0, 0, vec![INTENDED, EXPERIENCED, LATENESS]);
    for entry in IntervalLogIterator::new(text.as_bytes()) {
        number += 1;
        let bad = BadLog::Histogram(number);
        let interval = match entry {
            Ok(LogEntry::StartTime(_) | LogEntry::BaseTime(_)) => {
                number -= 1;
                continue;
            }
            Ok(LogEntry::Interval(interval)) => interval,
            Err(_) => return Err(bad),
        };
        let encoded = interval.encoded_histogram();
        let Some(tag) = interval.tag() else {
            let second = record.seconds.get_mut(begun).ok_or(bad.clone())?;
            second.intended = decoded(encoded, &second.intended).ok_or(bad)?;
            begun += 1;
            continue;
        };
        let place = match tag.as_str() {
            INTENDED => &mut record.intended,
            EXPERIENCED => &mut record.experienced,
            LATENESS => &mut record.lateness,
            _ => return Err(bad),
        };
        *place = decoded(encoded, place).ok_or(bad)?;
        missing.retain(|name| *name != tag.as_str());
    }
    match missing.first() {
        Some(which) => Err(BadLog::Missing(which)),
        None if begun < record.seconds.len() => Err(BadLog::Missing("a second")),
        None => Ok(Log { about, record }),
    }
}

fn named<T: Copy + Ord>(
    counts: BTreeMap<String, u64>,
    all: &[T],
    name: fn(T) -> &'static str,
) -> Result<BTreeMap<T, u64>, BadLog> {
    let find = |(wanted, count): (String, u64)| {
        let found = all.iter().find(|one| name(**one) == wanted);
        Ok((*found.ok_or_else(|| BadLog::Comment(format!("`{wanted}` is not known")))?, count))
    };
    counts.into_iter().map(find).collect()
}

fn second(counts: Counts) -> Result<Second, BadLog> {
    let Counts { due, late, answered, failed, bytes, processor, opened, open, dropped, worst } = counts;
    let found = Limit::ALL.into_iter().find(|limit| limit.name() == worst);
    let worst = found.ok_or_else(|| BadLog::Comment(format!("`{worst}` is not known")))?;
    let intended = Second::default().intended;
    Ok(Second { due, late, answered, failed, bytes, intended, processor, opened, open, dropped, worst })
}

/// A histogram with the bounds of `like`.
fn decoded<T: Counter>(text: &str, like: &Histogram<T>) -> Option<Histogram<T>> {
    let bytes = STANDARD.decode(text).ok()?;
    let histogram: Histogram<T> = Deserializer::new().deserialize(&mut bytes.as_slice()).ok()?;
    let bounds = |of: &Histogram<T>| (of.low(), of.high(), of.sigfig());
    (bounds(&histogram) == bounds(like)).then_some(histogram)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log() -> Log {
        let about = About {
            target: "http://127.0.0.1:80/".to_owned(),
            protocol: "http11".to_owned(),
            clients: String::new(),
            laws: "surge-1998".to_owned(),
            seed: 1,
            plan: "00ff".to_owned(),
            parts: vec![2],
            of: 3,
            began: (1_795_276_800.5, 1_795_276_800.5),
        };
        let mut record = Record { again: 3, connections: 4, ..Record::default() };
        let mut second = Second {
            due: 9,
            late: 1,
            answered: 7,
            open: 3,
            processor: 0.25,
            worst: Limit::Network,
            ..Second::default()
        };
        for nanos in [1, 1_000, 123_456_789] {
            second.intended.record(nanos).unwrap();
            record.intended.record(nanos).unwrap();
            record.lateness.record(nanos / 3).unwrap();
        }
        record.seconds = vec![Second::default(), second];
        record.channels.insert(Channel::Udp, 7);
        record.troubles.insert(Trouble::Closed, 2);
        Log { about, record }
    }

    fn written(log: &Log) -> String {
        let mut out = Vec::new();
        write(log, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_log_is_read_as_it_was_written() {
        let text = written(&log());
        let again = read(&text).unwrap();
        assert_eq!(again.about, log().about);
        assert_eq!(written(&again), text);
        assert_eq!((again.record.intended, again.record.experienced.len()), (log().record.intended, 0));
    }

    #[test]
    fn regress_a_log_of_a_time_that_no_calendar_has_is_written_all_the_same() {
        let mut log = log();
        log.about.began = (1e19, 1e19);
        assert!(read(&written(&log)).is_ok());
    }

    #[test]
    fn what_is_no_log_or_not_whole_is_refused() {
        let text = written(&log());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(read("1,2\n").unwrap_err(), BadLog::NotOurs);
        let cut = lines[..lines.len() - 1].join("\n") + "\n";
        assert_eq!(read(&cut).unwrap_err(), BadLog::Missing(LATENESS));
        let torn = text.replacen("HISTFAAA", "HISTXAAA", 1);
        assert_eq!(read(&torn).unwrap_err(), BadLog::Histogram(1));
        for (from, to) in [
            ("\"parts\":[2]", "\"parts\":[4]"),
            ("\"parts\":[2]", "\"parts\":[]"),
            ("\"again\":3", "\"again\":18446744073709551615"),
            ("\"due\":9", "\"due\":18446744073709551615"),
        ] {
            assert!(text.contains(from), "{text}");
            let odd = read(&text.replacen(from, to, 1)).unwrap_err();
            assert!(matches!(odd, BadLog::Comment(_)), "{to}: {odd:?}");
        }
        let odd = text.replacen("\"network\"", "\"weather\"", 1);
        assert_eq!(read(&odd).unwrap_err(), BadLog::Comment("`weather` is not known".to_owned()));
    }
}
