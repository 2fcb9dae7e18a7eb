//! Fetching a page: which request leaves when, and how it becomes bytes; without sockets or clocks.
//!
//! A plan and what sockets receive flow in; connections to open, bytes to send and a report of each arrival flow out.
//! A *policy* speaks requests, a *transport* speaks bytes, and a [`Fetcher`] joins the two. Read in this order:
//!
//! | module | contents |
//! | --- | --- |
//! | [`plan`] | what is to be fetched, and by which connections |
//! | [`policy`] | what is requested, when, with which priority, on which origin |
//! | [`transport`] | the two interfaces, and the transports behind them: HTTP/1, HTTP/2, HTTP/3 and DHTTP |
//! | [`browser`] | a browser's limits, and the classes of its requests |
//! | [`web`] | TLS, HTTP/2 and HTTP/3 of the origins |
//! | [`fetcher`] | a policy over a transport: what a driver runs |
//! | [`serving`] | the servers' end of the connections |
//! | [`report`] | events of the page and their times |
//!
//! ```
//! use roundtrip_fetch::transport::Wire;
//! use roundtrip_fetch::{Fetcher, Output, Plan, PlannedObject, Shape};
//! use wire::Time;
//!
//! let objects = vec![PlannedObject::get("/", None)];
//! let plan = Plan::new("example.org", objects, Shape::Http11);
//! let mut fetcher = Fetcher::http1(Time::ZERO, plan)?;
//! assert!(matches!(fetcher.poll(Time::ZERO), Output::Wire(Wire::Open(..))));
//! # Ok::<(), roundtrip_fetch::PlanError>(())
//! ```
//!
//! It is no browser: it runs no script and renders nothing. It builds for `wasm32-unknown-unknown`.

pub mod browser;
pub mod fetcher;
pub mod pipelining;
pub mod plan;
pub mod policy;
pub mod report;
mod security;
pub mod serving;
pub mod transport;
mod visit_stats;
pub mod web;

pub use ::http3::Recovery;
pub use browser::{Browser, Pacing, RequestClass};
pub use fetcher::{Fetcher, Output};
pub use pipelining::{Flush, Pipelining};
pub use plan::{Discovery, EmbeddedObjects, Hint, Plan, PlanError, PlannedObject, Reference, Release, Shape};
pub use policy::{FirstBytes, FirstBytesPolicy, named_at};
pub use report::{Break, Failure, PageEvent, Report};
pub use transport::dhttp::{DhttpConfig, TransportCounts};
pub use transport::{ConnectionId, Ending, Endpoint, FromWire, Wire};
pub use visit_stats::VisitStats;
pub use web::{Http3Config, OriginConfig, WebConfig};
