//! Configuration of a server: the state machines' profiles, and the options of sockets and threads.
//!
//! Not what is answered: that is the handler's.

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
    /// DHTTP, in each thread: limits that count connections are divided among them.
    pub dhttp: Machine,
    /// Plain HTTP on connections of clients.
    pub http: Plain,
    /// Threads.
    pub threads: usize,
    /// Connections of clients, in all.
    pub accepted: usize,
    /// Limits of one client.
    pub clients: ClientLimits,
    /// The largest body of a request, in bytes.
    pub body_bytes: usize,
    /// A connection that takes no bytes for so long while some wait is reset.
    pub stall: Duration,
    /// Grace period for pending work at shutdown.
    pub grace: Duration,
    /// Whether a connection to a client that has proved its address may carry data in its SYN (RFC 7413), where the
    /// kernel allows it: a large answer in one round trip.
    pub fast_open: bool,
    /// Whether it also takes datagrams for others that rules divert to it, and answers them from its own address
    /// (`papers/dhttp#section-iv-a`). It takes `CAP_NET_ADMIN`.
    pub intercepts: bool,
}

/// Answers to requests that were sent ahead are written together, as much as is read at once.
const GATHERED: WritePolicy =
    WritePolicy { head_apart: false, buffer: None, gather: NonZeroUsize::new(16_384) };

impl ServerConfig {
    /// For the Internet of today: nothing for nothing.
    pub fn internet() -> Self {
        Self {
            dhttp: Machine::internet(),
            http: Plain { writes: GATHERED, ..Plain::default() },
            threads: std::thread::available_parallelism().map_or(1, Into::into),
            accepted: 10_000,
            clients: ClientLimits::default(),
            body_bytes: 1 << 20,
            stall: Duration::from_secs(30),
            grace: Duration::from_secs(5),
            fast_open: true,
            intercepts: false,
        }
    }

    /// As in the paper, for laboratories: it believes every address.
    pub fn paper() -> Self {
        Self { dhttp: Machine::paper(), threads: 1, fast_open: false, ..Self::internet() }
    }

    /// Also connects to addresses that are not of the whole Internet: for an intranet, or one machine. There all clients
    /// may be behind one address (a load balancer, a generator of load) or a slow line, and only limits of all together
    /// hold.
    #[must_use]
    pub fn reaching_anywhere(mut self) -> Self {
        self.clients =
            ClientLimits { connections: usize::MAX, body_bytes: u64::MAX, min_read_rate: 0, ..self.clients };
        self.dhttp.reach = Reach::Anywhere;
        self
    }
}
