//! Counts of a part of a log as bytes, passed between processes and merged in order of time.
//!
//! Integers of 64 bits in little-endian order, in the order of the query. Only the same version reads them.

use accesslog::connections::{Counts, LimitCounts, Peak, Stream, TimeoutCounts};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use wire::{Bytes, Time};

use crate::query::KernelQuery;

/// Merges the counts of consecutive slices of time.
#[pyfunction]
pub fn merge<'py>(
    py: Python<'py>,
    query: &KernelQuery,
    partials: Vec<Vec<u8>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let mut counts = Counts::new(&query.query);
    for partial in partials {
        counts.append(&from_bytes(query, &partial)?);
    }
    Ok(PyBytes::new(py, &to_bytes(&counts)))
}

/// Serialises counts.
pub fn to_bytes(counts: &Counts) -> Vec<u8> {
    let Counts { requests, bytes, span, streams } = counts;
    let (first, last) = span.unwrap_or((Time::MAX, Time::ZERO));
    let mut numbers = vec![*requests, bytes.get(), first.as_nanos(), last.as_nanos()];
    for Stream { threshold: _, requests, bytes, lines } in streams {
        numbers.extend([*requests, bytes.get()]);
        for LimitCounts { limit: _, opened, curve } in lines {
            for TimeoutCounts { timeout: _, total, peak: Peak { connections, at } } in opened {
                numbers.extend([*total, *connections, at.as_nanos()]);
            }
            numbers.push(curve.minutes.len() as u64);
            numbers.extend(curve.minutes.iter().flat_map(|(minute, most)| [*minute, *most]));
        }
    }
    numbers.into_iter().flat_map(u64::to_le_bytes).collect()
}

/// Deserialises counts.
///
/// # Errors
/// Bytes of another query's counts.
pub fn from_bytes(query: &KernelQuery, bytes: &[u8]) -> PyResult<Counts> {
    let (numbers, rest) = bytes.as_chunks::<8>();
    let mut numbers = numbers.iter().map(|number| u64::from_le_bytes(*number));
    let mut counts = Counts::new(&query.query);
    fill(&mut counts, &mut numbers)
        .filter(|()| rest.is_empty() && numbers.next().is_none())
        .ok_or_else(|| PyValueError::new_err("these counts are of another query"))?;
    Ok(counts)
}

fn fill(counts: &mut Counts, numbers: &mut impl Iterator<Item = u64>) -> Option<()> {
    let Counts { requests, bytes, span, streams } = counts;
    *requests = numbers.next()?;
    *bytes = Bytes::new(numbers.next()?);
    let (first, last) = (Time::from_nanos(numbers.next()?), Time::from_nanos(numbers.next()?));
    *span = (*requests > 0).then_some((first, last));
    for Stream { threshold: _, requests, bytes, lines } in streams {
        *requests = numbers.next()?;
        *bytes = Bytes::new(numbers.next()?);
        for LimitCounts { limit: _, opened, curve } in lines {
            for TimeoutCounts { timeout: _, total, peak: Peak { connections, at } } in opened {
                *total = numbers.next()?;
                *connections = numbers.next()?;
                *at = Time::from_nanos(numbers.next()?);
            }
            for _ in 0..numbers.next()? {
                curve.minutes.push((numbers.next()?, numbers.next()?));
            }
        }
    }
    Some(())
}
