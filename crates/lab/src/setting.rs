//! Settings of scenarios as typed columns: every key that the user set, or that a list varies.
//!
//! A column's name has its unit: `rtt_ms`, `rate_down_mbps`, `loss_percent`. Values that no number holds (a burst loss, a
//! modem) have a column of text, in the notation of their flag.

use std::fmt;

use quantity::print;
use render::output::grid::Side;
use render::output::number;
use scenario::network::Direction;
use scenario::programs::ProgramKey;
use scenario::spec::key::{DirectionKey, PathDirection, PathKey};
use scenario::spec::{Grid, Key};
use scenario::{Network, Protocol, Scenario};
use serde::ser::{Serialize, Serializer};
use wire::link::{Loss, Order};

use crate::Outcome;

/// A setting of a scenario, as a column of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Key in JSON, and heading in CSV.
    pub name: String,
    source: Source,
    kind: Kind,
}

/// Type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number with decimals.
    Number,
    /// A whole number of 64 bits.
    Whole,
    /// A text.
    Text,
}

/// Value of a setting in a scenario.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A number with decimals.
    Number(f64),
    /// A whole number.
    Whole(u64),
    /// A text.
    Text(String),
    /// None, or not of the column's kind: an unlimited queue, a burst loss.
    Missing,
}

/// Origin of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Key(Key),
    /// Rate in one direction, up or down.
    Rate(PathDirection),
    /// A value that no number holds, in the notation of its flag.
    Notation(PathDirection, DirectionKey),
    QueueBytes(PathDirection),
    Hosts,
    Requests,
}

/// The columns of a grid's rows: each key that was set, or that differs between its networks; requests of pages that are
/// graphs, and hosts where a page has several.
pub fn settings(grid: &Grid) -> Vec<Setting> {
    let keys = grid.keys();
    let samples = grid.sample_networks();
    let mut settings = Vec::new();
    for key in Key::ALL.into_iter().filter(|key| keys.contains(key)) {
        match key {
            Key::Path(key) => of_path(&mut settings, key, &keys, &samples),
            _ => settings.extend(of_key(key)),
        }
    }
    if grid.pages().iter().any(|page| page.hosts.len() > 1) {
        settings.push(Setting { name: "hosts".to_owned(), source: Source::Hosts, kind: Kind::Whole });
    }
    if grid.pages().iter().any(|page| !page.is_plain()) {
        settings.push(Setting { name: "requests".to_owned(), source: Source::Requests, kind: Kind::Whole });
    }
    settings
}

/// Whether rows with these settings are of pages that are graphs.
pub(crate) fn have_graphs(settings: &[Setting]) -> bool {
    settings.iter().any(|setting| setting.source == Source::Requests)
}

/// Settings but those of paths whose values differ between two of these outcomes of the same protocol and stack; the
/// network's name stands for its values.
pub fn varied(group: &[Outcome]) -> Vec<Setting> {
    varied_between(group.iter().map(|outcome| &outcome.scenario))
}

/// The same of scenarios.
pub fn varied_between<'a>(scenarios: impl Iterator<Item = &'a Scenario> + Clone) -> Vec<Setting> {
    let keys = Key::ALL.into_iter().filter(|key| !key.is_of_path());
    let differs = |setting: &Setting| {
        let mut first: Vec<(Protocol, &str, Value)> = Vec::new();
        scenarios.clone().any(|scenario| {
            let (protocol, stack, value) = (scenario.protocol, scenario.stack.name, setting.value(scenario));
            match first.iter().find(|(a, b, _)| (*a, *b) == (protocol, stack)) {
                Some((_, _, known)) => *known != value,
                None => {
                    first.push((protocol, stack, value));
                    false
                }
            }
        })
    };
    keys.filter_map(of_key).filter(differs).collect()
}

/// Values of these settings, for the title of a run: `parallel 6, seed 2`.
pub fn described(settings: &[Setting], scenario: &Scenario) -> String {
    let described = settings.iter().map(|setting| match setting.text(scenario) {
        text if text.is_empty() => format!("no {}", setting.title()),
        text => format!("{} {text}", setting.title()),
    });
    described.collect::<Vec<_>>().join(", ")
}

