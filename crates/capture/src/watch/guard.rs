//! A guard for tests of programs: run an exchange, and fail if the sockets of a port stalled.
//!
//! The verdict is structural: a short segment was held although both windows were open. It does not depend on the speed
//! of the host, as a limit in milliseconds would.

use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use linux::Error;
use report::span::shown;
use report::watched::Row;

use super::{Scope, Watch};

/// Runs `exchange`, and returns its value if no connection of `port` stalled meanwhile.
///
/// ```no_run
/// use roundtrip_capture::watch::guard::assert_no_stalls;
///
/// let status = assert_no_stalls(8_000, || {
///     // Requests to a server on port 8000, over a connection that is kept alive.
///     200
/// });
/// assert_eq!(status, 200);
/// ```
///
/// # Panics
/// If a stall worth fixing (20 ms in all) is found, with a sentence for each; or if the kernel's statistics cannot be read.
#[track_caller]
pub fn assert_no_stalls<T>(port: u16, exchange: impl FnOnce() -> T) -> T {
    let (value, rows) = match stalls_during(port, exchange) {
        Ok(done) => done,
        Err(error) => panic!("cannot watch port {port}: {error}"),
    };
    let found: Vec<String> = rows.iter().filter(|row| row.severity.is_worth_fixing()).map(sentence).collect();
    assert!(found.is_empty(), "stalls on port {port}:\n{}", found.join("\n"));
    value
}

/// Runs `exchange`, and returns its value with the stalls of the port's connections meanwhile.
///
/// # Errors
/// The kernel's error.
pub fn stalls_during<T>(port: u16, exchange: impl FnOnce() -> T) -> Result<(T, Vec<Row>), Error> {
    let mut watch = Watch::begin(Scope::Port(port))?;
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let sampler = scope.spawn(|| -> Result<Vec<Row>, Error> {
            while !is_over.load(Ordering::Acquire) {
                watch.sample()?;
                pause();
            }
            watch.sample()?;
            Ok(watch.rows())
        });
        let value = panic::catch_unwind(AssertUnwindSafe(exchange));
        is_over.store(true, Ordering::Release);
        let rows = sampler.join();
        match (value, rows) {
            (Ok(value), Ok(rows)) => Ok((value, rows?)),
            (Err(panic), _) | (_, Err(panic)) => panic::resume_unwind(panic),
        }
    })
}

#[expect(clippy::disallowed_methods, reason = "a thread of its own, between two samples")]
fn pause() {
    thread::sleep(std::time::Duration::from_millis(1));
}

fn sentence(row: &Row) -> String {
    let Row { side, server, cause, times, lost, evidence, .. } = row;
    format!(
        "  {}: the {side} (server {server}) lost {} in {times} stalls: {evidence}",
        cause.name(),
        shown(*lost)
    )
}
