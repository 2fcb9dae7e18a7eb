//! Configuration of a server: the state machines' profiles, and the options of sockets and threads.
//!
//! Not the responses: those are the handler's.

use std::num::NonZeroUsize;

use dhttp_proto::ServerConfig as Machine;
use dhttp_proto::address::Reach;
use http1::message::WritePolicy;
use http1::server::ServerConfig as Plain;
use wire::Duration;

use super::clients::ClientLimits;

/// Configuration of a server.
#[derive(Clone, Copy, Debug)]
pub struct ServerConfig {
    /// DHTTP, in each thread; limits on the number of connections are divided among the threads.
    pub dhttp: Machine,
    /// Plain HTTP on connections of clients.
    pub http: Plain,
    /// Number of threads.
    pub threads: usize,
    /// Maximum number of client connections, in total.
    pub accepted: usize,
    /// Limits of one client.
    pub clients: ClientLimits,
    /// Maximum number of requests that wait for a handler, in one thread.
    pub pending: usize,
    /// Maximum size of a request body, in bytes.
    pub body_bytes: usize,
    /// A connection that accepts no pending bytes for this long is reset.
    pub stall: Duration,
    /// Grace period for pending work at shutdown.
    pub grace: Duration,
    /// Whether a connection to a client that has proved its address may carry data in its SYN (RFC 7413), where the kernel
    /// allows it. A large response then begins to arrive after one round trip.
    pub fast_open: bool,
    /// Whether to accept datagrams for other hosts that firewall rules divert here, and respond from the server's own address
    /// (`papers/dhttp#section-iv-a`). Requires `CAP_NET_ADMIN`.
    pub intercepts: bool,
}

/// Gathers the responses to pipelined requests into one write, up to the number of bytes read in one call.
const WRITES_GATHERED: WritePolicy =
    WritePolicy { head_apart: false, buffer: None, gather: NonZeroUsize::new(16_384) };

impl ServerConfig {
    /// Returns the configuration for the public Internet. Before a client has proved its address, responses by UDP have at most
    /// three times the bytes of its request.
    pub fn internet() -> Self {
        Self {
            dhttp: Machine::internet(),
            http: Plain { writes: WRITES_GATHERED, ..Plain::default() },
            threads: std::thread::available_parallelism().map_or(1, Into::into),
            accepted: 10_000,
            clients: ClientLimits::default(),
            pending: 16_384,
            body_bytes: 1 << 20,
            stall: Duration::from_secs(30),
            grace: Duration::from_secs(5),
            fast_open: true,
            intercepts: false,
        }
    }

    /// Returns the paper's configuration, for laboratories: it trusts every address.
    pub fn paper() -> Self {
        Self { dhttp: Machine::paper(), threads: 1, fast_open: false, ..Self::internet() }
    }

    /// Allows connections to addresses that are not global, for an intranet or a single host. All clients may then share one
    /// address (a load balancer, a load generator) or a slow link. So only the limits on all clients together apply.
    #[must_use]
    pub fn reaching_anywhere(mut self) -> Self {
        self.clients = ClientLimits {
            connections: usize::MAX,
            body_bytes: u64::MAX,
            min_read_rate: 0,
            pending: usize::MAX,
            ..self.clients
        };
        self.dhttp.reach = Reach::Anywhere;
        self
    }
}