/// Every column: name, type and meaning.
pub fn fields() -> Vec<[String; 3]> {
    let mut settings = Vec::new();
    for key in Key::ALL {
        match key {
            Key::Path(PathKey::Packets(PathDirection::Up | PathDirection::Down, _)) => {}
            Key::Path(key) => of_path(&mut settings, key, &[], &[]),
            _ => settings.extend(of_key(key)),
        }
    }
    let field = |setting: Setting| {
        let kind = match setting.kind {
            Kind::Number | Kind::Whole => "number or null",
            Kind::Text => "string or null",
        };
        let meaning = match setting.source {
            Source::Rate(_) => "`rate`, `rate-up`".to_owned(),
            Source::Key(Key::Path(PathKey::Packets(_, kind))) => {
                let (name, suffix) =
                    (base_name(kind).replace('-', "_"), &setting.name[base_name(kind).len()..]);
                let directions =
                    format!("; `{name}_up{suffix}`, `{name}_down{suffix}` where the directions differ");
                let notation = match kind {
                    DirectionKey::Queue => "; `queue_bytes` for a limit in bytes",
                    DirectionKey::Loss => "; bursts and lists are in `loss`, as text",
                    DirectionKey::Jitter => "; `jitter` as text if it reorders",
                    DirectionKey::QueueDiscipline | DirectionKey::Reordering | DirectionKey::Duplication => {
                        ""
                    }
                };
                format!("`{}`{directions}{notation}", base_name(kind))
            }
            Source::Key(key) => format!("`{key}`"),
            _ => String::new(),
        };
        [setting.name, kind.to_owned(), meaning]
    };
    let of_pages = [
        ["hosts".to_owned(), "number".to_owned(), "Hosts of the page, if a page has several.".to_owned()],
        [
            "requests".to_owned(),
            "number".to_owned(),
            "Objects of the page, if a page has dependencies or several hosts.".to_owned(),
        ],
    ];
    settings.into_iter().map(field).chain(of_pages).collect()
}

fn of_path(settings: &mut Vec<Setting>, key: PathKey, keys: &[Key], samples: &[Network]) {
    let mut add = |name: String, source: Source, kind: Kind| {
        if settings.iter().all(|other| other.name != name) {
            settings.push(Setting { name, source, kind });
        }
    };
    let own = Source::Key(Key::Path(key));
    match key {
        PathKey::Rtt => add("rtt_ms".to_owned(), own, Kind::Number),
        PathKey::Rate | PathKey::RateUp => {
            for (part, direction) in [("down", PathDirection::Down), ("up", PathDirection::Up)] {
                add(format!("rate_{part}_mbps"), Source::Rate(direction), Kind::Number);
            }
        }
        PathKey::DelayUp => add("delay_up_ms".to_owned(), own, Kind::Number),
        PathKey::Mss | PathKey::Mtu => add(key.name().to_owned(), own, Kind::Whole),
        PathKey::Modem => add(key.name().to_owned(), own, Kind::Text),
        PathKey::NetworkTrace => add("network_trace".to_owned(), own, Kind::Text),
        PathKey::Packets(_, kind) => of_impairment(&mut add, kind, keys, samples),
    }
}

/// Columns of an impairment: one for both directions, or one for each where they differ in a network.
fn of_impairment(
    add: &mut impl FnMut(String, Source, Kind),
    kind: DirectionKey,
    keys: &[Key],
    samples: &[Network],
) {
    let is_one_way = [PathDirection::Up, PathDirection::Down]
        .into_iter()
        .any(|direction| keys.contains(&Key::Path(PathKey::Packets(direction, kind))));
    let differs = |network: &Network| notation(kind, &network.up) != notation(kind, &network.down);
    let directions: &[(&str, PathDirection)] = match is_one_way && samples.iter().any(differs) {
        true => &[("_up", PathDirection::Up), ("_down", PathDirection::Down)],
        false => &[("", PathDirection::Both)],
    };
    let (unit, column) = match kind {
        DirectionKey::Queue => ("_packets", Kind::Whole),
        DirectionKey::Loss | DirectionKey::Duplication => ("_percent", Kind::Number),
        DirectionKey::Jitter => ("_ms", Kind::Number),
        DirectionKey::Reordering | DirectionKey::QueueDiscipline => ("", Kind::Text),
    };
    let name = &base_name(kind).replace('-', "_");
    for (suffix, direction) in directions {
        let any = |is: fn(DirectionKey, &Direction) -> bool| {
            samples.iter().any(|network| is(kind, link_direction(network, *direction)))
        };
        let source = Source::Key(Key::Path(PathKey::Packets(*direction, kind)));
        add(format!("{name}{suffix}{unit}"), source, column);
        if any(|kind, direction| kind == DirectionKey::Queue && direction.queue.bytes.is_some()) {
            add(format!("{name}{suffix}_bytes"), Source::QueueBytes(*direction), Kind::Whole);
        }
        if any(needs_notation) {
            add(format!("{name}{suffix}"), Source::Notation(*direction, kind), Kind::Text);
        }
    }
}

