//! Third-party servers as the scenario's server: which settings they have, and their start and end.
//!
//! They serve real files of the page's sizes, dated like the note (`papers/w3c`), so that conditional requests
//! by date work. Their configurations are in `configuration`.

mod configuration;

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Component, Path};
use std::sync::Arc;
use std::time::{Duration as Elapsed, SystemTime};

use http1::message::Validator;
use http1::site::Site;
use linux::clock::Clock;
use page::html::address::site_path;
use scenario::{Programs, Protocol, Tls};
use wire::Duration;

use super::process::{Process, RunDirectory};
use super::{InstalledProgram, ServerProgram};
use crate::Error;
use crate::whole_page::authority::PemFiles;

/// Modification time of the files: 24 June 1997, in seconds since 1970.
const MODIFIED: u64 = 867_110_400;
const LAST_MODIFIED: &str = "Tue, 24 Jun 1997 00:00:00 GMT";
/// Maximum time for a server to start listening.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// Port of the first host on a server behind a proxy.
const FIRST_PORT_BEHIND: u16 = 8_000;

/// Settings of a server, apart from its files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerSettings {
    /// Settings of the scenario.
    pub(crate) programs: Programs,
    /// Whether it must require validation of its files: browsers consider those of 1997 fresh.
    pub(crate) is_revalidated: bool,
    /// Whether documents of other hosts may read its files, as fonts and data need it (Fetch, section 3.3).
    pub(crate) is_shared: bool,
}

/// An address at which a server listens, and its files.
#[derive(Clone, Debug)]
pub(crate) struct ServedHost {
    pub(crate) address: SocketAddr,
    /// Names by which it is requested; none: any.
    pub(crate) names: Vec<String>,
    pub(crate) tls: Option<HostTls>,
    /// By their paths below the root, which are not checked.
    pub(crate) files: Vec<(String, Arc<[u8]>)>,
}

/// TLS of an address: one version, one protocol.
#[derive(Clone, Debug)]
pub(crate) struct HostTls {
    pub(crate) files: Arc<PemFiles>,
    pub(crate) version: Tls,
    pub(crate) protocol: Protocol,
}

/// A server that listens.
#[derive(Debug)]
pub(crate) struct RunningServer {
    // In this order: the program ends before its files are removed.
    process: Process,
    directory: RunDirectory,
    /// The server behind it.
    origin: Option<Box<Self>>,
}

impl ServerProgram {
    /// Finds the program, and checks that it supports the scenario's settings.
    pub(crate) fn find_program(
        self,
        programs: &Programs,
        processing: Duration,
    ) -> Result<InstalledProgram, Error> {
        let Programs {
            server_head,
            server_buffer,
            server_close,
            server_requests,
            server_idle,
            server_changed,
            nagle,
            send_buffer,
            receive_buffer,
            ..
        } = programs;
        let unsupported = |key: &str| Error::Unsuited {
            part: format!("{key} with {self}"),
            remedy: "leave it out, or use our own server".to_owned(),
        };
        let unsupported_settings = [
            ("processing", processing > Duration::ZERO),
            ("server-head", server_head.is_some()),
            ("server-buffer", server_buffer.is_some()),
            ("server-close", server_close.is_some()),
            ("send-buffer", send_buffer.is_some()),
            ("receive-buffer", receive_buffer.is_some()),
            ("server-idle", server_idle.is_some()),
            ("server-changed", server_changed.is_some()),
            ("server-requests", server_requests.is_some() && !self.limits_requests()),
            ("nagle", *nagle == Some(true) && self != Self::Nginx),
        ];
        match unsupported_settings.iter().find(|(_, is_set)| *is_set) {
            Some((key, _)) => Err(unsupported(key)),
            None => self.find(),
        }
    }

    /// Finds the program, and the one behind it.
    fn find(self) -> Result<InstalledProgram, Error> {
        let mut installed = self.names().find()?;
        if let Some(origin) = self.origin() {
            installed.version += &format!(" before {}", origin.find()?.version);
        }
        Ok(installed)
    }

    /// The server behind it, which has the files.
    const fn origin(self) -> Option<Self> {
        match self {
            Self::Haproxy => Some(Self::Nginx),
            Self::Ours | Self::Nginx | Self::Apache | Self::Caddy | Self::Node | Self::Python => None,
        }
    }

    const fn limits_requests(self) -> bool {
        match self {
            Self::Nginx | Self::Apache => true,
            Self::Ours | Self::Caddy | Self::Haproxy | Self::Node | Self::Python => false,
        }
    }

    /// Whether it serves over TLS, by HTTP/1.1 and HTTP/2.
    pub(crate) const fn has_tls(self) -> bool {
        match self {
            Self::Ours | Self::Nginx | Self::Apache | Self::Caddy | Self::Haproxy | Self::Node => true,
            Self::Python => false,
        }
    }

    /// Whether it serves over HTTP/3, too.
    pub(crate) const fn has_http3(self) -> bool {
        match self {
            Self::Ours | Self::Caddy => true,
            Self::Nginx | Self::Apache | Self::Haproxy | Self::Node | Self::Python => false,
        }
    }

    /// Whether it can require validation of its files.
    pub(crate) const fn can_require_validation(self) -> bool {
        match self {
            Self::Ours | Self::Nginx | Self::Apache | Self::Haproxy => true,
            Self::Caddy | Self::Node | Self::Python => false,
        }
    }

