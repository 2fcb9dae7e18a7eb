//! Capture sessions: packets of a file, or of this host while a command runs, made into a diagnosed [`Capture`].
//!
//! Input: a path or a [`live::LiveOptions`]. Output: a value that `report` shows in every format. Read in this order:
//!
//! | module | contents |
//! | --- | --- |
//! | (here) | one file, read and diagnosed |
//! | [`open`](mod@open) | files, pipes, compressed or not |
//! | `keys` | key logs of TLS |
//! | `quic_log` | qlog of an end of QUIC, in place of a capture |
//! | `parallel` | parts of a large capture on several threads |
//! | [`live`] | packets as they pass, while a command runs |
//! | [`isolated`] | a private network for a command |
//! | [`outside`] | the outside of a private network |
//! | [`command`] | a command with this process's terminal, signals and exit status |
//! | [`sniffer`] | packets on this host's interfaces |
//! | [`kernel`] | the kernel's view of the sockets during a live capture |
//! | [`watch`] | stalls of live sockets, without packets |
//! | [`error`] | errors of a capture |
//!
//! Not the diagnosis itself, nor its presentation: those are `diagnose`'s and `report`'s.
//!
//! ```
//! use std::path::{Path, PathBuf};
//!
//! use report::filter::Filter;
//!
//! let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/capture/nagle");
//! let capture = roundtrip_capture::read(Path::new(path), &Filter::default(), false)?;
//! assert!(capture.is_worth_fixing());
//! assert_eq!(capture.flows.len(), 1);
//! # Ok::<(), roundtrip_capture::Error>(())
//! ```

pub mod command;
pub mod error;
pub mod isolated;
pub mod kernel;
mod keys;
pub mod live;
pub mod open;
pub mod outside;
mod parallel;
mod proc_sockets;
mod process;
mod process_tree;
mod quic_log;
mod run_queue;
pub mod sniffer;
pub mod watch;

use std::io::Read as _;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use packets::{Reader, Unreadable};
use qlog::Replay;
use report::Capture;
use report::filter::Filter;
use report::reading::CaptureReader;

pub use error::Error;

/// Reads the file `path` (or standard input, `-`) to its end, or up to damage. Large captures are read by a thread
/// for each CPU.
///
/// # Errors
/// [`Error`] if the file cannot be read at all.
pub fn read(path: &Path, filter: &Filter, is_plotted: bool) -> Result<Capture, Error> {
    read_on_threads(path, CaptureReader::new(quantity::names::shown(path), filter, is_plotted), threads())
}

/// Reads several files; connections of TLS are decrypted with the key log in the file `keys`, if one is named.
///
/// # Errors
/// [`Error`] if a file cannot be read at all, or no line of the key log has a secret.
pub fn read_all(
    paths: &[PathBuf],
    filter: &Filter,
    is_plotted: bool,
    keys: Option<&Path>,
) -> Result<Vec<Capture>, Error> {
    let keys = keys.map(|path| keys::read(path).map(Arc::new)).transpose()?;
    let read = |path: &PathBuf| {
        let reading = CaptureReader::new(quantity::names::shown(path), filter, is_plotted);
        read_on_threads(path, reading.with_keys(keys.clone()), threads())
    };
    paths.iter().map(read).collect()
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// As [`read`], on at most `threads` threads beside the one that reads; 0 or 1: on that one alone. The result
/// does not depend on it.
///
/// # Errors
/// [`Error`] if the file cannot be read at all.
pub fn read_with_threads(
    path: &Path,
    filter: &Filter,
    is_plotted: bool,
    threads: usize,
) -> Result<Capture, Error> {
    let reading = CaptureReader::new(quantity::names::shown(path), filter, is_plotted);
    read_on_threads(path, reading, threads)
}

/// Bytes by which a file of qlog is known.
const BEGINNING_BYTES: u64 = 64;

fn read_on_threads(path: &Path, reading: CaptureReader<'_>, threads: usize) -> Result<Capture, Error> {
    let unreadable = |error: Unreadable| match error {
        Unreadable::Io(error) => Error::Unreadable { path: path.to_owned(), error },
        error => Error::NotACapture { path: path.to_owned(), error },
    };
    let is_unreadable = |error| Error::Unreadable { path: path.to_owned(), error };
    let mut source = open::open(path).map_err(is_unreadable)?;
    let mut beginning = Vec::new();
    (&mut source).take(BEGINNING_BYTES).read_to_end(&mut beginning).map_err(is_unreadable)?;
    let source = beginning.as_slice().chain(source);
    if !qlog::is_json(&beginning) {
        let reader = Reader::new(source).map_err(unreadable)?;
        return parallel::read(reader, reading, threads).map_err(unreadable);
    }
    let log = quic_log::read(path, source)?;
    let notes = quic_log::notes(&log);
    let reader = Replay::new(log).map_err(is_unreadable)?;
    let capture = parallel::read(Reader::new(reader).map_err(unreadable)?, reading, threads);
    Ok(quic_log::without_keys(capture.map_err(unreadable)?, notes))
}
