//! The flags of `load`: requests, schedule, server and protocol.
//!
//! Not the meaning of their values: `workload` and the crate `load` know that.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::flags;

/// `roundtrip load`
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Load {
    /// Another task than loading a server.
    #[command(subcommand)]
    pub verb: Option<LoadVerb>,
    #[command(flatten)]
    pub run: LoadRun,
}

/// What to do with load.
#[derive(Debug, Subcommand)]
pub enum LoadVerb {
    /// Draw a plan: every page, every object and every intended time, as a file
    Plan(Box<LoadPlan>),
    /// Put together what several generators came to with the parts of one plan
    Merge(LoadMerge),
    /// Draw what came of a load, or of several side by side, as a page of one file
    Page(LoadPage),
}

/// `roundtrip load TARGET`
#[derive(Debug, Args)]
pub struct LoadRun {
    #[command(flatten)]
    pub whom: Whom,

    #[command(flatten)]
    pub requests: RequestFlags,

    #[command(flatten)]
    pub goals: Goals,

    /// The requests of a plan (`load plan -o FILE`), below the URL
    #[arg(help_heading = flags::SURGE, long, value_name = "FILE", conflicts_with_all = ["laws", "laws_of", "users", "rate", "lasts", "files", "cap", "conditional", "seed", "requests", "replay", "surge"])]
    pub plan: Option<PathBuf>,

    /// Users of the site in this directory (`site surge DIR`), which the server has below the URL
    #[arg(help_heading = flags::SURGE, long, value_name = "DIR", value_hint = clap::ValueHint::DirPath, conflicts_with_all = ["files", "cap", "requests", "replay", "network"])]
    pub surge: Option<PathBuf>,

    /// Protocol: http10, http11, http11-pipelined, http2, http3, dhttp [default: http11, and http2 for https://]
    #[arg(long, value_name = "NAME")]
    pub protocol: Option<String>,

    /// Connections of a user
    #[arg(long, value_name = "N", default_value = "1")]
    pub connections: String,

    /// UDP ports of each thread, shared by its users; dhttp
    #[arg(help_heading = flags::ADVANCED, long, value_name = "N", default_value = "8")]
    pub ports: String,

    /// Users close their connections after each page
    #[arg(help_heading = flags::ADVANCED, long)]
    pub early_close: bool,

    /// Requests leave with the SYN where the server lets them (TCP Fast Open); HTTP/1
    #[arg(help_heading = flags::ADVANCED, long)]
    pub fast_open: bool,

    /// Users of HTTP/3 who come back ask in their first datagrams (0-RTT)
    #[arg(help_heading = flags::ADVANCED, long)]
    pub early_data: bool,

    /// Idle timeout of connections; with 0s each response ends its connection [default: the server's]
    #[arg(help_heading = flags::ADVANCED, long, value_name = "TIME")]
    pub keep_alive: Option<String>,

    /// Users who take the requests of --rate in turn
    #[arg(help_heading = flags::ADVANCED, long, value_name = "N", default_value = "100")]
    pub share: String,

    /// Threads [default: one for every second processor]
    #[arg(help_heading = flags::ADVANCED, long, value_name = "N")]
    pub threads: Option<String>,

    /// Timeout of a request
    #[arg(long, value_name = "TIME", default_value = "30s")]
    pub timeout: String,

    /// Run only the I-th of N parts of the plan, on one of N machines: the users are dealt out
    #[arg(help_heading = flags::ADVANCED, long, value_name = "I/N", default_value = "1/1")]
    pub shard: String,

    /// Begin at this time, in seconds since 1970: the same for all parts
    #[arg(help_heading = flags::ADVANCED, long, value_name = "SECONDS")]
    pub at: Option<String>,

    /// Write the results as a log of HDR histograms (.hlog), for `load merge` and other programs
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,

    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: flags::Format,

    #[command(flatten)]
    pub wanted: PlanFlags,
}

