//! The command line: verbs and flags, once, for parsing, help, completions and manual pages alike.
//!
//! Values stay text here: `scenario` parses them and knows their units and limits.

#[cfg(feature = "all-verbs")]
pub mod cache;
#[cfg(feature = "all-verbs")]
pub mod cache_storage;
#[cfg(feature = "all-verbs")]
pub mod connections;
#[cfg(feature = "all-verbs")]
pub mod dhttp;
pub mod diagnosed_command;
#[cfg(all(test, feature = "all-verbs"))]
#[path = "../tests/it/documents/parse.rs"]
mod documented;
pub mod examples;
#[cfg(feature = "all-verbs")]
pub mod flags;
pub mod gate;
#[cfg(feature = "all-verbs")]
pub mod link;
#[cfg(feature = "all-verbs")]
pub mod load;
pub mod usage_error;
pub mod watch;

use std::ffi::OsString;
#[cfg(feature = "all-verbs")]
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::{ArgMatches, Args, Command, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

#[cfg(feature = "all-verbs")]
use crate::cli::cache::Cache;
#[cfg(feature = "all-verbs")]
use crate::cli::connections::{Connections, Logs};
#[cfg(feature = "all-verbs")]
use crate::cli::dhttp::{Gateway, Get, Nat, Serve};
#[cfg(feature = "all-verbs")]
use crate::cli::flags::{AdvancedFlags, GridFlags, IntoFlags, OutputFlags, ScenarioFlags, WhatIfFlags};
use crate::cli::gate::GateFlags;
#[cfg(feature = "all-verbs")]
use crate::cli::load::Load;
use crate::failure::{Failure, shown};

/// Where a web page's round trips go, and how to get them back.
#[derive(Debug, Parser)]
#[command(name = "roundtrip", version, about)]
#[command(subcommand_value_name = "VERB", subcommand_help_heading = "Verbs")]
pub struct Cli {
    /// Verb to run.
    #[command(subcommand)]
    pub verb: Verb,
}

/// The verbs.
#[derive(Debug, Subcommand)]
#[cfg_attr(
    not(feature = "all-verbs"),
    expect(clippy::large_enum_variant, reason = "there is one value in a run")
)]
pub enum Verb {
    /// Page load times predicted by the papers' formulas
    ///
    /// With no flags: every protocol, small-cluster over fast-internet, all requests sent together and responses
    /// without delay, as in the papers' basic model.
    #[cfg(feature = "all-verbs")]
    Predict(Predict),
    /// Page load times simulated with TCP, packet by packet, in virtual time
    ///
    /// With no flags: HTTP/1.0 with and without keep-alive, small-cluster over fast-internet, one object after another.
    /// Needs no privileges; the same seed gives the same packets.
    #[cfg(feature = "all-verbs")]
    Simulate(Simulate),
    /// Page load times measured on this machine's kernel, over an emulated link
    ///
    /// With no flags: HTTP/1.0 with and without keep-alive, small-cluster over fast-internet, one object after another.
    /// The network is in namespaces of its own, removed afterwards.
    #[cfg(feature = "all-verbs")]
    Measure(Measure),
    /// Page load times predicted, simulated and measured, side by side
    ///
    /// With no flags: HTTP/1.0 with and without keep-alive, small-cluster over fast-internet and ethernet, predicted,
    /// simulated and measured. Takes under two minutes.
    #[cfg(feature = "all-verbs")]
    Compare(Compare),
    /// Connections that a server would hold with other keep-alive timeouts, from its access logs
    ///
    /// Counts the connections that a server would hold and open, for all timeouts and limits in one pass over its
    /// logs; with --dhttp also those of a DHTTP server.
    #[cfg(feature = "all-verbs")]
    Connections(Connections),
    /// Size and load time of a page's content in other formats: compressed, as PNG or WebP, with CSS for images
    ///
    /// Encodes every file in each lossless format, and simulates the page load with each. A file that would be larger
    /// in another format is left unchanged.
    #[cfg(feature = "all-verbs")]
    Content(Content),
    /// The laboratory in a browser: captures diagnosed, scenarios compared while sliders move, lessons
    ///
    /// Serves one page at a loopback address, and opens a browser there. The page computes everything itself; nothing is
    /// uploaded.
    #[cfg(feature = "all-verbs")]
    Lab(Lab),
    /// A page as a graph: hosts, objects, and what each object waits for
    ///
    /// Reads a browser's recording (HAR), a page in TOML, a directory, sizes or a name. Prints a table, JSON, or TOML that
    /// people can change and `--page` takes; draws a plot.
    #[cfg(feature = "all-verbs")]
    Page(Page),
    /// Requests for a server: a URL, a file of requests, an access log, or SURGE's users
    ///
    /// Sends requests in a closed loop or at a rate, reports latencies from their scheduled times, and names the
    /// bottleneck of every second: generator, network or server. Exit status 1 if too many requests fail or a threshold
    /// is missed.
    #[cfg(feature = "all-verbs")]
    Load(Box<Load>),
    /// Synthetic access logs
    #[cfg(feature = "all-verbs")]
    Logs(Logs),
    /// Causes of stalls, from a packet capture
    ///
    /// Names the cause of every stall, the packets that show it, what to change and what that would save. Reads pcap,
    /// pcapng and qlog, also compressed by gzip or zstd; `-` is standard input. The exit status is 1 when something worth fixing
    /// was found, or what --fail-on names.
    Diagnose(Diagnose),
    /// Stalls of live connections, from the kernel's statistics, without root
    ///
    /// Samples the sockets of this host, and names the cause of each stall, the program and the fix. Reads no packets,
    /// so encrypted connections, HTTP/2 and gRPC need no special support. The exit status is 1 when something worth fixing was found.
    Watch(watch::Watch),
    /// The papers' tables and figures next to recomputed ones, with a verdict for each number
    ///
    /// With no keys: all of them. The exit status is 1 when a verdict is worse than the recorded one.
    #[cfg(feature = "all-verbs")]
    Reproduce(Reproduce),
    /// The files of a directory, over DHTTP and HTTP on one port
    ///
    /// Small responses go in one UDP datagram, large ones over TCP connections that the server opens to its clients;
    /// plain HTTP/1.1 is on the same TCP port. SIGTERM stops it after the pending responses; SIGHUP reloads the
    /// configuration and reopens the log.
    #[cfg(feature = "all-verbs")]
    Serve(Serve),

