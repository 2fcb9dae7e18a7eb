//! The command line: verbs and flags, once, for parsing, help, completions and manual pages alike.
//!
//! Not what the verbs do (`verb`), nor what the values mean: those stay text here and are read by `scenario`, which
//! knows their units and limits.

pub mod cache;
pub mod connections;
pub mod dhttp;
pub mod diagnosed_command;
pub mod examples;
pub mod flags;
pub mod load;
pub mod misuse;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Command, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::cli::cache::Cache;
use crate::cli::connections::{Connections, Logs};
use crate::cli::dhttp::{Gateway, Get, Nat, Serve};
use crate::cli::flags::{AdvancedFlags, OutputFlags, ScenarioFlags};
use crate::cli::load::Load;
use crate::failure::Failure;
use crate::terminal::Terminal;

/// Where a web page's round trips go, and how to get them back.
#[derive(Debug, Parser)]
#[command(name = "roundtrip", version, about)]
#[command(subcommand_value_name = "VERB", subcommand_help_heading = "Verbs")]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// What the papers' formulas say
    ///
    /// With no flags: every protocol, small-cluster over fast-internet, all requests sent at once and answered
    /// without delay, as in the papers' basic model.
    Predict(Predict),
    /// What TCP does packet by packet, in virtual time
    ///
    /// With no flags: HTTP/1.0 with and without keep-alive, small-cluster over fast-internet, one object after the
    /// other. It needs no privileges and no time, and the same seed gives the same packets.
    Simulate(Simulate),
    /// What this machine's kernel does over an emulated link
    ///
    /// With no flags: HTTP/1.0 with and without keep-alive, small-cluster over fast-internet, one object after the
    /// other. The network lives in namespaces of its own and leaves nothing behind.
    Measure(Measure),
    /// All three, side by side
    ///
    /// With no flags: HTTP/1.0 with and without keep-alive, small-cluster over fast-internet and ethernet, predicted,
    /// simulated and measured. Takes under two minutes.
    Compare(Compare),
    /// Connections that a server would hold with other keep-alive time-outs, from its access logs
    ///
    /// Counts the connections that a server would hold and open, for every time-out and limit at once, in one pass over
    /// its logs; with --dhttp also those of a DHTTP server.
    Connections(Connections),
    /// What a page's content would cost in other forms: compressed, as PNG or WebP, with CSS for images
    ///
    /// Makes every form of every file, without loss, and fetches the page in each by the simulator. What is larger in
    /// another form stays as it is.
    Content(Content),
    /// Requests for a server: a URL, a file of requests, an access log, or SURGE's users
    ///
    /// Sends requests in a closed loop or at a rate, reports latencies from when they were due, and names the bottleneck of
    /// every second: generator, network or server. Exit status 1 if too many requests fail or a threshold is missed.
    Load(Load),
    /// Access logs that are made up
    Logs(Logs),
    /// Why something was slow, from a capture of its packets
    ///
    /// Names the cause of every stall, the packets that show it, what to change and what that would save. Reads pcap and
    /// pcapng, also compressed by gzip or zstd; `-` is standard input. The exit status is 1 when something worth fixing
    /// was found.
    Diagnose(Diagnose),
    /// The papers' tables and figures beside ours, with a verdict for each number
    ///
    /// With no keys: all of them. The exit status is 1 when a verdict is worse than the one on record. Figures are
    /// written as SVG files.
    Reproduce(Reproduce),
    /// The files below a folder, over DHTTP and HTTP on one port
    ///
    /// Small answers go in one UDP datagram, large ones over TCP connections that the server opens to its clients; plain
    /// HTTP/1.1 is on the same TCP port. SIGTERM ends it when what was begun is finished; SIGHUP reads the
    /// configuration and opens the log again.
    Serve(Serve),

    /// A proxy on this machine by which programs that know only HTTP use DHTTP
    #[command(
        long_about = "A proxy on this machine by which programs that know only HTTP use DHTTP\n\nServers that say that \
                      they speak it (Alt-Svc: dhttp), and paths below /_dhttp_/, are asked by DHTTP: small answers come \
                      in one datagram. Everything else goes over plain HTTP, and https through tunnels (CONNECT) that \
                      it does not look into."
    )]
    Gateway(Gateway),
    /// A cache, before an HTTP server or on the way to all: answers are kept as long as they may be
    ///
    /// Asked over DHTTP and plain HTTP on one port, it keeps the rules of RFC 9111 for caches that many share: freshness,
    /// validators, Vary, ranges, stale answers while it asks again or when the server fails. Cache-Status in each answer
    /// says how it came.
    Cache(Cache),
    /// A helper on a router, so that DHTTP's answers find their way through address translation or a firewall
    ///
    /// Rewrites the port in each request and lets one connection in for it: from the server that was asked, to the host
    /// that asked, for 30 seconds. Takes and returns its own rules of nftables; needs root. SIGTERM ends it; SIGHUP opens
    /// the log again.
    Nat(Nat),
    /// Fetches something over DHTTP, or over HTTP where that is not spoken
    ///
    /// An address dhttp://... says that the server speaks DHTTP; of others it is found out by the first answer, and
    /// remembered. The exit status is 1 when the answer is an error.
    Get(Get),
    /// A site in files, to serve or to give as a page
    ///
    /// `microscape` is the page that the W3C note measured: HTML of 42 kB that deflates to 11, 40 images of 103,299 bytes
    /// and 2 animations of 24,988, real GIF files, the same bytes from the same seed. `surge` are the files that a plan of
    /// `roundtrip load plan` asks for.
    Site(Site),
    /// The names of networks, pages, protocols and stacks, with their sources
    List(List),
    /// Completions for a shell
    Completions {
        /// Which shell
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
#[derive(Debug, Args)]
pub struct Predict {
    #[command(flatten)]
    pub scenario: ScenarioFlags,
    #[command(flatten)]
    pub output: OutputFlags,
    #[command(flatten)]
    pub advanced: AdvancedFlags,
}

/// `roundtrip simulate`
#[derive(Debug, Args)]
pub struct Simulate {
    #[command(flatten)]
    pub scenario: ScenarioFlags,
    /// How often to fetch the page, with other clocks and other losses each time
    #[arg(long, value_name = "N")]
    pub runs: Option<String>,
    /// Draw packets in time, each scenario's first run below the one before: FILE.svg, FILE.png, or one run for xplot,
    /// FILE.xpl
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub plot: Option<PathBuf>,
    /// Write how the connections were, at every change of each scenario's first run: windows, round trip, timers
    #[arg(long, value_name = "FILE.csv", value_hint = clap::ValueHint::FilePath)]
    pub probe: Option<PathBuf>,
    /// Write what was fetched in each scenario's first run, for browsers' network tools
    #[arg(long, value_name = "FILE.har", value_hint = clap::ValueHint::FilePath)]
    pub har: Option<PathBuf>,
    /// Write the packets of each scenario's first run, for Wireshark and `roundtrip diagnose`
    #[arg(long, value_name = "FILE.pcapng", value_hint = clap::ValueHint::FilePath)]
    pub pcap: Option<PathBuf>,
    /// Where --pcap captures; Wireshark takes the packets of both ends in one file for retransmissions
    #[arg(long, value_name = "END", default_value = "client", requires = "pcap")]
    pub pcap_at: PcapAt,
    #[command(flatten)]
    pub output: OutputFlags,
    #[command(flatten)]
    pub advanced: AdvancedFlags,
}

/// An end of the path, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PcapAt {
    /// As the client sees them
    Client,
    /// As the server sees them
    Server,
    /// At both, an interface each
    Both,
}

