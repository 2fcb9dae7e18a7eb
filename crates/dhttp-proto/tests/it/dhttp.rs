//! DHTTP from outside: each state machine by itself, both over a lossy network, and attacks.
//!
//! Not sockets: those belong to the drivers.

mod attacks;
mod client;
mod network;
mod server;
mod setting;
mod timeouts;
mod vectors;
