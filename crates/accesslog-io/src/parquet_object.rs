//! A Parquet file in an object store: only the needed columns are fetched, row group by row group.
//!
//! The columns' meaning is not known here: [`table_file`](super::table_file) derives it from the schema.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt, try_join_all};
use futures_util::{TryFutureExt, TryStreamExt};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ArrowReaderOptions;
use parquet::arrow::async_reader::{AsyncFileReader, ParquetRecordBatchStreamBuilder};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};

use crate::object::Object;

/// A table whose schema was fetched, and nothing else.
pub struct ParquetObject {
    object: Object,
    builder: ParquetRecordBatchStreamBuilder<RangeFetcher>,
}

impl ParquetObject {
    /// Fetches the schema.
    ///
    /// # Errors
    /// The file is not Parquet, is damaged, or cannot be fetched.
    pub fn open(object: &Object) -> Result<Self> {
        let reader = ParquetRecordBatchStreamBuilder::new(RangeFetcher(object.clone()));
        Ok(Self { object: object.clone(), builder: object.runtime().block_on(reader)? })
    }

    /// The table's schema.
    pub fn schema(&self) -> &arrow_schema::Schema {
        self.builder.schema()
    }

    /// Batches of `rows` rows with some of the columns.
    ///
    /// # Errors
    /// When the file does not state the columns' offsets.
    pub fn batches(
        self,
        rows: usize,
        columns: impl IntoIterator<Item = usize>,
    ) -> Result<impl Iterator<Item = std::result::Result<RecordBatch, ArrowError>> + Send> {
        let Self { object, builder } = self;
        let mask = ProjectionMask::roots(builder.parquet_schema(), columns);
        let mut stream = builder.with_batch_size(rows).with_projection(mask).build()?;
        Ok(std::iter::from_fn(move || {
            let batch = object.runtime().block_on(stream.try_next());
            batch.map_err(ArrowError::from).transpose()
        }))
    }
}

/// Fetches ranges of a file.
struct RangeFetcher(Object);

impl AsyncFileReader for RangeFetcher {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, Result<Bytes>> {
        self.0.clone().piece(range).map_err(ParquetError::from).boxed()
    }

    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, Result<Vec<Bytes>>> {
        let pieces = ranges.into_iter().map(|range| self.0.clone().piece(range));
        try_join_all(pieces).map_err(ParquetError::from).boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, Result<Arc<ParquetMetaData>>> {
        let bytes = self.0.bytes();
        let reader = ParquetMetaDataReader::new().with_arrow_reader_options(options);
        reader.load_and_finish(self, bytes).map_ok(Arc::new).boxed()
    }
}