/// `roundtrip measure`
#[derive(Debug, Args)]
pub struct Measure {
    #[command(flatten)]
    pub scenario: ScenarioFlags,
    /// How often to fetch the page
    #[arg(long, value_name = "N")]
    pub runs: Option<String>,
    /// Who serves: ours, nginx, apache, caddy or python
    #[arg(long, value_name = "NAME", default_value = "ours", hide_default_value = true)]
    pub server: String,
    /// Who asks: ours, curl, wget or chromium
    #[arg(long, value_name = "NAME", default_value = "ours", hide_default_value = true)]
    pub client: String,
    /// Write what was fetched in the first run of each scenario, for browsers' network tools
    #[arg(long, value_name = "FILE.har", value_hint = clap::ValueHint::FilePath)]
    pub har: Option<PathBuf>,
    /// Keep the packets of both ends of the first run; of several scenarios, a section each
    #[arg(long, value_name = "FILE.pcapng")]
    pub pcap: Option<std::path::PathBuf>,
    #[command(flatten)]
    pub output: OutputFlags,
    #[command(flatten)]
    pub advanced: AdvancedFlags,
}

/// `roundtrip compare`
#[derive(Debug, Args)]
pub struct Compare {
    #[command(flatten)]
    pub scenario: ScenarioFlags,
    /// An engine; repeat it for more: model, simulate, measure
    #[arg(long = "engine", value_name = "NAME", value_delimiter = ',')]
    pub engines: Vec<String>,
    /// How often to fetch the page, where it is simulated or measured
    #[arg(long, value_name = "N")]
    pub runs: Option<String>,
    #[command(flatten)]
    pub output: OutputFlags,
    #[command(flatten)]
    pub advanced: AdvancedFlags,
}

