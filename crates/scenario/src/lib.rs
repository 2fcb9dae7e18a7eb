//! Stage 1, what to run: names, flags and TOML in; checked values with units out.
//!
//! A [`Scenario`] is a value: one page over one network, by one protocol, between two stacks. Every engine takes
//! the same one. In flow texts to a [`Spec`]; out flow a [`Plan`]'s scenarios. Read in this order:
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`network`] | round trip, rate, segment size; the papers' and today's by name |
//! | [`page`] | the objects of a page and their sizes; the papers' pages by name |
//! | [`protocol`] | how the page is fetched |
//! | [`client`] | visits, requests, connections |
//! | [`programs`] | what the programs at both ends take, how they write and close |
//! | [`serving`] | what is served, and what of it the client knows |
//! | [`robot`] | what all that means to the robot of `pageload`, and what it tells |
//! | [`dhttp`] | what DHTTP is on a network |
//! | [`engine`] | who is asked |
//! | [`spec`] | what a user asked for, and the scenarios that come of it |
//! | [`mod@file`] | the same as TOML |
//! | [`har`] | a page from a browser's HTTP archive |
//! | [`site`] | sites made of bytes: Microscape |
//!
//! What it is not: it runs nothing, reads no file and prints nothing. What TOML looks like stays in its own
//! module; the values here know no format.

pub mod client;
pub mod dhttp;
pub mod engine;
pub mod file;
pub mod har;
pub mod network;
pub mod page;
pub mod programs;
pub mod protocol;
pub mod robot;
pub mod serving;
pub mod site;
pub mod spec;

pub use client::{Client, Connection, Requests, Visit};
pub use engine::Engine;
pub use network::Network;
pub use page::{Object, Page};
pub use programs::Programs;
pub use protocol::Protocol;
pub use serving::Serving;
pub use site::Site;
pub use spec::{Defaults, Plan, Spec};
pub use tcp::Stack;

use http1::content::{encoded, is_text};
use http1::site::{Compression, File};
use wire::{Bytes, Duration, Seed};

/// One thing to run: the whole input of an engine.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The path between client and server.
    pub network: Network,
    /// What is fetched.
    pub page: Page,
    /// Whether the client has seen the page before.
    pub visit: Visit,
    /// How it is fetched.
    pub protocol: Protocol,
    /// How TCP behaves at both ends.
    pub stack: Stack,
    /// What the client does between one object and the next.
    pub client: Client,
    /// What the server does for each request.
    pub server: Server,
    /// How the programs at both ends work.
    pub programs: Programs,
    /// How often, for engines whose results vary.
    pub runs: u32,
    /// What makes a run repeatable.
    pub seed: Seed,
}

impl Scenario {
    /// The plainest one: a first visit, requests of 256 bytes (`papers/heidemann-model#workloads`), one after the other over
    /// one connection that is not open yet, to a server that takes no time; once.
    pub fn new(network: Network, page: Page, protocol: Protocol, stack: Stack) -> Self {
        Self {
            network,
            page,
            visit: Visit::First,
            protocol,
            stack,
            client: Client { parallel: protocol.connections(), ..Client::default() },
            server: Server::default(),
            programs: Programs::default(),
            runs: 1,
            seed: Seed::default(),
        }
    }
}

impl Scenario {
    /// The page in the fewest bytes that this protocol and these programs may transfer: bodies deflated, or in the shortest of
    /// the codings that the client accepts. The minimum that no protocol beats is that of these bytes.
    pub fn transferred(&self) -> Page {
        if self.programs.server_compression == Some(Compression::None) {
            return self.page.clone();
        }
        if let (Some(codings), Some(contents)) = (self.programs.client_codings, &self.page.contents) {
            let shortest = |file: &File| {
                let coded = codings.iter().filter(|_| is_text(&file.content_type));
                let coded = coded.map(|coding| encoded(coding, &file.body).len());
                Bytes::new(coded.chain([file.body.len()]).min().unwrap_or_default() as u64)
            };
            let files = contents.files.iter().filter(|file| !file.body.is_empty());
            let objects = files.map(|file| Object::sized(shortest(file))).collect();
            return Page { objects, contents: None, ..self.page.clone() };
        }
        let deflated =
            matches!(self.protocol, Protocol::Http11PipelinedDeflate).then(|| self.page.deflated());
        deflated.flatten().unwrap_or_else(|| self.page.clone())
    }
}

/// What the server does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Server {
    /// From the arrival of a request to the first byte of the answer.
    pub processing: Duration,
}
