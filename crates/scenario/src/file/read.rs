//! Parser from TOML to a [`Spec`], with the position of every error.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::values::{ReadResult, in_order, scalar, unknown_key};
use super::{FileError, Problem, tables};
use crate::programs::ProgramKey;
use crate::spec::{Key, Spec};

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

/// The elements of an array; otherwise the value itself.
fn elements_of<'a, 'i>(value: &'a Spanned<DeValue<'i>>) -> Vec<&'a Spanned<DeValue<'i>>> {
    match value.get_ref().as_array() {
        Some(array) => array.iter().collect(),
        None => vec![value],
    }
}