/// `roundtrip diagnose`
#[derive(Debug, Args)]
pub struct Diagnose {
    /// Captures; - for standard input
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    #[arg(required_unless_present_any = ["run", "port", "span", "write"], conflicts_with_all = ["run", "port", "span"])]
    pub files: Vec<PathBuf>,
    /// Run the command that follows `--`, capture meanwhile, and diagnose the connections that were opened then
    #[arg(long, requires = "command")]
    pub run: bool,
    /// What to run; its output goes to stderr
    #[arg(value_name = "COMMAND", last = true, requires = "run", value_hint = clap::ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
    /// Capture live, only packets from or to this port; until Ctrl-C, or see --for
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Option<u16>,
    /// Capture live for so long, such as 30s
    #[arg(long = "for", id = "span", value_name = "TIME")]
    pub span: Option<String>,
    /// Keep what was captured live; with --run, --port or --for
    #[arg(long, value_name = "FILE.pcapng", value_hint = clap::ValueHint::FilePath)]
    pub write: Option<PathBuf>,
    /// Only connections whose ADDRESS:PORT pairs contain this; repeat it for more
    #[arg(long = "flow", value_name = "TEXT")]
    pub flows: Vec<String>,
    /// Only findings of this cause, such as nagle-delayed-ack; repeat it for more
    #[arg(long = "cause", value_name = "NAME", value_delimiter = ',')]
    pub causes: Vec<String>,
    /// Only what happened later than this after the first packet, such as 2.5s; accounts begin there, too
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Write a time-sequence plot of each connection with findings here
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub svg: Option<PathBuf>,
    /// The same as PNG files
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub png: Option<PathBuf>,
    /// The same as files for xplot
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub xpl: Option<PathBuf>,
    #[command(flatten)]
    pub output: OutputFlags,
}

/// `roundtrip reproduce`
#[derive(Debug, Args)]
pub struct Reproduce {
    /// A table or a figure, as PAPER/TABLE, or a paper for all of its
    #[arg(value_name = "KEY")]
    pub keys: Vec<String>,
    /// Measure what the papers measured, too: minutes
    #[arg(long)]
    pub measure: bool,
    /// For as long as they did, where that is longer: an hour or more
    #[arg(long, requires = "measure")]
    pub full: bool,
    /// Where to write figures
    #[arg(long, value_name = "DIR", default_value = "figures")]
    pub figures: PathBuf,
    /// How to print it
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: flags::Format,
}

/// `roundtrip site`
#[derive(Debug, Args)]
pub struct Site {
    /// Which: microscape, or surge
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Where its files go: a folder that is empty, or not there yet
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub folder: PathBuf,
    /// What words and pixels are drawn by; the sizes are always the same
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "plan")]
    pub seed: u64,
    /// surge: whose files; without it, those of `load plan` with the same seed and no other flags
    #[arg(long, value_name = "FILE")]
    pub plan: Option<PathBuf>,
}

