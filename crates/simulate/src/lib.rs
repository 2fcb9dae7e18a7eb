//! Stage 2b, virtual time: the same scenario, robot and server as on the kernel, over TCP of our own.
//!
//! A scenario flows in, [`simulate`] runs it packet by packet, and a row flows out; for more than a row, an
//! [`Experiment`] returns everything that happened, to the segment. Read in this order:
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`world`] | hosts, links, and one queue of future events |
//! | [`web`] | `pageload`'s robot and `http1`'s server on hosts, and the time their work takes |
//! | [`profile`] | a stack profile translated into TCP's configuration |
//! | [`page`] | a scenario as two hosts and a link |
//! | [`town`] | dumbbell topology: client populations and one server behind a bottleneck |
//! | [`stalls`] | attribution of a run's time to stall causes |
//! | [`row`] | runs as a row |
//! | [`capture`] | the packets of a run as a file for Wireshark |
//! | [`error`] | why a scenario cannot be simulated |
//!
//! Not modelled: load of hosts (only applications take CPU time, and only what they are configured to take),
//! IP, checksums, or anything below the link's queue.

pub mod capture;
pub mod error;
pub mod page;
pub mod profile;
pub mod row;
pub mod stalls;
pub mod town;
pub mod web;
pub mod world;

pub use error::Error;
pub use page::{Experiment, Fetched, Hosts};
pub use row::simulate;
