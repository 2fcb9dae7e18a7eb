//! Flags of `roundtrip serve`, `roundtrip gateway`, `roundtrip nat` and `roundtrip get`.
//!
//! Values stay text, as elsewhere: what reads them says what is wrong with them.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use dhttp_proto::Extension;

use crate::cli::cache::Keeping;

/// `roundtrip serve`
#[derive(Debug, Args)]
pub struct Serve {
    /// The folder whose files are served
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub folder: Option<PathBuf>,

    /// Another HTTP server, whose answers are served in the place of files: http://127.0.0.1:3000
    #[arg(long, value_name = "URL", value_hint = clap::ValueHint::Url)]
    pub origin: Option<String>,

    /// Tell that server where each client is, in Forwarded and X-Forwarded-For; of clients that have not proved it, that
    /// it is unknown
    #[arg(long)]
    pub forwarded: bool,

    /// How much of its small answers is kept in memory, for as long as they say themselves; 0 for none [default: 16MiB]
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,

    /// Where to listen, by UDP and TCP [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Option<String>,

    /// How to treat clients [default: internet]
    #[arg(long, value_name = "NAME")]
    pub profile: Option<Profile>,

    #[command(flatten)]
    pub beyond: Beyond,

    #[command(flatten)]
    pub operation: Operation,

    /// How many threads [default: one for each processor]
    #[arg(long, value_name = "N")]
    pub threads: Option<String>,

    /// Also open connections to clients at private addresses [default: if it listens at one]
    #[arg(long)]
    pub reach_private: bool,

    /// The paper's profile at an address that others can reach: it lets itself be used against others
    #[arg(long)]
    pub force: bool,
}

/// What goes beyond the paper, where a profile is to have more of it or less.
#[derive(Debug, Args)]
pub struct Beyond {
    /// Also do this, which goes beyond the paper
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = extensions())]
    pub with: Vec<String>,

    /// Do not do this, which goes beyond the paper
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = extensions())]
    pub without: Vec<String>,
}

fn extensions() -> PossibleValuesParser {
    PossibleValuesParser::new(Extension::ALL.map(Extension::name))
}

/// How those who run it look after it: the same for all that serve.
#[derive(Debug, Args)]
pub struct Operation {
    /// A file in TOML with what these flags say; flags win over it. It is read again on SIGHUP
    #[arg(long, value_name = "FILE.toml", value_hint = clap::ValueHint::FilePath)]
    pub config: Option<PathBuf>,

    /// Only say whether it could run so
    #[arg(long)]
    pub check: bool,

    /// Where to tell Prometheus how it goes
    #[arg(long, value_name = "ADDR:PORT")]
    pub metrics: Option<String>,

    /// Write a line for each answer, with its channel; - for standard output
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub access_log: Option<PathBuf>,

    /// Tell on standard error what goes on besides: connections, faults of peers, servers that do not answer
    #[arg(long, value_name = "LEVEL")]
    pub trace: Option<TraceLevel>,
}

/// How much is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TraceLevel {
    /// What somebody should look at
    Warn,
    /// And when something began or ended
    Info,
    /// And every connection and every fault of a peer
    Debug,
}

/// How to treat clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Profile {
    /// Nothing for nothing: tokens, budgets, limits
    Internet,
    /// As in the paper: every address is believed
    Paper,
}

/// `roundtrip gateway`
#[derive(Debug, Args)]
pub struct Gateway {
    /// Where programs find it: what to set as their proxy for http [default: 127.0.0.1:3128]
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Option<String>,

    /// The ports that servers send to and connect to, of UDP and TCP, such as 40000-40009
    #[arg(long, value_name = "A-B")]
    pub ports: Option<String>,

    /// When to ask again, and whose answers to take [default: internet]
    #[arg(long, value_name = "NAME")]
    pub profile: Option<Profile>,

    /// Which caches on the way may answer, from addresses of their own: any, none, or those of networks such as
    /// 192.0.2.0/24, with commas [default: as the profile says]
    #[arg(long, value_name = "any|none|NETWORK")]
    pub caches: Option<String>,