    /// A local proxy that lets HTTP programs use DHTTP
    #[cfg(feature = "all-verbs")]
    #[command(
        long_about = "A local proxy that lets HTTP programs use DHTTP\n\nServers that announce it (Alt-Svc: dhttp), and \
                      paths below /_dhttp_/, get requests over DHTTP: small responses come in one datagram. Everything \
                      else goes over plain HTTP, and https through tunnels (CONNECT) without inspection."
    )]
    Gateway(Gateway),
    /// A cache in front of an HTTP server, or on the path to all of them
    ///
    /// Serves DHTTP and plain HTTP on one port, by the rules of RFC 9111 for shared caches: freshness, validators,
    /// Vary, ranges, stale responses during revalidation or when the server fails. Cache-Status in each response
    /// reports a hit or a miss.
    #[cfg(feature = "all-verbs")]
    Cache(Cache),
    /// A helper on a router that lets DHTTP's responses pass address translation or a firewall
    ///
    /// Rewrites the port in each request and admits one connection for it: from the requested server to the requesting
    /// host, for 30 seconds. Adds and removes its own nftables rules; needs root. SIGTERM stops it; SIGHUP reopens the
    /// log.
    #[cfg(feature = "all-verbs")]
    Nat(Nat),
    /// Fetch a URL over DHTTP, or over HTTP from servers without DHTTP
    ///
    /// A URL dhttp://... means that the server speaks DHTTP; for others the first response shows it, and the server is
    /// remembered. The exit status is 1 for a status of 400 or above.
    #[cfg(feature = "all-verbs")]
    Get(Get),
    /// A site as files, to serve or to use as a page
    ///
    /// `microscape` is the page that the W3C note measured: HTML of 42 kB that deflates to 11, 40 images of 103,299
    /// bytes and 2 animations of 24,988, real GIF files, the same bytes from the same seed. `surge` is the files that a
    /// plan of `roundtrip load plan` requests.
    #[cfg(feature = "all-verbs")]
    Site(Site),
    /// Any program, shell or test suite behind an emulated link, without root
    ///
    /// Runs the command in a private network, where the connections between its programs cross the link: servers and clients that
    /// use 127.0.0.1 or localhost. Terminal, signals and exit status are the command's. A run in which the link was late is void:
    /// the exit status is then 3 instead of 0.
    #[cfg(feature = "all-verbs")]
    Link(link::Link),
    /// The names of networks, pages, protocols and stacks, with their sources
    #[cfg(feature = "all-verbs")]
    List(List),
    /// Shell completions
    Completions {
        /// Shell
        shell: Shell,
    },
    /// The manual page of the program or of one verb
    Man {
        /// The verb; without it, the program's own page
        #[arg(value_name = "VERB")]
        verb: Option<String>,
    },
}

