//! DHTTP from outside: each machine by itself, both over a network that loses, and what attackers would try.
//!
//! Not sockets: those belong to the drivers.

mod attacks;
mod client;
mod network;
mod patience;
mod server;
mod setting;
mod vectors;
