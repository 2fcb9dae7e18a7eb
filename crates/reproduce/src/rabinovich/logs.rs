//! Substitutes for the paper's log, with their counts: a synthetic day that needs no file, NASA's day, and three synthetic
//! months.
//!
//! The synthetic logs have the paper's sizes (`workload::logs::responses`); the months have the request rate of WorldCup98's
//! servers; the day's rises until its middle. Their sizes are therefore an assumption. Their connections follow from the
//! clients' behaviour, which is an assumption too.

use std::path::Path;

use accesslog::connections::{Counter, Counts, Query, Rule, RuleCounter};
use accesslog::{Client, Record, Request, SizeScope, Sizing};
use accesslog_io::input::Input;
use accesslog_io::options::ConnectionsOptions;
use wire::{Bytes, Duration, Seed, Time};
use workload::logs::curve::Curve;
use workload::logs::synthesize::{self, LogLine, SynthesisOptions};

/// A log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Log {
    /// A synthetic day.
    BuiltIn,
    /// A day of NASA's server, 1995-08-01.
    Nasa,
    /// WorldCup98's 88 days, one request of every 450.
    MadeUp,
}

impl Log {
    /// Every log.
    pub const ALL: [Self; 3] = [Self::BuiltIn, Self::Nasa, Self::MadeUp];

    /// Name in the data.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BuiltIn => "built-in",
            Self::Nasa => "nasa",
            Self::MadeUp => "made-up",
        }
    }

    /// Counts it, in the directory of logs; `None` where it needs one and there is none.
    ///
    /// # Errors
    /// The reason why it cannot be read.
    pub fn count(self, directory: Option<&Path>) -> Result<Option<LogCounts>, String> {
        let file = |name| directory.map(|directory| directory.join(name));
        match self {
            Self::BuiltIn => made_up(Curve::day(), DAY, DAY_CLIENTS).map(Some),
            Self::Nasa => file("nasa_19950801.clf").map(|log| nasa(&log)).transpose(),
            Self::MadeUp => file("worldcup98_requests_per_minute.csv.gz")
                .map(|curve| made_up(months(&curve)?, SYNTHETIC_REQUESTS, CLIENTS))
                .transpose(),
        }
    }
}

/// Counts of one log.
#[derive(Clone, Debug)]
pub struct LogCounts {
    /// Counts with "oldest" read as the least recently used.
    pub least_recently_used: Counts,
    /// Counts with "oldest" read as the first created, perhaps for fewer time-outs.
    pub first_created: Counts,
}

/// Time-outs of the figures.
const TIMEOUTS_S: [u64; 20] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 15, 18, 20, 25, 30, 40, 50, 60];
/// Time-outs that the text mentions, and the longest: the slow rule takes long for each.
const FEW_TIMEOUTS_S: [u64; 3] = [1, 15, 60];
/// HTTP, and the paper's two.
pub const THRESHOLDS: [u64; 3] = [0, 1_460, 4_096];
/// Number of requests of the synthetic day: 3.5 a second.
const DAY: u64 = 300_000;
/// Number of its clients.
const DAY_CLIENTS: u32 = 30_000;
/// Number of synthetic requests.
const SYNTHETIC_REQUESTS: u64 = 3_000_000;
/// Number of synthetic clients.
const CLIENTS: u32 = 100_000;

fn nasa(log: &Path) -> Result<LogCounts, String> {
    let count = |rule| {
        let requested = ConnectionsOptions::of(query(&TIMEOUTS_S, &[1, 3])?.under(rule, false));
        let response = accesslog_io::count(vec![Input::File(log.to_owned())], &requested);
        response.map(|response| response.passed.counts).map_err(|error| error.to_string())
    };
    let least_recently_used = count(Rule::LeastRecentlyUsed)?;
    Ok(LogCounts { least_recently_used, first_created: count(Rule::FirstCreated)? })
}

fn months(curve: &Path) -> Result<Curve, String> {
    let unreadable = |error: &dyn std::fmt::Display| format!("{}: {error}", curve.display());
    let bytes = Input::File(curve.to_owned()).open().map_err(|error| unreadable(&error))?;
    Curve::read(bytes).map_err(|error| unreadable(&error))
}

fn made_up(curve: Curve, requests: u64, clients: u32) -> Result<LogCounts, String> {
    let options = SynthesisOptions { curve, requests, clients, seed: Seed::default() };
    let mut least_recently_used = Counter::new(&query(&TIMEOUTS_S, &[1, 3])?);
    let mut first_created = RuleCounter::new(&query(&FEW_TIMEOUTS_S, &[3])?.under(Rule::FirstCreated, false));
    let mut requests = Vec::with_capacity(BATCH_REQUESTS);
    let mut count = |requests: &mut Vec<Request>| {
        least_recently_used.count(requests);
        first_created.count(requests);
        requests.clear();
    };
    let sizing = Sizing::default();
    synthesize::each(&options, |line| {
        requests.extend(sizing.request(&record(line)));
        if requests.len() == BATCH_REQUESTS {
            count(&mut requests);
        }
        Ok::<(), String>(())
    })?;
    count(&mut requests);
    Ok(LogCounts { least_recently_used: least_recently_used.finish(), first_created: first_created.finish() })
}

/// Number of requests that are counted together.
const BATCH_REQUESTS: usize = 1 << 13;

/// The record that a reader would parse from the line.
fn record(line: LogLine) -> Record {
    let LogLine { second, client, status, size } = line;
    Record {
        time: Time::ZERO + Duration::from_secs(second),
        client: Client::from_bits(u64::from(client)),
        status,
        size: Some(Bytes::new(size)),
        covers: SizeScope::Body,
        taken: None,
    }
}

fn query(timeouts_s: &[u64], limits: &[usize]) -> Result<Query, String> {
    let timeouts: Vec<Duration> = timeouts_s.iter().copied().map(Duration::from_secs).collect();
    Query::new(&timeouts, limits, &THRESHOLDS.map(Bytes::new), Duration::from_secs(15))
        .map_err(|error| error.to_string())
}
