//! Third-party programs in place of our own: current servers and clients on the same two hosts.
//!
//! | module | contents |
//! | --- | --- |
//! | [`server`] | the configuration of each server, and the check that it listens |
//! | [`client`] | the command of each client |
//! | `curl` | curl as the client of a whole page over TLS |
//! | `chromium` | Chromium as the client of a whole page |
//! | `process` | a program and its directory, both removed after the run |
//!
//! The programs are this system's, run as this user, and see only the laboratory's network.
//! Settings that they do not support (when a header section leaves, how a connection is closed) are refused,
//! never assumed.

pub(crate) mod chromium;
pub mod client;
pub(crate) mod curl;
mod process;
pub mod server;

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::Command;

use quantity::names::{self, UnknownName};

use wire::Duration;

use crate::Error;

pub(crate) use process::RunDirectory;

/// Server program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerProgram {
    /// `http1`'s server, driven by this crate.
    #[default]
    Ours,
    /// nginx.
    Nginx,
    /// Apache.
    Apache,
    /// Caddy.
    Caddy,
    /// HAProxy, with nginx behind it on the same host, which has the files.
    Haproxy,
    /// Node.js, with a script on its own modules.
    Node,
    /// Python's `http.server`.
    Python,
}

/// Client program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientProgram {
    /// `fetch`'s robot, driven by this crate.
    #[default]
    Ours,
    /// curl.
    Curl,
    /// GNU Wget.
    Wget,
    /// Chromium, without a window.
    Chromium,
}

/// Server and client program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peers {
    /// The server.
    pub server: ServerProgram,
    /// The client.
    pub client: ClientProgram,
}

/// A whole page to be visited by a program.
#[derive(Clone, Debug)]
pub(crate) struct Visit {
    /// URLs of all objects, the document's first.
    pub(crate) urls: Vec<String>,
    /// Address of each host name.
    pub(crate) addresses: Vec<(String, IpAddr)>,
    /// The authority that it trusts, if any host has TLS.
    pub(crate) trusted: Option<TrustedAuthority>,
    /// Time for the page.
    pub(crate) deadline: Duration,
    /// Protocol of every response, as ALPN and Chromium name it.
    pub(crate) protocol: &'static str,
    /// Whether a browser knows beforehand that all hosts speak QUIC.
    pub(crate) is_quic: bool,
    /// Maximum number of concurrent requests, where it is not the program's own decision.
    pub(crate) parallel: u16,
    /// Whether a browser records a trace.
    pub(crate) has_trace: bool,
}

/// An authority in the forms in which programs are told to trust it.
#[derive(Clone, Debug)]
pub(crate) struct TrustedAuthority {
    /// Its certificate.
    pub(crate) pem: String,
    /// SHA-256 of its public key's information.
    pub(crate) fingerprint: [u8; 32],
}

/// Names of a program on the command line, on disk, and in Debian.
struct ProgramNames {
    name: &'static str,
    /// The first existing one is used.
    programs: &'static [&'static str],
    version: &'static str,
    package: &'static str,
}

impl ServerProgram {
    /// Every server.
    pub const ALL: [Self; 7] =
        [Self::Ours, Self::Nginx, Self::Apache, Self::Caddy, Self::Haproxy, Self::Node, Self::Python];

    const fn names(self) -> ProgramNames {
        let (name, programs, version, package): (_, &[_], _, _) = match self {
            Self::Ours => ("ours", &[], "", ""),
            Self::Nginx => ("nginx", &["nginx"], "-v", "nginx-light"),
            Self::Apache => ("apache", &["apache2", "httpd"], "-v", "apache2-bin"),
            Self::Caddy => ("caddy", &["caddy"], "version", "caddy"),
            Self::Haproxy => ("haproxy", &["haproxy"], "-v", "haproxy"),
            Self::Node => ("node", &["node", "nodejs"], "--version", "nodejs"),
            Self::Python => ("python", &["python3"], "--version", "python3"),
        };
        ProgramNames { name, programs, version, package }
    }

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        self.names().name
    }

    /// The server of that name.
    ///
    /// # Errors
    /// [`UnknownName`] for any other name.
    pub fn named(name: &str) -> Result<Self, UnknownName> {
        names::find("server", name, &Self::ALL, Self::name)
    }
}

impl ClientProgram {
    /// Every client.
    pub const ALL: [Self; 4] = [Self::Ours, Self::Curl, Self::Wget, Self::Chromium];

    const fn names(self) -> ProgramNames {
        let (name, programs, version, package): (_, &[_], _, _) = match self {
            Self::Ours => ("ours", &[], "", ""),
            Self::Curl => ("curl", &["curl"], "--version", "curl"),
            Self::Wget => ("wget", &["wget"], "--version", "wget"),
            Self::Chromium => ("chromium", &["chromium", "chromium-browser"], "--version", "chromium"),
        };
        ProgramNames { name, programs, version, package }
    }

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        self.names().name
    }

    /// The client of that name.
    ///
    /// # Errors
    /// [`UnknownName`] for any other name.
    pub fn named(name: &str) -> Result<Self, UnknownName> {
        names::find("client", name, &Self::ALL, Self::name)
    }
}

/// A program that was found, and its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledProgram {
    /// Path of the program.
    pub path: PathBuf,
    /// First line of its version output.
    pub version: String,
}

impl ProgramNames {
    /// Searches the path, and Debian's directories of programs for root.
    fn find(&self) -> Result<InstalledProgram, Error> {
        let paths = std::env::var_os("PATH").unwrap_or_default();
        let directories =
            || std::env::split_paths(&paths).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]);
        let path = self
            .programs
            .iter()
            .find_map(|program| {
                directories().map(|directory| directory.join(program)).find(|path| path.is_file())
            })
            .ok_or_else(|| Error::Unsuited {
                part: format!("with {}, which is not installed", self.name),
                remedy: format!("install it (Debian's package is {}), or name another", self.package),
            })?;
        let output = Command::new(&path).arg(self.version).output();
        let output = output.map_err(Error::io(format!("read the version of {}", self.name)))?;
        let text = [output.stdout, output.stderr].concat();
        let version = String::from_utf8_lossy(&text).lines().next().unwrap_or_default().trim().to_owned();
        Ok(InstalledProgram { path, version })
    }
}

impl fmt::Display for ServerProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for ClientProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_program_is_named_with_its_package() {
        let missing = ProgramNames {
            name: "nobody",
            programs: &["no-such-program"],
            version: "",
            package: "nobody-bin",
        };
        let sentence = missing.find().unwrap_err().to_string();
        assert!(
            sentence.contains("nobody, which is not installed") && sentence.contains("nobody-bin"),
            "{sentence}"
        );
        assert_eq!(ServerProgram::named("ngnix").unwrap_err().nearest(), Some("nginx"));
    }
}
