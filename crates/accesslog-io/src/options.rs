//! Questions about logs, and options for reading them.
//!
//! Not flags: those are the command line's.

use accesslog::connections::Query;
use accesslog::{ClientDefinition, Format, Sizing};

use crate::table_file::ColumnNames;

/// A question about logs, and options for reading them.
#[derive(Debug)]
pub struct ConnectionsOptions {
    /// The quantity to count.
    pub question: Query,
    /// Whether to count how bytes and requests are spread over connections, too.
    pub distribution: bool,
    /// Measure of sizes.
    pub sizing: Sizing,
    /// Key that identifies a client.
    pub who: ClientDefinition,
    /// The format that was named.
    pub format: Option<Format>,
    /// The columns that were named.
    pub named: ColumnNames,
    /// Maximum distance of lines out of order.
    pub window: Window,
    /// Number of threads.
    pub threads: usize,
}

impl ConnectionsOptions {
    /// A question, with everything else as it is without flags.
    pub fn of(question: Query) -> Self {
        Self {
            question,
            distribution: false,
            sizing: Sizing::default(),
            who: ClientDefinition::default(),
            format: None,
            named: ColumnNames::default(),
            window: Window::of(WINDOW),
            threads: processors(),
        }
    }
}

/// Maximum distance of lines that are reordered, in blocks.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Number of blocks.
    pub blocks: usize,
    /// The size of each, in bytes.
    pub size: usize,
}

impl Window {
    /// Of so many bytes in all.
    pub fn of(bytes: usize) -> Self {
        let size = (bytes / BLOCKS).max(MIN_BLOCK_BYTES);
        Self { blocks: bytes.div_ceil(size), size }
    }
}

/// The usual window, in bytes.
pub const WINDOW: usize = 2 << 20;
/// Blocks that a window has, if they are not too small: what was read is at hand yet when it is counted.
const BLOCKS: usize = 8;
/// In bytes.
const MIN_BLOCK_BYTES: usize = 64 << 10;

/// The processors of this machine.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
