//! Parser from TOML to a [`Spec`], with the position of every error.

use std::borrow::Cow;
use std::ops::Range;

use quantity::ValueError;
use quantity::names::UnknownName;
use toml::Spanned;
use toml::de::{DeInteger, DeString, DeTable, DeValue};

use super::{FileError, Problem, tables};
use crate::programs::ProgramKey;
use crate::spec::{Key, Spec};

/// Result with the problem, and its bytes in the text.
pub(super) type ReadResult<T> = Result<T, (Range<usize>, Problem)>;

/// Maximum size of a file, in bytes.
const MAX_FILE_BYTES: usize = 1 << 20;

impl Spec {
    /// Parses `text`, the content of `file`.
    ///
    /// # Errors
    /// The first problem, with file, line and column.
    pub fn from_toml(text: &str, file: &str) -> Result<Self, FileError> {
        read(text).map_err(|(span, problem)| {
            let before = text.get(..span.start).unwrap_or(text);
            let line = before.matches('\n').count() + 1;
            let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
            FileError { file: file.to_owned(), line, column, problem: Box::new(problem) }
        })
    }
}

fn read(text: &str) -> ReadResult<Spec> {
    if text.len() > MAX_FILE_BYTES {
        return Err((0..0, Problem::TooLarge));
    }
    let table = DeTable::parse(text).map_err(|error| {
        (error.span().unwrap_or(0..0), Problem::Syntax(error.message().replace('\n', " ")))
    })?;
    let mut spec = Spec::default();
    for (name, value) in in_order(table.get_ref()) {
        let key = Key::named(name.get_ref()).map_err(|unknown| unknown_key(name, unknown))?;
        for element in elements_of(value) {
            match (key, element.get_ref()) {
                (Key::Network, DeValue::Table(table)) => tables::network(&mut spec, table, element.span())?,
                (Key::Stack, DeValue::Table(table)) => tables::stack(&mut spec, table, element.span())?,
                (Key::Program(ProgramKey::ClientStack), DeValue::Table(table)) => {
                    tables::client_stack(&mut spec, table, element.span())?;
                }
                (Key::Page, DeValue::Table(table)) => tables::page(&mut spec, table, element.span())?,
                (key, _) => scalar(key.name(), key.example(), element, |text| spec.add(key, text))?,
            }
        }
    }
    Ok(spec)
}

/// One key and its value.
pub(super) type Entry<'a, 'i> = (&'a Spanned<DeString<'i>>, &'a Spanned<DeValue<'i>>);

/// Entries in the order of the file, so that the first error is reported first.
pub(super) fn in_order<'a, 'i>(table: &'a DeTable<'i>) -> Vec<Entry<'a, 'i>> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(name, _)| name.span().start);
    entries
}

/// The elements of an array; otherwise the value itself.
fn elements_of<'a, 'i>(value: &'a Spanned<DeValue<'i>>) -> Vec<&'a Spanned<DeValue<'i>>> {
    match value.get_ref().as_array() {
        Some(array) => array.iter().collect(),
        None => vec![value],
    }
}

pub(super) fn unknown_key(name: &Spanned<DeString<'_>>, unknown: UnknownName) -> (Range<usize>, Problem) {
    (name.span(), Problem::UnknownKey(unknown))
}

/// Result of `read` for a string or a number: for the text that a flag would have.
pub(super) fn scalar<T>(
    key: &'static str,
    example: impl Into<String>,
    value: &Spanned<DeValue<'_>>,
    read: impl FnOnce(&str) -> Result<T, ValueError>,
) -> ReadResult<T> {
    let text = match value.get_ref() {
        DeValue::String(text) => Ok(text.clone()),
        DeValue::Integer(integer) => Ok(decimal(integer)),
        DeValue::Float(float) => Ok(float.as_str().into()),
        DeValue::Boolean(_) => Err("true or false"),
        DeValue::Datetime(_) => Err("a date or time of day"),
        DeValue::Array(_) => Err("an array"),
        DeValue::Table(_) => Err("a table"),
    };
    let text = text.map_err(|found| (value.span(), Problem::Type { key, found, example: example.into() }))?;
    read(&text).map_err(|error| (value.span(), Problem::Value { key, error }))
}

/// An integer of any base in decimal digits; unchanged where it is too large for any key.
fn decimal<'a>(integer: &'a DeInteger<'_>) -> Cow<'a, str> {
    match i128::from_str_radix(integer.as_str(), integer.radix()) {
        Ok(number) => number.to_string().into(),
        Err(_) => integer.as_str().into(),
    }
}