/// `roundtrip predict`
#[cfg(feature = "all-verbs")]
#[derive(Debug, Args)]
pub struct Predict {
    #[command(flatten)]
    pub scenario: ScenarioFlags,
    /// Plot contours of the overhead of one scenario's page over all bandwidths and round trips
    #[arg(long, value_name = "FILE.svg", value_hint = clap::ValueHint::FilePath)]
    pub contours: Option<PathBuf>,
    #[command(flatten)]
    pub output: OutputFlags,
    #[command(flatten)]
    pub into: IntoFlags,
    #[command(flatten)]
    pub grid: GridFlags,
    #[command(flatten)]
    pub advanced: AdvancedFlags,
}

/// `roundtrip simulate`
#[cfg(feature = "all-verbs")]
#[derive(Debug, Args)]
pub struct Simulate {
    #[command(flatten)]
    pub scenario: ScenarioFlags,
    /// Number of runs, each with its own clocks and losses
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub runs: Vec<String>,
    /// Plot packets in time, the first run of each scenario in a panel: FILE.svg, FILE.png, or for one scenario
    /// FILE.xpl (xplot)
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, conflicts_with = "into")]
    pub plot: Option<PathBuf>,
    /// Draw what each object of the first run waited for, and the critical path: FILE.svg for one scenario, FILE.html for all
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, conflicts_with = "into")]
    pub waterfall: Option<PathBuf>,
    /// Write the state of connections at every change in each scenario's first run: windows, round trip, timers
    #[arg(long, value_name = "FILE.csv", value_hint = clap::ValueHint::FilePath, conflicts_with = "into")]
    pub probe: Option<PathBuf>,
    /// Write each scenario's first run as a HAR file, for browsers' network tools
    #[arg(long, value_name = "FILE.har", value_hint = clap::ValueHint::FilePath, conflicts_with = "into")]
    pub har: Option<PathBuf>,
    /// Write the packets of each scenario's first run, for Wireshark and `roundtrip diagnose`
    #[arg(long, value_name = "FILE.pcapng", value_hint = clap::ValueHint::FilePath, conflicts_with = "into")]
    pub pcap: Option<PathBuf>,
    /// Write what QUIC's ends of each scenario's first run saw and did, for qvis and `roundtrip diagnose`
    #[arg(long, value_name = "FILE.qlog", value_hint = clap::ValueHint::FilePath, conflicts_with = "into")]
    pub qlog: Option<PathBuf>,
    /// Capture point of --pcap; Wireshark reports both ends' packets in one file as retransmissions
    #[arg(long, value_name = "END", default_value = "client", requires = "pcap")]
    pub pcap_at: PcapAt,
    #[command(flatten)]
    pub output: OutputFlags,
    #[command(flatten)]
    pub into: IntoFlags,
    #[command(flatten)]
    pub grid: GridFlags,
    #[command(flatten)]
    pub advanced: AdvancedFlags,
}

/// An end of the path, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PcapAt {
    /// At the client
    Client,
    /// At the server
    Server,
    /// At both, an interface each
    Both,
}

/// `roundtrip measure`
#[cfg(feature = "all-verbs")]
#[derive(Debug, Args)]
pub struct Measure {
    #[command(flatten)]
    pub scenario: ScenarioFlags,
    /// Number of runs
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub runs: Vec<String>,
    /// Server program: ours, nginx, apache, caddy, haproxy, node or python
    #[arg(long, value_name = "NAME", default_value = "ours", hide_default_value = true)]
    pub server: String,
    /// Client program: ours, curl, wget or chromium
    #[arg(long, value_name = "NAME", default_value = "ours", hide_default_value = true)]
    pub client: String,
    /// Write the first run of each scenario as a HAR file, for browsers' network tools
    #[arg(long, value_name = "FILE.har", value_hint = clap::ValueHint::FilePath, conflicts_with = "into")]
    pub har: Option<PathBuf>,
    /// Write the packets of both ends of the first run; several scenarios get a section each
    #[arg(long, value_name = "FILE.pcapng", value_hint = clap::ValueHint::FilePath, conflicts_with = "into")]
    pub pcap: Option<PathBuf>,
    #[command(flatten)]
    pub output: OutputFlags,
    #[command(flatten)]
    pub into: IntoFlags,
    #[command(flatten)]
    pub advanced: AdvancedFlags,
}

