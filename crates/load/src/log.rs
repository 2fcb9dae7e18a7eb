//! Results of a load as a file: a log of HDR histograms (V2, `.hlog`) that the usual tools read, with the rest in a comment.
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
//! digits. All values are nanoseconds. The command line prints a run for people. `read` reads such a file from any source.

mod read;

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;
use std::time::{Duration, UNIX_EPOCH};

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::evidence::Evidence;
use crate::record::Record;
use crate::second::Second;
use crate::traffic::Traffic;

pub use read::{LogError, MAX_BYTES, read};

/// Prefix of the JSON.
const MAGIC: &str = "roundtrip-load 1 ";
/// A run or a shard of one: its parameters and its results.
#[derive(Clone, Debug)]
pub struct Log {
    /// Parameters.
    pub parameters: RunParameters,
    /// Results.
    pub record: Record,
}

/// Parameters of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunParameters {
    /// The server.
    pub target: String,
    /// Protocol of the requests.
    pub protocol: String,
    /// Special properties of the users' connections, in words; empty if there are none.
    pub clients: String,
    /// Name of the distributions; empty for a list of requests.
    #[serde(rename = "laws")]
    pub distributions: String,
    /// The requests and their schedule in words; empty for a plan.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub workload: String,
    /// The plan's seed.
    pub seed: u64,
    /// Fingerprint of the plan: the same for all its shards.
    pub plan: String,
    /// Shards of the plan that were run, by their numbers from 1.
    #[serde(rename = "parts")]
    pub shards: Vec<u32>,
    /// Number of shards.
    #[serde(rename = "of")]
    pub shard_count: u32,
    /// Start times of the first and the last shard, in seconds since 1970.
    pub began: (f64, f64),
}

impl RunParameters {
    /// Those of a run of this traffic.
    pub fn of(traffic: &Traffic, target: String, config: &Config, record: &Record) -> Self {
        let Config {
            protocol,
            dhttp: _,
            connections,
            ports: _,
            closes_early,
            fast_open,
            has_early,
            idle_timeout,
            shard,
            threads: _,
            users: _,
            timeout: _,
            at: _,
        } = config;
        let mut clients = Vec::new();
        if *connections > 1 {
            clients.push(format!("{connections} connections a user"));
        }
        if *closes_early {
            clients.push("closing after each page".to_owned());
        }
        if *fast_open {
            clients.push("with Fast Open".to_owned());
        }
        if *has_early {
            clients.push("with early data (0-RTT)".to_owned());
        }
        if let Some(idle_timeout) = idle_timeout {
            clients.push(format!("keep-alive {idle_timeout}"));
        }
        let began = record.began.as_secs_f64();
        let (distributions, workload, seed) = match traffic {
            Traffic::Plan(plan) => (plan.spec.set.name().to_owned(), String::new(), plan.spec.seed.get()),
            Traffic::List(list) => (String::new(), list.words.clone(), list.seed),
        };
        Self {
            target,
            protocol: protocol.name().to_owned(),
            clients: clients.join(", "),
            distributions,
            workload,
            seed,
            plan: traffic.mark(),
            shards: vec![shard.number()],
            shard_count: shard.count(),
            began: (began, began),
        }
    }
}

/// The comment.
#[derive(Serialize, Deserialize)]
struct Comment {
    #[serde(flatten)]
    parameters: RunParameters,
    channels: BTreeMap<String, u64>,
    #[serde(rename = "troubles")]
    failure_counts: BTreeMap<String, u64>,
    #[serde(rename = "again")]
    retries: u64,
    connections: u64,
    /// Time from the first request to the last response; logs before 2026-11-22 lack it.
    #[serde(default)]
    elapsed_s: Option<f64>,
    /// Responses by status.
    #[serde(default)]
    statuses: BTreeMap<u16, u64>,
    /// Seconds after which the run was interrupted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cut_after_s: Option<f64>,
    /// Evidence of what limited the run; logs before 2026-11-28 lack it.
    #[serde(default)]
    evidence: Evidence,
    seconds: Vec<Counts>,
}

/// A second without its histogram.
#[derive(Serialize, Deserialize)]
struct Counts {
    due: u64,
    late: u64,
    #[serde(rename = "answered")]
    responses: u64,
    failed: u64,
    bytes: u64,
    #[serde(rename = "processor")]
    cpu_share: f64,
    opened: u64,
    open: u64,
    dropped: u64,
    worst: String,
}

/// Writes the log.
///
/// # Errors
/// Those of `out`.
pub fn write(log: &Log, mut out: &mut dyn Write) -> std::io::Result<()> {
    let Log { parameters, record } = log;
    let Record {
        began: _,
        seconds,
        experienced,
        intended,
        lateness,
        channels,
        failure_counts,
        retries,
        connections,
        elapsed,
        statuses,
        requests: _,
        cut,
        evidence,
    } = record;
    let comment = Comment {
        parameters: parameters.clone(),
        channels: channels.iter().map(|(channel, count)| (channel.name().to_owned(), *count)).collect(),
        failure_counts: failure_counts
            .iter()
            .map(|(reason, count)| (reason.name().to_owned(), *count))
            .collect(),
        retries: *retries,
        connections: *connections,
        elapsed_s: Some(elapsed.as_secs_f64()),
        statuses: statuses.clone(),
        cut_after_s: cut.map(wire::Duration::as_secs_f64),
        evidence: evidence.clone(),
        seconds: seconds.iter().map(counts).collect(),
    };
    let comment = serde_json::to_string(&comment).map_err(std::io::Error::other)?;
    let began = Duration::try_from_secs_f64(parameters.began.0).unwrap_or_default();
    // A log read from a file may have any value.
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
    let Second { due, late, responses, failed, bytes, intended: _, cpu_share, opened, open, dropped, worst } =
        second;
    Counts {
        due: *due,
        late: *late,
        responses: *responses,
        failed: *failed,
        bytes: *bytes,
        cpu_share: *cpu_share,
        opened: *opened,
        open: *open,
        dropped: *dropped,
        worst: worst.name().to_owned(),
    }
}
