//! Flags that several verbs share: the scenario, and how results are shown.
//!
//! Values stay text: `scenario` reads them, and says what is wrong with them.

use std::path::PathBuf;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Args, Command, ValueEnum};
use quantity::names::Listing;
use scenario::programs::ProgramKey;
use scenario::spec::Key;
use scenario::spec::key::{DirectionKey, PathKey, Way};

use super::connections::READING;

/// The scenario: the flags that most runs need.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Scenario")]
pub struct ScenarioFlags {
    /// A scenario in TOML; flags win over what it says
    #[arg(value_name = "FILE.toml", help_heading = None::<&str>, value_hint = clap::ValueHint::FilePath)]
    pub file: Option<PathBuf>,

    /// A network by name, or all; repeat it for more (see `roundtrip list networks`)
    #[arg(long = "network", value_name = "NAME", value_delimiter = ',', hide_possible_values = true,
          value_parser = NameOf(|| scenario::Network::listings().collect()))]
    pub networks: Vec<String>,

    /// A page by name, or all, or sizes such as 6651+3883+1866, a folder, or a browser's FILE.har; repeat it for more
    #[arg(long = "page", value_name = "PAGE", value_delimiter = ',', hide_possible_values = true,
          value_parser = NameOf(|| scenario::Page::listings().collect()))]
    pub pages: Vec<String>,

    /// A protocol by name, or all; repeat it for more (see `roundtrip list protocols`)
    #[arg(long = "protocol", value_name = "NAME", value_delimiter = ',', hide_possible_values = true,
          value_parser = NameOf(|| scenario::Protocol::ALL.map(scenario::Protocol::listing).to_vec()))]
    pub protocols: Vec<String>,

    /// How TCP behaves at both ends; repeat it for more (see `roundtrip list stacks`; default: period on the papers'
    /// networks, linux on others)
    #[arg(long = "stack", visible_alias = "profile", value_name = "NAME", value_delimiter = ',',
          hide_possible_values = true, value_parser = NameOf(|| scenario::Stack::listings().collect()))]
    pub stacks: Vec<String>,

    /// Has the client seen the page before: first or revalidate
    #[arg(long, value_name = "VISIT")]
    pub visit: Option<String>,

    /// Connections open at once, of http10 (default: 1) and http11-parallel (default: 6); others refuse it
    #[arg(long, value_name = "N")]
    pub parallel: Option<String>,

    /// What makes a run repeatable
    #[arg(long, value_name = "N")]
    pub seed: Option<String>,

    /// There and back, without the time to send anything: 89ms; repeat it for more networks
    #[arg(long = "rtt", value_name = "TIME", value_delimiter = ',', help_heading = PATH)]
    pub rtts: Vec<String>,

    /// Payload bits per second: 10Mbit (or 10Mbit/s, 10Mbps); 1.25MB/s are bytes; repeat it for more networks
    #[arg(long = "rate", value_name = "RATE", value_delimiter = ',', help_heading = PATH)]
    pub rates: Vec<String>,

    /// The largest segment (default: 1460)
    #[arg(long, value_name = "SIZE", help_heading = PATH)]
    pub mss: Option<String>,

    /// What may wait: 20p packets, or 64kib
    #[arg(long, value_name = "LIMIT", help_heading = PATH)]
    pub queue: Option<String>,

    /// The packets lost: 0.1%
    #[arg(long, value_name = "SHARE", help_heading = PATH)]
    pub loss: Option<String>,
}

/// Above the flags that make a network, or change those that are named.
const PATH: &str = "A network of your own, or changes to those named";
/// Above the flags that only `--help` shows.
pub const ADVANCED: &str = "Advanced";
/// Heading of the flags of SURGE's workload.
pub const SURGE: &str = "SURGE";

/// The scenario: flags that only `--help` shows.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = ADVANCED)]
pub struct AdvancedFlags {
    /// Requests leave independent of one another, or dependent: each after the object before it (default:
    /// independent to predict or with --parallel, else dependent)
    #[arg(long, value_name = "ORDER")]
    pub requests: Option<String>,

    /// The first request finds the connection cold (none) or warm (open, its window open)
    #[arg(long, value_name = "STATE")]
    pub connection: Option<String>,

    /// What the server takes to answer: 3.7ms
    #[arg(long, value_name = "TIME")]
    pub processing: Option<String>,

    /// Each request, head and all: 256
    #[arg(long, value_name = "SIZE")]
    pub request_size: Option<String>,

    /// What connections learn from one another: none, temporal (a new one begins where the last ended) or ensemble
    /// (those open at once have one window together; RFC 2140)
    #[arg(long, value_name = "SHARING")]
    pub sharing: Option<String>,

    /// When the model's receiver acknowledges: every-segment, delayed or no-delayed (default: as the stack you
    /// name does; every-segment for predict without one)
    #[arg(long, value_name = "POLICY")]
    pub acks: Option<String>,

    /// The rate towards the server, where it differs
    #[arg(long, value_name = "RATE")]
    pub rate_up: Option<String>,

