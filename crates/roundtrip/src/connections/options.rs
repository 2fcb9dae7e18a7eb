//! The query that the flags describe.
//!
//! Errors name the flag.

use accesslog::connections::{Query, Rule};
use accesslog::{ClientDefinition, Format, HeaderBytes, MissingSize, Prefix, Sizing};
use accesslog_io::options::{ConnectionsOptions, WINDOW, Window, cpu_count};
use accesslog_io::table_file::ColumnNames;
use quantity::names::{Quoted, UnknownName};
use wire::{Bytes, Duration};

use crate::cli::connections::Connections;
use crate::failure::Failure;
use crate::feature::Feature;

/// Default timeouts: every second where the number of connections changes most, then fewer; 20 in all.
const TIMEOUTS_S: [u64; 20] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 15, 18, 20, 25, 30, 40, 50, 60];
/// The paper's connections per client.
const LIMITS: [usize; 2] = [1, 3];
/// HTTP, and the paper's two.
const THRESHOLDS: [u64; 3] = [0, 1_460, 4_096];
/// Connections over time are plotted for Apache's timeout.
const CURVE: Duration = Duration::from_secs(15);

/// Reads the flags.
pub fn options(flags: &Connections) -> Result<ConnectionsOptions, Failure> {
    let who = ClientDefinition {
        prefix: given(&flags.client_prefix, "client-prefix", prefix)?,
        field: flags.client_field.clone(),
    };
    let format = flags.log_format.as_deref().map(|text| Format::named(text, &who)).transpose();
    Ok(ConnectionsOptions {
        question: query(flags)?,
        distribution: flags.distribution || flags.output.report.is_some(),
        sizing: Sizing {
            missing: given(&flags.missing_size, "missing-size", missing_size)?.unwrap_or_default(),
            headers: given(&flags.header_bytes, "header-bytes", header_bytes)?.unwrap_or_default(),
        },
        format: format.map_err(|error| Failure::Value(format!("--log-format: {error}")))?,
        who,
        named: named(&flags.columns)?,
        window: Window::of(given(&flags.window, "window", window)?.unwrap_or(WINDOW)),
        threads: given(&flags.threads, "threads", threads)?.unwrap_or_else(cpu_count),
    })
}

fn query(flags: &Connections) -> Result<Query, Failure> {
    let mut timeouts = values(&flags.timeouts, "timeout", timeout)?;
    if timeouts.is_empty() {
        timeouts = TIMEOUTS_S.map(Duration::from_secs).to_vec();
    }
    let mut limits = values(&flags.per_client, "per-client", limit)?;
    if limits.is_empty() {
        limits = LIMITS.to_vec();
    }
    let mut thresholds = values(&flags.thresholds, "threshold", size)?;
    if thresholds.is_empty() {
        thresholds = THRESHOLDS.map(Bytes::new).to_vec();
    }
    let rule = given(&flags.rule, "rule", rule)?.unwrap_or_default();
    let question = Query::new(&timeouts, &limits, &thresholds, CURVE)
        .map_err(|error| Failure::Value(format!("roundtrip connections: {error}")))?;
    Ok(question.under(rule, flags.durations))
}

fn given<T>(
    text: &Option<String>,
    flag: &str,
    read: fn(&str) -> Result<T, String>,
) -> Result<Option<T>, Failure> {
    text.as_deref().map(|text| value(text, flag, read)).transpose()
}

fn values<T>(texts: &[String], flag: &str, read: fn(&str) -> Result<T, String>) -> Result<Vec<T>, Failure> {
    texts.iter().map(|text| value(text, flag, read)).collect()
}

fn value<T>(text: &str, flag: &str, read: fn(&str) -> Result<T, String>) -> Result<T, Failure> {
    read(text).map_err(|sentence| Failure::Value(format!("--{flag}: {sentence}")))
}

/// `client=ip,time=ts`.
fn named(pairs: &[String]) -> Result<ColumnNames, Failure> {
    let mut named = ColumnNames::default();
    if !pairs.is_empty() {
        Feature::Parquet.require("--columns")?;
    }
    for pair in pairs {
        let wrong = |sentence: String| Failure::Value(format!("--columns: {sentence}"));
        let (role, column) = pair.split_once('=').ok_or_else(|| {
            wrong(format!("{} names no column; give a pair such as client=ip", Quoted(pair)))
        })?;
        named.name(role, column).map_err(|unknown| wrong(unknown.to_string()))?;
    }
    Ok(named)
}

/// A timeout; a plain number is in seconds.
fn timeout(text: &str) -> Result<Duration, String> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let with_unit = if plain { format!("{text}s") } else { text.to_owned() };
    quantity::duration(&with_unit).map_err(|error| error.to_string())
}

fn limit(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("{} is not a number of connections; give 1 to 64", Quoted(text)))
}

fn size(text: &str) -> Result<Bytes, String> {
    match text {
        "0" => Ok(Bytes::ZERO),
        _ => quantity::object_size(text).map_err(|error| error.to_string()),
    }
}

fn header_bytes(text: &str) -> Result<HeaderBytes, String> {
    match text {
        "by-status" => Ok(HeaderBytes::ByStatus),
        _ => size(text).map(HeaderBytes::Fixed),
    }
}

fn missing_size(text: &str) -> Result<MissingSize, String> {
    match text {
        "leave-out" => Ok(MissingSize::LeaveOut),
        "zero" => Ok(MissingSize::Zero),
        "large" => Ok(MissingSize::Large),
        _ => Err(UnknownName::new("policy", text, ["leave-out", "zero", "large"]).to_string()),
    }
}

fn rule(text: &str) -> Result<Rule, String> {
    let named = Rule::ALL.into_iter().find(|rule| rule.name() == text);
    named.ok_or_else(|| UnknownName::new("rule", text, Rule::ALL.map(Rule::name)).to_string())
}

/// `24`, or `24,64`; IPv6 gets the usual size of a site, 64, if it is not given (RFC 4291, section 2.5.4).
fn prefix(text: &str) -> Result<Prefix, String> {
    let (v4, v6) = text.split_once(',').unwrap_or((text, "64"));
    let bits = |text: &str, most: u8| text.parse().ok().filter(|bits| *bits <= most);
    match (bits(v4, 32), bits(v6, 128)) {
        (Some(v4), Some(v6)) => Ok(Prefix { v4, v6 }),
        _ => Err(format!("{} is not a prefix; give bits such as 24, or 24,64", Quoted(text))),
    }
}

/// A window from 64 KiB to 1 GiB, in bytes.
fn window(text: &str) -> Result<usize, String> {
    let size = size(text)?.get();
    let held = usize::try_from(size).ok().filter(|size| (1 << 16..=1 << 30).contains(size));
    held.ok_or_else(|| format!("{} is out of range for a window; give 64kib to 1gib", Quoted(text)))
}

fn threads(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=1_024).contains(number));
    number.ok_or_else(|| format!("{} is not a number of threads; give 1 to 1024", Quoted(text)))
}
