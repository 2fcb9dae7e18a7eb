//! A log being read: block by block, lines or rows, opened on demand.
//!
//! Any thread parses a block, independently of the others.

use accesslog::{ClientDefinition, Reader};

use crate::blocks::Blocks;
use crate::table_file::{Batches, Columns, RecordBatch};

/// One log and its reader.
pub enum Log {
    /// Lines, with their reader.
    Lines(Blocks, Box<Reader>),
    /// A table, with the rule that identifies a client.
    Table(Table, ClientDefinition),
}

/// A table that may not be open yet.
pub enum Table {
    /// Opens the table; `None` once taken.
    Closed(Option<OpenTable>),
    /// Its batches.
    Open(Batches),
}

/// Opens a table.
pub type OpenTable = Box<dyn FnOnce() -> Result<Batches, String> + Send>;

/// A block to parse into requests.
pub enum UnparsedBlock {
    /// Whole lines.
    Lines(Reader, Vec<u8>),
    /// Rows of a table.
    Rows(Columns, RecordBatch, ClientDefinition),
}

impl Log {
    /// The next block; `None` at the end.
    ///
    /// # Errors
    /// The reason why it cannot be read any further.
    pub fn next_block(&mut self) -> Result<Option<UnparsedBlock>, String> {
        match self {
            Self::Lines(blocks, master) => {
                let Some(bytes) = blocks.next_block().map_err(|error| error.to_string())? else {
                    return Ok(None);
                };
                let reader = Reader::clone(master);
                master.skim(&bytes);
                Ok(Some(UnparsedBlock::Lines(reader, bytes)))
            }
            Self::Table(table, definition) => {
                let Some(Batches { columns, batches }) = table.open()? else { return Ok(None) };
                let batch = batches.next().transpose().map_err(|error| error.to_string())?;
                Ok(batch.map(|batch| UnparsedBlock::Rows(*columns, batch, definition.clone())))
            }
        }
    }
}

impl Table {
    fn open(&mut self) -> Result<Option<&mut Batches>, String> {
        if let Self::Closed(open) = self
            && let Some(open) = open.take()
        {
            *self = Self::Open(open()?);
        }
        match self {
            Self::Open(batches) => Ok(Some(batches)),
            Self::Closed(_) => Ok(None),
        }
    }
}
