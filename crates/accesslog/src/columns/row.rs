//! A batch's rows as records, for columns of any type. Times are timestamps of every unit, numbers since 1970, or
//! texts as in logs. Addresses are texts, plain or in a dictionary; sizes are numbers or texts.
//!
//! A timestamp without a zone is UTC. A size that is null or NaN is unknown, which is not 0; a null client is rejected.

use std::sync::Arc;

use wire::{Bytes, Duration, Time};

use crate::clock::{self, Clock};
use crate::{ClientDefinition, Reason, Record, SizeScope, Tally, number};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, UInt64Array};
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType, TimeUnit};

use crate::columns::role::Columns;

impl Columns {
    /// Passes every row's record to `sink`, in order.
    ///
    /// # Errors
    /// A column of an unsupported type.
    pub fn read(
        &self,
        batch: &RecordBatch,
        definition: &ClientDefinition,
        mut sink: impl FnMut(Record),
    ) -> Result<Tally, ArrowError> {
        let Self { time, client, status, size, taken } = *self;
        let times = Times::of(batch.column(time))?;
        let clients = texts(batch.column(client))?;
        let statuses = status.map(|index| Numbers::of(batch.column(index))).transpose()?;
        let sizes = size.map(|(index, _)| Numbers::of(batch.column(index))).transpose()?;
        let taken = taken.map(|index| seconds(batch.column(index))).transpose()?;
        let covers = size.map_or(SizeScope::Body, |(_, covers)| covers);
        let mut tally = Tally::default();
        let mut clock = Clock::default();
        for row in 0..batch.num_rows() {
            tally.lines += 1;
            let record = || {
                let client =
                    clients.is_valid(row).then(|| clients.value(row)).filter(|text| !text.is_empty());
                let client = client.ok_or(Reason::Client)?;
                Ok(Record {
                    time: times.at(row, &mut clock).ok_or(Reason::Time)?,
                    client: definition.client(client.as_bytes()),
                    status: statuses.as_ref().map_or(Ok(0), |statuses| statuses.status(row))?,
                    size: sizes.as_ref().map_or(Ok(None), |sizes| sizes.size(row))?,
                    covers,
                    taken: taken.as_ref().and_then(|taken| span(taken, row)),
                })
            };
            match { record }() {
                Ok(record) => {
                    tally.record(record.time);
                    sink(record);
                }
                Err(reason) => tally.reject(reason, format!("row {row} of a batch").as_bytes()),
            }
        }
        Ok(tally)
    }
}

/// Column of times.
enum Times {
    /// Since 1970, with the nanoseconds per unit.
    Stamps(Int64Array, i64),
    /// Since 1970, in the unit that the number of digits implies.
    Whole(Int64Array),
    /// Since 1970, in seconds.
    Seconds(Float64Array),
    /// In the notations of logs.
    Texts(StringArray),
}

impl Times {
    fn of(column: &ArrayRef) -> Result<Self, ArrowError> {
        Ok(match column.data_type() {
            DataType::Timestamp(unit, _) => {
                let nanos = match unit {
                    TimeUnit::Second => 1_000_000_000,
                    TimeUnit::Millisecond => 1_000_000,
                    TimeUnit::Microsecond => 1_000,
                    TimeUnit::Nanosecond => 1,
                };
                Self::Stamps(cast(column, &DataType::Int64)?.as_primitive::<Int64Type>().clone(), nanos)
            }
            kind if kind.is_integer() => {
                Self::Whole(cast(column, &DataType::Int64)?.as_primitive::<Int64Type>().clone())
            }
            kind if kind.is_floating() => Self::Seconds(seconds(column)?),
            // Any other type is converted to text.
            _ => Self::Texts(texts(column)?),
        })
    }

    fn at(&self, row: usize, clock: &mut Clock) -> Option<Time> {
        match self {
            Self::Stamps(stamps, nanos) => {
                let stamp = stamps.is_valid(row).then(|| stamps.value(row))?;
                stamp.checked_mul(*nanos).and_then(|nanos| u64::try_from(nanos).ok()).map(Time::from_nanos)
            }
            Self::Whole(numbers) => {
                let number = numbers.is_valid(row).then(|| numbers.value(row))?;
                clock::since_1970(u64::try_from(number).ok()?)
            }
            Self::Seconds(seconds) => span(seconds, row).map(|since| Time::ZERO + since),
            Self::Texts(texts) => {
                texts.is_valid(row).then(|| texts.value(row)).and_then(|text| clock.any(text.as_bytes()))
            }
        }
    }
}

