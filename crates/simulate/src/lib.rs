//! Stage 2b, virtual time: the same scenario, robot and server as on the kernel, over TCP of our own.
//!
//! A scenario flows in, [`simulate`] runs it packet by packet, and a row flows out; for more than a row, an
//! [`Experiment`] gives what happened, to the segment. Read in this order:
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`world`] | hosts, links, and one queue of what happens next |
//! | [`web`] | `pageload`'s robot and `http1`'s server on hosts, and the time their work takes |
//! | [`profile`] | what a stack profile means to the machine |
//! | [`page`] | a scenario as two hosts and a link |
//! | [`town`] | another: crowds and one server behind a line |
//! | [`stalls`] | where the time of a run went |
//! | [`row`] | runs as a row |
//! | [`capture`] | the packets of a run as a file for Wireshark |
//! | [`error`] | why a scenario cannot be simulated |
//!
//! What it is not: a model of what machines are busy with (only applications take time, and only what they are
//! given), of IP, of checksums, or of anything below the link's queue.

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
