//! The servers of the benchmark, their configuration and their shutdown.
//!
//! Each is configured as its documentation recommends, except for the values in `papers/dhttp#section-vi-b`. Those
//! are 200 processes of Apache, a backlog of 128 connections, and so 328 connections of the DHTTP server.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration as Elapsed;

use dhttp::counters::Counters;
use dhttp::{Files, Server as Engine, ServerConfig};
use dhttp_proto::server::PerClient;
use wire::Duration;

use super::Error;
use super::hosts::SERVER;
use super::prefork::{self, PreforkConfig};
use super::program::{self, Program};
use super::transport::Transport;
use super::{in_memory, quic};

/// A server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ServerKind {
    /// Apache with a process for each connection, 200 of them, as in the paper; ours where it is not installed.
    Prefork,
    /// Ours, as the paper's modified Apache: idle connections are closed while others wait.
    PreforkModified,
    /// Today's Apache: idle connections take no thread, and are closed when threads run out.
    Event,
    /// nginx with capacity for every connection.
    Nginx,
    /// nginx with 328 connections: it closes idle ones when it runs out, as the paper's modified Apache does.
    NginxFew,
    /// A small hyper server.
    Hyper,
    /// A small HTTP/3 server, made of quinn.
    Quinn,
    /// Ours, over HTTP.
    Roundtrip,
    /// Ours, over DHTTP.
    Dhttp,
}

/// Configuration of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerOptions {
    /// Idle timeout of a connection, in seconds; 0: it is closed after each response.
    pub idle_s: u64,
    /// Maximum number of connections that it opens to a client, if it opens connections.
    pub per_client: usize,
    /// Transport of the users.
    pub how: Transport,
}

impl ServerKind {
    /// Name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Prefork => "Apache prefork",
            Self::PreforkModified => "prefork, modified",
            Self::Event => "Apache event",
            Self::Nginx => "nginx",
            Self::NginxFew => "nginx, 328 connections",
            Self::Hyper => "hyper",
            Self::Quinn => "quinn",
            Self::Roundtrip => "ours, HTTP",
            Self::Dhttp => "ours, DHTTP",
        }
    }

    /// Path of its program, if it needs one; `Err` if that is not installed.
    fn program(self) -> Result<Option<PathBuf>, Error> {
        let (paths, package): (&[&str], _) = match self {
            // Ours takes the place of a missing Apache.
            Self::Prefork => return Ok(program::found(&APACHE)),
            Self::Event => (&APACHE, "apache2-bin"),
            Self::Nginx | Self::NginxFew => {
                (&["/usr/sbin/nginx", "/usr/bin/nginx", "/usr/local/sbin/nginx"], "nginx-light")
            }
            Self::PreforkModified | Self::Hyper | Self::Quinn | Self::Roundtrip | Self::Dhttp => {
                return Ok(None);
            }
        };
        program::found(paths).map(Some).ok_or(Error::NotInstalled { server: self.name(), package })
    }

    /// Checks that everything it needs is installed.
    ///
    /// # Errors
    /// The missing program, with the package that has it.
    pub fn available(self) -> Result<(), Error> {
        self.program().map(drop)
    }
}

/// A running server, stopped when dropped.
pub struct RunningServer {
    _held: ServerGuard,
    counters: Vec<Arc<Counters>>,
}

/// A program, or threads of this process.
type ServerGuard = Box<dyn Send>;

/// Counters of a DHTTP server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DhttpCounters {
    /// Responses by UDP.
    pub by_udp: u64,
    /// Responses on connections that it opened.
    pub by_tcp: u64,
    /// Resent requests.
    pub resent: u64,
    /// Of these, those that it ignored.
    pub ignored: u64,
}

impl RunningServer {
    /// Its counters so far; zero, unless it speaks DHTTP.
    pub fn counted(&self) -> DhttpCounters {
        let sum = |of: fn(&Counters) -> &AtomicU64| {
            self.counters.iter().map(|counters| of(counters).load(Ordering::Relaxed)).sum()
        };
        DhttpCounters {
            by_udp: sum(|counters| &counters.udp),
            by_tcp: sum(|counters| &counters.tcp_opened),
            resent: sum(|counters| &counters.resent),
            ignored: sum(|counters| &counters.ignored_answered),
        }
    }
}

