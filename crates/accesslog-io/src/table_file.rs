//! Parquet and Arrow files, batch by batch. Of Parquet, only the needed columns are read.
//!
//! Without decompression: Parquet and Arrow compress their columns themselves.

use std::cell::Cell;
use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek, SeekFrom};
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::Once;

pub use accesslog::columns::{ColumnNames, Columns};
pub use arrow_array::RecordBatch;
use arrow_ipc::reader::{FileReader, StreamReader, read_footer_length};
use arrow_ipc::root_as_footer;
use arrow_schema::ArrowError;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::reader::ChunkReader;

#[cfg(feature = "object-store")]
use crate::object::Object;
#[cfg(feature = "object-store")]
use crate::parquet_object::ParquetObject;
use crate::table_format::{TableFormat, TableSource};

/// Maximum rows read together: about the number of lines in a block.
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
pub fn batches(kind: TableFormat, source: TableSource, named: &ColumnNames) -> Result<Batches, ArrowError> {
    let Batches { columns, batches } = contained(|| open(kind, source, named))?;
    Ok(Batches { columns, batches: Box::new(PanicSafeBatches(Some(batches))) })
}

/// Batches of a reader that may panic on a damaged file; after a panic they end with an error.
struct PanicSafeBatches(Option<Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>>);

impl Iterator for PanicSafeBatches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batches = self.0.as_mut()?;
        let next = contained(|| batches.next().transpose()).transpose();
        if matches!(next, None | Some(Err(_))) {
            // After an error or a panic the reader's state is undefined: it is dropped.
            self.0 = None;
        }
        next
    }
}

thread_local! {
    /// Whether a panic of this thread is caught and reported as an error.
    static IS_CONTAINED: Cell<bool> = const { Cell::new(false) };
}

/// Runs a reader of Arrow's or Parquet's crates. Its panics on offsets outside of the file become errors.
fn contained<T>(read: impl FnOnce() -> Result<T, ArrowError>) -> Result<T, ArrowError> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let common_names = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !IS_CONTAINED.get() {
                common_names(info);
            }
        }));
    });
    IS_CONTAINED.set(true);
    let read = catch_unwind(AssertUnwindSafe(read));
    IS_CONTAINED.set(false);
    read.unwrap_or_else(|_| Err(ArrowError::ParseError("the table is damaged".to_owned())))
}

fn open(kind: TableFormat, source: TableSource, named: &ColumnNames) -> Result<Batches, ArrowError> {
    match (kind, source) {
        (TableFormat::Parquet, TableSource::File(path)) => parquet(File::open(path)?, named),
        #[cfg(feature = "object-store")]
        (TableFormat::Parquet, TableSource::Object(object)) => parquet_object(&object, named),
        #[cfg(not(feature = "object-store"))]
        (TableFormat::Parquet, TableSource::Object(object)) => object.absent(),
        (TableFormat::Parquet, TableSource::Memory(bytes)) => parquet(bytes, named),
        (TableFormat::Arrow, TableSource::File(path)) => arrow_file(BufReader::new(File::open(path)?), named),
        (TableFormat::Arrow, TableSource::Memory(bytes)) => arrow_file(Cursor::new(bytes), named),
        (TableFormat::Arrow, TableSource::Object(object)) => {
            let mut bytes = Vec::new();
            object.open().read_to_end(&mut bytes)?;
            arrow_file(Cursor::new(bytes), named)
        }
        (TableFormat::ArrowStream, TableSource::File(path)) => {
            arrow_stream(BufReader::new(File::open(path)?), named)
        }
        (TableFormat::ArrowStream, TableSource::Memory(bytes)) => arrow_stream(Cursor::new(bytes), named),
        (TableFormat::ArrowStream, TableSource::Object(object)) => arrow_stream(object.open(), named),
    }
}

fn parquet(bytes: impl ChunkReader + 'static, named: &ColumnNames) -> Result<Batches, ArrowError> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(bytes)?.with_batch_size(ROWS);
    let columns = find(builder.schema(), named)?;
    let mask = ProjectionMask::roots(builder.parquet_schema(), columns.indices());
    let reader = builder.with_projection(mask).build()?;
    Ok(Batches { columns: columns.without_other_columns(), batches: Box::new(reader) })
}

#[cfg(feature = "object-store")]
fn parquet_object(object: &Object, named: &ColumnNames) -> Result<Batches, ArrowError> {
    let table = ParquetObject::open(object)?;
    let columns = find(table.schema(), named)?;
    let batches = table.batches(ROWS, columns.indices())?;
    Ok(Batches { columns: columns.without_other_columns(), batches: Box::new(batches) })
}

fn arrow_file(
    mut bytes: impl Read + Seek + Send + 'static,
    named: &ColumnNames,
) -> Result<Batches, ArrowError> {
    check_blocks(&mut bytes)?;
    let reader = FileReader::try_new(bytes, None)?;
    Ok(Batches { columns: find(&reader.schema(), named)?, batches: Box::new(reader) })
}