/// `roundtrip compare`
#[cfg(feature = "all-verbs")]
#[derive(Debug, Args)]
pub struct Compare {
    #[command(flatten)]
    pub scenario: ScenarioFlags,
    #[arg(long = "engine", value_name = "NAME", value_delimiter = ',', help = scenario::spec::Key::Engine.help())]
    pub engines: Vec<String>,
    /// Number of runs, where simulated or measured
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub runs: Vec<String>,
    /// Draw what each object of the first simulated run waited for, and the critical path: FILE.svg for one scenario, FILE.html for all
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, conflicts_with = "into")]
    pub waterfall: Option<PathBuf>,
    #[command(flatten)]
    pub output: OutputFlags,
    #[command(flatten)]
    pub into: IntoFlags,
    #[command(flatten)]
    pub grid: GridFlags,
    #[command(flatten)]
    pub advanced: AdvancedFlags,
}

/// `roundtrip diagnose`
#[derive(Debug, Args)]
pub struct Diagnose {
    /// Captures; - for standard input
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    #[arg(required_unless_present_any = ["run", "port", "span", "write"], conflicts_with_all = ["port", "span"])]
    pub files: Vec<PathBuf>,
    /// Run the command that follows `--`, and diagnose the connections opened while it runs
    #[arg(long, requires = "command")]
    pub run: bool,
    /// Command to run; its output goes to stderr
    #[arg(value_name = "COMMAND", last = true, requires = "run", value_hint = clap::ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
    /// Run the command in a private network that has only loopback, without root; with a name of `list networks`, its
    /// connections cross that network
    #[arg(long, requires = "run", value_name = "NETWORK", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "")]
    pub isolated: Option<String>,
    /// Capture live, only packets from or to this port; until Ctrl-C, or see --for
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Option<u16>,
    /// Duration of a live capture, such as 30s
    #[arg(long = "for", id = "span", value_name = "TIME")]
    pub span: Option<String>,
    /// Write the packets captured live; with --run, --port or --for
    #[arg(long, value_name = "FILE.pcapng", value_hint = clap::ValueHint::FilePath)]
    pub write: Option<PathBuf>,
    /// Key log with which TLS and QUIC are read; with --run, the command is told to write it (SSLKEYLOGFILE)
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub keys: Option<PathBuf>,
    /// Only connections whose ADDRESS:PORT pairs contain this; repeat it for more
    #[arg(long = "flow", value_name = "TEXT")]
    pub flows: Vec<String>,
    /// Only findings of this cause, such as nagle-delayed-ack; repeat it for more
    #[arg(long = "cause", value_name = "NAME", value_delimiter = ',')]
    pub causes: Vec<String>,
    /// Only events later than this after the first packet, such as 2.5s; times are counted from there, too
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Write a time-sequence plot of each connection with findings to this directory
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub svg: Option<PathBuf>,
    /// Write these plots as PNG files
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub png: Option<PathBuf>,
    /// Write these plots as xplot files
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub xpl: Option<PathBuf>,
    #[command(flatten)]
    pub gate: GateFlags,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "table", help_heading = "Output")]
    pub format: gate::Format,
    /// Also write a page with tables, charts and provenance
    #[arg(long, value_name = "FILE.html", value_hint = clap::ValueHint::FilePath, help_heading = "Output")]
    pub report: Option<PathBuf>,
}

/// `roundtrip reproduce`
#[cfg(feature = "all-verbs")]
#[derive(Debug, Args)]
pub struct Reproduce {
    /// A table or a figure, as PAPER/TABLE, or PAPER for all of a paper's
    #[arg(value_name = "KEY")]
    pub keys: Vec<String>,
    /// Also run the papers' measurements, which takes minutes
    #[arg(long)]
    pub measure: bool,
    /// With --measure, run as long as the papers did: an hour or more
    #[arg(long, requires = "measure")]
    pub full: bool,
    /// Write the figures as SVG files to this directory
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub figures: Option<PathBuf>,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: flags::Format,
    /// Also write a page with every table and figure
    #[arg(long, value_name = "FILE.html", value_hint = clap::ValueHint::FilePath)]
    pub report: Option<PathBuf>,
}