const fn base_name(kind: DirectionKey) -> &'static str {
    PathKey::Packets(PathDirection::Both, kind).name()
}

/// The column of a key that is not a path's; `None` where a label or a metric has it.
fn of_key(key: Key) -> Option<Setting> {
    let (name, kind) = match key {
        Key::Network
        | Key::Page
        | Key::Protocol
        | Key::Tls
        | Key::Stack
        | Key::Engine
        | Key::Visit
        | Key::Runs
        | Key::Path(_) => {
            return None;
        }
        Key::Requests => ("request_order".to_owned(), Kind::Text),
        Key::RequestSize => ("request_bytes".to_owned(), Kind::Whole),
        Key::Parallel | Key::Seed => (key.name().to_owned(), Kind::Whole),
        Key::Processing => ("processing_ms".to_owned(), Kind::Number),
        Key::Connection | Key::Sharing | Key::Acks => (key.name().to_owned(), Kind::Text),
        Key::Program(program) => {
            let name = program.name().replace('-', "_");
            match program_kind(program) {
                ProgramKind::Time => (name + "_ms", Kind::Number),
                ProgramKind::Count => (name, Kind::Whole),
                ProgramKind::Size => (name + "_bytes", Kind::Whole),
                ProgramKind::Share => (name + "_percent", Kind::Number),
                ProgramKind::Word => (name, Kind::Text),
            }
        }
    };
    Some(Setting { name, source: Source::Key(key), kind })
}

/// Kind of a program's setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProgramKind {
    Time,
    Count,
    Size,
    Share,
    Word,
}

/// The kind, by the placeholder of its flag.
fn program_kind(key: ProgramKey) -> ProgramKind {
    match (key, key.value_name()) {
        // It may have a word after the size.
        (ProgramKey::ClientFirstBytes, _) => ProgramKind::Word,
        (_, "TIME") => ProgramKind::Time,
        (_, "N") => ProgramKind::Count,
        (_, "SIZE") => ProgramKind::Size,
        (_, "SHARE") => ProgramKind::Share,
        _ => ProgramKind::Word,
    }
}

impl Setting {
    /// Type of its values.
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether it has the values of this key.
    pub fn is_of(&self, key: Key) -> bool {
        self.source == Source::Key(key)
    }

    /// Alignment of its column in a table.
    pub const fn side(&self) -> Side {
        match self.kind {
            Kind::Number | Kind::Whole => Side::Right,
            Kind::Text => Side::Left,
        }
    }

    /// Name for people: `initial window`.
    pub fn title(&self) -> String {
        match self.source {
            Source::Key(Key::Requests) => "requests".to_owned(),
            Source::Key(key) => key.name().replace('-', " "),
            _ => self.name.replace('_', " "),
        }
    }

    /// Value in a scenario for people, with its unit; empty for none.
    pub fn text(&self, scenario: &Scenario) -> String {
        match self.source {
            Source::Key(Key::Program(key)) => {
                let set = scenario.programs.reported().find(|(reported, _)| *reported == key);
                set.map(|(_, text)| text).unwrap_or_default()
            }
            Source::Key(Key::Processing) => scenario.server.processing.to_string(),
            _ => self.value(scenario).to_string(),
        }
    }

