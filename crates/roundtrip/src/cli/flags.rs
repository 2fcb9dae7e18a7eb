//! Flags that several verbs share: the scenario, and the output.
//!
//! A scenario's flags are the keys of `scenario`, which has their names and help. Values stay text: `scenario` parses
//! them, and reports errors.

use std::marker::PhantomData;
use std::path::PathBuf;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, ValueEnum};
use quantity::names::Listing;
use scenario::programs::ProgramKey;
use scenario::spec::Key;
use scenario::spec::key::{DirectionKey, PathDirection, PathKey};

/// Scenario flags that most runs need. Flags of a verb that follow them appear under the same heading.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = SCENARIO)]
pub struct ScenarioFlags {
    /// A scenario in TOML; flags override its values
    #[arg(value_name = "FILE.toml", help_heading = None::<&str>, value_hint = clap::ValueHint::FilePath)]
    pub file: Option<PathBuf>,
    /// The other flags.
    #[command(flatten)]
    pub keys: KeyFlags<CommonKeys>,
    /// Changes of the pages.
    #[command(flatten)]
    pub what_if: WhatIfFlags,
}

/// Changes of the pages, applied in this order.
#[derive(Debug, Default, Args)]
pub struct WhatIfFlags {
    /// Without the objects of this host; what waited for them waits for what they waited for; repeat it for more
    #[arg(help_heading = WHAT_IF, long, value_name = "HOST", value_delimiter = ',')]
    pub without: Vec<String>,
    /// Without the objects whose host and path contain this, where * is any text; repeat it for more
    #[arg(help_heading = WHAT_IF, long, value_name = "PATTERN")]
    pub block: Vec<String>,
    /// Server time of a host; repeat it for more
    #[arg(help_heading = WHAT_IF, long, value_name = "HOST=TIME", value_delimiter = ',')]
    pub server_time: Vec<String>,
    /// Round trip of a host beyond the network's, such as 0ms for a CDN; repeat it for more
    #[arg(help_heading = WHAT_IF, long, value_name = "HOST=TIME", value_delimiter = ',')]
    pub host_rtt: Vec<String>,
    /// Text of a HAR compressed with br, gzip, zstd or deflate, where its body is recorded and that makes it smaller
    #[arg(help_heading = WHAT_IF, long, value_name = "CODING")]
    pub compress: Option<String>,
    /// A connection to this host, opened when the document begins to arrive; repeat it for more
    #[arg(help_heading = WHAT_IF, long, value_name = "HOST", value_delimiter = ',')]
    pub preconnect: Vec<String>,
    /// All objects on the document's host
    #[arg(help_heading = WHAT_IF, long)]
    pub merge_hosts: bool,
    /// Without think times: the client's own work, such as running scripts
    #[arg(help_heading = WHAT_IF, long)]
    pub no_think: bool,
}

/// Scenario flags that only `--help` shows.
pub type AdvancedFlags = KeyFlags<AdvancedKeys>;

/// Flags for a group of scenario keys, with their values. Names, placeholders and help are the keys' own.
#[derive(Debug, Default)]
pub struct KeyFlags<G>(Vec<(Key, String)>, PhantomData<G>);

/// A group of flags, under one or several headings.
pub trait Group {
    /// The headings, and the keys under each, in the order of the help.
    fn keys() -> Vec<(&'static str, Vec<Key>)>;
}

/// Flags that most runs need.
#[derive(Debug, Default)]
pub struct CommonKeys;

/// Flags that only `--help` shows.
#[derive(Debug, Default)]
pub struct AdvancedKeys;

/// Heading of the flags that most runs need.
const SCENARIO: &str = "Scenario";
/// Heading of the flags that change a page.
pub const WHAT_IF: &str = "What if (changes of the page)";
/// Heading of the flags that define a network, or change a named one.
pub const PATH: &str = "Custom network, or changes to a named one";
/// Heading of the flags that only `--help` shows.
pub const ADVANCED: &str = "Advanced";
/// Heading of the flags of SURGE's workload.
pub const SURGE: &str = "SURGE";
/// Heading of the flags for the programs at both ends. The model leaves them out, and real programs have their own.
const PROGRAMS: &str = "Programs at both ends (advanced)";

impl Group for CommonKeys {
    fn keys() -> Vec<(&'static str, Vec<Key>)> {
        let scenario = vec![
            Key::Network,
            Key::Page,
            Key::Protocol,
            Key::Tls,
            Key::Stack,
            Key::Visit,
            Key::Parallel,
            Key::Seed,
        ];
        let path =
            [PathKey::Rtt, PathKey::Rate, PathKey::Mss, both(DirectionKey::Queue), both(DirectionKey::Loss)];
        vec![(SCENARIO, scenario), (PATH, path.map(Key::Path).to_vec())]
    }
}

impl Group for AdvancedKeys {
    fn keys() -> Vec<(&'static str, Vec<Key>)> {
        let scenario =
            [Key::Requests, Key::Connection, Key::Processing, Key::RequestSize, Key::Sharing, Key::Acks];
        let path = [
            PathKey::RateUp,
            PathKey::NetworkTrace,
            PathKey::DelayUp,
            PathKey::Mtu,
            PathKey::Modem,
            both(DirectionKey::QueueDiscipline),
            both(DirectionKey::Jitter),
            both(DirectionKey::Reordering),
            both(DirectionKey::Duplication),
        ];
        let mut programs = ProgramKey::ALL;
        // DHTTP is listed with the client's settings.
        programs
            .sort_by_key(|key| if *key == ProgramKey::Dhttp { ProgramKey::ClientFirstBytes } else { *key });
        vec![
            (ADVANCED, scenario.into_iter().chain(path.map(Key::Path)).collect()),
            (PROGRAMS, programs.map(Key::Program).to_vec()),
        ]
    }
}

pub const fn both(key: DirectionKey) -> PathKey {
    PathKey::Packets(PathDirection::Both, key)
}

/// Whether a heading's flags are left out of `-h`.
pub fn is_advanced(heading: &str) -> bool {
    [ADVANCED, PROGRAMS, READING, SURGE, WHAT_IF].contains(&heading)
}

impl ScenarioFlags {
    /// Returns the values of all flags.
    pub fn entries<'a>(&'a self, advanced: &'a AdvancedFlags) -> Vec<(Key, &'a str)> {
        let all = self.keys.0.iter().chain(&advanced.0);
        all.map(|(key, value)| (*key, value.as_str())).collect()
    }
}

