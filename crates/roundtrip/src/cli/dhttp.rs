//! Flags of `roundtrip serve`, `roundtrip gateway`, `roundtrip nat` and `roundtrip get`.
//!
//! Values stay text: their parsers report errors.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use dhttp_proto::Extension;
use serde::Deserialize;

use crate::cli::cache_storage::CacheStorageFlags;
use crate::serve::layers::{Layer, layer, text_of_number};

/// `roundtrip serve`
#[derive(Clone, Debug, Default, Args, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Serve {
    /// Directory to serve
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub folder: Option<PathBuf>,

    /// HTTP server whose responses are served instead of files: http://127.0.0.1:3000
    #[arg(long, value_name = "URL", value_hint = clap::ValueHint::Url)]
    pub origin: Option<String>,

    /// With --origin, open a connection to a client with a token while that server responds [default: when a response is large]
    #[arg(long)]
    pub early_connection: bool,

    /// Send each client's address to that server, in Forwarded and X-Forwarded-For; `unknown` for clients that have not
    /// proved theirs
    #[arg(long)]
    pub forwarded: bool,

    /// Memory to cache its small fresh responses; 0 for none [default: 16MiB]
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,

    /// Listening address, by UDP and TCP [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Option<String>,

    /// Policy for clients [default: internet]
    #[arg(long, value_name = "NAME")]
    pub profile: Option<Profile>,

    #[command(flatten)]
    #[serde(skip)]
    pub extensions: ExtensionFlags,

    #[command(flatten)]
    #[serde(skip)]
    pub operation: OperationFlags,

    /// Threads [default: one for each CPU]
    #[arg(long, value_name = "N")]
    #[serde(deserialize_with = "text_of_number")]
    pub threads: Option<String>,

    /// Limit of clients, such as client-connections=256; repeatable (docs/operation.md has all of them)
    #[arg(long, value_name = "NAME=VALUE")]
    pub limit: Vec<String>,

    /// Also open connections to clients at private addresses [default: if it listens at one]
    #[arg(long)]
    pub reach_private: bool,

    /// Allow the paper's profile at an address that others can reach: it is an open amplifier
    #[arg(long)]
    #[serde(skip)]
    pub force: bool,
}

layer!(Serve {
    keys: [folder, origin, early_connection, forwarded, memory, listen, profile, threads, reach_private],
    one_of: [folder, origin],
    lists: [limit],
    nested: [extensions, operation],
    cli_only: [force],
});

/// Extensions of the paper, added to or removed from those of the profile.
#[derive(Clone, Debug, Default, Args, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct ExtensionFlags {
    /// Enable an extension of the paper
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = extensions())]
    pub with: Vec<String>,

    /// Disable an extension of the paper
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = extensions())]
    pub without: Vec<String>,
}

impl Layer for ExtensionFlags {
    fn entries(&self) -> Vec<(String, String)> {
        [("with", &self.with), ("without", &self.without)]
            .map(|(key, names)| (key.to_owned(), format!("{names:?}")))
            .to_vec()
    }

    fn parse(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    /// A flag enables what the file disables, and the reverse.
    fn layered_over(self, below: Self) -> Self {
        let Self { with, without } = self;
        let other = |names: Vec<String>, reverse: &[String]| {
            names.into_iter().filter(|name| !reverse.contains(name)).collect::<Vec<_>>()
        };
        let (below_with, below_without) = (other(below.with, &without), other(below.without, &with));
        Self { with: [below_with, with].concat(), without: [below_without, without].concat() }
    }
}

fn extensions() -> PossibleValuesParser {
    PossibleValuesParser::new(Extension::ALL.map(Extension::name))
}

/// Operation flags that all services share.
#[derive(Clone, Debug, Default, Args, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct OperationFlags {
    /// TOML file with defaults for these flags; reloaded on SIGHUP
    #[arg(long, value_name = "FILE.toml", value_hint = clap::ValueHint::FilePath)]
    #[serde(skip)]
    pub config: Option<PathBuf>,

    /// Validate the configuration and exit
    #[arg(long)]
    #[serde(skip)]
    pub check: bool,

    /// Listening address of the Prometheus metrics
    #[arg(long, value_name = "ADDR:PORT")]
    pub metrics: Option<String>,

    /// Access log with a line for each response and its channel; - for standard output
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub access_log: Option<PathBuf>,

    /// Log events to standard error: connections, faults of peers, servers that do not respond
    #[arg(long, value_name = "LEVEL")]
    #[serde(skip)]
    pub trace: Option<TraceLevel>,
}

layer!(OperationFlags {
    keys: [metrics, access_log],
    one_of: [],
    lists: [],
    nested: [],
    cli_only: [config, check, trace],
});

/// Level of logged events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TraceLevel {
    /// Problems that need attention
    Warn,
    /// Also starts and stops
    Info,
    /// Also every connection and every fault of a peer
    Debug,
}

/// Policy for peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// Untrusted peers: tokens, budgets, limits
    Internet,
    /// As in the paper: every address is trusted
    Paper,
}