/// A started server that may not listen yet.
enum StartedServer {
    /// An external program.
    Program(Program),
    /// hyper or ours, on threads of this process, which end when this is dropped.
    Threads(ServerGuard),
    /// Ours, with its counters.
    Roundtrip(ServerGuard, Vec<Arc<Counters>>),
    /// Threads as well; it listens already, but only to datagrams.
    Datagrams(ServerGuard),
}

/// Its listening address.
pub fn address() -> SocketAddr {
    SocketAddr::from((SERVER, 80))
}

/// Starts a server of `directory`'s files on the caller's host; returns when it listens.
///
/// # Errors
/// A missing program, or its error.
pub fn start(kind: ServerKind, options: ServerOptions, directory: &Path) -> Result<RunningServer, Error> {
    let doing = || format!("start {}", kind.name());
    let mut begun = begin(kind, options, directory, kind.program()?).map_err(Error::system(doing()))?;
    listening(&mut begun).map_err(Error::system(doing()))?;
    Ok(match begun {
        StartedServer::Program(program) => RunningServer { _held: Box::new(program), counters: Vec::new() },
        StartedServer::Threads(held) | StartedServer::Datagrams(held) => {
            RunningServer { _held: held, counters: Vec::new() }
        }
        StartedServer::Roundtrip(held, counters) => RunningServer { _held: held, counters },
    })
}

fn begin(
    kind: ServerKind,
    options: ServerOptions,
    directory: &Path,
    path: Option<PathBuf>,
) -> io::Result<StartedServer> {
    let idle = Duration::from_secs(options.idle_s);
    let own_prefork = |closes_idle| {
        let config = PreforkConfig { workers: WORKERS, backlog: BACKLOG, idle, closes_idle };
        prefork::serve(address(), directory, config).map(|server| StartedServer::Threads(Box::new(server)))
    };
    if kind == ServerKind::Prefork && path.is_none() {
        return own_prefork(false);
    }
    let path = path.unwrap_or_default();
    let program = |words: &[&str], configuration: &dyn Fn(&Path) -> String| {
        Program::start(&path, words, configuration).map(StartedServer::Program)
    };
    match kind {
        ServerKind::Prefork => {
            program(&["-D", "FOREGROUND", "-f"], &|own| apache(PREFORK, options, directory, own))
        }
        ServerKind::PreforkModified => own_prefork(true),
        ServerKind::Event => {
            program(&["-D", "FOREGROUND", "-f"], &|own| apache(EVENT, options, directory, own))
        }
        ServerKind::Nginx => program(&["-e", "stderr", "-c"], &|own| nginx(16_384, options, directory, own)),
        ServerKind::NginxFew => {
            program(&["-e", "stderr", "-c"], &|own| nginx(MAX_CONNECTIONS, options, directory, own))
        }
        ServerKind::Hyper => in_memory::serve(address(), directory, idle)
            .map(|runtime| StartedServer::Threads(Box::new(runtime))),
        ServerKind::Quinn => {
            quic::serve(address(), directory, idle).map(|runtime| StartedServer::Datagrams(Box::new(runtime)))
        }
        ServerKind::Roundtrip | ServerKind::Dhttp => {
            let mut config = ServerConfig::paper().reaching_anywhere();
            config.dhttp.connections = MAX_CONNECTIONS;
            config.dhttp.per_client =
                PerClient { max: options.per_client, max_when_few: options.per_client, few_below: 0 };
            config.dhttp.timeout.idle = idle;
            match options.idle_s {
                0 => config.http.requests = std::num::NonZeroU32::new(1),
                _ => config.http.timeout.idle = idle,
            }
            let engine = Engine::start(address(), config, Files::below(directory)?, None)?;
            let counters = engine.counters();
            Ok(StartedServer::Roundtrip(Box::new(engine), counters))
        }
    }
}

/// "The maximum number of concurrent clients of 200" (`papers/dhttp#section-vi-b`).
const WORKERS: usize = 200;
/// Maximum number of connections that wait for one of them.
const BACKLOG: i32 = 128;
/// Both together.
const MAX_CONNECTIONS: usize = 328;
/// Apache's usual paths.
const APACHE: [&str; 3] = ["/usr/sbin/apache2", "/usr/sbin/httpd", "/usr/local/sbin/httpd"];

