//! Keys and values of a TOML file: their order, their types, and the problems with them.

use std::borrow::Cow;
use std::ops::Range;

use quantity::ValueError;
use quantity::names::UnknownName;
use toml::Spanned;
use toml::de::{DeInteger, DeString, DeTable, DeValue};

use super::Problem;

/// Result with the problem, and its bytes in the text.
pub(super) type ReadResult<T> = Result<T, (Range<usize>, Problem)>;

/// One key and its value.
pub(super) type Entry<'a, 'i> = (&'a Spanned<DeString<'i>>, &'a Spanned<DeValue<'i>>);

/// Entries in the order of the file, so that the first error is reported first.
pub(super) fn in_order<'a, 'i>(table: &'a DeTable<'i>) -> Vec<Entry<'a, 'i>> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(name, _)| name.span().start);
    entries
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
