//! Query about logs, and options for reading them.
//!
//! Not flags: those are the command line's.

use accesslog::connections::Query;
use accesslog::{ClientDefinition, Format, Sizing};

use crate::table_file::ColumnNames;

/// Query about logs, and options for reading them.
#[derive(Debug)]
pub struct ConnectionsOptions {
    /// The query.
    pub query: Query,
    /// Whether to count the distribution of bytes and requests over connections, too.
    pub distribution: bool,
    /// Rules for sizes.
    pub sizing: Sizing,
    /// Key that identifies a client.
    pub definition: ClientDefinition,
    /// The given format; recognised if not given.
    pub format: Option<Format>,
    /// The given column names.
    pub named: ColumnNames,
    /// Maximum distance of lines out of order.
    pub window: Window,
    /// Number of threads.
    pub threads: usize,
    /// Limit of the memory of counters, in bytes.
    pub memory: usize,
}

impl ConnectionsOptions {
    /// Options for a query, with the defaults of the flags.
    pub fn of(query: Query) -> Self {
        Self {
            query,
            distribution: false,
            sizing: Sizing::default(),
            definition: ClientDefinition::default(),
            format: None,
            named: ColumnNames::default(),
            window: Window::of(WINDOW),
            threads: cpu_count(),
            memory: MEMORY,
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
    /// A window of this many bytes in total.
    pub fn of(bytes: usize) -> Self {
        let size = (bytes / BLOCKS).max(MIN_BLOCK_BYTES);
        Self { blocks: bytes.div_ceil(size), size }
    }
}

/// Default limit of the memory of counters, in bytes: 15 million clients with three thresholds and connections each.
pub const MEMORY: usize = 1 << 30;

/// Default window, in bytes.
pub const WINDOW: usize = 2 << 20;
/// Number of blocks of a window, unless they would be too small. Small blocks are still in the CPU's cache when they are
/// counted.
const BLOCKS: usize = 8;
/// Minimum size of a block, in bytes.
const MIN_BLOCK_BYTES: usize = 64 << 10;

/// Number of CPUs of this host.
pub fn cpu_count() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
