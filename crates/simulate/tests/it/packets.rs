//! Whole transfers between two hosts: invariants under any loss, window and stack.

mod handshake;
mod hosts;
mod http3;
mod parallel;
mod secure;
mod setup;
mod stalls;
mod throughput;
mod topology;
mod transfer;
mod wake_up;
