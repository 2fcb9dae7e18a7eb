//! Flags of `roundtrip link`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use scenario::spec::Key;
use scenario::spec::key::{DirectionKey, PathKey};

use super::flags::{Group, KeyFlags, PATH, both};

/// `roundtrip link`
#[derive(Debug, Args)]
pub struct Link {
    /// The network.
    #[command(flatten)]
    pub keys: KeyFlags<LinkKeys>,
    /// Write the packets of clients, for Wireshark and `roundtrip diagnose`
    #[arg(long, value_name = "FILE.pcapng", value_hint = clap::ValueHint::FilePath, help_heading = "Output")]
    pub pcap: Option<PathBuf>,
    /// Name the causes of stalls afterwards, on standard error
    #[arg(long, help_heading = "Output")]
    pub diagnose: bool,
    /// Write a page with the diagnosis: tables, charts and provenance
    #[arg(long, value_name = "FILE.html", value_hint = clap::ValueHint::FilePath, help_heading = "Output")]
    pub report: Option<PathBuf>,
    /// Command to run behind the link
    #[arg(value_name = "COMMAND", last = true, required = true, value_hint = clap::ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

/// Flags of the network.
#[derive(Debug, Default)]
pub struct LinkKeys;

impl Group for LinkKeys {
    fn keys() -> Vec<(&'static str, Vec<Key>)> {
        let path = [
            PathKey::Rtt,
            PathKey::Rate,
            PathKey::RateUp,
            PathKey::NetworkTrace,
            PathKey::DelayUp,
            PathKey::Mtu,
            both(DirectionKey::Queue),
            both(DirectionKey::QueueDiscipline),
            both(DirectionKey::Loss),
            both(DirectionKey::Jitter),
            both(DirectionKey::Reordering),
            both(DirectionKey::Duplication),
        ];
        vec![("Network", vec![Key::Network, Key::Seed]), (PATH, path.map(Key::Path).to_vec())]
    }
}
