//! Fetcher against server, connected in memory: whole pages, under every connection policy, and under every
//! kind of failure. There is no network: bytes arrive immediately, and time passes only when both sides wait.

mod accidents;
mod back_to_back;
mod discovery;
mod graphs;
mod parts;
mod pipelining;
mod sessions;
mod shapes;
