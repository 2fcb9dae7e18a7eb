//! Flags of `roundtrip watch`.

use std::ffi::OsString;
use std::net::SocketAddr;

use clap::{Args, ValueEnum};

/// `roundtrip watch`
#[derive(Debug, Args)]
pub struct Watch {
    /// Command to run and to watch until it ends; its output goes to stderr
    #[arg(value_name = "COMMAND", last = true, value_hint = clap::ValueHint::CommandWithArguments)]
    #[arg(conflicts_with_all = ["pid", "all"])]
    pub command: Vec<OsString>,
    /// Only sockets of this process and its descendants
    #[arg(long, value_name = "N", conflicts_with_all = ["port", "all"])]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub pid: Option<u32>,
    /// Only sockets with this port at either end
    #[arg(long, value_name = "N", conflicts_with = "all", value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Option<u16>,
    /// All sockets of this network namespace [the default]
    #[arg(long)]
    pub all: bool,
    /// Time from one sample to the next, 1ms to 1s
    #[arg(long, value_name = "TIME", default_value = "10ms")]
    pub interval: String,
    /// Duration, such as 30s; without it until Ctrl-C
    #[arg(long = "for", alias = "duration", value_name = "TIME")]
    pub duration: Option<String>,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: Format,
    /// Serve metrics for Prometheus at this address
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub prometheus: Option<SocketAddr>,
}

/// Output format of a watch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people: a live table in a terminal, and the stalls with their fixes at the end
    #[default]
    Table,
    /// For programs: a line for each stall, again when it has grown, and one at the end
    Json,
}
