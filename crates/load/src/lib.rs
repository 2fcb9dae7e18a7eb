//! Users for a real server: requests sent when they are due, and an account of each.
//!
//! In flow a [`Job`] (of requests, or of a [`workload::plan::Plan`]), a [`Target`] and a [`Config`]; out flows a [`Record`]:
//! the latency of every response from when its request was sent and from when it was due, every failure, and for each second the
//! bottleneck. Read in this order:
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`requests`] | requests: method, target, header fields, body |
//! | [`job`] | which of them, by which users, and when |
//! | [`config`] | the server, and how it is loaded |
//! | [`needs`] | what that takes of this machine, and whether it is there |
//! | [`record`] | what came of it, second by second |
//! | [`audit`] | whether generator, network or server was the limit |
//! | `gauge` | how many connections are open |
//! | [`live`] | what it tells while it goes on, and that it is to end |
//! | `line` | a connection of plain HTTP |
//! | `pair` | a user who speaks DHTTP |
//! | `ports` | the ports from which such users' datagrams leave, many at once |
//! | [`look`] | a look at a server before it is loaded |
//! | [`secure`] | whom to believe that it is the server |
//! | `streams` | a user's connections of HTTP/2 or HTTP/3, and the libraries that carry them |
//! | `user` | a user: pages, pauses, what is under way |
//! | `worker` | a thread with its users |
//! | [`log`] | what came of it as a file, and read again |
//! | [`run`] | all threads, from the first request to the last answer |
//!
//! What it is not: it draws nothing (`workload` does) and judges no protocol; and it is no laboratory: the network is
//! the one that is there.

pub mod audit;
pub mod config;
mod gauge;
pub mod job;
mod line;
pub mod live;
pub mod log;
pub mod look;
pub mod needs;
mod pair;
mod ports;
pub mod record;
pub mod requests;
pub mod run;
pub mod secure;
mod streams;
mod user;
mod worker;

pub use config::{Config, Protocol, Shard, Target};
pub use job::Job;
pub use record::Record;