/// The requests of a load that is not SURGE's.
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

    /// Requests of an access log instead, at the times of the log (a file, a directory, or `-`); GET and HEAD only
    #[arg(long, value_name = "LOG", conflicts_with_all = ["users", "rate", "method", "body"])]
    pub replay: Vec<PathBuf>,

    /// Speed of --replay, as a multiple of the log's
    #[arg(long, value_name = "TIMES", default_value = "1", requires = "replay")]
    pub speed: String,
}

/// The limits that a run is judged by; exit status 1 beyond one of them.
#[derive(Debug, Args)]
pub struct Goals {
    /// Share of requests that may fail
    #[arg(long, value_name = "SHARE", default_value = "1%")]
    pub max_failures: String,

    /// Threshold: p50, p90, p95, p99, p99.9, mean or max (p99=50ms), error-rate=0.1%, or a minimum rate=500/s; repeatable
    #[arg(long, value_name = "NAME=LIMIT")]
    pub fail_on: Vec<String>,
}

/// The server to load.
#[derive(Debug, Args)]
pub struct Whom {
    /// URL to request, such as http://127.0.0.1:3000/api; for HTTP/3 and HTTP/2 over TLS https://
    #[arg(value_name = "URL", required_unless_present_any = ["network", "requests"])]
    pub target: Option<String>,

    /// Instead: our own server with a SURGE site, on a host of its own behind an emulated link (`roundtrip list networks`)
    #[arg(long, value_name = "NAME", conflicts_with_all = ["target", "ca", "insecure", "i_own_this", "requests", "method", "header", "body", "replay"])]
    pub network: Option<String>,

    /// CA bundle in PEM [default: the system's]
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub ca: Option<PathBuf>,

    /// Accept any certificate
    #[arg(long)]
    pub insecure: bool,

    /// Load a server that is neither on this machine nor in a private network: it is yours
    #[arg(long)]
    pub i_own_this: bool,
}

/// `roundtrip load merge`
#[derive(Debug, Args)]
pub struct LoadMerge {
    /// Logs that `load --log` wrote, each of another part
    #[arg(value_name = "FILE", required = true)]
    pub logs: Vec<PathBuf>,

    /// Where to write the whole as a log
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// How to print what came of it
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: flags::Format,
}

/// `roundtrip load page`
#[derive(Debug, Args)]
pub struct LoadPage {
    /// Logs that `load --log` or `load merge` wrote; each is called as its file is
    #[arg(value_name = "FILE", required = true)]
    pub logs: Vec<PathBuf>,

    /// Where to write the page
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

/// `roundtrip load plan`
#[derive(Debug, Args)]
pub struct LoadPlan {
    #[command(flatten)]
    pub plan: PlanFlags,

    /// An access log whose requests are to be done again, each path a file of the size it had (a file, a folder, or `-`)
    #[arg(long, value_name = "LOG", conflicts_with_all = ["laws", "laws_of", "users", "rate", "lasts", "files", "cap", "conditional", "seed"])]
    pub replay: Vec<PathBuf>,

    /// How many times as fast as the log says
    #[arg(long, value_name = "TIMES", default_value = "1", requires = "replay")]
    pub speed: String,

    /// Where to write the plan; without it, only how well it fits is printed
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// How to print how well it fits
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: flags::Format,
}

/// What a plan is drawn by.
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

    /// Requests a second instead, whatever the server does: 100, in steps 100:30s,200:30s, in a ramp 0..1000:60s
    #[arg(long, value_name = "RATE")]
    pub rate: Option<String>,

    /// Requests at even distances, not by chance
    #[arg(help_heading = flags::ADVANCED, long, requires = "rate")]
    pub even: bool,

    /// Duration, up to an hour [default: 10s; of SURGE: 120s; of --replay: the whole log]
    #[arg(long = "for", value_name = "TIME")]
    pub lasts: Option<String>,

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
