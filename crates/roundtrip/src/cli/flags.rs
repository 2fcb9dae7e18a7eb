//! Flags that several verbs share: how results are shown.

use clap::ValueEnum;

/// How results are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people: rounded as the papers print
    #[default]
    Table,
    /// An array of rows, in full precision
    Json,
    /// The same columns, in full precision
    Csv,
}
