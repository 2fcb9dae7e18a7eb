//! Flags of `roundtrip cache`, and cache flags of `roundtrip gateway`.
//!
//! Values stay text: their parsers report errors.

use clap::Args;
use serde::Deserialize;

use crate::cli::cache_storage::CacheStorageFlags;
use crate::cli::dhttp::OperationFlags;
use crate::serve::layers::{layer, text_of_number};

/// `roundtrip cache`
#[derive(Clone, Debug, Default, Args, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Cache {
    /// HTTP server whose responses are cached: http://127.0.0.1:3000
    #[arg(long, value_name = "URL", value_hint = clap::ValueHint::Url)]
    pub origin: Option<String>,

    /// On a router: intercept DHTTP requests to these ports, such as 80,8080; TCP passes
    #[arg(long, value_name = "PORTS", conflicts_with = "origin")]
    pub intercept: Option<String>,

    /// Network interfaces towards the clients of --intercept, such as lan0; with commas
    #[arg(long, value_name = "INTERFACE")]
    pub inside: Option<String>,

    /// Print the nftables rules that this adds, and exit
    #[arg(long, requires = "intercept")]
    #[serde(skip)]
    pub print_rules: bool,

    /// Remove the rules of a killed cache, and exit
    #[arg(long)]
    #[serde(skip)]
    pub clean: bool,

    /// Listening address, by UDP and TCP [default: 127.0.0.1:8080, or 0.0.0.0:3129 with --intercept]
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Option<String>,

    #[command(flatten)]
    #[serde(skip)]
    pub storage: CacheStorageFlags,

    #[command(flatten)]
    #[serde(skip)]
    pub operation: OperationFlags,

    /// With --intercept, do not race plain HTTP against the first request to a server
    #[arg(long)]
    pub no_race: bool,

    /// Threads [default: one for each CPU]
    #[arg(long, value_name = "N")]
    #[serde(deserialize_with = "text_of_number")]
    pub threads: Option<String>,

    /// Limit of clients, such as client-connections=256; repeatable (docs/operation.md has all of them)
    #[arg(long, value_name = "NAME=VALUE")]
    pub limit: Vec<String>,

    /// Also open connections to clients at private addresses [default: if it listens at one]; with --intercept, also take
    /// requests to servers at private addresses
    #[arg(long)]
    pub reach_private: bool,
}

layer!(Cache {
    keys: [origin, intercept, inside, listen, no_race, threads, reach_private],
    one_of: [origin, intercept],
    lists: [limit],
    nested: [storage, operation],
    cli_only: [print_rules, clean],
});
