//! `quinn-proto` without a clock, without ciphers and without a source of randomness.

pub(crate) mod clock;
pub(crate) mod connection;
pub(crate) mod crypto;
pub(crate) mod random;
pub(crate) mod settings;
