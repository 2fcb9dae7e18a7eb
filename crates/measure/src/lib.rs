//! Stage 2c, real kernels: the same scenario over kernel TCP and an emulated link.
//!
//! In flows a [`scenario::Scenario`]; out flow elapsed times, packets and bytes, run by run, with the pinned
//! settings of the kernel. Read in this order:
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`series`] | many runs of one scenario: [`measure()`], and its result |
//! | [`run`] | one run: two hosts are created, a page is fetched, the observations are summarised |
//! | [`fidelity`] | the parts of a stack profile that no Linux kernel reproduces, refused where they would show |
//! | [`profile`] | a stack profile in the kernel's settings, set and read back |
//! | `laboratory` | the two hosts and the link between them |
//! | [`namespace`] | a private network namespace, held by a thread, gone with the process |
//! | [`netlink`], [`netlink_message`] | links, addresses, and routes with TCP metrics; messages of netlink |
//! | [`card`], [`mounts`] | offloads of a network device; mounts that only one thread sees |
//! | [`driver`] | robot and server on kernel sockets |
//! | [`peers`] | third-party programs in place of ours |
//! | [`emulator`] | the link in real time, with its own lateness measured |
//! | [`ack_heartbeat`], [`advertised_window`] | the delayed ACKs and the slow start of 1996, which no setting provides: shims in the link |
//! | [`reactions`] | reaction times of each host, seen from outside |
//! | [`tun`], [`clock`] | network interfaces whose other end is a descriptor; the one place that reads the clock |
//! | [`probe`] | one-way latency in excess of the link's configured delay |
//! | [`lateness`] | a histogram of durations |
//! | [`privilege`], [`error`] | rights of this process; errors and their remedies |
//!
//! It predicts nothing, and a measurement is never repeatable to the byte. Only this crate and
//! `dhttp` touch the operating system on behalf of an engine.
//!
//! ```no_run
//! use roundtrip_measure::{Options, measure, prepare};
//! use scenario::{Network, Page, Protocol, Scenario, Stack};
//!
//! prepare()?; // before there is a second thread: it may move this process into namespaces of its own
//! let network = Network::named("modem")?;
//! let page = Page::named("small-cluster")?;
//! let scenario = Scenario::new(network, page, Protocol::Http11, Stack::named("linux")?);
//! let measured = measure(&scenario, &Options::default(), |_| ())?;
//! println!("{} ms", measured.elapsed_ms.mean);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod ack_heartbeat;
pub mod advertised_window;
pub mod card;
pub mod clock;
pub mod driver;
pub mod emulator;
pub mod error;
pub mod fidelity;
mod laboratory;
pub mod lateness;
pub mod mounts;
pub mod namespace;
pub mod netlink;
pub mod netlink_message;
pub mod peers;
pub mod privilege;
pub mod probe;
pub mod profile;
pub mod reactions;
pub mod run;
pub mod series;
mod socket;
pub mod tun;

pub use emulator::Emulator;
pub use error::Error;
pub use namespace::Namespace;
pub use peers::Peers;
pub use privilege::{available, prepare};
pub use series::{Measured, Options, Progress, measure};
