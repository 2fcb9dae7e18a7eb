//! Stage 1, what to run: names, flags and TOML in; checked values with units out.
//!
//! A [`Scenario`] is a value: one page over one network, by one protocol, between two stacks. Every engine takes
//! the same one. Texts for a [`Spec`] flow in; a [`Plan`]'s scenarios flow out. Read in this order:
//!
//! | module | contents |
//! | --- | --- |
//! | [`network`] | round trip, rate, segment size; the papers' and today's networks by name |
//! | [`protocol`] | the protocols by name |
//! | [`mod@tls`] | TLS by version and kind of handshake |
//! | [`client`] | visits, requests, connections |
//! | [`programs`] | the programs at both ends: CPU time, writes, closing |
//! | [`serving`] | the served objects, and those that the client knows |
//! | [`robot`] | settings of `fetch`'s robot, and remarks on its visits |
//! | `robot_plan` | its plan of a visit |
//! | [`remark`] | remarks of the engines that run programs, as sentences |
//! | [`dhttp`] | DHTTP's settings on a network |
//! | [`engine`] | the engines by name |
//! | [`spec`] | a user's specification, and the scenarios that it expands to |
//! | [`mod@file`] | the same as TOML |
//!
//! It runs nothing, reads no file and prints nothing. TOML is confined to its own module; the values here
//! know no format.
//!
//! ```
//! use roundtrip_scenario::spec::{Defaults, Key};
//! use roundtrip_scenario::{Protocol, Spec};
//!
//! let mut spec = Spec::default();
//! spec.set(Key::Network, "modem")?;
//! spec.set(Key::Page, "6651+3883+1866")?;
//! spec.set(Key::Protocol, "http11")?;
//! let plan = spec.plan(&Defaults::compare()).map_err(|error| error.to_string())?;
//! assert_eq!(plan.scenarios[0].protocol, Protocol::Http11);
//! assert_eq!(plan.scenarios[0].page.objects.len(), 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod client;
pub mod dhttp;
pub mod engine;
pub mod file;
pub mod network;
pub mod programs;
pub mod protocol;
pub mod remark;
pub mod robot;
mod robot_plan;
pub mod serving;
pub mod spec;
pub mod tls;

pub use client::{Client, Connection, Requests, Visit};
pub use engine::Engine;
pub use network::Network;
pub use page::{Object, Page, Site};
pub use programs::Programs;
pub use protocol::Protocol;
pub use remark::Remark;
pub use serving::Serving;
pub use spec::{Defaults, Plan, Spec};
pub use tcp::Stack;
pub use tls::Tls;

use fetch::Browser;
use fetch::RequestClass;
use http1::content::{encoded, is_text};
use http1::site::{Compression, File};
use wire::{Bytes, Duration, Seed};

/// The whole input of an engine: one page, one protocol, one network.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The path between client and server.
    pub network: Network,
    /// The page to fetch.
    pub page: Page,
    /// Whether the client has seen the page before.
    pub visit: Visit,
    /// The protocol.
    pub protocol: Protocol,
    /// Security of the connections.
    pub tls: Tls,
    /// TCP at both ends.
    pub stack: Stack,
    /// Behaviour of the client between objects.
    pub client: Client,
    /// Behaviour of the server for each request.
    pub server: Server,
    /// Behaviour of the programs at both ends.
    pub programs: Programs,
    /// Number of runs, for engines whose results vary.
    pub runs: u32,
    /// Random seed.
    pub seed: Seed,
}

impl Scenario {
    /// Scenario with default values: one run of a first visit, to a server without processing time.
    /// Requests are sequential, of 256 bytes (`papers/heidemann-model#workloads`), over one connection
    /// that is not open yet.
    pub fn new(network: Network, page: Page, protocol: Protocol, stack: Stack) -> Self {
        Self {
            network,
            page,
            visit: Visit::First,
            protocol,
            tls: Tls::None,
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
    /// The browser whose policy the client has.
    pub fn browser(&self) -> Browser {
        self.programs.browser.map_or(Browser::CHROMIUM, |browser| browser.0)
    }

    /// Time in which the name of each of the page's hosts is looked up; empty if none takes any.
    pub fn lookups(&self) -> Vec<Duration> {
        let times = self.page.hosts.iter().map(|host| self.programs.client_dns.unwrap_or(host.lookup));
        let times: Vec<Duration> = times.collect();
        if times.iter().all(|time| *time == Duration::ZERO) { Vec::new() } else { times }
    }

    /// Class of each object's request.
    pub fn request_classes(&self) -> Vec<RequestClass> {
        let is_multiplexed = |host: &page::Host| {
            let offers = host.protocols;
            self.protocol.is_of_today() && (offers.http2 || self.protocol.is_http3() && offers.http3)
        };
        self.browser().classes(&self.page, is_multiplexed)
    }

    /// The page in the fewest bytes that this protocol and these programs may transfer. Bodies are
    /// deflated, or in the shortest of the codings that the client accepts. The lower bound of all
    /// protocols counts these bytes.
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
            return Page { notes: self.page.notes.clone(), ..Page::of(&self.page.name, objects) };
        }
        let deflated =
            matches!(self.protocol, Protocol::Http11PipelinedDeflate).then(|| self.page.deflated());
        deflated.flatten().unwrap_or_else(|| self.page.clone())
    }
}

/// Behaviour of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Server {
    /// Time from the arrival of a request to the first byte of the response.
    pub processing: Duration,
}
