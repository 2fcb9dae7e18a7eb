//! Hosts as network namespaces of this kernel, and emulated links between them.
//!
//! Names, addresses and [`wire::link::Config`]s flow in; hosts, in which a caller runs its programs, and
//! reports of the links flow out. Read in this order:
//!
//! | module | contents |
//! | --- | --- |
//! | [`topology`] | a network: hosts, routers, and the links between their interfaces |
//! | [`emulator`] | the link in real time, with its own lateness measured |
//! | [`loopback`] | an emulated link between the programs of one host |
//! | [`ack_heartbeat`], [`advertised_window`] | shims in the link: delayed ACKs and slow start of 1996 |
//! | [`reactions`] | reaction times of each host, seen from outside |
//! | [`probe`] | one-way latency in excess of the link's configured delay |
//! | [`lateness`] | a histogram of durations |
//! | [`ends`] | the client's end of a path and the server's |
//!
//! Namespaces, devices, routes and clocks are `linux`'s. It knows no scenario, page or protocol: what runs on the hosts is the caller's.
//!
//! ```no_run
//! use std::net::{Ipv4Addr, TcpListener};
//! use roundtrip_testbed::{Error, Interface, Topology, emulator::Options, prepare};
//! use wire::{Duration, link::Config};
//!
//! prepare()?; // before there is a second thread: it may move this process into a user namespace
//! let delay = Config { delay: Duration::from_millis(20), ..Config::default() };
//! let [near, far] = [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)];
//! let ends = [Interface::of("client", "eth0").address(near), Interface::of("server", "eth0").address(far)];
//! let topology = Topology::new().host("client").host("server").emulated(ends, [&delay; 2], &Options::default());
//! let ([_client, server], [link]) = topology.build()?.split()?;
//! let _listener = server.start(move || TcpListener::bind((far, 80))).wait()?;
//! println!("{:?}", link.stop()?.lateness);
//! # Ok::<(), Error>(())
//! ```

pub mod ack_heartbeat;
pub mod advertised_window;
pub mod emulator;
pub mod ends;
pub mod lateness;
pub mod loopback;
pub mod probe;
pub mod reactions;
pub mod topology;

pub use emulator::Emulator;
pub use ends::{End, PerEnd};
pub use linux::{Error, Namespace, available, prepare};
pub use topology::{Interface, Testbed, Topology};
