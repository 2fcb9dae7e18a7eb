//! Ratio of round trip and reply, without a protocol (`papers/heidemann-model#section-iv-b`).
//!
//! According to the paper, transients matter where the ratio exceeds a quarter.

use wire::Bytes;

use crate::Path;

/// Returns the size of the reply relative to the path's capacity: `reply / (bw * rtt)`, equation (3). Infinite without
/// delay.
pub fn reply_per_pipe(path: &Path, reply: Bytes) -> f64 {
    reply.as_f64() / bytes_in_flight(path)
}

/// Returns one round trip over the time to send the reply: `rtt / (reply / bw)`, equation (4). Infinite for an empty
/// reply.
pub fn pipe_per_reply(path: &Path, reply: Bytes) -> f64 {
    bytes_in_flight(path) / reply.as_f64()
}

/// Returns equation (4) for replies over a connection each: the harmonic mean of their ratios.
pub fn pipe_per_reply_separate(path: &Path, replies: &[Bytes]) -> f64 {
    let inverses: f64 = replies.iter().map(|reply| reply_per_pipe(path, *reply)).sum();
    replies.len() as f64 / inverses
}

/// Returns equation (4) for replies over one connection, as if they were one reply.
pub fn pipe_per_reply_single(path: &Path, replies: &[Bytes]) -> f64 {
    pipe_per_reply(path, replies.iter().copied().sum())
}

fn bytes_in_flight(path: &Path) -> f64 {
    path.rate.bits_per_second_f64() * path.rtt.as_secs_f64() / 8.0
}
