//! Robot against server, back to back in memory: whole pages, in every shape, and through every kind of
//! accident. Not a network: bytes arrive at once, and time passes only when both sides wait.

mod accidents;
mod back_to_back;
mod discovery;
mod parts;
mod pipelining;
mod shapes;