/// Timeout until a server listens.
const START_TIMEOUT_MS: u64 = 10_000;

#[expect(clippy::disallowed_methods, reason = "other people's programs do not say when they are ready")]
fn listening(begun: &mut StartedServer) -> io::Result<()> {
    if matches!(begun, StartedServer::Datagrams(_)) {
        return Ok(());
    }
    for _ in 0..START_TIMEOUT_MS / 10 {
        if let StartedServer::Program(program) = begun
            && let Some(reported) = program.ended()
        {
            return Err(io::Error::other(reported));
        }
        if TcpStream::connect(address()).is_ok() {
            return Ok(());
        }
        std::thread::sleep(Elapsed::from_millis(10));
    }
    Err(io::Error::other("it did not begin to listen"))
}

/// Apache's names of its multi-processing modules.
const PREFORK: &str = "prefork";
const EVENT: &str = "event";

fn apache(manner: &str, options: ServerOptions, directory: &Path, own: &Path) -> String {
    let modules = ["/usr/lib/apache2/modules", "/usr/lib64/httpd/modules", "/usr/lib/httpd/modules"];
    let modules = modules.into_iter().find(|path| Path::new(path).is_dir()).unwrap_or("modules");
    let crew = match manner {
        // "The maximum number of concurrent clients of 200" (paper).
        PREFORK => {
            "StartServers 200\nMinSpareServers 1\nMaxSpareServers 200\nServerLimit 200\nMaxRequestWorkers 200\n\
             ListenBacklog 128\n"
        }
        // Debian's defaults, with as many threads as the other has processes.
        _ => {
            "StartServers 2\nThreadsPerChild 25\nMinSpareThreads 25\nMaxSpareThreads 200\nMaxRequestWorkers 200\n"
        }
    };
    let retained = match options.idle_s {
        0 => "KeepAlive Off\n".to_owned(),
        seconds => format!("KeepAlive On\nKeepAliveTimeout {seconds}\nMaxKeepAliveRequests 0\n"),
    };
    let (address, directory, own) = (address(), directory.display(), own.display());
    format!(
        "ServerRoot {own}\nServerName server\nListen {address}\nPidFile {own}/pid\nErrorLog {own}/said\n\
         LoadModule mpm_{manner}_module {modules}/mod_mpm_{manner}.so\n\
         LoadModule authz_core_module {modules}/mod_authz_core.so\n\
         Mutex file:{own}\nDefaultRuntimeDir {own}\n<IfModule unixd_module>\nUser nobody\nGroup nogroup\n</IfModule>\n\
         DocumentRoot {directory}\n<Directory {directory}>\nRequire all granted\n</Directory>\n{retained}{crew}"
    )
}

fn nginx(connections: usize, options: ServerOptions, directory: &Path, own: &Path) -> String {
    if options.how == Transport::Http2Tls {
        // On failure nginx finds no certificate, and reports that.
        let _ = quic::write(own);
    }
    let (address, directory, own) = (address(), directory.display(), own.display());
    let idle_s = options.idle_s;
    let mut text = format!(
        "daemon off; master_process off; worker_processes 1; pid {own}/pid; error_log {own}/said crit;\n\
         events {{ worker_connections {connections}; }}\nhttp {{\n  access_log off; sendfile on; tcp_nopush on;\n  \
         keepalive_timeout {idle_s}s; keepalive_requests 1000000000;\n"
    );
    for name in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
        text += &format!("  {name}_temp_path {own}/{name};\n");
    }
    let manner = match options.how {
        Transport::Usual | Transport::FastOpen | Transport::Http3 | Transport::Http3Early => "",
        Transport::Http2 => " http2",
        Transport::Http2Tls => " ssl http2",
    };
    if options.how == Transport::Http2Tls {
        text += &format!("  ssl_certificate {own}/certificate.pem; ssl_certificate_key {own}/key.pem;\n");
    }
    text + &format!("  server {{ listen {address} backlog=128{manner}; root {directory}; }}\n}}\n")
}
