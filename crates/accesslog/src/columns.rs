//! Access logs that are tables: Arrow record batches in, records out.
//!
//! In flow record batches, from a file's reader or from another program's memory; out flow the same
//! [`Record`](crate::Record)s that lines give, and a [`Tally`](crate::Tally) of rows that
//! give none. Read in this order:
//!
//! | module | contents |
//! | --- | --- |
//! | [`role`] | the role of each column, by given names or by common ones |
//! | [`row`](mod@row) | a batch's rows as records, whatever types its columns have |
//!
//! [`crate::format`](mod@crate::format) parses lines of text.

pub mod role;
pub mod row;

pub use role::{ColumnNames, Columns, MissingColumn};
