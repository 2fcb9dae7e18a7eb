//! A table's file format, known by the file's first bytes, and the place of its bytes.
//!
//! Not the reading of it ([`table_file`](super::table_file)).

use std::path::PathBuf;

use bytes::Bytes;

use super::object::Object;

/// A table's file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Parquet.
    Parquet,
    /// Arrow's file, also called Feather.
    Arrow,
    /// Arrow's stream.
    ArrowStream,
}

impl Kind {
    /// The format of a file that begins so; `None` if it is no table.
    pub fn of(beginning: &[u8]) -> Option<Self> {
        match beginning {
            [b'P', b'A', b'R', b'1', ..] => Some(Self::Parquet),
            [b'A', b'R', b'R', b'O', b'W', b'1', ..] => Some(Self::Arrow),
            [0xff, 0xff, 0xff, 0xff, ..] => Some(Self::ArrowStream),
            _ => None,
        }
    }
}

/// The place of a table's bytes.
#[derive(Clone, Debug)]
pub enum Place {
    /// In a file, which is read here and there.
    File(PathBuf),
    /// In an object store, from which the columns are fetched that are needed.
    Object(Object),
    /// In memory.
    Memory(Bytes),
}
