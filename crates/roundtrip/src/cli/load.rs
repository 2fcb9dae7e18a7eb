//! The flags of `load`: requests, schedule, server and protocol.
//!
//! `workload` and the crate `load` parse their values.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::flags;

/// `roundtrip load`
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Load {
    /// Subcommand; without one, a load run.
    #[command(subcommand)]
    pub verb: Option<LoadVerb>,
    #[command(flatten)]
    pub run: LoadRun,
}

/// Subcommands of `load`.
#[derive(Debug, Subcommand)]
pub enum LoadVerb {
    /// Generate a plan: every page, every object and every scheduled time, as a file
    Plan(Box<LoadPlan>),
    /// Merge results of several shards
    Merge(LoadMerge),
    /// Plot results of one run, or of several side by side, as one self-contained HTML page
    Page(LoadPage),
}

/// `roundtrip load TARGET`
#[derive(Debug, Args)]
pub struct LoadRun {
    #[command(flatten)]
    pub server: TargetFlags,

    #[command(flatten)]
    pub requests: RequestFlags,

    #[command(flatten)]
    pub threshold_flags: ThresholdFlags,

    /// The requests of a plan (`load plan -o FILE`), below the URL
    #[arg(help_heading = flags::SURGE, long, value_name = "FILE", conflicts_with_all = ["laws", "laws_of", "users", "rate", "duration", "files", "cap", "conditional", "seed", "requests", "replay", "surge"])]
    pub plan: Option<PathBuf>,

    /// Users of the site in this directory (`site surge DIR`), which the server has below the URL
    #[arg(help_heading = flags::SURGE, long, value_name = "DIR", value_hint = clap::ValueHint::DirPath, conflicts_with_all = ["files", "cap", "requests", "replay", "network"])]
    pub surge: Option<PathBuf>,

    /// Protocol: http10, http11, http11-pipelined, http2, http3, dhttp [default: http11, and http2 for https://]
    #[arg(long, value_name = "NAME")]
    pub protocol: Option<String>,

    /// Connections per user
    #[arg(long, value_name = "N", default_value = "1")]
    pub connections: String,

    /// UDP ports of each thread, shared by its users; dhttp
    #[arg(help_heading = flags::ADVANCED, long = "udp-ports", alias = "ports", value_name = "N", default_value = "8")]
    pub ports: String,

    /// Users close their connections after each page
    #[arg(help_heading = flags::ADVANCED, long)]
    pub early_close: bool,

    /// Send requests with the SYN where the server allows it (TCP Fast Open); HTTP/1
    #[arg(help_heading = flags::ADVANCED, long)]
    pub fast_open: bool,

    /// Returning users of HTTP/3 send requests in their first datagrams (0-RTT)
    #[arg(help_heading = flags::ADVANCED, long)]
    pub early_data: bool,

    /// Idle timeout of connections; with 0s each response ends its connection [default: the server's]
    #[arg(help_heading = flags::ADVANCED, long, value_name = "TIME")]
    pub keep_alive: Option<String>,

    /// Number of users that share --rate
    #[arg(help_heading = flags::ADVANCED, long, value_name = "N", default_value = "100")]
    pub share: String,

    /// Threads [default: half of the CPUs]
    #[arg(help_heading = flags::ADVANCED, long, value_name = "N")]
    pub threads: Option<String>,

    /// Timeout of a request
    #[arg(long, value_name = "TIME", default_value = "30s")]
    pub timeout: String,

    /// Run only the I-th of N shards of the plan, on one of N hosts; each gets its share of the users
    #[arg(help_heading = flags::ADVANCED, long, value_name = "I/N", default_value = "1/1")]
    pub shard: String,

    /// Start at this time, in seconds since 1970: the same for all shards
    #[arg(help_heading = flags::ADVANCED, long, value_name = "SECONDS")]
    pub at: Option<String>,

    /// Write the results as a log of HDR histograms (.hlog), for `load merge` and other programs
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,

    /// Search for the rate that the server sustains: runs of --for each, at rates doubled and then bisected
    #[arg(long, conflicts_with_all = ["plan", "surge", "network", "replay", "users", "rate", "log", "shard", "at"])]
    pub find_limit: bool,

    /// With --find-limit, write the search as one self-contained HTML page
    #[arg(long, value_name = "FILE.html", value_hint = clap::ValueHint::FilePath)]
    pub report: Option<PathBuf>,

    /// Duration of each short run with one user, and with half of the users, before the run; with 0s there is none [default: a
    /// twentieth of --for, 250ms to 1s; for GET and HEAD only]
    #[arg(help_heading = flags::ADVANCED, long, value_name = "TIME")]
    pub ramp: Option<String>,

    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: LoadFormat,

    #[command(flatten)]
    pub plan_flags: PlanFlags,
}

/// Output format of a load run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LoadFormat {
    /// For people: rounded, as wide as the terminal
    #[default]
    Table,
    /// For programs: every field, in full precision
    Json,
    /// For spreadsheets: a line for each second, or each rate of --find-limit
    Csv,
    /// For CI: the thresholds as tests
    Junit,
}

/// Requests other than SURGE's.
#[derive(Debug, Args)]
pub struct RequestFlags {
    /// A file of requests instead of one URL: lines `METHOD URL`, then header fields, then `@FILE` with the body; in turn
    #[arg(long, value_name = "FILE", conflicts_with_all = ["method", "header", "body", "replay"])]
    pub requests: Option<PathBuf>,

    /// Method of the request [default: GET, or POST with --body]
    #[arg(long, value_name = "METHOD")]
    pub method: Option<String>,

    /// Header field of the request, `Name: value`; repeatable
    #[arg(short = 'H', long, value_name = "FIELD")]
    pub header: Vec<String>,

