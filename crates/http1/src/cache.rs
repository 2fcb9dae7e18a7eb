//! Rules of a shared cache: the responses it may store, and those it may reuse (RFC 9111; RFC 5861; RFC 9211).
//!
//! Requests and responses flow in, parsed by [`crate::message`]; decisions flow out. Read in this order:
//!
//! | module | contents |
//! | --- | --- |
//! | `control` | `Cache-Control` |
//! | [`targeted`] | fields for one class of caches, instead of `Cache-Control` |
//! | `date` | parsing of dates |
//! | [`parsed_request`] | a request as a cache sees it |
//! | [`policy`] | whether a response may be stored, and how long it is fresh |
//! | [`vary`] | the requests it may be reused for |
//! | [`mod@reuse`] | the response to a request, made from it |
//! | [`update`] | validation and invalidation |
//!
//! Not a store, a clock or a client: it stores nothing itself and sends nothing; times count from 1970. The
//! http-cache-semantics crate is not used: it holds two maps of fields for each object. That is several times the
//! memory that a store of a million small objects can spend. It also decides about whole responses only.

mod control;
mod date;
pub mod parsed_request;
pub mod policy;
pub mod reuse;
pub mod targeted;
pub mod update;
pub mod vary;

pub use parsed_request::ParsedRequest;
pub use policy::{Policy, ServerFailure, Times, Verdict, states_lifetime};
pub use reuse::{ServedResponse, StoredResponse, reuse};
pub use vary::Choice;
