//! Substitutes for the paper's log, with their counts: NASA's day, and three synthetic months.
//!
//! The synthetic log has the request rate of WorldCup98's servers and the paper's sizes (`logs::answer`). Its sizes are
//! therefore an assumption; its connections follow from the clients' behaviour, which is an assumption too.

use std::path::Path;

use accesslog::connections::{ByRule, Counter, Question, Rule};
use accesslog::{Client, Covers, Record, Request, Sizing};
use accesslog_io::ask::Asked;
use accesslog_io::input::Input;
use wire::{Bytes, Duration, Seed, Time};
use workload::logs::curve::Curve;
use workload::logs::synthesize::{self, Line, Wanted};

use crate::measured::Counted;

/// A log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Log {
    /// A day of NASA's server, 1995-08-01.
    Nasa,
    /// WorldCup98's 88 days, one request of every 450.
    MadeUp,
}

impl Log {
    /// Both logs.
    pub const ALL: [Self; 2] = [Self::Nasa, Self::MadeUp];

    /// Name in the data.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nasa => "nasa",
            Self::MadeUp => "made-up",
        }
    }

    /// Counts it, in the directory of logs.
    ///
    /// # Errors
    /// The reason why it cannot be read.
    pub fn count(self, folder: &Path) -> Result<Counted, String> {
        match self {
            Self::Nasa => nasa(&folder.join("nasa_19950801.clf")),
            Self::MadeUp => made_up(&folder.join("worldcup98_requests_per_minute.csv.gz")),
        }
    }
}

/// Time-outs of the figures.
const TIMEOUTS_S: [u64; 20] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 15, 18, 20, 25, 30, 40, 50, 60];
/// Time-outs that the text mentions, and the last: the slow rule takes long for each.
const FEW_TIMEOUTS_S: [u64; 3] = [1, 15, 60];
/// HTTP, and the paper's two.
pub const THRESHOLDS: [u64; 3] = [0, 1_460, 4_096];
/// Number of synthetic requests.
const MADE_UP: u64 = 3_000_000;
/// Number of synthetic clients.
const CLIENTS: u32 = 100_000;

fn nasa(log: &Path) -> Result<Counted, String> {
    let count = |rule| {
        let asked = Asked::of(question(&TIMEOUTS_S, &[1, 3])?.under(rule, false));
        let answer = accesslog_io::count(vec![Input::File(log.to_owned())], &asked);
        answer.map(|answer| answer.passed.counts).map_err(|error| error.to_string())
    };
    let least_recently_used = count(Rule::LeastRecentlyUsed)?;
    Ok(Counted { least_recently_used, first_created: count(Rule::FirstCreated)? })
}

fn made_up(curve: &Path) -> Result<Counted, String> {
    let unreadable = |error: &dyn std::fmt::Display| format!("{}: {error}", curve.display());
    let bytes = Input::File(curve.to_owned()).open().map_err(|error| unreadable(&error))?;
    let curve = Curve::read(bytes).map_err(|error| unreadable(&error))?;
    let wanted = Wanted { curve, requests: MADE_UP, clients: CLIENTS, seed: Seed::default() };
    let mut least_recently_used = Counter::new(&question(&TIMEOUTS_S, &[1, 3])?);
    let mut first_created = ByRule::new(&question(&FEW_TIMEOUTS_S, &[3])?.under(Rule::FirstCreated, false));
    let mut requests = Vec::with_capacity(FLOCK);
    let mut count = |requests: &mut Vec<Request>| {
        least_recently_used.count(requests);
        first_created.count(requests);
        requests.clear();
    };
    let sizing = Sizing::default();
    synthesize::each(&wanted, |line| {
        requests.extend(sizing.request(&record(line)));
        if requests.len() == FLOCK {
            count(&mut requests);
        }
        Ok::<(), String>(())
    })?;
    count(&mut requests);
    Ok(Counted { least_recently_used: least_recently_used.finish(), first_created: first_created.finish() })
}

/// Number of requests that are counted together.
const FLOCK: usize = 1 << 13;

/// The record that a reader would parse from the line.
fn record(line: Line) -> Record {
    let Line { second, client, status, size } = line;
    Record {
        time: Time::ZERO + Duration::from_secs(second),
        client: Client::from_bits(u64::from(client)),
        status,
        size: Some(Bytes::new(size)),
        covers: Covers::Body,
        taken: None,
    }
}

fn question(timeouts_s: &[u64], limits: &[usize]) -> Result<Question, String> {
    let timeouts: Vec<Duration> = timeouts_s.iter().copied().map(Duration::from_secs).collect();
    Question::new(&timeouts, limits, &THRESHOLDS.map(Bytes::new), Duration::from_secs(15))
        .map_err(|error| error.to_string())
}
