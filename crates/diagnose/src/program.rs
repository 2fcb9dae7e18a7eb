//! Programs by the ports that they listen on, and their specific fixes: a setting of nginx does not help PostgreSQL.
//!
//! Not identification: a port is a hint, and only the wording of advice depends on it. Cleartext HTTP on any port
//! counts as web. Ports: IANA's service registry, and the defaults of each program's documentation.

use core::net::SocketAddr;

use crate::cause::{Cause, Fix, Party};

/// A kind of server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    Web,
    PostgreSql,
    MySql,
    Redis,
    MongoDb,
    Kafka,
    Other,
}

impl Program {
    /// Returns the kind of server on that port; `requests` is the number of HTTP requests read.
    pub(crate) const fn of(server: SocketAddr, requests: u64) -> Self {
        match server.port() {
            _ if requests > 0 => Self::Web,
            80 | 443 | 3_000 | 3_128 | 5_000 | 8_000..=8_999 => Self::Web,
            5_432 | 6_432 => Self::PostgreSql,
            3_306 | 33_060 => Self::MySql,
            6_379 | 6_380 => Self::Redis,
            27_017..=27_019 => Self::MongoDb,
            9_092..=9_094 => Self::Kafka,
            _ => Self::Other,
        }
    }

    /// Returns the fixes for that program; `None` where the cause's own fixes apply.
    pub(crate) const fn fixes(self, cause: Cause) -> Option<&'static [Fix]> {
        match (self, cause) {
            (Self::Web, _) => None,
            (Self::PostgreSql, Cause::ServerThink) => Some(&[POSTGRESQL]),
            (Self::MySql, Cause::ServerThink) => Some(&[MYSQL]),
            (Self::Redis, Cause::ServerThink) => Some(&[REDIS]),
            (Self::MongoDb, Cause::ServerThink) => Some(&[MONGODB]),
            (Self::Kafka, Cause::ServerThink) => Some(&[KAFKA]),
            (Self::Other, Cause::ServerThink) => Some(&[PROFILE]),
            (_, Cause::ClientThink) => Some(&[BATCH]),
            (Self::PostgreSql, Cause::ConnectionPerRequest | Cause::ConnectionSetup) => {
                Some(&[POOL, PGBOUNCER])
            }
            (_, Cause::ConnectionPerRequest | Cause::ConnectionSetup) => Some(&[POOL]),
            (Self::Other, Cause::Nagle | Cause::NagleDelayedAck) => Some(&[ONE_WRITE, NODELAY_ANY, CORK]),
            (_, Cause::Nagle | Cause::NagleDelayedAck) => Some(&[ONE_WRITE, NODELAY, CORK]),
            (_, Cause::ShortInitialSegment) => Some(&[ONE_WRITE, CORK, WINDOW]),
            (_, Cause::ResetLostData) => Some(&[LINGER, RETRY]),
            (_, Cause::ResetMidTransfer) => Some(&[ABORT, FIREWALL]),
            (_, Cause::BandwidthLimited) => Some(&[LESS, LINK]),
            (_, Cause::PathLatency) => Some(&[NEARER, BATCH]),
            _ => None,
        }
    }
}

const fn server(change: &'static str) -> Fix {
    Fix { party: Party::ServerApplication, change }
}

const fn client(change: &'static str) -> Fix {
    Fix { party: Party::ClientApplication, change }
}

pub(crate) const fn sender(change: &'static str) -> Fix {
    Fix { party: Party::SendingApplication, change }
}

const POSTGRESQL: Fix = server(
    "find the statement (log_min_duration_statement = 0, pg_stat_statements) and its plan (EXPLAIN (ANALYZE, BUFFERS), \
     auto_explain); look for lock waits (log_lock_waits = on, pg_stat_activity)",
);
const MYSQL: Fix = server(
    "find the statement (slow_query_log = ON with long_query_time = 0, performance_schema) and its plan (EXPLAIN ANALYZE); look \
     for lock waits (sys.innodb_lock_waits)",
);
const REDIS: Fix = server(
    "find the command (SLOWLOG GET, LATENCY DOCTOR): KEYS, large ranges and Lua scripts block all others; look for fork, AOF fsync \
     and swapping",
);
const MONGODB: Fix = server(
    "find the operation (db.setProfilingLevel(1, { slowms: 0 }), db.currentOp()) and its plan (explain)",
);
const KAFKA: Fix = server(
    "look at the broker's request metrics (RequestQueueTimeMs, LocalTimeMs, RemoteTimeMs); a fetch waits by itself for fetch.min.bytes \
     up to fetch.max.wait.ms, and a produce with acks=all for the replicas",
);
const PROFILE: Fix =
    server("find what the server waits for (its log with times, a profiler, strace -r -f on its process)");