/// `roundtrip site`
#[cfg(feature = "all-verbs")]
#[derive(Debug, Args)]
pub struct Site {
    /// Site: microscape, or surge
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Output directory, empty or new
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub directory: PathBuf,
    /// Random seed of words and pixels; the sizes are always the same
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "plan")]
    pub seed: u64,
    /// surge: plan whose files to write [default: that of `load plan` with the same seed and no other flags]
    #[arg(long, value_name = "FILE")]
    pub plan: Option<PathBuf>,
}

/// `roundtrip content`
#[cfg(feature = "all-verbs")]
#[derive(Debug, Args)]
pub struct Content {
    /// A directory with the page's files, a browser's FILE.har with bodies, or microscape
    #[arg(id = "directory", value_name = "PAGE", value_hint = clap::ValueHint::DirPath)]
    pub page: String,
    /// Also images at a quality of 1 to 100, as JPEG, WebP and AVIF: smaller, but with loss
    #[arg(long, value_name = "QUALITY", value_parser = clap::value_parser!(u8).range(1..=100))]
    pub quality: Option<u8>,
    #[command(flatten)]
    pub scenario: ScenarioFlags,
    #[command(flatten)]
    pub output: OutputFlags,
    #[command(flatten)]
    pub advanced: AdvancedFlags,
}

/// `roundtrip page`
#[cfg(feature = "all-verbs")]
#[derive(Debug, Args)]
pub struct Page {
    /// A browser's FILE.har (FILE.har#2: its second page), Chromium's trace FILE.json, FILE.toml, a directory, sizes, a name
    #[arg(value_name = "PAGE", value_hint = clap::ValueHint::AnyPath)]
    pub page: String,
    #[command(flatten)]
    pub what_if: WhatIfFlags,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "table", help_heading = "Output")]
    pub format: PageFormat,
    /// Draw the graph: what each object waits for, with think and server times
    #[arg(long, value_name = "FILE.svg", value_hint = clap::ValueHint::FilePath, help_heading = "Output")]
    pub plot: Option<PathBuf>,
}

/// Output format of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum PageFormat {
    /// For people
    #[default]
    Table,
    /// For programs: every field
    Json,
    /// To change, and to give to --page
    Toml,
}

/// `roundtrip lab`
#[cfg(feature = "all-verbs")]
#[derive(Debug, Args)]
pub struct Lab {
    /// Address and port of the page; port 0 for any free one
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:8470")]
    pub listen: SocketAddr,
    /// Only print the address, and open no browser
    #[arg(long)]
    pub no_open: bool,
    /// Directory with the page, as `./ci.sh lab` builds it in target/lab [default: the page in this program]
    #[arg(long, value_name = "DIRECTORY", value_hint = clap::ValueHint::DirPath)]
    pub directory: Option<PathBuf>,
}

/// `roundtrip list`
#[cfg(feature = "all-verbs")]
#[derive(Debug, Args)]
pub struct List {
    /// One kind of name
    #[arg(value_name = "KIND")]
    pub kind: Option<NameKind>,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: flags::Format,
}

/// Kinds of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum NameKind {
    /// Paths between client and server
    Networks,
    /// Web pages
    Pages,
    /// Protocols that fetch them
    Protocols,
    /// TCP behaviour
    Stacks,
}

/// Parses the command line of this process.
pub fn parse() -> Result<Cli, Failure> {
    parse_from(std::env::args_os())
}

fn parse_from(arguments: impl IntoIterator<Item = OsString>) -> Result<Cli, Failure> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let mut command = command();
    let matches = command.try_get_matches_from_mut(&arguments).map_err(|error| {
        let sentence = diagnosed_command::refusal(&arguments).filter(|_| error.use_stderr());
        sentence.map_or_else(|| Failure::from(error), Failure::Value)
    })?;
    check_extensions(&command, &matches)?;
    Ok(Cli::from_arg_matches(&matches)?)
}

