//! Columns of the time, the client and the size: by given names, else by common ones.
//!
//! [`row`](mod@crate::columns::row) reads their contents.

use quantity::names::{Quoted, UnknownName};

use crate::SizeScope;
use crate::field::{CLIENTS, SIZES, STATUSES, TIMES};
use arrow_schema::Schema;

/// Column names given by the caller; a common name is used where none was given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnNames {
    /// Name of the column of times.
    pub time: Option<String>,
    /// Name of the column of clients.
    pub client: Option<String>,
    /// Name of the column of statuses.
    pub status: Option<String>,
    /// Name of the column of bytes sent.
    pub size: Option<String>,
    /// Name of the column of response times, in seconds.
    pub taken: Option<String>,
}

/// Indices of columns in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Columns {
    /// Index of the column of times.
    pub time: usize,
    /// Index of the column of clients.
    pub client: usize,
    /// Index of the column of statuses, if there is one.
    pub status: Option<usize>,
    /// Index of the column of bytes sent, if known, and the parts of a response it covers.
    pub size: Option<(usize, SizeScope)>,
    /// Index of the column of response times, if known.
    pub taken: Option<usize>,
}

/// Reason why a table is not an access log.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum MissingColumn {
    /// No column has the given name; the table's columns.
    #[error("unknown column {}; choose one of {}", Quoted(.0), .1.join(", "))]
    Named(String, Vec<String>),
    /// No column has a common name for this role; the table's columns.
    #[error("no column recognised as the {0} (columns: {names}); name it: {0}=COLUMN", names = .1.join(", "))]
    NoCommonName(&'static str, Vec<String>),
}

/// Names of the response time, in seconds (nginx, Caddy).
const RESPONSE_TIMES: [&[u8]; 2] = [b"request_time", b"duration"];

impl ColumnNames {
    /// Names of the roles.
    pub const ROLES: [&'static str; 5] = ["time", "client", "status", "size", "taken"];

    /// Sets the name of a role's column.
    ///
    /// # Errors
    /// An unknown role.
    pub fn name(&mut self, role: &str, column: &str) -> Result<(), UnknownName> {
        let Self { time, client, status, size, taken } = self;
        let named = match role {
            "time" => time,
            "client" => client,
            "status" => status,
            "size" => size,
            "taken" => taken,
            _ => return Err(UnknownName::new("role", role, Self::ROLES)),
        };
        *named = Some(column.to_owned());
        Ok(())
    }
}

impl Columns {
    /// Finds the columns of a table.
    ///
    /// # Errors
    /// [`MissingColumn`]: only the time and the client are required.
    pub fn find(schema: &Schema, named: &ColumnNames) -> Result<Self, MissingColumn> {
        let ColumnNames { time, client, status, size, taken } = named;
        let search = Search { schema };
        let size_names = SIZES.map(|(name, _)| name);
        let size_named = size.is_some();
        Ok(Self {
            time: search.required("time", time, &TIMES)?,
            client: search.required("client", client, &CLIENTS)?,
            status: search.optional(status, &STATUSES)?.map(|(index, _)| index),
            size: search.optional(size, &size_names)?.map(|(index, rank)| {
                let covers = if size_named { SizeScope::Body } else { SIZES[rank].1 };
                (index, covers)
            }),
            taken: search.optional(taken, &RESPONSE_TIMES)?.map(|(index, _)| index),
        })
    }

    /// Indices of the columns, ascending, for a reader that skips the others.
    pub fn indices(&self) -> Vec<usize> {
        let Self { time, client, status, size, taken } = *self;
        let mut indices: Vec<usize> = [Some(time), Some(client), status, size.map(|(index, _)| index), taken]
            .into_iter()
            .flatten()
            .collect();
        indices.sort_unstable();
        indices.dedup();
        indices
    }

    /// The same columns in a table that has no others.
    #[must_use]
    pub fn without_other_columns(&self) -> Self {
        let retained = self.indices();
        let rank_of = |before: usize| retained.iter().position(|index| *index == before).unwrap_or(0);
        let Self { time, client, status, size, taken } = *self;
        Self {
            time: rank_of(time),
            client: rank_of(client),
            status: status.map(rank_of),
            size: size.map(|(before, covers)| (rank_of(before), covers)),
            taken: taken.map(rank_of),
        }
    }
}

struct Search<'a> {
    schema: &'a Schema,
}

impl Search<'_> {
    fn required(
        &self,
        role: &'static str,
        named: &Option<String>,
        common_names: &[&[u8]],
    ) -> Result<usize, MissingColumn> {
        match self.optional(named, common_names)? {
            Some((index, _)) => Ok(index),
            None => Err(MissingColumn::NoCommonName(role, self.names())),
        }
    }

    /// The column's index, and the rank of its name among the common ones.
    fn optional(
        &self,
        named: &Option<String>,
        common_names: &[&[u8]],
    ) -> Result<Option<(usize, usize)>, MissingColumn> {
        if let Some(name) = named {
            let index = self.index_of(name.as_bytes());
            let unknown = || MissingColumn::Named(name.clone(), self.names());
            return index.map(|index| Some((index, 0))).ok_or_else(unknown);
        }
        Ok(common_names.iter().enumerate().find_map(|(rank, name)| Some((self.index_of(name)?, rank))))
    }

    fn index_of(&self, name: &[u8]) -> Option<usize> {
        self.schema.fields().iter().position(|field| field.name().as_bytes() == name)
    }

    fn names(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use arrow_schema::{DataType, Field};

    use super::*;

    fn schema(names: &[&str]) -> Schema {
        Schema::new(names.iter().map(|name| Field::new(*name, DataType::Utf8, true)).collect::<Vec<_>>())
    }

    #[test]
    fn the_best_of_the_usual_names_is_taken() {
        let schema = schema(&["other", "bytes", "client_ip", "time", "body_bytes_sent", "timestamp"]);
        let columns = Columns::find(&schema, &ColumnNames::default()).unwrap();
        assert_eq!((columns.time, columns.client, columns.size), (5, 2, Some((4, SizeScope::Body))));
        assert_eq!((columns.status, columns.taken), (None, None));
        assert_eq!(columns.indices(), [2, 4, 5]);
        assert_eq!((columns.without_other_columns().client, columns.without_other_columns().time), (0, 2));
    }

    #[test]
    fn missing_columns_are_reported_with_those_present() {
        let schema = schema(&["when", "client"]);
        let error = Columns::find(&schema, &ColumnNames::default()).unwrap_err().to_string();
        assert!(error.contains("time (columns: when, client); name it: time=COLUMN"), "{error}");
        let mut named = ColumnNames::default();
        named.name("time", "wen").unwrap();
        let error = Columns::find(&schema, &named).unwrap_err().to_string();
        assert!(error.contains("unknown column `wen`; choose one of when, client"), "{error}");
        assert!(named.name("tme", "when").is_err());
    }
}
