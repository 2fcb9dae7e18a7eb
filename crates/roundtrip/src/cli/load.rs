//! The flags of `load`: what users are to ask for, when, whom, and how.
//!
//! Not what the values mean: `scenario::surge` and the crate `load` know that.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::flags;

/// `roundtrip load`
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Load {
    /// What to do, if not load a server.
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

    /// A plan that was drawn before; without it, one is drawn by the flags below
    #[arg(long, value_name = "FILE", conflicts_with_all = ["laws", "laws_of", "users", "rate", "lasts", "files", "cap", "conditional", "seed"])]
    pub plan: Option<PathBuf>,

    /// How files are asked for: http10, http11, http11-pipelined, http2, http3, dhttp
    #[arg(long, value_name = "NAME", default_value = "http11")]
    pub protocol: String,

    /// Connections that a user may have at once
    #[arg(long, value_name = "N", default_value = "1")]
    pub connections: String,

    /// UDP ports of each thread, which its users share, for dhttp
    #[arg(long, value_name = "N", default_value = "8")]
    pub ports: String,

    /// Users close their connections after each page
    #[arg(long)]
    pub early_close: bool,

    /// Requests leave with the SYN where the server lets them (TCP Fast Open); HTTP/1
    #[arg(long)]
    pub fast_open: bool,

    /// Users of HTTP/3 who come back ask in their first datagrams (0-RTT)
    #[arg(long)]
    pub early_data: bool,

    /// How long users keep a connection that has nothing to do; with 0s each answer ends it [default: while the server does]
    #[arg(long, value_name = "TIME")]
    pub keep_alive: Option<String>,

    /// Users who take the requests of --rate in turn
    #[arg(long, value_name = "N", default_value = "100")]
    pub share: String,

    /// Threads [default: one for every second processor]
    #[arg(long, value_name = "N")]
    pub threads: Option<String>,

    /// How long an answer may take
    #[arg(long, value_name = "TIME", default_value = "30s")]
    pub timeout: String,

    /// Run only the I-th of N parts of the plan, on one of N machines: the users are dealt out
    #[arg(long, value_name = "I/N", default_value = "1/1")]
    pub shard: String,

    /// Begin at this time, in seconds since 1970: the same for all parts
    #[arg(long, value_name = "SECONDS")]
    pub at: Option<String>,

    /// Write what came of it as a log of HDR histograms (.hlog), for `load merge` and other programs
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,

    /// How to print what came of it
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: flags::Format,

    #[command(flatten)]
    pub wanted: PlanFlags,
}

/// Whom to load.
#[derive(Debug, Args)]
pub struct Whom {
    /// Which server: http://HOST:PORT/ and the folder with the plan's files; for HTTP/3 and encrypted HTTP/2 https://
    #[arg(value_name = "TARGET", required_unless_present = "network")]
    pub target: Option<String>,

    /// Instead: our own server with the plan's files, on a host of its own behind an emulated link (as root; `roundtrip list networks`)
    #[arg(long, value_name = "NAME", conflicts_with_all = ["target", "ca", "insecure", "i_own_this"])]
    pub network: Option<String>,

    /// Who may have signed the server's certificate: a file of certificates in PEM [default: whom this system believes]
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub ca: Option<PathBuf>,

    /// Take any certificate for the server's
    #[arg(long)]
    pub insecure: bool,

    /// The server is yours, wherever it is
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
    /// Which laws sizes, popularity and pauses follow: surge-1998 or surge-1999
    #[arg(long, value_name = "NAME", default_value = "surge-1998")]
    pub laws: String,

    /// An access log whose own laws they follow instead: a file, a folder, or `-`
    #[arg(long, value_name = "LOG", conflicts_with = "laws")]
    pub laws_of: Vec<PathBuf>,

    /// How many users there are: each fetches a page, looks at it, and fetches the next
    #[arg(long, value_name = "N", default_value = "100", conflicts_with = "rate")]
    pub users: String,

    /// Requests a second instead, whatever the server does: 100, in steps 100:30s,200:30s, in a ramp 0..1000:60s
    #[arg(long, value_name = "RATE")]
    pub rate: Option<String>,

    /// Requests at even distances, not by chance
    #[arg(long, requires = "rate")]
    pub even: bool,

    /// How long, up to an hour
    #[arg(long = "for", value_name = "TIME", default_value = "120s")]
    pub lasts: String,

    /// How many files the site has [default: 2000, or as many as the log of --laws-of]
    #[arg(long, value_name = "N")]
    pub files: Option<String>,

    /// No file is larger
    #[arg(long, value_name = "SIZE", default_value = "10000000")]
    pub cap: String,

    /// The share of requests that only ask whether a file has changed, such as 26% [default: 0%, or that of the log of
    /// --laws-of]
    #[arg(long, value_name = "SHARE")]
    pub conditional: Option<String>,

    /// What makes it repeatable
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: String,
}