    /// Body of the request; @FILE reads it from a file
    #[arg(long, value_name = "TEXT")]
    pub body: Option<String>,

    /// Statuses that count as success, such as 200,204,300-399 [default: every status below 400]
    #[arg(long, value_name = "LIST", conflicts_with_all = ["plan", "surge", "network"])]
    pub expect_status: Option<String>,

    /// Replay an access log instead, at its times (a file, a directory, or `-`); GET and HEAD only
    #[arg(long, value_name = "LOG", conflicts_with_all = ["users", "rate", "method", "body"])]
    pub replay: Vec<PathBuf>,

    /// Speed of --replay, as a multiple of the log's, such as 2x
    #[arg(long, value_name = "TIMES", default_value = "1", requires = "replay", conflicts_with_all = ["users", "rate"])]
    pub speed: String,
}

/// The thresholds of a run; exit status 1 if one is missed.
#[derive(Debug, Args)]
pub struct ThresholdFlags {
    /// Maximum share of failed requests
    #[arg(long, value_name = "SHARE", default_value = "1%")]
    pub max_failures: String,

    /// Threshold: p50, p90, p95, p99, p99.9, mean or max (p99=50ms), error-rate=0.1%, or a minimum rate=500/s; repeatable
    #[arg(long, value_name = "NAME=LIMIT")]
    pub fail_on: Vec<String>,
}

/// The server to load.
#[derive(Debug, Args)]
pub struct TargetFlags {
    /// URL to request, such as http://127.0.0.1:3000/api; for HTTP/3 and HTTP/2 over TLS https://
    #[arg(value_name = "URL", required_unless_present_any = ["network", "requests"])]
    pub target: Option<String>,

    /// Instead of a URL: Roundtrip's own server with a SURGE site, behind an emulated link (`roundtrip list networks`)
    #[arg(long, value_name = "NAME", conflicts_with_all = ["target", "ca", "insecure", "i_own_this", "requests", "method", "header", "body", "replay"])]
    pub network: Option<String>,

    /// CA bundle in PEM [default: the system's]
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub ca: Option<PathBuf>,

    /// Accept any certificate
    #[arg(long)]
    pub insecure: bool,

    /// Confirm that you may load a server that is neither on this machine nor in a private network
    #[arg(long)]
    pub i_own_this: bool,
}

/// `roundtrip load merge`
#[derive(Debug, Args)]
pub struct LoadMerge {
    /// Logs of `load --log`, each of another shard
    #[arg(value_name = "FILE", required = true)]
    pub logs: Vec<PathBuf>,

    /// Output log of the merged results
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: flags::Format,
}

/// `roundtrip load page`
#[derive(Debug, Args)]
pub struct LoadPage {
    /// Logs of `load --log` or `load merge`; each is named after its file
    #[arg(value_name = "FILE", required = true)]
    pub logs: Vec<PathBuf>,

    /// Output file
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

/// `roundtrip load plan`
#[derive(Debug, Args)]
pub struct LoadPlan {
    #[command(flatten)]
    pub plan: PlanFlags,

    /// Replay an access log: each path becomes a file of the size it had (a file, a directory, or `-`)
    #[arg(long, value_name = "LOG", conflicts_with_all = ["laws", "laws_of", "users", "rate", "duration", "files", "cap", "conditional", "seed"])]
    pub replay: Vec<PathBuf>,

    /// Speed of --replay, as a multiple of the log's
    #[arg(long, value_name = "TIMES", default_value = "1", requires = "replay", conflicts_with_all = ["users", "rate", "duration"])]
    pub speed: String,

    /// Output file of the plan; without it, only the goodness of fit is printed
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Output format of the goodness of fit
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: flags::Format,
}

/// Distributions and schedule of a plan.
#[derive(Debug, Args)]
pub struct PlanFlags {
    /// Distributions of sizes, popularity and pauses: surge-1998 or surge-1999 [default: surge-1998]
    #[arg(help_heading = flags::SURGE, long, value_name = "NAME")]
    pub laws: Option<String>,

    /// Distributions estimated from this access log instead (a file, a directory, or `-`)
    #[arg(help_heading = flags::SURGE, long, value_name = "LOG", conflicts_with = "laws")]
    pub laws_of: Vec<PathBuf>,

    /// Users; each sends its next request when it has the response (of SURGE: after a pause) [default: 10; of SURGE: 100]
    #[arg(long, value_name = "N", conflicts_with = "rate")]
    pub users: Option<String>,

    /// Requests per second instead, whatever the server does: 100, in steps 100:30s,200:30s, in a ramp 0..1000:60s
    #[arg(long, value_name = "RATE")]
    pub rate: Option<String>,

    /// Send requests at even intervals, not random ones
    #[arg(help_heading = flags::ADVANCED, long, requires = "rate", conflicts_with = "replay")]
    pub even: bool,

    /// Duration, up to an hour [default: 10s; of SURGE: 120s; of --replay: the whole log]
    #[arg(long = "for", value_name = "TIME")]
    pub duration: Option<String>,

    /// Files of the site [default: 2000, or as many as the log of --laws-of]
    #[arg(help_heading = flags::SURGE, long, value_name = "N")]
    pub files: Option<String>,

    /// Maximum size of a file [default: 10000000]
    #[arg(help_heading = flags::SURGE, long, value_name = "SIZE")]
    pub cap: Option<String>,

    /// Share of conditional requests, such as 26% [default: 0%, or that of the log of --laws-of]
    #[arg(help_heading = flags::SURGE, long, value_name = "SHARE")]
    pub conditional: Option<String>,

    /// Random seed
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: String,
}
