//! Stage 2c, real kernels: the same scenario over kernel TCP and an emulated link.
//!
//! A [`scenario::Scenario`] flows in; elapsed times, packets and bytes flow out, run by run, with the pinned
//! settings of the kernel. Read in this order:
//!
//! | module | contents |
//! | --- | --- |
//! | [`series`] | many runs of one scenario: [`measure()`], and its result |
//! | [`run`] | one run: two hosts are created, a page is fetched, the observations are summarised |
//! | [`fidelity`] | the parts of a stack profile that no Linux kernel reproduces, refused where they would show |
//! | [`profile`] | a stack profile in the kernel's settings, set and read back |
//! | `laboratory` | the two hosts and the link between them, made of [`testbed`]'s parts |
//! | [`driver`] | client and server on kernel sockets |
//! | [`peers`] | third-party programs in place of our own |
//! | `whole_page` | whole pages over TLS, served by ours or theirs so that a browser plays the graph, fetched by Chromium or curl |
//! | [`error`] | errors and their remedies |
//!
//! A measurement is never repeatable to the byte. Only this crate, [`testbed`] and `dhttp` touch the operating
//! system on behalf of an engine.
//!
//! ```no_run
//! use roundtrip_measure::{Options, measure};
//! use scenario::{Network, Page, Protocol, Scenario, Stack};
//!
//! testbed::prepare()?; // before there is a second thread: it may move this process into namespaces of its own
//! let network = Network::named("modem")?;
//! let page = Page::named("small-cluster")?;
//! let scenario = Scenario::new(network, page, Protocol::Http11, Stack::named("linux")?);
//! let measured = measure(&scenario, &Options::default(), |_| ())?;
//! println!("{} ms", measured.elapsed_ms.mean);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod driver;
pub mod error;
pub mod fidelity;
mod laboratory;
pub mod peers;
pub mod profile;
pub mod run;
pub mod series;
mod socket;
mod whole_page;

pub use error::Error;
pub use peers::Peers;
pub use series::{Measurement, Options, Progress, measure};