    /// Value in a scenario.
    pub fn value(&self, scenario: &Scenario) -> Value {
        let network = &scenario.network;
        match self.source {
            Source::Key(Key::Path(key)) => path_value(key, network),
            Source::Key(key) => key_value(key, scenario),
            Source::Rate(PathDirection::Up) => megabits(network.rate_up.unwrap_or(network.rate)),
            Source::Rate(_) => megabits(network.rate),
            Source::Notation(direction, kind) => {
                Value::Text(notation(kind, link_direction(network, direction)))
            }
            Source::QueueBytes(direction) => link_direction(network, direction)
                .queue
                .bytes
                .map_or(Value::Missing, |bytes| Value::Whole(bytes.get())),
            Source::Hosts => Value::Whole(scenario.page.hosts.len() as u64),
            Source::Requests => Value::Whole(scenario.page.objects.len() as u64),
        }
    }
}

fn path_value(key: PathKey, network: &Network) -> Value {
    match key {
        PathKey::Rtt => Value::Number(network.rtt.as_millis_f64()),
        PathKey::Rate | PathKey::RateUp => megabits(network.rate),
        PathKey::DelayUp => Value::Number(network.delay_up.unwrap_or(network.rtt / 2).as_millis_f64()),
        PathKey::Mss => Value::Whole(network.mss.get()),
        PathKey::Mtu => Value::Whole(network.mtu().get()),
        PathKey::Modem => Value::Text(print::modem(network.modem)),
        PathKey::NetworkTrace => {
            network.traces.as_ref().map_or(Value::Missing, |traces| Value::Text(traces.to_string()))
        }
        PathKey::Packets(direction, kind) => number_of(kind, link_direction(network, direction)),
    }
}

fn key_value(key: Key, scenario: &Scenario) -> Value {
    let text = |text: &str| Value::Text(text.to_owned());
    let Scenario { stack, client, server, programs, seed, .. } = scenario;
    match key {
        Key::Requests => text(client.requests.name()),
        Key::RequestSize => Value::Whole(client.request.get()),
        Key::Parallel => Value::Whole(u64::from(client.parallel)),
        Key::Connection => text(client.connection.name()),
        Key::Processing => Value::Number(server.processing.as_millis_f64()),
        Key::Sharing => text(stack.packets.sharing.name()),
        Key::Acks => text(stack.acks.name()),
        Key::Seed => Value::Whole(seed.get()),
        Key::Program(key) => {
            let Some((_, value)) = programs.reported().find(|(reported, _)| *reported == key) else {
                return Value::Missing;
            };
            match program_kind(key) {
                ProgramKind::Time => quantity::duration(&value)
                    .map_or(Value::Missing, |duration| Value::Number(duration.as_millis_f64())),
                ProgramKind::Count | ProgramKind::Size => value.parse().map_or(Value::Missing, Value::Whole),
                ProgramKind::Share => percent(&value),
                ProgramKind::Word => Value::Text(value),
            }
        }
        // Labels, metrics and paths have their own columns.
        Key::Network
        | Key::Page
        | Key::Protocol
        | Key::Tls
        | Key::Stack
        | Key::Engine
        | Key::Visit
        | Key::Runs
        | Key::Path(_) => Value::Missing,
    }
}

fn megabits(rate: wire::Rate) -> Value {
    Value::Number(rate.millibits_per_second() as f64 / 1e9)
}

/// The number before a percent sign.
fn percent(text: &str) -> Value {
    text.strip_suffix('%').and_then(|number| number.parse().ok()).map_or(Value::Missing, Value::Number)
}

/// Impairments towards the server, or else towards the client.
const fn link_direction(network: &Network, direction: PathDirection) -> &Direction {
    match direction {
        PathDirection::Up => &network.up,
        PathDirection::Both | PathDirection::Down => &network.down,
    }
}

/// The number of an impairment; missing if no number holds it.
fn number_of(kind: DirectionKey, direction: &Direction) -> Value {
    let Direction { queue, discipline, loss, jitter, reordering, duplication } = direction;
    match kind {
        DirectionKey::Queue => queue.packets.map_or(Value::Missing, Value::Whole),
        DirectionKey::QueueDiscipline => Value::Text(print::queue_discipline(*discipline)),
        DirectionKey::Loss => match loss {
            Loss::None => Value::Number(0.0),
            Loss::Independent(share) => percent(&print::probability(*share)),
            Loss::GilbertElliott { .. } | Loss::Exactly(_) => Value::Missing,
        },
        DirectionKey::Jitter => match jitter {
            None => Value::Number(0.0),
            Some(jitter) => Value::Number(jitter.up_to.as_millis_f64()),
        },
        DirectionKey::Reordering => Value::Text(print::reordering(*reordering)),
        DirectionKey::Duplication => percent(&print::probability(*duplication)),
    }
}