/// Column of statuses or sizes.
enum Numbers {
    /// As numbers; an invalid value is null here, but not in the original.
    Whole(UInt64Array, ArrayRef),
    /// In the notations of logs.
    Texts(StringArray),
}

impl Numbers {
    fn of(column: &ArrayRef) -> Result<Self, ArrowError> {
        if column.data_type().is_floating() {
            let known = without_nan(seconds(column)?);
            let numbers = cast(&known, &DataType::UInt64)?.as_primitive::<UInt64Type>().clone();
            return Ok(Self::Whole(numbers, known));
        }
        if column.data_type().is_numeric() || column.data_type().is_null() {
            let numbers = cast(column, &DataType::UInt64)?.as_primitive::<UInt64Type>().clone();
            return Ok(Self::Whole(numbers, column.clone()));
        }
        texts(column).map(Self::Texts)
    }

    /// The number; `None` for null.
    ///
    /// # Errors
    /// `reason`, for a value that is neither a number nor null.
    fn at(
        numbers: &UInt64Array,
        original: &ArrayRef,
        row: usize,
        reason: Reason,
    ) -> Result<Option<u64>, Reason> {
        if numbers.is_valid(row) {
            return Ok(Some(numbers.value(row)));
        }
        if original.is_null(row) { Ok(None) } else { Err(reason) }
    }

    fn size(&self, row: usize) -> Result<Option<Bytes>, Reason> {
        match self {
            Self::Whole(numbers, original) => {
                Ok(Self::at(numbers, original, row, Reason::Size)?.and_then(number::known_size))
            }
            Self::Texts(texts) if texts.is_null(row) => Ok(None),
            Self::Texts(texts) => number::size(texts.value(row).as_bytes()),
        }
    }

    fn status(&self, row: usize) -> Result<u16, Reason> {
        match self {
            Self::Whole(numbers, original) => match Self::at(numbers, original, row, Reason::Status)? {
                None | Some(0) => Ok(0),
                Some(status) => u16::try_from(status)
                    .ok()
                    .filter(|status| (100..1_000).contains(status))
                    .ok_or(Reason::Status),
            },
            Self::Texts(texts) if texts.is_null(row) => Ok(0),
            Self::Texts(texts) => number::status(texts.value(row).as_bytes()),
        }
    }
}

/// Converts a column of any text type; values that cannot be converted are null.
///
/// # Errors
/// A type without a text form.
pub fn texts(column: &ArrayRef) -> Result<StringArray, ArrowError> {
    Ok(cast(column, &DataType::Utf8)?.as_string::<i32>().clone())
}

fn seconds(column: &ArrayRef) -> Result<Float64Array, ArrowError> {
    Ok(cast(column, &DataType::Float64)?.as_primitive::<Float64Type>().clone())
}

/// Replaces NaN by null: in a numeric column without nulls, a missing number becomes NaN.
fn without_nan(numbers: Float64Array) -> ArrayRef {
    Arc::new(numbers.iter().map(|number| number.filter(|number| !number.is_nan())).collect::<Float64Array>())
}

