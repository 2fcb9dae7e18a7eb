//! Counts of a part of a log, as bytes: handed from process to process, and merged in order of time.
//!
//! Whole numbers of 64 bits, the lowest byte first, in the order of the question; not a format to keep: the same
//! version writes and reads it.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use accesslog::connections::{Counts, LimitCounts, TimeoutCounts, Peak, Stream};
use wire::{Bytes, Time};

use crate::question::Question;

/// Adds up what was counted of stretches that follow one another in time.
#[pyfunction]
pub fn merge<'py>(
    py: Python<'py>,
    question: &Question,
    partials: Vec<Vec<u8>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let mut counts = Counts::new(&question.asked);
    for partial in partials {
        counts.append(&from_bytes(question, &partial)?);
    }
    Ok(PyBytes::new(py, &to_bytes(&counts)))
}

/// Counts as bytes.
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

/// Counts from bytes.
///
/// # Errors
/// Bytes that answer another question.
pub fn from_bytes(question: &Question, bytes: &[u8]) -> PyResult<Counts> {
    let (numbers, rest) = bytes.as_chunks::<8>();
    let mut numbers = numbers.iter().map(|number| u64::from_le_bytes(*number));
    let mut counts = Counts::new(&question.asked);
    fill(&mut counts, &mut numbers)
        .filter(|()| rest.is_empty() && numbers.next().is_none())
        .ok_or_else(|| PyValueError::new_err("what was counted answers another question"))?;
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
