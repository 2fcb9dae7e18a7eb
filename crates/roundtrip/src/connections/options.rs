//! Options of `roundtrip connections`, parsed from flags; errors name the flag.

use accesslog::connections::{Query, Rule};
use accesslog::{ClientDefinition, Format, HeaderBytes, MissingSize, Prefix, Sizing};
use accesslog_io::options::{ConnectionsOptions, MEMORY, WINDOW, Window, cpu_count};
use accesslog_io::table_file::ColumnNames;
use quantity::names::{Quoted, UnknownName};
use wire::{Bytes, Duration};

use crate::cli::connections::Connections;
use crate::failure::Failure;
use crate::feature::Feature;

/// Default timeouts in seconds: denser where the number of connections changes most.
const TIMEOUTS_S: [u64; 20] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 15, 18, 20, 25, 30, 40, 50, 60];
/// Connections per client in the paper.
const LIMITS: [usize; 2] = [1, 3];
/// Thresholds in bytes: HTTP, and the paper's two.
const THRESHOLDS: [u64; 3] = [0, 1_460, 4_096];
/// Timeout for which connections over time are plotted: Apache's.
const CURVE: Duration = Duration::from_secs(15);

/// Parses the flags.
pub fn options(flags: &Connections) -> Result<ConnectionsOptions, Failure> {
    let definition = ClientDefinition {
        prefix: optional(&flags.client_prefix, "client-prefix", prefix)?,
        field: flags.client_field.clone(),
    };
    let format = flags.log_format.as_deref().map(|text| Format::named(text, &definition)).transpose();
    Ok(ConnectionsOptions {
        query: query(flags)?,
        distribution: flags.distribution || flags.output.report.is_some(),
        sizing: Sizing {
            missing: optional(&flags.missing_size, "missing-size", missing_size)?.unwrap_or_default(),
            headers: optional(&flags.header_bytes, "header-bytes", header_bytes)?.unwrap_or_default(),
        },
        format: format.map_err(Failure::of_flag("log-format"))?,
        definition,
        named: column_names(&flags.columns)?,
        window: Window::of(optional(&flags.window, "window", window)?.unwrap_or(WINDOW)),
        threads: optional(&flags.threads, "threads", threads)?.unwrap_or_else(cpu_count),
        memory: optional(&flags.memory, "memory", memory)?.unwrap_or(MEMORY),
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
    let rule = optional(&flags.rule, "rule", rule)?.unwrap_or_default();
    let query = Query::new(&timeouts, &limits, &thresholds, CURVE)
        .map_err(|error| Failure::Value(format!("roundtrip connections: {error}")))?;
    Ok(query.under(rule, flags.durations))
}

fn optional<T>(
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

/// Parses pairs such as `client=ip,time=ts`.
fn column_names(pairs: &[String]) -> Result<ColumnNames, Failure> {
    let mut names = ColumnNames::default();
    if !pairs.is_empty() {
        Feature::Parquet.require("--columns").map_err(Failure::Value)?;
    }
    for pair in pairs {
        let invalid = |sentence: String| Failure::Value(format!("--columns: {sentence}"));
        let (role, column) = pair.split_once('=').ok_or_else(|| {
            invalid(format!("{} names no column; give a pair such as client=ip", Quoted(pair)))
        })?;
        names.name(role, column).map_err(|unknown| invalid(unknown.to_string()))?;
    }
    Ok(names)
}

/// Parses a timeout; a plain number is in seconds.
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

/// Parses `24` or `24,64`; the default for IPv6 is 64, the size of a subnet (RFC 4291, section 2.5.4).
fn prefix(text: &str) -> Result<Prefix, String> {
    let (v4, v6) = text.split_once(',').unwrap_or((text, "64"));
    let bits = |text: &str, max: u8| text.parse().ok().filter(|bits| *bits <= max);
    match (bits(v4, 32), bits(v6, 128)) {
        (Some(v4), Some(v6)) => Ok(Prefix { v4, v6 }),
        _ => Err(format!("{} is not a prefix; give bits such as 24, or 24,64", Quoted(text))),
    }
}

/// Parses a window from 64 KiB to 1 GiB, in bytes.
fn window(text: &str) -> Result<usize, String> {
    let size = size(text)?.get();
    let bytes = usize::try_from(size).ok().filter(|size| (1 << 16..=1 << 30).contains(size));
    bytes.ok_or_else(|| format!("{} is out of range for a window; give 64kib to 1gib", Quoted(text)))
}

fn memory(text: &str) -> Result<usize, String> {
    Ok(usize::try_from(size(text)?.get()).unwrap_or(usize::MAX))
}

fn threads(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=1_024).contains(number));
    number.ok_or_else(|| format!("{} is not a number of threads; give 1 to 1024", Quoted(text)))
}
