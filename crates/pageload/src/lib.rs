//! The client that loads a whole page: connection policy, pipelining, parts of objects; without
//! sockets or clocks.
//!
//! A plan and bytes from connections flow in; connections to open, requests to send and a report of each
//! arrival flow out. Read in this order:
//!
//! | module | contents |
//! | --- | --- |
//! | [`robot`] | a client that fetches a page over TCP connections |
//! | [`page_loader`] | the same client over DHTTP |
//!
//! ```
//! use roundtrip_pageload::robot::{Output, Plan, PlannedObject, Robot, Shape};
//! use wire::Time;
//!
//! let objects = vec![PlannedObject::get("/", None)];
//! let plan = Plan::new("example.org", objects, Shape::Http11);
//! let mut robot = Robot::new(Time::ZERO, plan)?;
//! assert!(matches!(robot.poll(Time::ZERO), Output::Open(_)));
//! # Ok::<(), roundtrip_pageload::robot::PlanError>(())
//! ```
//!
//! It is no browser: it runs no script and renders nothing. It builds for `wasm32-unknown-unknown`.

pub mod page_loader;
pub mod robot;

pub use page_loader::PageLoader;