/// `roundtrip content`
#[derive(Debug, Args)]
pub struct Content {
    /// A folder with the page's files, a browser's FILE.har with bodies, or microscape
    #[arg(value_name = "PAGE", value_hint = clap::ValueHint::DirPath)]
    pub page: String,
    /// Images also at a quality of 1 to 100, as JPEG, WebP and AVIF: smaller, and not the same to the pixel
    #[arg(long, value_name = "QUALITY", value_parser = clap::value_parser!(u8).range(1..=100))]
    pub quality: Option<u8>,
    #[command(flatten)]
    pub scenario: ScenarioFlags,
    #[command(flatten)]
    pub output: OutputFlags,
    #[command(flatten)]
    pub advanced: AdvancedFlags,
}

/// `roundtrip list`
#[derive(Debug, Args)]
pub struct List {
    /// One kind of name
    #[arg(value_name = "KIND")]
    pub kind: Option<Kind>,
    /// How to print it
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: flags::Format,
}

/// What has names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Paths between client and server
    Networks,
    /// What is fetched
    Pages,
    /// How it is fetched
    Protocols,
    /// How TCP behaves
    Stacks,
}

/// The command line of this process.
pub fn parse() -> Result<Cli, Failure> {
    parse_from(std::env::args_os())
}

fn parse_from(arguments: impl IntoIterator<Item = OsString>) -> Result<Cli, Failure> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let matches = command().try_get_matches_from(&arguments).map_err(|error| {
        let sentence = diagnosed_command::refusal(&arguments).filter(|_| error.use_stderr());
        sentence.map_or_else(|| Failure::from(error), Failure::Value)
    })?;
    Ok(Cli::from_arg_matches(&matches)?)
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

/// The one definition, each verb with its examples first, as wide as the terminal.
pub fn command() -> Command {
    let width = Terminal::of_stdout().prose_width();
    with_examples(Cli::command(), None, width).term_width(width).mut_subcommands(|verb| {
        let name = verb.get_name().to_owned();
        with_hyphens(with_short_help(with_examples(verb, Some(&name), width)))
    })
}

/// Leaves advanced flags to `--help`.
fn with_short_help(command: Command) -> Command {
    command.mut_args(|arg| {
        let is_advanced = arg.get_help_heading().is_some_and(flags::is_advanced);
        if is_advanced { arg.hide_short_help(true) } else { arg }
    })
}

fn with_examples(command: Command, verb: Option<&str>, width: usize) -> Command {
    let command = command.help_template(TEMPLATE);
    let [short, all] = [examples::SHORT, usize::MAX].map(|count| examples::text(verb, width, count));
    match short.zip(all) {
        // With a text of its own for `--help`, clap lays all of it out at length.
        Some((short, all)) if short == all => command.before_help(short),
        Some((short, all)) => command.before_help(short).before_long_help(all),
        None => command,
    }
}

/// A value may begin with a hyphen: whoever reads it says better than clap what is wrong with `-1ms`.
fn with_hyphens(command: Command) -> Command {
    command.mut_args(|arg| match arg.is_positional() || !arg.get_action().takes_values() {
        true => arg,
        false => arg.allow_hyphen_values(true),
    })
}

/// What it is, examples, then the rest.
const TEMPLATE: &str = "{about-with-newline}\n{before-help}{usage-heading} {usage}\n\n{all-args}{after-help}";

/// Help or version, asked for: a result, so on stdout.
pub fn print_help(asked: &clap::Error) -> ExitCode {
    let help = asked.render();
    let text = if Terminal::of_stdout().colour { help.ansi().to_string() } else { help.to_string() };
    match crate::output::to_stdout(&text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        command().debug_assert();
    }

    /// Splits a command line at blanks that stand in no single quotes, as a shell does.
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
            // Others' programs may be shown beside ours.
            for example in examples.iter().filter(|example| example.command.starts_with("roundtrip ")) {
                let typed = example.command.split(['>', '|']).next().unwrap_or_default();
                if let Err(failure) = parse_from(words(typed).into_iter().map(OsString::from)) {
                    panic!("{}: {failure}", example.command);
                }
            }
        }
    }
}
