//! Flags of the storage of cached responses, which the cache and the gateway share.

use std::path::PathBuf;

use clap::Args;
use serde::Deserialize;

use crate::serve::layers::layer;

/// Storage of cached responses.
#[derive(Clone, Debug, Default, Args, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct CacheStorageFlags {
    /// Size of the cache in memory [default: 256MiB]
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,

    /// Also store responses in this file, which survives a restart or a crash
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub disk: Option<PathBuf>,

    /// Size of this file [default: 4GiB]
    #[arg(long, value_name = "SIZE")]
    pub disk_size: Option<String>,

    /// Targeted fields to obey in place of Cache-Control (RFC 9213), in order, or `none` [default: CDN-Cache-Control for
    /// one origin, none on the path to many]
    #[arg(long, value_name = "FIELDS")]
    pub targets: Option<String>,
}

layer!(CacheStorageFlags {
    keys: [memory, disk, disk_size, targets],
    one_of: [],
    lists: [],
    nested: [],
    cli_only: []
});
