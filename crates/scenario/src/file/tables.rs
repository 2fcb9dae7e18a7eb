//! Custom networks, stacks and pages.

use std::ops::Range;

use quantity::ValueError;
use quantity::names::{self, UnknownName};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Problem;
use super::values::{ReadResult, in_order, scalar, unknown_key};
use crate::network::changes::{CUSTOM, Changes};
use crate::programs::{ClientStack, ProgramKey};
use crate::spec::key::PathKey;
use crate::spec::{Key, PlanError, Spec};
use crate::{Network, Page};

/// Adds the network that `table` describes.
pub(super) fn network(spec: &mut Spec, table: &DeTable<'_>, span: Range<usize>) -> ReadResult<()> {
    let mut parsed = NetworkTable::default();
    for (key, value) in in_order(table) {
        let table_key = NetworkKey::named(key.get_ref()).map_err(|unknown| unknown_key(key, unknown))?;
        match table_key {
            NetworkKey::Name => parsed.name = Some(name(value, |name| !name.contains('+'))?),
            NetworkKey::Like => {
                let example = "like = \"fast-internet\"";
                parsed.like = Some(scalar("like", example, value, |text| Ok(Network::named(text)?))?);
            }
            NetworkKey::Path(key) => {
                scalar(key.name(), key.example(), value, |text| parsed.changes.set(key, text))?;
            }
        }
    }
    let network = parsed.network().map_err(|problem| (span.clone(), problem))?;
    network.check().map_err(|error| (span.clone(), Problem::Network(error)))?;
    if spec.networks.iter().any(|other| other.name == network.name) {
        return Err((span, Problem::NameTaken(network.name)));
    }
    spec.networks.push(network);
    Ok(())
}

/// Contents of a network's table.
#[derive(Default)]
struct NetworkTable {
    name: Option<String>,
    like: Option<Network>,
    changes: Changes,
}

impl NetworkTable {
    fn network(self) -> Result<Network, Problem> {
        let Self { name, like, changes } = self;
        if let Some(name) = name.as_ref().filter(|name| Network::named(name).is_ok()) {
            return Err(Problem::NameTaken(name.clone()));
        }
        changes.check().map_err(Problem::Network)?;
        let mut network = match like {
            Some(like) => changes.applied_to(&like),
            None => {
                changes.network(CUSTOM).ok_or(Problem::Half(PlanError::HalfANetwork(changes.missing())))?
            }
        };
        if let Some(name) = name {
            // Names that begin as those of flags do spell the other values, too.
            let values = network.name.find('+').filter(|_| name.starts_with(CUSTOM));
            let values = values.map(|at| network.name.split_off(at)).unwrap_or_default();
            network.name = name + &values;
        }
        Ok(network)
    }
}

/// Keys of a network's table.
#[derive(Clone, Copy)]
enum NetworkKey {
    Name,
    Like,
    Path(PathKey),
}

impl NetworkKey {
    fn named(name: &str) -> Result<Self, UnknownName> {
        let own = [Self::Name, Self::Like].into_iter();
        let all: Vec<Self> = own.chain(PathKey::ALL.map(Self::Path)).collect();
        names::find("key of a network", name, &all, Self::name)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Like => "like",
            Self::Path(key) => key.name(),
        }
    }
}

/// Adds the stack that `table` describes. Its changes hold for every stack of the specification.
pub(super) fn stack(spec: &mut Spec, table: &DeTable<'_>, span: Range<usize>) -> ReadResult<()> {
    let mut is_named = false;
    for (key, value) in in_order(table) {
        let table_key = StackKey::named(key.get_ref()).map_err(|unknown| unknown_key(key, unknown))?;
        let key = match table_key {
            StackKey::Like => Key::Stack,
            StackKey::Change(key) => key,
        };
        is_named |= table_key == StackKey::Like;
        scalar(table_key.name(), table_key.example(), value, |text| spec.set(key, text))?;
    }
    if is_named { Ok(()) } else { Err((span, Problem::NoLike)) }
}