/// `roundtrip gateway`
#[derive(Clone, Debug, Default, Args, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Gateway {
    /// Listening address, for programs to use as their HTTP proxy [default: 127.0.0.1:3128]
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Option<String>,

    /// UDP and TCP ports that servers send to and connect to, such as 40000-40009
    #[arg(long, value_name = "A-B")]
    pub ports: Option<String>,

    /// Retry timeouts, and accepted sources of responses [default: internet]
    #[arg(long, value_name = "NAME")]
    pub profile: Option<Profile>,

    /// Caches that may respond from addresses of their own: any, none, or networks such as 192.0.2.0/24, with commas
    /// [default: as the profile says]
    #[arg(long, value_name = "any|none|NETWORK")]
    pub caches: Option<String>,

    /// Permitted clients, by address or network, such as 203.0.113.0/24; with commas, or repeated [required unless it
    /// listens at a loopback address]
    #[arg(long, value_name = "NETWORK", value_delimiter = ',')]
    pub allow: Vec<String>,

    /// Ports that CONNECT may reach, such as 443,8443, or any [default: 443; at a loopback address any]
    #[arg(long, value_name = "PORTS")]
    pub connect_ports: Option<String>,

    /// Do not race plain HTTP against the first request to a DHTTP server
    #[arg(long)]
    pub no_race: bool,

    /// Threads that watch connections; those that wait for servers are further ones [default: 1]
    #[arg(long, value_name = "N")]
    #[serde(deserialize_with = "text_of_number")]
    pub threads: Option<String>,

    /// Limit of clients, such as client-connections=64; repeatable (docs/gateway.md has all of them)
    #[arg(long, value_name = "NAME=VALUE")]
    pub limit: Vec<String>,

    /// Cache responses, and share them among the clients (RFC 9111)
    #[arg(long)]
    pub cache: bool,

    #[command(flatten)]
    #[serde(skip)]
    pub storage: CacheStorageFlags,

    #[command(flatten)]
    #[serde(skip)]
    pub operation: OperationFlags,

    /// Log every datagram and every connection
    #[arg(short, long)]
    #[serde(skip)]
    pub verbose: bool,

    /// Let the clients of --allow reach everything that this machine can, including itself and private addresses
    #[arg(long)]
    #[serde(skip)]
    pub force: bool,
}

layer!(Gateway {
    keys: [listen, ports, profile, caches, allow, connect_ports, no_race, threads, cache],
    one_of: [],
    lists: [limit],
    nested: [storage, operation],
    cli_only: [verbose, force],
});

/// `roundtrip nat`
#[derive(Clone, Debug, Default, Args, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Nat {
    /// Network interface towards the clients
    #[arg(long, value_name = "INTERFACE")]
    pub inside: Option<String>,

    /// Network interface towards the servers
    #[arg(long, value_name = "INTERFACE")]
    pub outside: Option<String>,

    /// Address of the clients after translation [default: that of the outside interface]
    #[arg(long, value_name = "ADDR", conflicts_with = "firewall")]
    pub address: Option<String>,

    /// UDP and TCP ports of the clients after translation [default: 61000-65535]
    #[arg(long, value_name = "A-B", conflicts_with = "firewall")]
    pub ports: Option<String>,

    /// Do not translate: only admit each response
    #[arg(long)]
    pub firewall: bool,

    /// Rules for IPv6 instead of IPv4; a router of both runs one helper for each
    #[arg(long)]
    pub ipv6: bool,

    /// Drop all other new packets from outside; without it, other rules decide
    #[arg(long, requires = "firewall")]
    pub closed: bool,

    /// Admit responses from any address, not only from the requested server: caches on the path, and everyone else
    #[arg(long)]
    pub any_cache: bool,

    /// Also admit responses from caches in these networks, such as 192.0.2.0/24, with commas
    #[arg(long, value_name = "NETWORK", conflicts_with = "any_cache")]
    pub caches: Option<String>,

    /// Admit data of a connection only if it begins with the id of a request
    #[arg(long)]
    pub by_id: bool,

    /// Port of the servers [default: 80]
    #[arg(long, value_name = "PORT")]
    pub server_port: Option<u16>,

    #[command(flatten)]
    #[serde(skip)]
    pub operation: OperationFlags,

    /// Print the nftables rules that this adds, and exit
    #[arg(long)]
    #[serde(skip)]
    pub print_rules: bool,

    /// Remove the rules of a killed helper and exit
    #[arg(long)]
    #[serde(skip)]
    pub clean: bool,
}

layer!(Nat {
    keys: [inside, outside, address, ports, firewall, ipv6, closed, any_cache, caches, by_id, server_port],
    one_of: [any_cache, caches],
    lists: [],
    nested: [operation],
    cli_only: [print_rules, clean],
});

/// `roundtrip get`
#[derive(Debug, Args)]
pub struct Get {
    /// URLs to fetch: http://..., or of servers that speak DHTTP dhttp://..., or dhttp+tcp://... for a request by TCP
    #[arg(value_name = "URL", required = true, value_hint = clap::ValueHint::Url)]
    pub urls: Vec<String>,

    /// Output file [default: standard output]
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Log every datagram and every connection
    #[arg(short, long)]
    pub verbose: bool,

    /// UDP and TCP ports to listen at, such as 40000-40009
    #[arg(long, value_name = "A-B")]
    pub ports: Option<String>,

    /// Retry timeouts, and accepted sources of responses
    #[arg(long, value_name = "NAME", default_value = "internet")]
    pub profile: Profile,

    /// Caches that may respond from addresses of their own: any, none, or networks such as 192.0.2.0/24, with commas;
    /// other responses are dropped, and the request is retried [default: as the profile says]
    #[arg(long, value_name = "any|none|NETWORK")]
    pub caches: Option<String>,

    /// Do not race plain HTTP against the first request to a DHTTP server
    #[arg(long)]
    pub no_race: bool,

    /// Enable an extension of the paper
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new([Extension::Parts.name()]))]
    pub with: Vec<String>,
}
