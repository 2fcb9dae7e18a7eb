//! Servers of today under the same users: each alone with them in a network of its own, and what came of it.
//!
//! In flow [`bout::Bout`]s: a server, how it is asked, how many users; out flow [`bout::Outcome`]s. Read in this order:
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`bout`] | one server under one plan, and several at a time |
//! | [`crowd`] | users at several machines behind a line that is full, beside somebody who downloads |
//! | [`mod@line`] | the networks of these, and the line |
//! | [`server`] | which servers there are, how each is told what it is to be, and how it is ended |
//! | [`how`] | TCP Fast Open, HTTP/2 and HTTP/3: what both sides are told |
//! | [`in_memory`] | a small server made of hyper |
//! | [`quic`] | a small server of HTTP/3, and certificates |
//! | [`hosts`] | two network namespaces, the cable between them, and whose processor time is whose |
//! | [`program`] | a program of others, with its folder |
//!
//! Not the users (the crate `load`), nor what is claimed of the servers (`reproduce::rabinovich`).

pub mod bout;
pub mod crowd;
pub mod hosts;
pub mod how;
pub mod in_memory;
pub mod line;
pub mod program;
pub mod quic;
pub mod server;

use measure::Error;

/// What the system said when something was to be done.
pub fn failed(doing: impl Into<String>) -> impl FnOnce(std::io::Error) -> Error {
    let doing = doing.into();
    move |error| Error::Run { number: 1, what: format!("could not {doing}: {error}") }
}