/// Adds the client's stack that `table` describes.
pub(super) fn client_stack(spec: &mut Spec, table: &DeTable<'_>, span: Range<usize>) -> ReadResult<()> {
    let (mut like, mut settings) = (None, String::new());
    let all: Vec<StackKey> = [StackKey::Like]
        .into_iter()
        .chain(ClientStack::KEYS.map(|key| StackKey::Change(Key::Program(key))))
        .collect();
    for (key, value) in in_order(table) {
        let table_key = names::find("key of a client's stack", key.get_ref(), &all, StackKey::name)
            .map_err(|unknown| unknown_key(key, unknown))?;
        let text = scalar(table_key.name(), table_key.example(), value, |text| Ok(text.to_owned()))?;
        match table_key {
            StackKey::Like => like = Some(text),
            StackKey::Change(key) => settings += &format!("+{}={text}", key.name()),
        }
    }
    let Some(like) = like else { return Err((span, Problem::NoLike)) };
    let key = Key::Program(ProgramKey::ClientStack);
    spec.add(key, &(like + &settings)).map_err(|error| (span, Problem::Value { key: key.name(), error }))
}

/// Keys of a stack's table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StackKey {
    Like,
    Change(Key),
}

impl StackKey {
    /// Keys of the first level that change a stack.
    const CHANGES: [Key; 12] = [
        Key::Acks,
        Key::Sharing,
        Key::Program(ProgramKey::Nagle),
        Key::Program(ProgramKey::SendBuffer),
        Key::Program(ProgramKey::UnsentLimit),
        Key::Program(ProgramKey::ReceiveBuffer),
        Key::Program(ProgramKey::InitialWindow),
        Key::Program(ProgramKey::Idle),
        Key::Program(ProgramKey::IdleAfter),
        Key::Program(ProgramKey::RtoMin),
        Key::Program(ProgramKey::RtoInitial),
        Key::Program(ProgramKey::ClientStack),
    ];

    fn named(name: &str) -> Result<Self, UnknownName> {
        let all: Vec<Self> = [Self::Like].into_iter().chain(Self::CHANGES.map(Self::Change)).collect();
        names::find("key of a stack", name, &all, Self::name)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Like => "like",
            Self::Change(key) => key.name(),
        }
    }

    fn example(self) -> String {
        match self {
            Self::Like => "like = \"linux\"".to_owned(),
            Self::Change(key) => key.example(),
        }
    }
}

/// Adds the page that `table` describes.
pub(super) fn page(spec: &mut Spec, table: &DeTable<'_>, span: Range<usize>) -> ReadResult<()> {
    let mut page_name: Option<String> = None;
    let mut page: Option<Page> = None;
    for (key, value) in in_order(table) {
        let table_key = names::find("key of a page", key.get_ref(), &["name", "sizes"], |name| name)
            .map_err(|unknown| unknown_key(key, unknown))?;
        if table_key == "name" {
            page_name = Some(name(value, |_| true)?);
        } else {
            page = Some(scalar("sizes", "sizes = \"6651+3883+1866\"", value, sizes)?);
        }
    }
    let mut page = page.ok_or((span.clone(), Problem::NoSizes))?;
    if let Some(name) = page_name {
        page.name = name;
    }
    if Page::named(&page.name).is_ok() || spec.pages.iter().any(|other| other.name == page.name) {
        return Err((span, Problem::NameTaken(page.name)));
    }
    spec.pages.push(page);
    Ok(())
}

/// Parses sizes only: a name would be another page.
fn sizes(text: &str) -> Result<Page, ValueError> {
    if text.starts_with(|first: char| first.is_ascii_digit()) {
        return page::text::page(text);
    }
    let example = "sizes with + between them, such as 6651+3883+1866";
    Err(ValueError::NotA { what: "a list of sizes", given: text.to_owned(), example })
}

/// A printable name. (`+` in a network's name marks a change.)
fn name(value: &Spanned<DeValue<'_>>, is_allowed: fn(&str) -> bool) -> ReadResult<String> {
    let name = scalar("name", "name = \"my-own\"", value, |text| Ok(text.to_owned()))?;
    let is_name = (1..=200).contains(&name.chars().count()) && !name.contains(char::is_control);
    if is_name && is_allowed(&name) { Ok(name) } else { Err((value.span(), Problem::Name(name))) }
}
