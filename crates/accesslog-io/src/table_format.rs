//! A table's file format, recognised by the file's first bytes, and the location of its bytes.
//!
//! [`table_file`](crate::table_file) reads it.

use std::path::PathBuf;

use bytes::Bytes;

use crate::object::Object;

/// A table's file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableFormat {
    /// Parquet.
    Parquet,
    /// Arrow's file, also called Feather.
    Arrow,
    /// Arrow's stream.
    ArrowStream,
}

impl TableFormat {
    /// The format of a file with these first bytes; `None` if it is not a table.
    pub fn of(beginning: &[u8]) -> Option<Self> {
        match beginning {
            [b'P', b'A', b'R', b'1', ..] => Some(Self::Parquet),
            [b'A', b'R', b'R', b'O', b'W', b'1', ..] => Some(Self::Arrow),
            [0xff, 0xff, 0xff, 0xff, ..] => Some(Self::ArrowStream),
            _ => None,
        }
    }
}

/// Location of a table's bytes.
#[derive(Clone, Debug)]
pub enum TableSource {
    /// In a file, with random access.
    File(PathBuf),
    /// In an object store, from which only the needed columns are fetched.
    Object(Object),
    /// In memory.
    Memory(Bytes),
}
