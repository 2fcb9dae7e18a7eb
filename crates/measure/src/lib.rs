//! Stage 2c, real kernels: the same scenario over kernel TCP and an emulated link.
//!
//! In flows a [`scenario::Scenario`]; out flow elapsed times, packets and bytes, run by run, with what the
//! kernel was pinned to. Read in this order:
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`series`] | many runs of one scenario: [`measure()`], and what it returns |
//! | [`run`] | one run: two hosts are made, a page is fetched, what was seen is written down |
//! | [`fidelity`] | the parts of a stack profile that no Linux kernel reproduces, refused where they would show |
//! | [`profile`] | what a stack profile means on this kernel, set and read back |
//! | `laboratory` | the two hosts and the link between them |
//! | [`namespace`] | a network of one's own, held by a thread, gone with the process |
//! | [`netlink`] | links, addresses, and routes that tell TCP how to behave |
//! | [`card`], [`mounts`] | what a network device does by itself; mounts that only one thread sees |
//! | [`driver`] | robot and server on kernel sockets |
//! | [`peers`] | programs that others wrote, in the place of ours |
//! | [`emulator`] | the link in real time, with its own lateness measured |
//! | [`ack_heartbeat`], [`advertised_window`] | the delayed ACKs and the slow start of 1996, which no setting gives: shims in the link |
//! | [`reactions`] | how long each host took to answer, seen from outside |
//! | [`tun`], [`clock`] | network interfaces whose other end is a descriptor; the one place that reads the clock |
//! | [`probe`] | what a journey takes beyond what the link is configured to take |
//! | [`lateness`] | many times in a histogram |
//! | [`sniffer`] | packets as they pass this machine's own interfaces |
//! | [`sockets`] | what the kernel says of its TCP sockets: whose, and what held them up |
//! | [`privilege`], [`error`] | what the system lets this process do; what can go wrong, and the remedy |
//!
//! What it is not: it predicts nothing, and a measurement is never repeatable to the byte. Only this crate and
//! `dhttp` touch the operating system on behalf of an engine.

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
mod netlink_message;
pub mod peers;
pub mod privilege;
pub mod probe;
pub mod profile;
pub mod reactions;
pub mod run;
pub mod series;
pub mod sniffer;
mod socket;
pub mod sockets;
pub mod tun;

pub use emulator::Emulator;
pub use error::Error;
pub use namespace::Namespace;
pub use peers::Peers;
pub use privilege::{available, prepare};
pub use series::{Measured, Options, Progress, measure};
