//! Counts as tables, JSON, CSV, Parquet and a page.
//!
//! Output is text and bytes; the caller writes files and standard output. Read in this order:
//!
//! | module | contents |
//! | --- | --- |
//! | [`warning`] | warnings about unreadable input |
//! | [`row`] | the result for programs |
//! | [`distribution`] | the distribution of bytes and requests over connections |
//! | [`over_time`] | connections in each minute, for programs |
//! | `parquet_file` | both as Parquet tables (feature `parquet`) |
//! | `no_parquet` | the same where they are not built |
//! | [`table`], [`sentence`] | tables and sentences for readers |
//! | [`mod@page`] | as a page with the paper's figures |

pub mod distribution;
pub mod labels;
#[cfg(not(feature = "parquet"))]
pub mod no_parquet;
pub mod over_time;
pub mod page;
#[cfg(feature = "parquet")]
pub mod parquet_file;
pub mod row;
pub mod sentence;
pub mod table;
pub mod warning;

#[cfg(not(feature = "parquet"))]
pub use no_parquet as parquet_file;