    /// Validator of every file.
    pub(crate) fn validator() -> Validator {
        Validator::LastModified(LAST_MODIFIED.to_owned())
    }
}

impl RunningServer {
    /// Starts `program` in the calling thread's network namespace; returns when it listens.
    pub(crate) fn start(
        program: ServerProgram,
        installed: &InstalledProgram,
        hosts: &[ServedHost],
        settings: ServerSettings,
        clock: Clock,
    ) -> Result<Self, Error> {
        let directory = RunDirectory::new()?;
        let origin = program.origin().map(|origin| {
            let hosts: Vec<ServedHost> = hosts.iter().enumerate().map(ServedHost::behind).collect();
            Self::start(origin, &origin.find()?, &hosts, settings, clock).map(Box::new)
        });
        let origin = origin.transpose()?;
        if origin.is_none() {
            for (index, host) in hosts.iter().enumerate() {
                write_files(&directory, index, host)?;
            }
        }
        let command = configuration::command(program, installed, hosts, &directory, settings)?;
        let mut process = Process::start(program.name(), command, &directory)?;
        let has_started = process.wait_until(START_TIMEOUT, clock, |process| {
            let is_ready = || hosts.iter().all(|host| is_listening(host.address.port()));
            Ok(process.exit_status()?.is_some() || is_ready())
        })?;
        if !has_started || process.exit_status()?.is_some() {
            let message = format!("{program} did not begin to listen: {}", process.last_output_line());
            return Err(Error::Run { number: 1, what: message });
        }
        Ok(Self { process, directory, origin })
    }

    /// Waits for `settling`, then ends it; an error if it had ended by itself.
    pub(crate) fn stop(self, settling: Duration, clock: Clock) -> Result<(), Error> {
        let Self { mut process, directory, origin } = self;
        process.wait_until(settling, clock, |process| Ok(process.exit_status()?.is_some()))?;
        let exit_status = process.exit_status()?;
        let last_line = process.last_output_line();
        drop((process, directory));
        match exit_status {
            None => origin.map_or(Ok(()), |origin| origin.stop(Duration::ZERO, clock)),
            Some(status) => {
                Err(Error::Run { number: 1, what: format!("the server ended ({status}): {last_line}") })
            }
        }
    }
}

impl ServedHost {
    /// The host with this index on the server behind a proxy: in the clear, at a port of the loopback device.
    fn behind((index, host): (usize, &Self)) -> Self {
        let port = u16::try_from(index).ok().and_then(|index| FIRST_PORT_BEHIND.checked_add(index));
        let address = (Ipv4Addr::LOCALHOST, port.unwrap_or(u16::MAX)).into();
        Self { address, names: Vec::new(), tls: None, files: host.files.clone() }
    }

    /// A site in the clear, by the names that our own server gives its objects. A document without an HTML name also has one.
    pub(crate) fn of_site(address: SocketAddr, site: &Site) -> Self {
        let files = site.files().map(|(path, object)| (path.to_owned(), Arc::clone(object)));
        let document = site.objects().next().map(|document| (format!("/{DOCUMENT}"), Arc::clone(document)));
        let is_sized = site.files().next().is_some_and(|(path, _)| path == Site::path(0));
        Self {
            address,
            names: Vec::new(),
            tls: None,
            files: files.chain(document.filter(|_| is_sized)).collect(),
        }
    }
}

/// Writes the files of the host with this index, and those of its TLS.
fn write_files(directory: &RunDirectory, index: usize, host: &ServedHost) -> Result<(), Error> {
    let root = configuration::root(directory, index);
    let modified = SystemTime::UNIX_EPOCH + Elapsed::from_secs(MODIFIED);
    for (path, object) in &host.files {
        let path_in_root = site_path(path).filter(|path_in_root| {
            Path::new(path_in_root).components().all(|part| matches!(part, Component::Normal(_)))
        });
        let path_in_root = path_in_root.ok_or_else(|| Error::Unsuited {
            part: "a page with a path that is not a file's".to_owned(),
            remedy: "use our own server".to_owned(),
        })?;
        let path = root.join(path_in_root);
        let doing = format!("write {}", path.display());
        fs::create_dir_all(path.parent().unwrap_or(&root))
            .and_then(|()| fs::write(&path, object))
            .and_then(|()| File::options().write(true).open(&path))
            .and_then(|file| file.set_modified(modified))
            .map_err(Error::io(doing))?;
    }
    if let Some(tls) = &host.tls {
        directory.write(&configuration::certificate(index), tls.files.chain.as_bytes())?;
        directory.write(&configuration::key(index), tls.files.key.as_bytes())?;
    }
    Ok(())
}

/// Second name of a document without an HTML name.
pub(super) const DOCUMENT: &str = "0.html";

/// Whether a socket listens at a port of the calling thread's network namespace: state 0A in its table.
fn is_listening(port: u16) -> bool {
    ["tcp", "tcp6"].iter().any(|table| {
        let table = fs::read_to_string(format!("/proc/thread-self/net/{table}")).unwrap_or_default();
        table.lines().skip(1).any(|line| {
            let mut last_line = line.split_whitespace().skip(1);
            let local = last_line.next().and_then(|address| address.rsplit(':').next());
            let is_port = local.is_some_and(|hex| u16::from_str_radix(hex, 16) == Ok(port));
            is_port && last_line.nth(1) == Some("0A")
        })
    })
}
