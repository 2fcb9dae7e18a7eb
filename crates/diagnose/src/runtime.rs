//! Programs by the names of their processes, and how each writes without Nagle's algorithm. A live capture knows the names.
//!
//! Only the wording of advice depends on it. Go, Rust and C programs have names of their own: the general advice lists them.

use crate::cause::Fix;
use crate::program::{ONE_WRITE, sender};

/// A runtime or a server that is known by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runtime {
    Python,
    Node,
    Java,
    Php,
    Ruby,
    Perl,
    DotNet,
    Nginx,
    HaProxy,
    Socat,
    Curl,
    /// PostgreSQL, Redis and memcached: they set TCP_NODELAY themselves.
    Database,
}

impl Runtime {
    /// Returns the runtime of a process by its name (`/proc/PID/comm`).
    pub(crate) fn named(name: &str) -> Option<Self> {
        let is = |prefix: &str| name.starts_with(prefix);
        Some(match name {
            _ if is("python") || is("gunicorn") || is("uvicorn") => Self::Python,
            _ if is("node") || name == "MainThread" || is("deno") || is("bun") => Self::Node,
            _ if is("java") => Self::Java,
            _ if is("php") => Self::Php,
            _ if is("ruby") || is("puma") || is("unicorn") => Self::Ruby,
            _ if is("perl") => Self::Perl,
            _ if is("dotnet") || is("mono") => Self::DotNet,
            _ if is("nginx") => Self::Nginx,
            _ if is("haproxy") => Self::HaProxy,
            _ if is("socat") => Self::Socat,
            _ if is("curl") => Self::Curl,
            _ if is("postgres") || is("redis") || is("memcached") => Self::Database,
            _another => return None,
        })
    }

    /// Returns whether a program takes longer when its code is first used: a virtual machine loads and compiles it, a browser starts
    /// processes.
    pub(crate) fn is_slow_at_first(name: &str) -> bool {
        const BROWSERS: [&str; 5] = ["chrom", "headless_shell", "firefox", "msedge", "WebKitNetwork"];
        Self::named(name).is_some_and(Self::loads_classes)
            || BROWSERS.iter().any(|browser| name.starts_with(browser))
    }

    /// Returns whether it loads and compiles code when that is first used.
    pub(crate) const fn loads_classes(self) -> bool {
        matches!(self, Self::Java | Self::DotNet)
    }

    /// Returns the fixes for a segment that this program's socket held; a relay writes what it reads, and cannot write
    /// messages whole.
    pub(crate) const fn nagle_fixes(self) -> &'static [Fix] {
        match self {
            Self::Python => &[ONE_WRITE, PYTHON],
            Self::Node => &[ONE_WRITE, NODE],
            Self::Java => &[ONE_WRITE, JAVA],
            Self::Php => &[ONE_WRITE, PHP],
            Self::Ruby => &[ONE_WRITE, RUBY],
            Self::Perl => &[ONE_WRITE, PERL],
            Self::DotNet => &[ONE_WRITE, DOT_NET],
            Self::Nginx => &[NGINX],
            Self::HaProxy => &[HAPROXY],
            Self::Socat => &[SOCAT],
            Self::Curl => &[CURL],
            Self::Database => &[DATABASE],
        }
    }
}

const PYTHON: Fix = sender(
    "set TCP_NODELAY: sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1); in http.server and socketserver \
     StreamRequestHandler.disable_nagle_algorithm = True and wbufsize = -1",
);
const NODE: Fix =
    sender("set TCP_NODELAY: socket.setNoDelay(true), or collect the pieces by cork() and uncork()");
const JAVA: Fix = sender("set TCP_NODELAY: socket.setTcpNoDelay(true) (Netty: ChannelOption.TCP_NODELAY)");
const PHP: Fix = sender(
    "set TCP_NODELAY: stream_context_create(['socket' => ['tcp_nodelay' => true]]), or socket_set_option($socket, SOL_TCP, \
     TCP_NODELAY, 1); for memcached Memcached::OPT_TCP_NODELAY",
);
const RUBY: Fix = sender("set TCP_NODELAY: socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)");
const PERL: Fix = sender(
    "set TCP_NODELAY: setsockopt($socket, IPPROTO_TCP, TCP_NODELAY, 1) (use Socket qw(IPPROTO_TCP TCP_NODELAY))",
);
const DOT_NET: Fix = sender("set TCP_NODELAY: Socket.NoDelay = true (TcpClient.NoDelay)");
const NGINX: Fix = sender("set tcp_nodelay on (the default)");
const HAPROXY: Fix = sender("set option http-no-delay for streamed messages");
const SOCAT: Fix = sender("give the address the option nodelay (TCP:HOST:PORT,nodelay)");
const CURL: Fix = sender("leave out --no-tcp-nodelay: curl sets TCP_NODELAY by itself");
const DATABASE: Fix = sender(
    "look at the network behind it: this program sets TCP_NODELAY by itself, a proxy in front of it may not",
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_known_by_their_names_and_relays_write_what_they_read() {
        let fixes = |name: &str| Runtime::named(name).map(Runtime::nagle_fixes);
        assert!(fixes("python3.11").unwrap()[1].change.contains("disable_nagle_algorithm"));
        assert!(fixes("php8.2").unwrap()[1].change.contains("tcp_nodelay"));
        assert_eq!(fixes("socat").unwrap().len(), 1);
        assert!(fixes("socat").unwrap()[0].change.contains("nodelay"));
        assert_eq!(fixes("my-go-server"), None);
        assert_eq!(["chromium", "java", "curl"].map(Runtime::is_slow_at_first), [true, true, false]);
    }
}
