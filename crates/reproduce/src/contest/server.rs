//! The servers of the benchmark, their configuration and their shutdown.
//!
//! Each is configured as its documentation recommends, except for what `papers/dhttp#section-vi-b` states of its own:
//! 200 processes of Apache and a backlog of 128 connections, and so 328 connections of the server for DHTTP.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration as Elapsed;

use dhttp::counters::Counters;
use dhttp::{Files, Server as Engine, ServerConfig};
use dhttp_proto::server::PerClient;
use measure::Error;
use wire::Duration;

use super::failed;
use super::hosts::SERVER;
use super::how::How;
use super::program::{self, Program};
use super::{in_memory, quic};

/// A server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Apache with a process for each connection, 200 of them, as in the paper.
    Prefork,
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
    Ours,
    /// Ours, over DHTTP.
    Dhttp,
}

/// Configuration of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// Idle timeout of a connection, in seconds; 0: it is closed after each response.
    pub idle_s: u64,
    /// Maximum number of connections that it opens to a client, if it opens connections.
    pub per_client: usize,
    /// Transport of the users.
    pub how: How,
}

impl Kind {
    /// Name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Prefork => "Apache prefork",
            Self::Event => "Apache event",
            Self::Nginx => "nginx",
            Self::NginxFew => "nginx, 328 connections",
            Self::Hyper => "hyper",
            Self::Quinn => "quinn",
            Self::Ours => "ours, HTTP",
            Self::Dhttp => "ours, DHTTP",
        }
    }

    /// Path of its program, if it needs one; `Err` if that is not installed.
    fn program(self) -> Result<Option<PathBuf>, Error> {
        let (places, package): (&[&str], _) = match self {
            Self::Prefork | Self::Event => {
                (&["/usr/sbin/apache2", "/usr/sbin/httpd", "/usr/local/sbin/httpd"], "apache2-bin")
            }
            Self::Nginx | Self::NginxFew => {
                (&["/usr/sbin/nginx", "/usr/bin/nginx", "/usr/local/sbin/nginx"], "nginx-light")
            }
            Self::Hyper | Self::Quinn | Self::Ours | Self::Dhttp => return Ok(None),
        };
        let missing = || Error::Unsuited {
            part: format!("{} where it is not installed", self.name()),
            remedy: format!("install it (Debian's {package}), and try again"),
        };
        program::found(places).map(Some).ok_or_else(missing)
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
pub struct Running {
    _held: Held,
    counters: Vec<Arc<Counters>>,
}

/// A program, or threads of this process.
type Held = Box<dyn Send>;

/// Counters of a DHTTP server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Responses by UDP.
    pub by_udp: u64,
    /// Responses on connections that it opened.
    pub by_tcp: u64,
    /// Resent requests.
    pub resent: u64,
    /// Of these, those that it ignored.
    pub ignored: u64,
}

impl Running {
    /// Its counters so far; zero, unless it speaks DHTTP.
    pub fn counted(&self) -> Counted {
        let sum = |of: fn(&Counters) -> &AtomicU64| {
            self.counters.iter().map(|counters| of(counters).load(Ordering::Relaxed)).sum()
        };
        Counted {
            by_udp: sum(|counters| &counters.udp),
            by_tcp: sum(|counters| &counters.tcp_opened),
            resent: sum(|counters| &counters.resent),
            ignored: sum(|counters| &counters.ignored_answered),
        }
    }
}

/// A started server that may not listen yet.
enum Begun {
    /// An external program.
    Program(Program),
    /// hyper or ours, on threads of this process, which end when this is dropped.
    Threads(Held),
    /// Ours, with its counters.
    Ours(Held, Vec<Arc<Counters>>),
    /// Threads as well; it listens already, to datagrams only.
    Datagrams(Held),
}

/// Its listening address.
pub fn address() -> SocketAddr {
    SocketAddr::from((SERVER, 80))
}

/// Starts a server of `folder`'s files on the caller's host; returns when it listens.
///
/// # Errors
/// A missing program, or its error.
pub fn start(kind: Kind, told: Told, folder: &Path) -> Result<Running, Error> {
    let doing = || format!("start {}", kind.name());
    let mut begun = begin(kind, told, folder, kind.program()?).map_err(failed(doing()))?;
    listening(&mut begun).map_err(failed(doing()))?;
    Ok(match begun {
        Begun::Program(program) => Running { _held: Box::new(program), counters: Vec::new() },
        Begun::Threads(held) | Begun::Datagrams(held) => Running { _held: held, counters: Vec::new() },
        Begun::Ours(held, counters) => Running { _held: held, counters },
    })
}

