//! Stage 2b: virtual time.
pub mod tcp;
pub mod world;
