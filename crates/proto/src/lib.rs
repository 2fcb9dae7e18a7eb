//! HTTP/1.x as machines without sockets or clocks: the same robot and server run over simulated TCP and over
//! the kernel's, and only the driver differs.
//!
//! What came off a socket flows in; what to send, to open and to close flows out, and reports of what happened.
//! Read in this order:
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`http`] | messages: heads, framing, bodies, writes |
//! | [`robot`] | a client that fetches a whole page |
//! | [`server`] | one connection of a server |
//! | [`site`] | an application for that server: objects of given sizes |
//! | [`gateway`] | what a proxy passes on, and how |
//! | [`cache`] | what a proxy may keep, and give again |
//! | [`dhttp`] | small answers in one datagram, large ones over TCP that the server opens |
//!
//! Every machine keeps one contract: `handle(now, input)`, then `poll(now)` until it returns a timeout, and only
//! then `handle` again. When the time of a timeout has come, `poll` again; there is no input for it.
//!
//! What it is not: it knows no scenario, no TCP and no file, and imports only `wire`. It builds for
//! `wasm32-unknown-unknown`.

pub mod cache;
pub mod content;
pub mod dhttp;
pub mod gateway;
pub mod html;
pub mod http;
pub mod robot;
pub mod server;
pub mod site;
