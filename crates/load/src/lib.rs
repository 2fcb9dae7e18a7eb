//! Users for a real server: requests sent on schedule, and a record of each.
//!
//! Input is a [`Job`] (of requests, or of a [`workload::plan::Plan`]), a [`Target`] and a [`Config`]. Output is a [`Record`]:
//! the latency of every response, every failure, and each second's bottleneck. Latency counts both from sending a request and
//! from its due time. Read in this order:
//!
//! | module | contents |
//! | --- | --- |
//! | [`requests`] | requests: method, target, header fields, body |
//! | [`traffic`] | a plan, or a list of requests with its schedule |
//! | [`job`] | the requests of a run, their users, and their times |
//! | [`url`] | the URL of a server, and its address |
//! | [`config`] | the server, and how it is loaded |
//! | [`resources`] | the resources that a run needs of this host, and whether it has them |
//! | [`second`] | one second, and its bottleneck: generator, network or server |
//! | [`record`] | the results, second by second |
//! | [`bottleneck`] | a summary of the seconds |
//! | [`evidence`], `host` | connections, sockets and CPUs during a run |
//! | [`ramp`] | short runs with fewer users, before a run |
//! | [`attribution`] | the bottleneck of a run, with its evidence and the next command |
//! | [`verdict`] | the first line of the results |
//! | [`fixed_wait`] | a wait as long as a delayed acknowledgement |
//! | `gauge` | number of open connections |
//! | [`progress`] | progress reports of a run, and its interruption |
//! | `http1_connection` | an HTTP/1 connection |
//! | `dhttp_user` | a DHTTP user |
//! | `ports` | UDP ports that many DHTTP users share |
//! | [`preflight`] | a preflight request to the server |
//! | [`tls`] | certificate verification |
//! | `streams` | a user's HTTP/2 or HTTP/3 connections, and the libraries for them |
//! | `user` | a user: pages, pauses, requests in flight |
//! | `worker` | a thread with its users |
//! | [`limit_search`] | the rate that a server sustains |
//! | [`log`] | results as a file, written and read |
//! | [`merge`] | results of several shards, merged |
//! | [`thresholds`] | limits that a run is judged by |
//! | [`report`] | runs and plans as text, tables, JSON, CSV and a page |
//! | [`run`] | all threads, from the first request to the last response |
//!
//! It generates no plans (`workload` does), judges no protocol, and emulates no network: it uses the existing one.
//!
//! ```
//! use roundtrip_load::job::loop_pages;
//! use roundtrip_load::requests::Request;
//!
//! let list = [Request::new("GET", "/")?, Request::new("HEAD", "/style.css")?];
//! let pages = loop_pages(list.len());
//! assert_eq!(pages.len(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod attribution;
pub mod bottleneck;
pub mod config;
mod dhttp_user;
pub mod evidence;
pub mod fixed_wait;
mod gauge;
mod host;
mod http1_connection;
pub mod job;
pub mod limit_search;
pub mod log;
pub mod merge;
mod ports;
pub mod preflight;
pub mod progress;
pub mod ramp;
pub mod record;
pub mod report;
pub mod requests;
pub mod resources;
pub mod run;
pub mod second;
mod streams;
pub mod thresholds;
pub mod tls;
pub mod traffic;
pub mod url;
mod user;
pub mod verdict;
mod worker;

pub use config::{Config, Protocol, Shard, Target};
pub use job::Job;
pub use record::Record;
