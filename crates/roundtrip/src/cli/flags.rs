//! Flags that several verbs share: the scenario, and the output.
//!
//! Values stay text: `scenario` parses them, and reports errors.

use std::path::PathBuf;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, ValueEnum};
use quantity::names::Listing;
use scenario::programs::ProgramKey;
use scenario::spec::Key;
use scenario::spec::key::{DirectionKey, PathDirection, PathKey};

use super::connections::READING;

/// The scenario: the flags that most runs need.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Scenario")]
pub struct ScenarioFlags {
    /// A scenario in TOML; flags override its values
    #[arg(value_name = "FILE.toml", help_heading = None::<&str>, value_hint = clap::ValueHint::FilePath)]
    pub file: Option<PathBuf>,

    /// A network by name, or all; repeat it for more (see `roundtrip list networks`)
    #[arg(long = "network", value_name = "NAME", value_delimiter = ',', hide_possible_values = true,
          value_parser = NameOf(|| scenario::Network::listings().collect()))]
    pub networks: Vec<String>,

    /// A page by name, or all, or sizes such as 6651+3883+1866 (43008/11264 adds the deflated size), a directory, or a
    /// browser's FILE.har; repeat it for more
    #[arg(long = "page", value_name = "PAGE", value_delimiter = ',', hide_possible_values = true,
          value_parser = NameOf(|| scenario::Page::listings().collect()))]
    pub pages: Vec<String>,

    /// A protocol by name, or all; repeat it for more (see `roundtrip list protocols`)
    #[arg(long = "protocol", value_name = "NAME", value_delimiter = ',', hide_possible_values = true,
          value_parser = NameOf(|| scenario::Protocol::ALL.map(scenario::Protocol::listing).to_vec()))]
    pub protocols: Vec<String>,

    /// TCP stack of both ends; repeat it for more (see `roundtrip list stacks`; default: period on the papers'
    /// networks, linux on others)
    #[arg(long = "stack", visible_alias = "profile", value_name = "NAME", value_delimiter = ',',
          hide_possible_values = true, value_parser = NameOf(|| scenario::Stack::listings().collect()))]
    pub stacks: Vec<String>,

    /// Visit: first, or revalidate for a page in the client's cache
    #[arg(long, value_name = "VISIT")]
    pub visit: Option<String>,

    /// Parallel connections, for http10 (default: 1) and http11-parallel (default: 6); others refuse it
    #[arg(long, value_name = "N")]
    pub parallel: Option<String>,

    /// Random seed
    #[arg(long, value_name = "N")]
    pub seed: Option<String>,

    /// Round-trip time, without transmission times: 89ms; repeat it for more networks
    #[arg(long = "rtt", value_name = "TIME", value_delimiter = ',', help_heading = PATH)]
    pub rtts: Vec<String>,

    /// Payload bits per second: 10Mbit (or 10Mbit/s, 10Mbps); 1.25MB/s are bytes; repeat it for more networks
    #[arg(long = "rate", value_name = "RATE", value_delimiter = ',', help_heading = PATH)]
    pub rates: Vec<String>,

    /// Maximum segment size (default: 1460)
    #[arg(long, value_name = "SIZE", help_heading = PATH)]
    pub mss: Option<String>,

    /// Queue limit: 20p packets, or 64kib [default: unlimited]
    #[arg(long, value_name = "LIMIT", help_heading = PATH)]
    pub queue: Option<String>,

    /// Packets lost: 0.1% independently; burst:0.5%/33%, into and out of bursts (Gilbert-Elliott); packets:3+17, exactly
    /// these
    #[arg(long, value_name = "SHARE", help_heading = PATH)]
    pub loss: Option<String>,
}

/// Heading of the flags that make a network, or change a named one.
const PATH: &str = "A network of your own, or changes to those named";
/// Heading of the flags that only `--help` shows.
pub const ADVANCED: &str = "Advanced";
/// Heading of the flags of SURGE's workload.
pub const SURGE: &str = "SURGE";

/// The scenario: flags that only `--help` shows.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = ADVANCED)]
pub struct AdvancedFlags {
    /// Order of requests: independent; after-document, all when the first object is complete; or dependent, each after
    /// the object before it (default: independent to predict or with --parallel, else dependent)
    #[arg(long, value_name = "ORDER")]
    pub requests: Option<String>,

