//! Stage 2b, virtual time: the same scenario, robot and server as on the kernel, over TCP of our own.
//!
//! A scenario flows in, [`simulate`] runs it packet by packet, and a row flows out. For more than a row, an
//! [`Experiment`] returns the whole run, segment by segment. Read in this order:
//!
//! | module | contents |
//! | --- | --- |
//! | [`world`] | hosts, links, and one queue of future events |
//! | [`web`] | `fetch`'s robot and `http1`'s server on hosts, and the time their work takes |
//! | [`profile`] | a stack profile translated into TCP's configuration |
//! | [`page`] | a scenario as a client, its servers and their links |
//! | `topology` | these hosts and links in a world |
//! | [`dumbbell`] | dumbbell topology: client populations and one server behind a bottleneck |
//! | [`stalls`] | attribution of a run's time to stall causes |
//! | [`series`] | runs of a scenario as means |
//! | [`capture`] | the packets of a run as a file for Wireshark |
//! | [`qlog`](mod@qlog) | QUIC's ends of a run as traces for qvis |
//! | [`error`] | why a scenario cannot be simulated |
//!
//! Not modelled: load of hosts, IP, checksums, or anything below the link's queue. Only applications take
//! CPU time, as much as configured.
//!
//! ```
//! use roundtrip_simulate::{Hosts, simulate};
//! use scenario::{Network, Page, Protocol, Scenario, Stack};
//!
//! let network = Network::named("modem")?;
//! let page = Page::named("small-cluster")?;
//! let scenario = Scenario::new(network, page, Protocol::Http11, Stack::named("linux")?);
//! let simulation = simulate(&scenario, Hosts::default())?;
//! assert!(simulation.metrics.elapsed_ms.is_some_and(|elapsed_ms| elapsed_ms > 1_000.0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod capture;
pub mod dumbbell;
pub mod error;
pub mod page;
pub mod profile;
pub mod qlog;
pub mod series;
pub mod stalls;
mod topology;
pub mod web;
pub mod world;

pub use error::Error;
pub use page::{Experiment, Hosts, PageResult};
pub use series::{Simulation, simulate, simulate_with};
