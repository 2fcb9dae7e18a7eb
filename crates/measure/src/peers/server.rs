//! Third-party servers, and their configurations: files, no log, persistent connections.
//!
//! They serve real files of the page's sizes, dated like the note (`papers/w3c`), so that conditional requests
//! by date work.

use std::fmt::Write;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Component, Path};
use std::process::Command;
use std::time::{Duration as Elapsed, SystemTime};

use http1::message::Validator;
use http1::site::Site;
use linux::clock::Clock;
use page::html::address::site_path;
use scenario::Programs;
use wire::Duration;

use super::process::{Process, RunDirectory};
use super::{InstalledProgram, ServerProgram};
use crate::Error;

/// Modification time of the files: 24 June 1997, in seconds since 1970.
const MODIFIED: u64 = 867_110_400;
const LAST_MODIFIED: &str = "Tue, 24 Jun 1997 00:00:00 GMT";
/// Maximum time for a server to start listening.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// Settings of a server, apart from its files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerSettings {
    /// Settings of the scenario.
    pub(crate) programs: Programs,
    /// Whether it must require validation of its files: browsers consider those of 1997 fresh.
    pub(crate) is_revalidated: bool,
}

/// A server that listens.
#[derive(Debug)]
pub(crate) struct RunningServer {
    // In this order: the program ends before its files are removed.
    process: Process,
    directory: RunDirectory,
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
            None => self.names().find(),
        }
    }

    const fn limits_requests(self) -> bool {
        match self {
            Self::Nginx | Self::Apache => true,
            Self::Ours | Self::Caddy | Self::Python => false,
        }
    }

    /// Whether it can require validation of its files.
    pub(crate) const fn can_require_validation(self) -> bool {
        match self {
            Self::Ours | Self::Nginx | Self::Apache => true,
            Self::Caddy | Self::Python => false,
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
        address: SocketAddr,
        site: &Site,
        settings: ServerSettings,
        clock: Clock,
    ) -> Result<Self, Error> {
        let directory = RunDirectory::new()?;
        write_page(&directory, site)?;
        let command = command(program, installed, address, &directory, settings)?;
        let mut process = Process::start(program.name(), command, &directory)?;
        let has_started = process.wait_until(START_TIMEOUT, clock, |process| {
            Ok(process.exit_status()?.is_some() || is_listening(address.port()))
        })?;
        if !has_started || process.exit_status()?.is_some() {
            let message = format!("{program} did not begin to listen: {}", process.last_output_line());
            return Err(Error::Run { number: 1, what: message });
        }
        Ok(Self { process, directory })
    }

    /// Waits for `settling`, then ends it; an error if it had ended by itself.
    pub(crate) fn stop(self, settling: Duration, clock: Clock) -> Result<(), Error> {
        let Self { mut process, directory } = self;
        process.wait_until(settling, clock, |process| Ok(process.exit_status()?.is_some()))?;
        let exit_status = process.exit_status()?;
        let last_line = process.last_output_line();
        drop((process, directory));
        match exit_status {
            None => Ok(()),
            Some(status) => {
                Err(Error::Run { number: 1, what: format!("the server ended ({status}): {last_line}") })
            }
        }
    }
}