fn begin(kind: Kind, told: Told, folder: &Path, path: Option<PathBuf>) -> io::Result<Begun> {
    let idle = Duration::from_secs(told.idle_s);
    let path = path.unwrap_or_default();
    let program = |words: &[&str], configuration: &dyn Fn(&Path) -> String| {
        Program::start(&path, words, configuration).map(Begun::Program)
    };
    match kind {
        Kind::Prefork => program(&["-D", "FOREGROUND", "-f"], &|own| apache(PREFORK, told, folder, own)),
        Kind::Event => program(&["-D", "FOREGROUND", "-f"], &|own| apache(EVENT, told, folder, own)),
        Kind::Nginx => program(&["-e", "stderr", "-c"], &|own| nginx(16_384, told, folder, own)),
        Kind::NginxFew => program(&["-e", "stderr", "-c"], &|own| nginx(MOST, told, folder, own)),
        Kind::Hyper => {
            in_memory::serve(address(), folder, idle).map(|runtime| Begun::Threads(Box::new(runtime)))
        }
        Kind::Quinn => {
            quic::serve(address(), folder, idle).map(|runtime| Begun::Datagrams(Box::new(runtime)))
        }
        Kind::Ours | Kind::Dhttp => {
            let mut config = ServerConfig::paper().reaching_anywhere();
            config.dhttp.connections = MOST;
            config.dhttp.per_client = PerClient { usual: told.per_client, when_few: told.per_client, few: 0 };
            config.dhttp.patience.idle = idle;
            match told.idle_s {
                0 => config.http.requests = std::num::NonZeroU32::new(1),
                _ => config.http.patience.idle = idle,
            }
            let engine = Engine::start(address(), config, Files::below(folder)?, None)?;
            let counters = engine.counters();
            Ok(Begun::Ours(Box::new(engine), counters))
        }
    }
}

/// 200 processes and a backlog of 128 together (`papers/dhttp#section-vi-b`).
const MOST: usize = 328;

/// Timeout until a server listens.
const PATIENCE_MS: u64 = 10_000;

#[expect(clippy::disallowed_methods, reason = "other people's programs do not say when they are ready")]
fn listening(begun: &mut Begun) -> io::Result<()> {
    if matches!(begun, Begun::Datagrams(_)) {
        return Ok(());
    }
    for _ in 0..PATIENCE_MS / 10 {
        if let Begun::Program(program) = begun
            && let Some(said) = program.ended()
        {
            return Err(io::Error::other(said));
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

fn apache(manner: &str, told: Told, folder: &Path, own: &Path) -> String {
    let modules = ["/usr/lib/apache2/modules", "/usr/lib64/httpd/modules", "/usr/lib/httpd/modules"];
    let modules = modules.into_iter().find(|path| Path::new(path).is_dir()).unwrap_or("modules");
    let crew = match manner {
        // "The maximum number of concurrent clients of 200", says the paper.
        PREFORK => {
            "StartServers 200\nMinSpareServers 1\nMaxSpareServers 200\nServerLimit 200\nMaxRequestWorkers 200\n\
             ListenBacklog 128\n"
        }
        // Debian's defaults, with as many threads as the other has processes.
        _ => {
            "StartServers 2\nThreadsPerChild 25\nMinSpareThreads 25\nMaxSpareThreads 200\nMaxRequestWorkers 200\n"
        }
    };
    let kept = match told.idle_s {
        0 => "KeepAlive Off\n".to_owned(),
        seconds => format!("KeepAlive On\nKeepAliveTimeout {seconds}\nMaxKeepAliveRequests 0\n"),
    };
    let (address, folder, own) = (address(), folder.display(), own.display());
    format!(
        "ServerRoot {own}\nServerName server\nListen {address}\nPidFile {own}/pid\nErrorLog {own}/said\n\
         LoadModule mpm_{manner}_module {modules}/mod_mpm_{manner}.so\n\
         LoadModule authz_core_module {modules}/mod_authz_core.so\n\
         Mutex file:{own}\nDefaultRuntimeDir {own}\n<IfModule unixd_module>\nUser nobody\nGroup nogroup\n</IfModule>\n\
         DocumentRoot {folder}\n<Directory {folder}>\nRequire all granted\n</Directory>\n{kept}{crew}"
    )
}

fn nginx(connections: usize, told: Told, folder: &Path, own: &Path) -> String {
    if told.how == How::Http2Tls {
        // On failure nginx finds no certificate, and reports that.
        let _ = quic::write(own);
    }
    let (address, folder, own) = (address(), folder.display(), own.display());
    let idle_s = told.idle_s;
    let mut text = format!(
        "daemon off; master_process off; worker_processes 1; pid {own}/pid; error_log {own}/said crit;\n\
         events {{ worker_connections {connections}; }}\nhttp {{\n  access_log off; sendfile on; tcp_nopush on;\n  \
         keepalive_timeout {idle_s}s; keepalive_requests 1000000000;\n"
    );
    for name in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
        text += &format!("  {name}_temp_path {own}/{name};\n");
    }
    let manner = match told.how {
        How::Usual | How::FastOpen | How::Http3 | How::Http3Early => "",
        How::Http2 => " http2",
        How::Http2Tls => " ssl http2",
    };
    if told.how == How::Http2Tls {
        text += &format!("  ssl_certificate {own}/certificate.pem; ssl_certificate_key {own}/key.pem;\n");
    }
    text + &format!("  server {{ listen {address} backlog=128{manner}; root {folder}; }}\n}}\n")
}
