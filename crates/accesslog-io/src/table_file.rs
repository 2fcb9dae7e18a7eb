//! Parquet and Arrow files, batch by batch. Of Parquet, only the columns that are needed
//! are read.
//!
//! Without decompression: Parquet and Arrow compress their columns themselves.

use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek};

pub use accesslog::columns::{Columns, Named};
pub use arrow_array::RecordBatch;
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_schema::ArrowError;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::reader::ChunkReader;

#[cfg(feature = "object-store")]
use crate::object::Object;
#[cfg(feature = "object-store")]
use crate::parquet_object::ParquetObject;
use crate::table_format::{Kind, Place};

/// Maximum rows read together: about as many as a block of lines has.
const ROWS: usize = 1 << 14;

/// A table's batches, with the roles of its columns.
pub struct Batches {
    /// The columns.
    pub columns: Columns,
    /// The batches, in the file's order.
    pub batches: Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>,
}

/// Opens a table.
///
/// # Errors
/// The file is damaged, or lacks a required column.
pub fn batches(kind: Kind, place: Place, named: &Named) -> Result<Batches, ArrowError> {
    match (kind, place) {
        (Kind::Parquet, Place::File(path)) => parquet(File::open(path)?, named),
        #[cfg(feature = "object-store")]
        (Kind::Parquet, Place::Object(object)) => parquet_object(&object, named),
        #[cfg(not(feature = "object-store"))]
        (Kind::Parquet, Place::Object(object)) => object.absent(),
        (Kind::Parquet, Place::Memory(bytes)) => parquet(bytes, named),
        (Kind::Arrow, Place::File(path)) => arrow_file(BufReader::new(File::open(path)?), named),
        (Kind::Arrow, Place::Memory(bytes)) => arrow_file(Cursor::new(bytes), named),
        (Kind::Arrow, Place::Object(object)) => {
            let mut bytes = Vec::new();
            object.open().read_to_end(&mut bytes)?;
            arrow_file(Cursor::new(bytes), named)
        }
        (Kind::ArrowStream, Place::File(path)) => arrow_stream(BufReader::new(File::open(path)?), named),
        (Kind::ArrowStream, Place::Memory(bytes)) => arrow_stream(Cursor::new(bytes), named),
        (Kind::ArrowStream, Place::Object(object)) => arrow_stream(object.open(), named),
    }
}

fn parquet(bytes: impl ChunkReader + 'static, named: &Named) -> Result<Batches, ArrowError> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(bytes)?.with_batch_size(ROWS);
    let columns = find(builder.schema(), named)?;
    let mask = ProjectionMask::roots(builder.parquet_schema(), columns.places());
    let reader = builder.with_projection(mask).build()?;
    Ok(Batches { columns: columns.alone(), batches: Box::new(reader) })
}

#[cfg(feature = "object-store")]
fn parquet_object(object: &Object, named: &Named) -> Result<Batches, ArrowError> {
    let table = ParquetObject::open(object)?;
    let columns = find(table.schema(), named)?;
    let batches = table.batches(ROWS, columns.places())?;
    Ok(Batches { columns: columns.alone(), batches: Box::new(batches) })
}

fn arrow_file(bytes: impl Read + Seek + Send + 'static, named: &Named) -> Result<Batches, ArrowError> {
    let reader = FileReader::try_new(bytes, None)?;
    Ok(Batches { columns: find(&reader.schema(), named)?, batches: Box::new(reader) })
}

fn arrow_stream(bytes: impl Read + Send + 'static, named: &Named) -> Result<Batches, ArrowError> {
    let reader = StreamReader::try_new(bytes, None)?;
    Ok(Batches { columns: find(&reader.schema(), named)?, batches: Box::new(reader) })
}

fn find(schema: &arrow_schema::Schema, named: &Named) -> Result<Columns, ArrowError> {
    Columns::find(schema, named).map_err(|missing| ArrowError::SchemaError(missing.to_string()))
}