/// Writes the objects as files, by the names that our own server gives them. A document without an HTML name
/// is also written under an HTML name.
fn write_page(directory: &RunDirectory, site: &Site) -> Result<(), Error> {
    let root = directory.path().join("page");
    let modified = SystemTime::UNIX_EPOCH + Elapsed::from_secs(MODIFIED);
    let files = site.files().map(|(path, object)| (site_path(path), object));
    let document = site.objects().next().map(|document| (Some(DOCUMENT.to_owned()), document));
    let is_sized = site.files().next().is_some_and(|(path, _)| path == Site::path(0));
    for (path_in_root, object) in files.chain(document.filter(|_| is_sized)) {
        let path_in_root = path_in_root.filter(|path_in_root| {
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
    Ok(())
}

/// Second name of a document without an HTML name.
pub(super) const DOCUMENT: &str = "0.html";

fn command(
    program: ServerProgram,
    installed: &InstalledProgram,
    address: SocketAddr,
    directory: &RunDirectory,
    settings: ServerSettings,
) -> Result<Command, Error> {
    let root = directory.path().join("page");
    let mut command = Command::new(&installed.path);
    match program {
        ServerProgram::Ours => {}
        ServerProgram::Nginx => {
            let file =
                directory.write("nginx.conf", nginx(directory.path(), address, settings).as_bytes())?;
            command.arg("-p").arg(directory.path()).arg("-c").arg(file);
        }
        ServerProgram::Apache => {
            let file =
                directory.write("apache.conf", apache(directory.path(), address, settings).as_bytes())?;
            command.arg("-X").arg("-f").arg(file);
        }
        ServerProgram::Caddy => {
            command.args(["file-server", "--listen", &address.to_string(), "--root"]).arg(root);
        }
        ServerProgram::Python => {
            let (ip, port) = (address.ip().to_string(), address.port().to_string());
            command.args([
                "-m",
                "http.server",
                &port,
                "--bind",
                &ip,
                "--protocol",
                "HTTP/1.1",
                "--directory",
            ]);
            command.arg(root);
        }
    }
    Ok(command)
}

/// The default configuration, except for the laboratory's needs: one process, no log, and the scenario's
/// Nagle setting.
fn nginx(directory: &Path, address: SocketAddr, settings: ServerSettings) -> String {
    let ServerSettings { programs, is_revalidated } = settings;
    let directory = directory.display();
    let nodelay = if programs.nagle == Some(true) { "off" } else { "on" };
    let requests = programs.server_requests.map_or(1_000_000, |requests| requests.get());
    let mut text = format!(
        "daemon off; master_process off; worker_processes 1; pid {directory}/pid; error_log {directory}/log warn;\n\
         events {{ worker_connections 1024; }}\n\
         http {{\n  access_log off; sendfile on; tcp_nodelay {nodelay};\n  keepalive_timeout 600s; keepalive_requests \
         {requests};\n  types {{ text/html html htm; text/css css; text/javascript js mjs; image/svg+xml svg; \
         image/png png; image/jpeg jpg jpeg; image/webp webp; }} default_type image/gif;\n"
    );
    for name in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
        writeln!(text, "  {name}_temp_path {directory}/{name};").expect("a String takes anything");
    }
    let fresh = if is_revalidated { "add_header Cache-Control no-cache; " } else { "" };
    text + &format!(
        "  server {{ listen {address}; root {directory}/page; {fresh}location = /0 {{ default_type text/html; }} }}\n}}\n"
    )
}

fn apache(directory: &Path, address: SocketAddr, settings: ServerSettings) -> String {
    let ServerSettings { programs, is_revalidated } = settings;
    let directory = directory.display();
    let requests = programs.server_requests.map_or(0, |requests| requests.get());
    let modules = ["/usr/lib/apache2/modules", "/usr/lib64/httpd/modules", "/usr/lib/httpd/modules"];
    let modules = modules.into_iter().find(|path| Path::new(path).is_dir()).unwrap_or("modules");
    let fresh = if is_revalidated {
        format!("LoadModule headers_module {modules}/mod_headers.so\nHeader set Cache-Control no-cache\n")
    } else {
        String::new()
    };
    format!(
        "ServerRoot {directory}\nServerName server\nListen {address}\nPidFile {directory}/pid\nErrorLog {directory}/log\n\
         LoadModule mpm_event_module {modules}/mod_mpm_event.so\n\
         LoadModule authz_core_module {modules}/mod_authz_core.so\n\
         Mutex file:{directory}\nDefaultRuntimeDir {directory}\n\
         <IfModule unixd_module>\nUser nobody\nGroup nogroup\n</IfModule>\n\
         DocumentRoot {directory}/page\n<Directory {directory}/page>\nRequire all granted\nForceType image/gif\n\
         <Files \"0\">\nForceType text/html\n</Files>\n<Files \"*.htm*\">\nForceType text/html\n</Files>\n\
         <Files \"*.css\">\nForceType text/css\n</Files>\n<Files \"*.js\">\nForceType text/javascript\n</Files>\n</Directory>\n\
         KeepAlive On\nKeepAliveTimeout 600\nMaxKeepAliveRequests {requests}\n{fresh}"
    )
}

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
