//! Whole transfers between two hosts: what no loss, no window and no stack may change.

mod parallel;
mod setup;
mod stalls;
mod throughput;
mod topology;
mod transfer;
mod wake_up;
