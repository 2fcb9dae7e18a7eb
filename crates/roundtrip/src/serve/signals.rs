//! Signals of a service: SIGHUP to reload its configuration, SIGTERM and SIGINT to stop.
//!
//! Not the reaction: that is each verb's own.

use std::fmt::Display;

use nix::sys::signal::{SigSet, Signal};

use crate::failure::Failure;

/// Signals that are waited for instead of ending the program.
pub struct Signals(SigSet);

impl Signals {
    /// Blocks them. Must be called before any thread starts, so that only this one receives them.
    pub fn block() -> Result<Self, Failure> {
        let signals = SigSet::from_iter([Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP]);
        signals.thread_block().map_err(cannot_wait)?;
        Ok(Self(signals))
    }

    /// Waits for SIGTERM or SIGINT, and calls `reload` on SIGHUP. A failed reload changes nothing, so that a typing error in a
    /// file
    /// does not stop a service; its result is printed in a sentence.
    pub fn wait_for_end<S: Display>(
        &self,
        mut reload: impl FnMut() -> Result<S, Failure>,
    ) -> Result<(), Failure> {
        while self.0.wait().map_err(cannot_wait)? == Signal::SIGHUP {
            match reload() {
                Ok(sentence) => eprintln!("roundtrip: {sentence}"),
                Err(failure) => eprintln!("roundtrip: {failure}; the configuration is unchanged"),
            }
        }
        Ok(())
    }
}

fn cannot_wait(error: nix::Error) -> Failure {
    Failure::Network(format!("cannot wait for signals: {error}"))
}
