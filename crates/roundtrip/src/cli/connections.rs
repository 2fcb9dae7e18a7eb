//! Flags of `roundtrip connections` and `roundtrip logs`.
//!
//! Values stay text: their parsers report errors.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::flags::{OutputFlags, READING};

/// `roundtrip connections`
#[derive(Debug, Args)]
pub struct Connections {
    /// Access logs: files, also compressed, directories, patterns, URLs such as s3://bucket/logs/*.gz, or - for
    /// standard input; several are merged by time
    #[arg(value_name = "LOG", value_hint = clap::ValueHint::AnyPath)]
    pub logs: Vec<PathBuf>,

    /// Keep-alive timeouts in seconds, or with a unit: 1,5,15 or 500ms [default: 20 from 1 to 60]
    #[arg(long = "timeout", value_name = "TIME", value_delimiter = ',', help_heading = COUNTING)]
    pub timeouts: Vec<String>,

    /// Maximum number of connections that a client opens [default: 1,3]
    #[arg(long, value_name = "N", value_delimiter = ',', help_heading = COUNTING)]
    pub per_client: Vec<String>,

    /// Show DHTTP next to HTTP in tables and reports; JSON and CSV always include it
    #[arg(long, help_heading = COUNTING)]
    pub dhttp: bool,

    /// With DHTTP, responses from this size go by TCP; 0 is HTTP; implies --dhttp [default: 0,1460,4096]
    #[arg(long = "threshold", value_name = "SIZE", value_delimiter = ',', help_heading = COUNTING)]
    pub thresholds: Vec<String>,

    /// Connection that a client picks: least-recently-used, first-created or idle-first
    #[arg(long, value_name = "RULE", help_heading = COUNTING)]
    pub rule: Option<String>,

    /// Count a connection as busy for the response time in the log
    #[arg(long, help_heading = COUNTING)]
    pub durations: bool,

    /// Also print the distribution of bytes and requests over connections
    #[arg(long, help_heading = COUNTING)]
    pub distribution: bool,

    /// Bytes that a header section adds to each response: a size, or by-status
    #[arg(long, value_name = "SIZE", help_heading = READING)]
    pub header_bytes: Option<String>,

    /// Responses without a size in the log: leave-out, zero or large
    #[arg(long, value_name = "POLICY", help_heading = READING)]
    pub missing_size: Option<String>,

    /// Log format: clf, combined, w3c, cloudfront, json, alb, or a format string of nginx or Apache [default: recognised]
    #[arg(long, value_name = "FORMAT", help_heading = READING)]
    pub log_format: Option<String>,

    /// Columns of a Parquet or Arrow table: client=ip,time=ts,size=n,status=code,taken=s [default: by usual names]
    #[arg(long, value_name = "ROLE=NAME", value_delimiter = ',', help_heading = READING)]
    pub columns: Vec<String>,

    /// Leading bits of an address that identify a client: 24, or 24,64 with those of IPv6
    #[arg(long, value_name = "BITS", help_heading = READING)]
    pub client_prefix: Option<String>,

    /// Field with the client's address, in logs with named fields
    #[arg(long, value_name = "NAME", help_heading = READING)]
    pub client_field: Option<String>,

    /// Window within which lines are sorted by time [default: 2mib]
    #[arg(long, value_name = "SIZE", help_heading = READING)]
    pub window: Option<String>,

    /// Threads that read and count [default: one for each CPU]
    #[arg(long, value_name = "N", help_heading = READING)]
    pub threads: Option<String>,

    /// Memory of clients within the longest timeout, at most [default: 1gib]
    #[arg(long, value_name = "SIZE", help_heading = COUNTING)]
    pub memory: Option<String>,

    /// Also write the rows as a Parquet table
    #[arg(long, value_name = "FILE.parquet", value_hint = clap::ValueHint::FilePath)]
    pub out: Option<PathBuf>,

    /// Write the maximum number of connections in each minute, as CSV or Parquet; with the timeout nearest to 15 s
    #[arg(long, value_name = "FILE.csv", value_hint = clap::ValueHint::FilePath)]
    pub over_time: Option<PathBuf>,

    #[command(flatten)]
    pub output: OutputFlags,
}

const COUNTING: &str = "Counting";
/// `roundtrip logs`
#[derive(Debug, Args)]
pub struct Logs {
    /// Subcommand of `logs`.
    #[command(subcommand)]
    pub verb: LogsVerb,
}

/// Subcommands of `logs`.
#[derive(Debug, Subcommand)]
pub enum LogsVerb {
    /// Generate an access log
    Synthesize(Synthesize),
}

/// `roundtrip logs synthesize`
#[derive(Debug, Args)]
pub struct Synthesize {
    /// Number of requests
    #[arg(long, value_name = "N", default_value = "1000000")]
    pub requests: String,

    /// Request rate over time, as CSV: a time and the number of requests in the following minute; also
    /// compressed [default: a day, busiest at its middle]
    #[arg(long, value_name = "FILE.csv")]
    pub curve: Option<PathBuf>,

    /// Number of clients; a few of them send most requests
    #[arg(long, value_name = "N", default_value = "100000")]
    pub clients: String,

    /// Random seed
    #[arg(long, value_name = "N")]
    pub seed: Option<String>,

    /// Output file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}
