//! What a cache that many share may keep of the answers that pass through it, and what it may answer by itself
//! (RFC 9111; RFC 5861; RFC 9211).
//!
//! Requests and answers flow in, taken apart by [`crate::message`]; decisions flow out. Read in this order:
//!
//! | module | what it holds |
//! | --- | --- |
//! | `control` | `Cache-Control` |
//! | [`targeted`] | fields for one class of caches in its place |
//! | `date` | dates, as they are read |
//! | [`asked`] | a request as a cache sees it |
//! | [`policy`] | whether an answer is kept, and how long it is fresh |
//! | [`vary`] | for which requests |
//! | [`mod@answer`] | what a request gets of it |
//! | [`update`] | asking whether it is still good, and what makes it obsolete |
//!
//! What it is not: it keeps nothing itself, knows no clock, and asks nobody; times have 1970 as their zero. It is our
//! own because of what must be kept with each object: the http-cache-semantics crate holds two maps of fields for
//! each, which is several times what a store of a million small ones can spend, and decides about whole answers only.

pub mod answer;
pub mod asked;
mod control;
mod date;
pub mod policy;
pub mod targeted;
pub mod update;
pub mod vary;

pub use answer::{Given, Kept, answer};
pub use asked::Asked;
pub use policy::{Policy, Times, Trouble, Verdict, says_how_long};
pub use vary::Choice;