impl<G> KeyFlags<G> {
    /// Returns the values of the flags.
    pub fn entries(&self) -> impl Iterator<Item = (Key, &str)> {
        self.0.iter().map(|(key, value)| (*key, value.as_str()))
    }

    /// Whether the flag was given.
    pub fn has(&self, key: Key) -> bool {
        self.0.iter().any(|(given, _)| *given == key)
    }
}

/// Builds the flag of a key.
fn flag(key: Key) -> Arg {
    let flag = Arg::new(key.name()).long(key.name()).value_name(key.value_name()).help(key.help());
    let flag = match COMPLETED.iter().find(|(values, _)| *values == key) {
        Some((_, names)) => flag.value_parser(CatalogueParser(*names)).hide_possible_values(true),
        None => flag,
    };
    let flag = flag.action(ArgAction::Append);
    let flag = if key.is_divided_at_commas() { flag.value_delimiter(',') } else { flag };
    if key == Key::Stack { flag.visible_alias("profile") } else { flag }
}

/// Keys whose values shells complete.
const COMPLETED: [(Key, Listings); 4] = [
    (Key::Network, || scenario::Network::listings().collect()),
    (Key::Page, || scenario::Page::listings().collect()),
    (Key::Protocol, || scenario::Protocol::ALL.map(scenario::Protocol::listing).to_vec()),
    (Key::Stack, || scenario::Stack::listings().collect()),
];

impl<G: Group> Args for KeyFlags<G> {
    fn augment_args(command: Command) -> Command {
        let keys = G::keys().into_iter();
        let flags =
            keys.flat_map(|(heading, keys)| keys.into_iter().map(move |key| flag(key).help_heading(heading)));
        command.args(flags)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<G: Group> FromArgMatches for KeyFlags<G> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = |key: Key| {
            let values = matches.get_many::<String>(key.name()).into_iter().flatten();
            values.map(move |value| (key, value.clone()))
        };
        let keys = G::keys().into_iter().flat_map(|(_, keys)| keys);
        Ok(Self(keys.flat_map(given).collect(), PhantomData))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Flags of grids of scenarios.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct GridFlags {
    /// Also write a line for each stall
    #[arg(long, value_name = "FILE.csv", value_hint = clap::ValueHint::FilePath, conflicts_with = "into")]
    pub stalls: Option<PathBuf>,
    /// Number of threads; any number gives the same bytes [default: the CPUs]
    #[arg(long, value_name = "N")]
    pub threads: Option<String>,
}

/// A file of rows in place of the printed ones.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct IntoFlags {
    /// Append the rows to a file as they are computed; those that it has are not computed again
    #[arg(long, value_name = "FILE.csv", value_hint = clap::ValueHint::FilePath)]
    #[arg(conflicts_with_all = ["format", "report"])]
    pub into: Option<PathBuf>,
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
struct CatalogueParser(Listings);

/// The entries of a catalogue.
type Listings = fn() -> Vec<Listing>;

impl TypedValueParser for CatalogueParser {
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
        let values = (self.0)()
            .into_iter()
            .map(|Listing { name, description, source: _ }| PossibleValue::new(name).help(description));
        Some(Box::new(values))
    }
}

/// Heading of flags that only `--help` shows.
pub const READING: &str = "Log input";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_a_flag_of_one_group_or_belongs_to_files_or_some_verbs() {
        let groups = [CommonKeys::keys(), AdvancedKeys::keys()].concat();
        let mut flags: Vec<Key> = groups.into_iter().flat_map(|(_, keys)| keys).collect();
        // Verbs that repeat runs, or choose an engine, have these; the directions of a path are set in files.
        let others = Key::ALL.into_iter().filter(|key| {
            let is_direction =
                |direction| matches!(key, Key::Path(PathKey::Packets(of, _)) if *of == direction);
            [Key::Engine, Key::Runs].contains(key)
                || is_direction(PathDirection::Up)
                || is_direction(PathDirection::Down)
        });
        flags.extend(others);
        flags.sort_unstable();
        let mut all = Key::ALL;
        all.sort_unstable();
        assert_eq!(flags, all);
    }
}