    /// The part of the round trip towards the server, where it is not half
    #[arg(long, value_name = "TIME")]
    pub delay_up: Option<String>,

    /// The largest packet: 552
    #[arg(long, value_name = "SIZE")]
    pub mtu: Option<String>,

    /// A modem: v42bis compresses, v42bis/57.6kbit behind such a serial port, v42 does not
    #[arg(long, value_name = "MODEM")]
    pub modem: Option<String>,

    /// Delay that varies by up to so much: 5ms
    #[arg(long, value_name = "TIME")]
    pub jitter: Option<String>,

    /// Packets that fall behind
    #[arg(long, value_name = "SHARE")]
    pub reordering: Option<String>,

    /// Packets that arrive twice: 0.1%
    #[arg(long, value_name = "SHARE")]
    pub duplication: Option<String>,

    #[command(flatten)]
    pub programs: ProgramFlags,
}

/// Whether a heading's flags are left out of `-h`.
pub fn is_advanced(heading: &str) -> bool {
    [ADVANCED, PROGRAMS, READING, SURGE].contains(&heading)
}

impl ScenarioFlags {
    /// What was said, piece by piece.
    pub fn pieces<'a>(&'a self, advanced: &'a AdvancedFlags) -> Vec<(Key, &'a str)> {
        let Self {
            file: _,
            networks,
            pages,
            protocols,
            stacks,
            visit,
            parallel,
            seed,
            rtts,
            rates,
            mss,
            queue,
            loss,
        } = self;
        let AdvancedFlags {
            requests,
            connection,
            processing,
            request_size,
            sharing,
            acks,
            rate_up,
            delay_up,
            mtu,
            modem,
            jitter,
            reordering,
            duplication,
            programs,
        } = advanced;
        let both = |key| Key::Path(PathKey::Packets(Way::Both, key));
        let lists = [
            (Key::Network, networks),
            (Key::Page, pages),
            (Key::Protocol, protocols),
            (Key::Stack, stacks),
            (Key::Path(PathKey::Rtt), rtts),
            (Key::Path(PathKey::Rate), rates),
        ];
        let single = [
            (Key::Visit, visit),
            (Key::Requests, requests),
            (Key::Parallel, parallel),
            (Key::Connection, connection),
            (Key::Processing, processing),
            (Key::RequestSize, request_size),
            (Key::Sharing, sharing),
            (Key::Acks, acks),
            (Key::Seed, seed),
            (Key::Path(PathKey::RateUp), rate_up),
            (Key::Path(PathKey::DelayUp), delay_up),
            (Key::Path(PathKey::Mss), mss),
            (Key::Path(PathKey::Mtu), mtu),
            (Key::Path(PathKey::Modem), modem),
            (both(DirectionKey::Queue), queue),
            (both(DirectionKey::Loss), loss),
            (both(DirectionKey::Jitter), jitter),
            (both(DirectionKey::Reordering), reordering),
            (both(DirectionKey::Duplication), duplication),
        ];
        let lists =
            lists.into_iter().flat_map(|(key, values)| values.iter().map(move |value| (key, value.as_str())));
        let single = single.into_iter().filter_map(|(key, value)| Some((key, value.as_deref()?)));
        lists.chain(single).chain(programs.pieces()).collect()
    }
}

/// Above the flags for the programs at both ends.
const PROGRAMS: &str = "Programs at both ends (advanced)";

/// How the programs at both ends work. The model leaves them out, and a kernel's programs take what they take.
#[derive(Debug, Default, Args)]
pub struct ProgramFlags {
    /// What the client takes before a connection is asked for: 2ms
    #[arg(long, value_name = "TIME", help_heading = PROGRAMS)]
    pub client_setup: Option<String>,

    /// What it takes before each request: 500us
    #[arg(long, value_name = "TIME", help_heading = PROGRAMS)]
    pub client_think: Option<String>,

    /// What it takes for each KiB it reads: 100us
    #[arg(long, value_name = "TIME", help_heading = PROGRAMS)]
    pub client_reading: Option<String>,

    /// How much of pipelined requests leaves together: 1024
    #[arg(long, value_name = "SIZE", help_heading = PROGRAMS)]
    pub client_buffer: Option<String>,

    /// How long pipelined requests wait for one another: 50ms
    #[arg(long, value_name = "TIME", help_heading = PROGRAMS)]
    pub client_flush: Option<String>,

    /// When the client itself says that pipelined requests are to leave: never, first (behind the page's first), or idle
    /// (whenever none can follow before something has arrived; default)
    #[arg(long, value_name = "WHEN", help_heading = PROGRAMS)]
    pub client_flush_explicit: Option<String>,

    /// So many bytes of every object are asked for before the rest of any, by ranges: 512 (512/together: not so, but
    /// told when they have come)
    #[arg(long, value_name = "SIZE", help_heading = PROGRAMS)]
    pub client_first_bytes: Option<String>,

    /// How client and server behave under DHTTP: paper (default) or internet, and what goes beyond the paper:
    /// internet+parts
    #[arg(long, value_name = "HOW", help_heading = PROGRAMS)]
    pub dhttp: Option<String>,