/// Refuses a file whose blocks are not within it: the reader would allocate buffers of the length stated in the footer.
fn check_blocks(bytes: &mut (impl Read + Seek)) -> Result<(), ArrowError> {
    let length = bytes.seek(SeekFrom::End(0))?;
    let mut trailer = [0; TRAILER];
    let footer_at = |footer: u64| length.checked_sub(TRAILER as u64)?.checked_sub(footer);
    bytes.seek(SeekFrom::Start(footer_at(0).ok_or_else(outside)?))?;
    bytes.read_exact(&mut trailer)?;
    let footer_length = read_footer_length(trailer)? as u64;
    bytes.seek(SeekFrom::Start(footer_at(footer_length).ok_or_else(outside)?))?;
    let mut footer = Vec::new();
    bytes.take(footer_length).read_to_end(&mut footer)?;
    let footer = root_as_footer(&footer).map_err(|error| ArrowError::ParseError(error.to_string()))?;
    let blocks =
        footer.recordBatches().into_iter().flatten().chain(footer.dictionaries().into_iter().flatten());
    for block in blocks {
        let parts = [block.offset(), i64::from(block.metaDataLength()), block.bodyLength()];
        let end = parts.iter().try_fold(0_u64, |sum, part| sum.checked_add(u64::try_from(*part).ok()?));
        if end.is_none_or(|end| end > length) {
            return Err(outside());
        }
    }
    Ok(bytes.rewind()?)
}

/// Length of a file's trailer: the footer's length, and the magic number.
const TRAILER: usize = 10;

fn outside() -> ArrowError {
    ArrowError::ParseError("the table is damaged: a part of it lies outside the file".to_owned())
}

fn arrow_stream(bytes: impl Read + Send + 'static, named: &ColumnNames) -> Result<Batches, ArrowError> {
    let reader = StreamReader::try_new(bytes, None)?;
    Ok(Batches { columns: find(&reader.schema(), named)?, batches: Box::new(reader) })
}

fn find(schema: &arrow_schema::Schema, named: &ColumnNames) -> Result<Columns, ArrowError> {
    Columns::find(schema, named).map_err(|missing| ArrowError::SchemaError(missing.to_string()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Int64Array, StringArray};
    use arrow_ipc::writer::{FileWriter, StreamWriter};
    use arrow_schema::{DataType, Field, Schema};
    use bytes::Bytes;

    use super::*;

    fn table(kind: TableFormat) -> Vec<u8> {
        let fields = [("time", DataType::Int64), ("client", DataType::Utf8), ("size", DataType::Int64)];
        let fields: Vec<Field> =
            fields.into_iter().map(|(name, kind)| Field::new(name, kind, true)).collect();
        let schema = Arc::new(Schema::new(fields));
        let numbers = Int64Array::from_iter_values(0..100);
        let clients = StringArray::from_iter_values((0..100).map(|number| format!("client-{}", number % 7)));
        let columns: Vec<Arc<dyn arrow_array::Array>> =
            vec![Arc::new(numbers.clone()), Arc::new(clients), Arc::new(numbers)];
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns).unwrap();
        let mut bytes = Vec::new();
        match kind {
            TableFormat::ArrowStream => {
                let mut writer = StreamWriter::try_new(&mut bytes, &schema).unwrap();
                writer.write(&batch).unwrap();
                writer.finish().unwrap();
            }
            TableFormat::Arrow | TableFormat::Parquet => {
                let mut writer = FileWriter::try_new(&mut bytes, &schema).unwrap();
                writer.write(&batch).unwrap();
                writer.finish().unwrap();
            }
        }
        bytes
    }

    /// Number of rows, or `None` on an error; a panic would fail the test.
    fn read(kind: TableFormat, bytes: Vec<u8>) -> Option<usize> {
        let opened = batches(kind, TableSource::Memory(Bytes::from(bytes)), &ColumnNames::default()).ok()?;
        opened.batches.map(|batch| batch.ok().map(|batch| batch.num_rows())).sum()
    }

    #[test]
    fn damaged_arrow_is_an_error_and_never_a_panic() {
        let (mut random, mut refused) = (7_u64, 0);
        let mut next = |below: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            usize::try_from(random >> 33).unwrap() % below
        };
        for kind in [TableFormat::Arrow, TableFormat::ArrowStream] {
            let intact = table(kind);
            assert_eq!(read(kind, intact.clone()), Some(100));
            for _ in 0..2_500 {
                let mut bytes = intact.clone();
                for _ in 0..=next(8) {
                    let at = next(bytes.len());
                    bytes[at] = u8::try_from(next(256)).unwrap();
                }
                if next(10) == 0 {
                    bytes.truncate(next(intact.len()));
                }
                refused += usize::from(read(kind, bytes).is_none());
            }
        }
        assert!(refused > 250, "{refused}");
    }
}