const BATCH: Fix = client(
    "send the next request as soon as it is known: pipelined, or many in one (batches, bulk commands), with no work in between",
);
const POOL: Fix =
    client("keep connections open and reuse them (a pool with at least as many as are needed at once)");
const PGBOUNCER: Fix = server("or put a pooler near the server (PgBouncer, pgcat)");
pub(crate) const ONE_WRITE: Fix =
    sender("write each message with one call (writev, a buffered writer flushed once), not piece by piece");
const NODELAY: Fix = sender(
    "set TCP_NODELAY on the socket (most clients and servers of databases do, and have an option for it)",
);
const NODELAY_ANY: Fix = sender(
    "set TCP_NODELAY on the socket (Node setNoDelay(true); Java setTcpNoDelay(true); PHP tcp_nodelay in stream_context_create; C# \
     NoDelay = true; Rust set_nodelay(true); Python, Ruby, Perl and C setsockopt(IPPROTO_TCP, TCP_NODELAY); Go sets it unless \
     SetNoDelay(false) is called; socat nodelay)",
);
const CORK: Fix = sender("or hold the pieces together with TCP_CORK until the message is whole");
const WINDOW: Fix = Fix {
    party: Party::SendingKernel,
    change: "an initial window of ten segments (ip route change ... initcwnd 10)",
};
const LINGER: Fix =
    server("close in two steps: shutdown(SHUT_WR), then read to the end (or for some seconds), then close");
const RETRY: Fix = client("resend requests without a response on a new connection, if they may be repeated");
const ABORT: Fix = Fix {
    party: Party::ReceivingApplication,
    change: "find out why it aborts: a crash, a timeout, a limit on the size or the number of messages (its log at that time)",
};
const LESS: Fix = server("send less: compression, fewer columns or rows, differences instead of copies");
const LINK: Fix = Fix { party: Party::Network, change: "a faster link, or less competing traffic" };
const NEARER: Fix = server("run it nearer to its clients (the same region, a replica)");
const FIREWALL: Fix = Fix {
    party: Party::Network,
    change: "check firewalls, NAT and load balancers with limits on connections or idle time",
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cause::Describe as _;

    const PORTS: [u16; 9] = [80, 443, 5_432, 3_306, 6_379, 27_017, 9_092, 22, 40_000];

    #[test]
    fn only_web_connections_get_fixes_of_web_servers() {
        for (port, cause) in PORTS.into_iter().flat_map(|port| Cause::ALL.map(|cause| (port, cause))) {
            let program = Program::of(SocketAddr::from(([10, 0, 0, 1], port)), 0);
            let fixes = program.fixes(cause).unwrap_or(cause.about().fixes);
            // These causes apply only to HTTP and DHTTP, or to datagrams (QUIC) of the whole capture.
            let of_http = [
                Cause::ExpectContinue,
                Cause::HeadOfLine,
                Cause::DatagramResend,
                Cause::NotTcp,
                Cause::Http2FlowControl,
                Cause::QuicUnanswered,
            ];
            let is_http = program == Program::Web || of_http.contains(&cause);
            let words = ["nginx", "Apache", "HTTP", "http", "header", "image", "CDN", "curl", "browser"];
            let is_of_web = |fix: &Fix| words.iter().any(|word| fix.change.contains(word));
            assert!(is_http || !fixes.iter().any(is_of_web), "{port} {}", cause.name());
            assert!(!cause.about().is_fault || !fixes.is_empty());
        }
    }

    #[test]
    fn http_is_the_web_on_any_port() {
        let odd = SocketAddr::from(([10, 0, 0, 1], 5_432));
        assert_eq!((Program::of(odd, 0), Program::of(odd, 1)), (Program::PostgreSql, Program::Web));
    }
}