/// Whether the number of an impairment does not say everything.
fn needs_notation(kind: DirectionKey, direction: &Direction) -> bool {
    match kind {
        DirectionKey::Loss => matches!(direction.loss, Loss::GilbertElliott { .. } | Loss::Exactly(_)),
        DirectionKey::Jitter => direction.jitter.is_some_and(|jitter| jitter.order == Order::Free),
        DirectionKey::Queue
        | DirectionKey::QueueDiscipline
        | DirectionKey::Reordering
        | DirectionKey::Duplication => false,
    }
}

fn notation(kind: DirectionKey, direction: &Direction) -> String {
    match kind {
        DirectionKey::Queue => print::queue(direction.queue),
        DirectionKey::QueueDiscipline => print::queue_discipline(direction.discipline),
        DirectionKey::Loss => print::loss(&direction.loss),
        DirectionKey::Jitter => print::jitter(direction.jitter),
        DirectionKey::Reordering => print::reordering(direction.reordering),
        DirectionKey::Duplication => print::probability(direction.duplication),
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(value) => f.write_str(&number::significant(*value)),
            Self::Whole(value) => value.fmt(f),
            Self::Text(text) => text.fmt(f),
            Self::Missing => Ok(()),
        }
    }
}

impl Value {
    /// In full precision, for a cell of CSV; empty if missing.
    pub fn cell(&self) -> String {
        match self {
            Self::Number(value) => value.to_string(),
            Self::Whole(value) => value.to_string(),
            Self::Text(text) => text.clone(),
            Self::Missing => String::new(),
        }
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(value) => serializer.serialize_f64(*value),
            Self::Whole(value) => serializer.serialize_u64(*value),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Missing => serializer.serialize_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use scenario::{Defaults, Spec};

    use super::*;

    fn grid(file: &str) -> Grid {
        Spec::from_toml(file, "file").unwrap().grid(&Defaults::laboratory()).unwrap()
    }

    fn row(grid: &Grid, number: usize) -> Vec<String> {
        let scenario = grid.scenario(number);
        let cells = settings(grid)
            .into_iter()
            .map(|setting| format!("{}={}", setting.name, setting.value(&scenario).cell()));
        cells.collect()
    }

    #[test]
    fn every_key_that_was_set_is_a_column() {
        let grid = grid(
            "rtt = '20ms'\nrate = '10Mbit'\nloss = ['0%', '0.7%']\nqueue = '20p'\njitter = '5ms'\nparallel = 2\n\
             initial-window = 4\nseed = 7\nclient-think = '500us'\nprotocol = 'http10'",
        );
        assert_eq!(
            row(&grid, 1),
            [
                "parallel=2",
                "seed=7",
                "client_think_ms=0.5",
                "initial_window=4",
                "rtt_ms=20",
                "rate_down_mbps=10",
                "rate_up_mbps=10",
                "queue_packets=20",
                "loss_percent=0.7",
                "jitter_ms=5",
            ]
        );
    }

    #[test]
    fn values_that_no_number_holds_have_a_column_of_text() {
        let grid = grid(
            "network = 'modem'\nprotocol = 'http11'\nloss = ['1%', 'burst:1%/33%']\nqueue = ['none', '64kib']\njitter-down = '5ms/free'",
        );
        assert_eq!(row(&grid, 0)[..4], ["queue_packets=", "queue_bytes=", "loss_percent=1", "loss=1%"]);
        let last = row(&grid, 3);
        assert_eq!(last[..2], ["queue_packets=", "queue_bytes=65536"]);
        assert_eq!(last[2..4], ["loss_percent=", "loss=burst:1%/33%/100%/0%"]);
        assert_eq!(last[4..], ["jitter_up_ms=0", "jitter_down_ms=5", "jitter_down=5ms/free"]);
    }

    #[test]
    fn values_that_differ_between_named_networks_are_columns() {
        let names: Vec<String> =
            settings(&grid("network = ['modem', 'isdn']")).into_iter().map(|setting| setting.name).collect();
        assert_eq!(names, ["rtt_ms", "rate_down_mbps", "rate_up_mbps"]);
        assert_eq!(settings(&grid("network = 'modem'")), []);
    }
}
