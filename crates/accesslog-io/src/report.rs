//! A count as tables, JSON, CSV, Parquet and a page.
//!
//! Text and bytes out; files and standard output are the caller's. Read in this order:
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`warning`] | warnings about unreadable input |
//! | [`row`] | the result for programs |
//! | [`distribution`] | the distribution of bytes and requests over connections |
//! | [`over_time`] | connections in each minute, for programs |
//! | `parquet_file` | both as Parquet tables (feature `parquet`) |
//! | `no_parquet` | the same where they are not built |
//! | [`table`], [`sentence`] | for people |
//! | [`mod@page`] | as a page with the paper's figures |

pub mod distribution;
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