    /// How it asks whether a page that it has seen is still the same: by entity-tags, dates, or heads (default: entity
    /// tags, in HTTP/1.0 dates)
    #[arg(long, value_name = "HOW", help_heading = PROGRAMS)]
    pub client_validation: Option<String>,

    /// What it says it takes bodies coded in, of a page that is real: gzip+br (of deflate, gzip, br and zstd)
    #[arg(long, value_name = "CODINGS", help_heading = PROGRAMS)]
    pub client_codings: Option<String>,

    /// What the server takes for each connection before its first request is read: 2ms
    #[arg(long, value_name = "TIME", help_heading = PROGRAMS)]
    pub server_setup: Option<String>,

    /// What it takes for each write of a body: 500us
    #[arg(long, value_name = "TIME", help_heading = PROGRAMS)]
    pub server_write: Option<String>,

    /// The head of an answer leaves together with its body, or apart, in a write of its own
    #[arg(long, value_name = "HOW", help_heading = PROGRAMS)]
    pub server_head: Option<String>,

    /// The most a write of the server has: 4096 (default: an answer is one write)
    #[arg(long, value_name = "SIZE", help_heading = PROGRAMS)]
    pub server_buffer: Option<String>,

    /// The server compresses what is text beforehand, on-the-fly for each answer, or not at all: none (default:
    /// beforehand, for a client that takes codings)
    #[arg(long, value_name = "WHEN", help_heading = PROGRAMS)]
    pub server_compression: Option<String>,

    /// Requests answered on one connection: 5 (default: as many as come)
    #[arg(long, value_name = "N", help_heading = PROGRAMS)]
    pub server_requests: Option<String>,

    /// The server ends a connection by halves (careful), or at once and loses answers (naive)
    #[arg(long, value_name = "HOW", help_heading = PROGRAMS)]
    pub server_close: Option<String>,

    /// Nagle's algorithm, on or off at both ends (default: as the stack has it)
    #[arg(long, value_name = "ON|OFF", help_heading = PROGRAMS)]
    pub nagle: Option<String>,

    /// What a program may write before it waits: 8192 (default: as the stack has it)
    #[arg(long, value_name = "SIZE", help_heading = PROGRAMS)]
    pub send_buffer: Option<String>,
}

impl ProgramFlags {
    fn pieces(&self) -> impl Iterator<Item = (Key, &str)> {
        let Self {
            client_setup,
            client_think,
            client_reading,
            client_buffer,
            client_flush,
            client_flush_explicit,
            client_first_bytes,
            client_validation,
            dhttp,
            client_codings,
            server_setup,
            server_write,
            server_head,
            server_buffer,
            server_compression,
            server_requests,
            server_close,
            nagle,
            send_buffer,
        } = self;
        [
            (ProgramKey::ClientSetup, client_setup),
            (ProgramKey::ClientThink, client_think),
            (ProgramKey::ClientReading, client_reading),
            (ProgramKey::ClientBuffer, client_buffer),
            (ProgramKey::ClientFlush, client_flush),
            (ProgramKey::ClientFlushExplicit, client_flush_explicit),
            (ProgramKey::ClientFirstBytes, client_first_bytes),
            (ProgramKey::ClientValidation, client_validation),
            (ProgramKey::Dhttp, dhttp),
            (ProgramKey::ClientCodings, client_codings),
            (ProgramKey::ServerSetup, server_setup),
            (ProgramKey::ServerWrite, server_write),
            (ProgramKey::ServerHead, server_head),
            (ProgramKey::ServerBuffer, server_buffer),
            (ProgramKey::ServerCompression, server_compression),
            (ProgramKey::ServerRequests, server_requests),
            (ProgramKey::ServerClose, server_close),
            (ProgramKey::Nagle, nagle),
            (ProgramKey::SendBuffer, send_buffer),
        ]
        .into_iter()
        .filter_map(|(key, value)| Some((Key::Program(key), value.as_deref()?)))
    }
}

/// How results are shown.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputFlags {
    /// How to print the results
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: Format,
    /// Write a page with tables, charts and provenance as well
    #[arg(long, value_name = "FILE.html", value_hint = clap::ValueHint::FilePath)]
    pub report: Option<PathBuf>,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people: rounded, as wide as the terminal; in a pipe as wide as it needs to be, or as COLUMNS says
    #[default]
    Table,
    /// For programs: every field, in full precision
    Json,
    /// For spreadsheets: a line for each row, in full precision
    Csv,
}

/// Offers names to shells for completion, and accepts any text: `scenario` knows the nearest name to a wrong one.
#[derive(Clone, Copy)]
struct NameOf(fn() -> Vec<Listing>);

impl TypedValueParser for NameOf {
    type Value = String;

    fn parse_ref(
        &self,
        _: &Command,
        _: Option<&Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<String, clap::Error> {
        // What is not UTF-8 is no name; it is shown as far as it can be.
        Ok(value.to_string_lossy().into_owned())
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let named = (self.0)()
            .into_iter()
            .map(|Listing { name, description, source: _ }| PossibleValue::new(name).help(description));
        Some(Box::new(named))
    }
}
