//! Flags of `roundtrip cache`, and of `roundtrip gateway` where it is one, too.
//!
//! Values stay text, as elsewhere: what reads them says what is wrong with them.

use std::path::PathBuf;

use clap::Args;

use crate::cli::dhttp::Operation;

/// `roundtrip cache`
#[derive(Debug, Args)]
pub struct Cache {
    /// The HTTP server whose answers are kept: http://127.0.0.1:3000
    #[arg(long, value_name = "URL", value_hint = clap::ValueHint::Url)]
    pub origin: Option<String>,

    /// On a router: take DHTTP's requests to these ports on their way to servers, such as 80,8080; TCP passes
    #[arg(long, value_name = "PORTS", conflicts_with = "origin")]
    pub intercept: Option<String>,

    /// Show the rules of nftables that this takes, and end
    #[arg(long, requires = "intercept")]
    pub print_rules: bool,

    /// Take away the rules that a cache has left which was killed, and end
    #[arg(long)]
    pub clean: bool,

    /// Where to listen, by UDP and TCP [default: 127.0.0.1:8080, or 0.0.0.0:3129 with --intercept]
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Option<String>,

    #[command(flatten)]
    pub keeping: Keeping,

    #[command(flatten)]
    pub operation: Operation,

    /// How many threads [default: one for each processor]
    #[arg(long, value_name = "N")]
    pub threads: Option<String>,

    /// Also open connections to clients at private addresses [default: if it listens at one]
    #[arg(long)]
    pub reach_private: bool,
}

/// Where answers are kept, and how many.
#[derive(Debug, Args)]
pub struct Keeping {
    /// How much is kept in memory [default: 256MiB]
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,

    /// Also keep answers in this file: they are there again after a restart, or a crash
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub disk: Option<PathBuf>,

    /// How much is kept there [default: 4GiB]
    #[arg(long, value_name = "SIZE")]
    pub disk_size: Option<String>,

    /// Targeted fields to obey in place of Cache-Control (RFC 9213), in order, or `none` [default: CDN-Cache-Control for
    /// one origin, none on the way to many]
    #[arg(long, value_name = "FIELDS")]
    pub targets: Option<String>,
}