/// Refuses `--plot page.jpg` where the flag writes FILE.svg, and the same of pages. Names without an extension, such as
/// `/dev/stdout`, pass.
fn check_extensions(command: &Command, matches: &ArgMatches) -> Result<(), Failure> {
    if let Some((name, matches)) = matches.subcommand() {
        return command.find_subcommand(name).map_or(Ok(()), |verb| check_extensions(verb, matches));
    }
    for arg in command.get_arguments() {
        let wanted = arg.get_value_names().and_then(|names| names.first()).map_or("", |name| name.as_str());
        let Some(end @ ("svg" | "html")) = wanted.strip_prefix("FILE.") else { continue };
        let is_other = |path: &&Path| {
            path.extension()
                .is_some_and(|given| ![end, &end[..3]].iter().any(|known| given.eq_ignore_ascii_case(known)))
        };
        let mut given = matches.get_raw(arg.get_id().as_str()).into_iter().flatten().map(Path::new);
        if let Some(path) = given.find(is_other) {
            let (flag, path) = (arg.get_long().unwrap_or_default(), shown(path));
            let reason = format!("--{flag} {path}: not a format that it writes; give {wanted}");
            return Err(Failure::Value(reason));
        }
    }
    Ok(())
}

/// Whether this is `--version --verbose`, in either order, and nothing else; `--version` alone is clap's.
pub fn is_verbose_version(arguments: impl Iterator<Item = OsString>) -> bool {
    let (mut version, mut verbose) = (false, false);
    for argument in arguments {
        match argument.to_str() {
            Some("--version" | "-V") => version = true,
            Some("--verbose" | "-v") => verbose = true,
            _ => return false,
        }
    }
    version && verbose
}

/// Command-line definition, with the examples of each verb, as wide as the terminal.
pub fn command() -> Command {
    let width = crate::terminal::of_stdout().prose_width();
    with_examples(Cli::command(), None, width).term_width(width).mut_subcommands(|verb| {
        let name = verb.get_name().to_owned();
        with_hyphens(with_short_help(with_examples(verb, Some(&name), width)))
    })
}

/// Hides advanced flags from `-h`.
fn with_short_help(command: Command) -> Command {
    #[cfg(feature = "all-verbs")]
    let command = command.mut_args(|arg| {
        let is_advanced = arg.get_help_heading().is_some_and(flags::is_advanced);
        if is_advanced { arg.hide_short_help(true) } else { arg }
    });
    command
}

fn with_examples(command: Command, verb: Option<&str>, width: usize) -> Command {
    let command = command.help_template(TEMPLATE);
    let [short, all] = [examples::SHORT, usize::MAX].map(|count| examples::text(verb, width, count));
    match short.zip(all) {
        // A separate text for `--help` makes clap use its long layout.
        Some((short, all)) if short == all => command.before_help(short),
        Some((short, all)) => command.before_help(short).before_long_help(all),
        None => command,
    }
}

/// Allows values that begin with a hyphen: the value parser's error for `-1ms` is better than clap's.
fn with_hyphens(command: Command) -> Command {
    command.mut_args(|arg| match arg.is_positional() || !arg.get_action().takes_values() {
        true => arg,
        false => arg.allow_hyphen_values(true),
    })
}

/// Layout of a help text: description, examples, then the rest.
const TEMPLATE: &str = "{about-with-newline}\n{before-help}{usage-heading} {usage}\n\n{all-args}{after-help}";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        command().debug_assert();
    }

    /// Splits a command line at spaces outside single quotes, as a shell does.
    fn words(line: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        for (number, piece) in line.split('\'').enumerate() {
            for (index, part) in piece.split(' ').enumerate() {
                let is_quoted = number % 2 == 1;
                match words.last_mut() {
                    Some(word) if is_quoted && index > 0 => word.extend([" ", part]),
                    Some(word) if index == 0 => word.push_str(part),
                    Some(_) | None => words.push(part.to_owned()),
                }
            }
        }
        words.retain(|word| !word.is_empty());
        words
    }

    #[test]
    fn every_example_in_the_help_is_a_command_line_that_parses() {
        let definition = command();
        let verbs = definition.get_subcommands().map(|verb| verb.get_name().to_owned());
        for verb in verbs.map(Some).chain([None]) {
            let examples = examples::of(verb.as_deref());
            assert!(!examples.is_empty(), "{verb:?} has no example");
            // External programs may be shown beside ours.
            for example in examples.iter().filter(|example| example.command.starts_with("roundtrip ")) {
                let typed = example.command.split(['>', '|']).next().unwrap_or_default();
                if let Err(failure) = parse_from(words(typed).into_iter().map(OsString::from)) {
                    panic!("{}: {failure}", example.command);
                }
            }
        }
    }
}
