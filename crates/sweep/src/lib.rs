//! Grids of scenarios on all CPUs, with results in order: the same bytes for any number of threads.
//!
//! [`run`] computes rows of any kind; [`RowFile`] appends them to a file, and continues an interrupted run. Nothing is
//! printed here.
//!
//! ```
//! let mut squares = Vec::new();
//! let sink = |_first: usize, results: Vec<usize>| -> Result<(), ()> {
//!     squares.extend(results);
//!     Ok(())
//! };
//! roundtrip_sweep::run(0..5, 2, |number| number * number, sink)?;
//! assert_eq!(squares, [0, 1, 4, 9, 16]);
//! # Ok::<(), ()>(())
//! ```

pub mod row_file;

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

pub use row_file::RowFile;

/// Number of rows of each thread in the first batch.
const FIRST_BATCH: usize = 8;
/// Maximum number of rows of each thread in a batch.
const MAX_BATCH: usize = 4_096;
/// Time that a batch should take: rows are handed on after it.
const BATCH_TIME: Duration = Duration::from_millis(500);

/// Number of CPUs of this process.
pub fn cpus() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Computes `row` of each number on so many threads; `sink` gets the number of the first of some results, and these in
/// order, about twice a second.
///
/// # Errors
/// The first error of `sink`.
#[expect(
    clippy::disallowed_methods,
    reason = "batches have the size that takes a while; no result depends on it"
)]
pub fn run<T: Send, E>(
    rows: Range<usize>,
    threads: usize,
    row: impl Fn(usize) -> T + Sync,
    mut sink: impl FnMut(usize, Vec<T>) -> Result<(), E>,
) -> Result<(), E> {
    let (mut next, mut size) = (rows.start, FIRST_BATCH);
    while next < rows.end {
        let batch = next..rows.end.min(next + size * threads.max(1));
        let started = Instant::now();
        let results = in_parallel(batch.clone(), threads, &row);
        if started.elapsed() < BATCH_TIME / 2 {
            size = (2 * size).min(MAX_BATCH);
        }
        sink(batch.start, results)?;
        next = batch.end;
    }
    Ok(())
}

/// Results of all numbers, in order.
fn in_parallel<T: Send>(numbers: Range<usize>, threads: usize, row: &(impl Fn(usize) -> T + Sync)) -> Vec<T> {
    if threads <= 1 || numbers.len() <= 1 {
        return numbers.map(row).collect();
    }
    let next = AtomicUsize::new(numbers.start);
    let results: Mutex<Vec<(usize, T)>> = Mutex::new(Vec::with_capacity(numbers.len()));
    let work = || {
        let mut own = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= numbers.end {
                break;
            }
            own.push((number, row(number)));
        }
        results.lock().unwrap_or_else(PoisonError::into_inner).extend(own);
    };
    thread::scope(|scope| {
        for _ in 1..threads.min(numbers.len()) {
            // Where no thread can start, the others do its work.
            let _ = thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn swept(threads: usize) -> Vec<(usize, usize)> {
        let mut rows = Vec::new();
        let sink = |first, results: Vec<usize>| -> Result<(), ()> {
            rows.extend((first..).zip(results));
            Ok(())
        };
        run(3..1_000, threads, |number| number * number, sink).unwrap();
        rows
    }

    #[test]
    fn results_come_in_order_for_any_number_of_threads() {
        let expected: Vec<_> = (3..1_000).map(|number| (number, number * number)).collect();
        assert!([0, 1, 2, 7].into_iter().all(|threads| swept(threads) == expected));
    }

    #[test]
    fn the_first_error_of_the_sink_ends_the_run() {
        let sink = |first, _: Vec<()>| if first == 0 { Ok(()) } else { Err("full") };
        assert_eq!(run(0..1_000_000_000, 2, |_| (), sink), Err("full"));
    }
}
