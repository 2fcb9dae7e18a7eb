//! What `load` prints and writes: plans, and what came of a run.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`emulated`] | our own server behind an emulated link, instead of somebody's |
//! | [`limits`] | who was the limit of each second, drawn for the page |
//! | [`merge`] | parts put together |
//! | [`page`] | runs on a page, for people elsewhere |
//! | [`plan`] | a plan as a file, and how well it fits |
//! | [`replay`] | access logs, read for a plan |
//! | [`result`] | what came of a run |
//! | [`target`] | which server, and a look whether it is there |
//! | [`view`] | a run while it goes on, in lines |
//! | [`watch`] | what draws them, and hears that the run is to end |
//!
//! Not the load itself, nor what came of it as a file: both are the crate `load`'s.

pub mod emulated;
pub mod limits;
pub mod merge;
pub mod page;
pub mod plan;
pub mod replay;
pub mod result;
pub mod target;
pub mod view;
pub mod watch;
