//! Proxies at a victim's address: one that passes every byte, and the programs nginx, HAProxy, Squid and Apache in front of the
//! server, as they come.

use std::fs;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use test_fixture::KilledOnDrop;

use super::host::Host;

/// A proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proxy {
    /// Passes every byte, as no proxy of HTTP passes more.
    Bytes,
    Nginx,
    Haproxy,
    Squid,
    Apache,
}

impl Proxy {
    /// The programs, each of which may be missing.
    pub(crate) const PROGRAMS: [Self; 4] = [Self::Nginx, Self::Haproxy, Self::Squid, Self::Apache];

    /// Returns the program and its arguments before the configuration file.
    const fn command(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Self::Bytes => ("true", &[]),
            Self::Nginx => ("nginx", &["-c"]),
            Self::Haproxy => ("haproxy", &["-db", "-f"]),
            Self::Squid => ("squid", &["-N", "-f"]),
            Self::Apache => ("apache2", &["-X", "-f"]),
        }
    }

    /// Whether it can be started here.
    pub(crate) fn is_installed(self) -> bool {
        skip::has(self.command().0)
    }

    /// Starts it at this address of the victim, in front of the server; returns what ends it.
    pub(crate) fn start(self, victim: &Host, at: SocketAddr, server: SocketAddr) -> Option<Program> {
        if self == Self::Bytes {
            start_relay(victim, at, server);
            return None;
        }
        let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let directory = directory.join(format!("proxied-{}-{self:?}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        // Squid and Apache drop the rights of root.
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).unwrap();
        let file = directory.join("configuration");
        fs::write(&file, self.configuration(&directory, at, server)).unwrap();
        let (program, arguments) = self.command();
        let mut command = Command::new(program);
        command.args(arguments).arg(&file).env("PATH", skip::path());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let process = victim.run(move || command.spawn()).unwrap();
        let program = Program { _process: KilledOnDrop(process), directory };
        let is_listening = move || {
            thread::park_timeout(Duration::from_millis(50));
            TcpStream::connect(at).is_ok()
        };
        assert!(victim.run(move || (0..600).any(|_| is_listening())), "{self:?} does not listen");
        Some(program)
    }

    fn configuration(self, directory: &Path, at: SocketAddr, server: SocketAddr) -> String {
        let (location, host, port) = (directory.display(), server.ip(), server.port());
        match self {
            Self::Bytes => String::new(),
            Self::Nginx => {
                let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
                let temporary =
                    temporary.map(|kind| format!("{kind}_temp_path {location}/{kind}; ")).concat();
                format!(
                    "daemon off; master_process off; pid {location}/pid; error_log {location}/log; events {{}}\n\
                     http {{ access_log off; {temporary}\n\
                     server {{ listen {at}; location / {{ proxy_pass http://{server}; }} }} }}\n"
                )
            }
            Self::Haproxy => format!(
                "defaults\n mode http\n timeout connect 5s\n timeout client 20s\n timeout server 20s\n\
                 frontend clients\n bind {at}\n default_backend servers\nbackend servers\n server first {server}\n"
            ),
            Self::Squid => format!(
                "http_port {at} accel defaultsite=h no-vhost\ncache_peer {host} parent {port} 0 no-query originserver\n\
                 http_access allow all\ncache deny all\npid_filename none\naccess_log none\ncache_log /dev/null\n\
                 cache_store_log none\ncoredump_dir {location}\nvisible_hostname victim\nshutdown_lifetime 0 seconds\n"
            ),
            Self::Apache => {
                let modules = "/usr/lib/apache2/modules";
                let loaded = ["mpm_event", "authz_core", "proxy", "proxy_http"];
                let loaded = loaded.map(|name| format!("LoadModule {name}_module {modules}/mod_{name}.so\n"));
                format!(
                    "ServerRoot {location}\nServerName victim\nListen {at}\nPidFile {location}/pid\nErrorLog {location}/log\n\
                     {}Mutex file:{location}\nDefaultRuntimeDir {location}\n\
                     <IfModule unixd_module>\nUser nobody\nGroup nogroup\n</IfModule>\n\
                     ProxyPass / http://{server}/\n",
                    loaded.concat()
                )
            }
        }
    }
}

/// A running program, ended and removed with its directory when dropped.
pub(crate) struct Program {
    _process: KilledOnDrop,
    directory: PathBuf,
}

impl Drop for Program {
    fn drop(&mut self) {
        // What remains is in the build's directory for temporary files.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn start_relay(victim: &Host, at: SocketAddr, server: SocketAddr) {
    let listener = victim.run(move || TcpListener::bind(at).unwrap());
    victim.run(move || {
        thread::spawn(move || {
            for incoming in listener.incoming() {
                let incoming = incoming.unwrap();
                let upstream = TcpStream::connect(server).unwrap();
                let [back, forth] = [&incoming, &upstream].map(|stream| stream.try_clone().unwrap());
                thread::spawn(move || copy(incoming, forth));
                thread::spawn(move || copy(upstream, back));
            }
        });
    });
}

fn copy(mut from: TcpStream, mut to: TcpStream) {
    // Either end may break: then the other is closed.
    let _ = std::io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
}
