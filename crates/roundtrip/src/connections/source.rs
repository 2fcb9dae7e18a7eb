//! A log that is being read: block by block, lines or rows, opened when its turn comes.
//!
//! Not the making of requests: a block is made into requests apart from the others, by whichever thread has time.

use accesslog::{Reader, Who};

use super::blocks::Blocks;
use super::table_file::{Batches, Columns, RecordBatch};

/// One log and how it is read.
pub enum Log {
    /// Lines, and what reads them.
    Lines(Blocks, Box<Reader>),
    /// A table, and what makes a client.
    Table(Table, Who),
}

/// A table that may not be open yet.
pub enum Table {
    /// How it is come by.
    Closed(Option<OpenTable>),
    /// Its batches.
    Open(Batches),
}

/// How a table is come by.
pub type OpenTable = Box<dyn FnOnce() -> Result<Batches, String> + Send>;

/// What is to be made into requests.
pub enum Unread {
    /// Whole lines.
    Lines(Reader, Vec<u8>),
    /// Rows of a table.
    Rows(Columns, RecordBatch, Who),
}

impl Log {
    /// The next block; `None` at the end.
    ///
    /// # Errors
    /// Why it cannot be read any further.
    pub fn next(&mut self) -> Result<Option<Unread>, String> {
        match self {
            Self::Lines(blocks, master) => {
                let Some(bytes) = blocks.next().map_err(|error| error.to_string())? else { return Ok(None) };
                let reader = Reader::clone(master);
                master.skim(&bytes);
                Ok(Some(Unread::Lines(reader, bytes)))
            }
            Self::Table(table, who) => {
                let Some(Batches { columns, batches }) = table.open()? else { return Ok(None) };
                let batch = batches.next().transpose().map_err(|error| error.to_string())?;
                Ok(batch.map(|batch| Unread::Rows(*columns, batch, who.clone())))
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