/// Seconds, rounded to the microsecond, the precision of a double for times since 1970.
fn span(seconds: &Float64Array, row: usize) -> Option<Duration> {
    let micros = seconds.is_valid(row).then(|| (seconds.value(row) * 1e6).round())?;
    // In range, as checked in this line.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let whole = (0.0..1e16).contains(&micros).then_some(micros as u64)?;
    whole.checked_mul(1_000).map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use arrow_array::{DictionaryArray, Int32Array, TimestampMicrosecondArray, UInt16Array};

    use super::*;
    use crate::columns::role::ColumnNames;

    fn read(columns: Vec<(&str, ArrayRef)>) -> (Vec<Record>, Tally) {
        let batch = RecordBatch::try_from_iter_with_nullable(
            columns.into_iter().map(|(name, column)| (name, column, true)),
        )
        .unwrap();
        let columns = Columns::find(&batch.schema(), &ColumnNames::default()).unwrap();
        let mut records = Vec::new();
        let tally =
            columns.read(&batch, &ClientDefinition::default(), |record| records.push(record)).unwrap();
        (records, tally)
    }

    fn texts(values: &[&str]) -> ArrayRef {
        Arc::new(StringArray::from(values.to_vec()))
    }

    #[test]
    fn a_time_is_the_same_in_every_type() {
        let seconds = 807_256_800_i64;
        let times: [ArrayRef; 6] = [
            Arc::new(TimestampMicrosecondArray::from(vec![seconds * 1_000_000])),
            Arc::new(TimestampMicrosecondArray::from(vec![seconds * 1_000_000]).with_timezone("-04:00")),
            Arc::new(Int64Array::from(vec![seconds])),
            Arc::new(Int64Array::from(vec![seconds * 1_000])),
            Arc::new(Float64Array::from(vec![807_256_800.0])),
            texts(&["01/Aug/1995:02:00:00 -0400"]),
        ];
        for time in times {
            let kind = time.data_type().clone();
            let (records, _) = read(vec![("time", time), ("client", texts(&["h"]))]);
            assert_eq!(records[0].time.as_nanos(), 807_256_800_000_000_000, "{kind}");
        }
    }

    #[test]
    fn clients_statuses_and_sizes_may_be_of_many_types() {
        let dictionary: DictionaryArray<arrow_array::types::Int32Type> = ["h", "i"].into_iter().collect();
        let time = || -> ArrayRef { Arc::new(Int64Array::from(vec![1, 2])) };
        let plain = read(vec![
            ("time", time()),
            ("client", texts(&["h", "i"])),
            ("status", texts(&["200", "-"])),
            ("bytes", texts(&["17", "-"])),
        ]);
        let typed = read(vec![
            ("time", time()),
            ("client", Arc::new(dictionary)),
            ("status", Arc::new(UInt16Array::from(vec![Some(200), None]))),
            ("bytes", Arc::new(Int32Array::from(vec![Some(17), None]))),
        ]);
        assert_eq!(plain, typed);
        assert_eq!(plain.0[0].size, Some(Bytes::new(17)));
        assert_eq!((plain.0[1].size, plain.0[1].status), (None, 0));
    }

    #[test]
    fn a_number_with_a_point_may_be_missing_as_null_or_as_nan() {
        let sizes = Float64Array::from(vec![Some(17.0), None, Some(f64::NAN), Some(-1.0)]);
        let (records, tally) = read(vec![
            ("time", Arc::new(Int64Array::from(vec![1; 4]))),
            ("client", texts(&["h"; 4])),
            ("bytes", Arc::new(sizes)),
        ]);
        let sizes: Vec<Option<u64>> = records.iter().map(|record| record.size.map(Bytes::get)).collect();
        assert_eq!((sizes.as_slice(), tally.bad()), (&[Some(17), None, None][..], 1));
    }

    #[test]
    fn rows_that_give_no_record_are_counted_by_reason() {
        let (records, tally) = read(vec![
            ("time", Arc::new(Int64Array::from(vec![Some(1), None, Some(-5), Some(1), Some(1), Some(1)]))),
            (
                "client",
                Arc::new(StringArray::from(vec![
                    None,
                    Some("h"),
                    Some("h"),
                    Some("h"),
                    Some("h"),
                    Some("h"),
                ])),
            ),
            ("status", Arc::new(Int32Array::from(vec![200, 200, 200, 20, 200, 200]))),
            ("bytes", Arc::new(Int32Array::from(vec![1, 1, 1, 1, -1, 1]))),
        ]);
        let reasons: Vec<(Reason, u64)> = tally.reasons().map(|(reason, count, _)| (reason, count)).collect();
        let expected = [(Reason::Client, 1), (Reason::Time, 2), (Reason::Status, 1), (Reason::Size, 1)];
        assert_eq!((records.len(), reasons.as_slice()), (1, &expected[..]));
    }
}
