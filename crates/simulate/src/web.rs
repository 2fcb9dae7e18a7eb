//! The web on simulated hosts: `fetch`'s client and `http1`'s server as applications, with the CPU time of
//! their work.
//!
//! | module | contents |
//! | --- | --- |
//! | [`browser`] | a client that fetches a page |
//! | [`server`] | a server that holds the page |
//! | [`dhttp_service`] | the part of the server that speaks DHTTP |
//!
//! HTTP is spoken by `http1`, `http2`, `fetch` and `dhttp-proto`, the same code that runs over kernel sockets; TLS has the sizes
//! of `tls::session`.

mod accept_queue;
pub mod browser;
pub mod dhttp_service;
pub mod server;

use fetch::Recovery;
use wire::Time;

use browser::CLIENT_PORT;
pub use browser::{Browser, BrowserConfig, BrowserTimes, DhttpClient, WarmUp};
pub use dhttp_service::{DhttpCounts, DhttpServer};
pub use fetch::serving::{HeadSizes, ResponseTraits, ServerProtocols};
pub use server::{ServerTimes, WebServer};

use crate::world::{Action, Address, Application, HostId, Input, SocketId};

/// Application of a host.
pub enum Web {
    /// A client.
    Browser(Box<Browser>),
    /// A server.
    Server(Box<WebServer>),
}

/// State of a QUIC connection's recovery at one end, from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuicProbe {
    /// Address of the probed end.
    pub local: Address,
    /// Address of the other end.
    pub peer: Address,
    /// Its state, and the time of the change.
    pub recovery: Recovery,
}

impl Web {
    /// Records the state of QUIC's recovery from now on.
    pub fn record(&mut self) {
        match self {
            Self::Browser(browser) => browser.record(),
            Self::Server(server) => server.record(),
        }
    }

    /// Changes of QUIC's recovery at this host, in order.
    pub fn quic_probes(&self, host: HostId) -> Vec<QuicProbe> {
        let of = |port| {
            let local = Address { host, port };
            move |(peer, recovery)| QuicProbe { local, peer, recovery }
        };
        match self {
            Self::Browser(browser) => browser.recoveries().map(of(CLIENT_PORT)).collect(),
            Self::Server(server) => server.recoveries().map(of(server.port())).collect(),
        }
    }
}

impl Application for Web {
    fn handle(&mut self, now: Time, input: Input) {
        match self {
            Self::Browser(browser) => browser.handle(now, input),
            Self::Server(server) => server.handle(now, input),
        }
    }

    fn poll(&mut self, now: Time, fresh: SocketId) -> Action {
        match self {
            Self::Browser(browser) => browser.poll(now, fresh),
            Self::Server(server) => server.poll(now, fresh),
        }
    }
}