    /// State of the connection at the first request: none (cold) or warm (open, with an open window)
    #[arg(long, value_name = "STATE")]
    pub connection: Option<String>,

    /// Processing time of the server, from a request's arrival to the first byte of its response: 3.7ms [default: 0]
    #[arg(long, value_name = "TIME")]
    pub processing: Option<String>,

    /// Size of each request with its header section [default: 256]
    #[arg(long, value_name = "SIZE")]
    pub request_size: Option<String>,

    /// State that connections share: none, temporal (a new one begins with the values of the last) or ensemble
    /// (concurrent ones have one window together; RFC 2140)
    #[arg(long, value_name = "SHARING")]
    pub sharing: Option<String>,

    /// Acknowledgements of the receiver: every-segment, delayed (the odd one after twice a segment's time) or no-delayed
    /// (default: as the named stack; every-segment for predict without one)
    #[arg(long, value_name = "POLICY")]
    pub acks: Option<String>,

    /// Rate towards the server, where it differs
    #[arg(long, value_name = "RATE")]
    pub rate_up: Option<String>,

    /// One-way delay towards the server, where it is not half of the round-trip time
    #[arg(long, value_name = "TIME")]
    pub delay_up: Option<String>,

    /// Maximum packet size: 552
    #[arg(long, value_name = "SIZE")]
    pub mtu: Option<String>,

    /// Modems at both ends: v42bis compresses (v42bis:512x6: codewords, longest string), v42bis/57.6kbit behind a serial
    /// port of this rate, v42 only corrects errors, v42+vj also compresses TCP/IP headers (RFC 1144); --rate is then the
    /// line's, headers included
    #[arg(long, value_name = "MODEM")]
    pub modem: Option<String>,

    /// Maximum random delay: 5ms; 5ms/free allows reordering
    #[arg(long, value_name = "TIME")]
    pub jitter: Option<String>,

    /// Packets reordered, and their delay: 1%/5ms
    #[arg(long, value_name = "SHARE")]
    pub reordering: Option<String>,

    /// Packets duplicated: 0.1%
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
    /// Returns the given values, piece by piece.
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
        let both = |key| Key::Path(PathKey::Packets(PathDirection::Both, key));
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

/// Heading of the flags for the programs at both ends.
const PROGRAMS: &str = "Programs at both ends (advanced)";

/// Behaviour of the programs at both ends. The model leaves them out, and real programs have their own.
///
/// The flags are those of [`ProgramKey`].
#[derive(Debug, Default)]
pub struct ProgramFlags(Vec<(ProgramKey, String)>);

impl ProgramFlags {
    fn pieces(&self) -> impl Iterator<Item = (Key, &str)> {
        self.0.iter().map(|(key, value)| (Key::Program(*key), value.as_str()))
    }
}

impl Args for ProgramFlags {
    fn augment_args(command: Command) -> Command {
        let mut keys = ProgramKey::ALL;
        // DHTTP is listed with the client's settings.
        keys.sort_by_key(|key| if *key == ProgramKey::Dhttp { ProgramKey::ClientFirstBytes } else { *key });
        let flag = |key: ProgramKey| {
            let flag = Arg::new(key.name()).long(key.name()).value_name(key.value_name());
            flag.help(key.help()).help_heading(PROGRAMS)
        };
        command.args(keys.map(flag))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ProgramFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = |key: ProgramKey| Some((key, matches.get_one::<String>(key.name())?.clone()));
        Ok(Self(ProgramKey::ALL.into_iter().filter_map(given).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Output flags.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputFlags {
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: Format,
    /// Also write a page with tables, charts and provenance
    #[arg(long, value_name = "FILE.html", value_hint = clap::ValueHint::FilePath)]
    pub report: Option<PathBuf>,
}

/// Output format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people: rounded, as wide as the terminal; in a pipe as wide as needed, or as COLUMNS says
    #[default]
    Table,
    /// For programs: every field, in full precision
    Json,
    /// For spreadsheets: a line for each row, in full precision
    Csv,
}

/// Offers names to shells for completion, and accepts any text: `scenario` suggests the nearest name for a wrong one.
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
        // A name that is not UTF-8 is invalid; it is shown as far as possible.
        Ok(value.to_string_lossy().into_owned())
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let named = (self.0)()
            .into_iter()
            .map(|Listing { name, description, source: _ }| PossibleValue::new(name).help(description));
        Some(Box::new(named))
    }
}
