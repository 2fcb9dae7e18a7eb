//! Linux as a network program needs it: clock, netlink, namespaces, TUN devices, and a thread's priority.
//!
//! Requests flow in, values and errors with their remedies flow out. Read in this order:
//!
//! | module | contents |
//! | --- | --- |
//! | [`clock`] | the only place that reads a clock |
//! | [`netlink_message`], [`netlink`] | messages of netlink; links, addresses, and routes with TCP metrics |
//! | [`namespace`], [`mounts`] | a private network namespace, held by a thread; mounts that only one thread sees |
//! | [`tun`], [`card`] | network interfaces whose other end is a descriptor; offloads of a network device |
//! | [`priority`] | a thread's real-time priority, within the kernel's budget |
//! | [`sockets`], [`tcp_counters`] | the kernel's statistics of TCP sockets (sock_diag, TCP_INFO), and its totals of segments |
//! | [`privilege`], [`error`] | rights of this process; errors and their remedies |
//!
//! It knows no topology and no emulated link: those are `testbed`'s.
//!
//! ```no_run
//! use roundtrip_linux::{Error, Namespace, netlink::Netlink, prepare};
//!
//! prepare()?; // before there is a second thread: it may move this process into a user namespace
//! let host = Namespace::new("host")?;
//! host.run(|| Netlink::open()?.bring_up_loopback())?;
//! # Ok::<(), Error>(())
//! ```

pub mod card;
pub mod clock;
pub mod error;
pub mod mounts;
pub mod namespace;
pub mod netlink;
pub mod netlink_message;
pub mod priority;
pub mod privilege;
pub mod sockets;
pub mod tcp_counters;
pub mod tun;

pub use error::Error;
pub use namespace::Namespace;
pub use privilege::{available, prepare};
