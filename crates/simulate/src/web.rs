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

use wire::Time;

pub use browser::{Browser, BrowserConfig, BrowserTimes, DhttpClient, WarmUp};
pub use dhttp_service::{DhttpCounts, DhttpServer};
pub use fetch::serving::{HeadSizes, ResponseTraits, ServerProtocols};
pub use server::{ServerTimes, WebServer};

use crate::world::{Action, Application, Input, SocketId};

/// Application of a host.
pub enum Web {
    /// A client.
    Browser(Box<Browser>),
    /// A server.
    Server(Box<WebServer>),
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