    /// Who may use it, by address or network, such as 203.0.113.0/24; with commas, or repeated [required unless it
    /// listens at a loopback address]
    #[arg(long, value_name = "NETWORK", value_delimiter = ',')]
    pub allow: Vec<String>,

    /// Ports to which CONNECT leads, such as 443,8443, or any [default: 443; at a loopback address any]
    #[arg(long, value_name = "PORTS")]
    pub connect_ports: Option<String>,

    /// Keep answers as long as they may be, and give them to whoever asks for the same
    #[arg(long)]
    pub cache: bool,

    #[command(flatten)]
    pub keeping: Keeping,

    #[command(flatten)]
    pub operation: Operation,

    /// Show every datagram and every connection
    #[arg(short, long)]
    pub verbose: bool,

    /// Lead those whom --allow names to everything that this machine can reach, itself and private addresses included
    #[arg(long)]
    pub force: bool,
}

/// `roundtrip nat`
#[derive(Debug, Args)]
pub struct Nat {
    /// The network interface behind which clients are
    #[arg(long, value_name = "INTERFACE")]
    pub inside: Option<String>,

    /// The one behind which servers are
    #[arg(long, value_name = "INTERFACE")]
    pub outside: Option<String>,

    /// The address at which clients appear [default: that of the outside interface]
    #[arg(long, value_name = "ADDR", conflicts_with = "firewall")]
    pub address: Option<String>,

    /// The ports at which clients appear, of UDP and TCP [default: 61000-65535]
    #[arg(long, value_name = "A-B", conflicts_with = "firewall")]
    pub ports: Option<String>,

    /// Translate nothing: only open the hole for each answer
    #[arg(long)]
    pub firewall: bool,

    /// For IPv6, where the other one is for IPv4: a router of both has two of these
    #[arg(long)]
    pub ipv6: bool,

    /// Let nothing else in from outside that is new; without it, other rules decide that
    #[arg(long, requires = "firewall")]
    pub closed: bool,

    /// Let in whoever answers, not only the server that was asked: caches on the way, and everybody else
    #[arg(long)]
    pub any_cache: bool,

    /// Let in, beside the server that was asked, caches of these networks, such as 192.0.2.0/24, with commas
    #[arg(long, value_name = "NETWORK", conflicts_with = "any_cache")]
    pub caches: Option<String>,

    /// Let a connection speak only if it begins with the id of a request
    #[arg(long)]
    pub by_id: bool,

    /// The port of servers [default: 80]
    #[arg(long, value_name = "PORT")]
    pub server_port: Option<u16>,

    #[command(flatten)]
    pub operation: Operation,

    /// Only show the rules, for nft
    #[arg(long)]
    pub print_rules: bool,

    /// Only remove the rules of one that was killed
    #[arg(long)]
    pub clean: bool,
}

/// `roundtrip get`
#[derive(Debug, Args)]
pub struct Get {
    /// What to fetch: http://..., or dhttp://... of servers that speak DHTTP
    #[arg(value_name = "URL", required = true, value_hint = clap::ValueHint::Url)]
    pub urls: Vec<String>,

    /// Write it here instead of standard output
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Show every datagram and every connection
    #[arg(short, long)]
    pub verbose: bool,

    /// The ports to listen at, of UDP and TCP, such as 40000-40009
    #[arg(long, value_name = "A-B")]
    pub ports: Option<String>,

    /// When to ask again, and whose answers to take
    #[arg(long, value_name = "NAME", default_value = "internet")]
    pub profile: Profile,

    /// Which caches on the way may answer, from addresses of their own: any, none, or those of networks such as
    /// 192.0.2.0/24, with commas; what others answer is thrown away, and the server asked again [default: as the profile
    /// says]
    #[arg(long, value_name = "any|none|NETWORK")]
    pub caches: Option<String>,

    /// Also do this, which goes beyond the paper
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new([Extension::Parts.name()]))]
    pub with: Vec<String>,
}
