//! Signals of a service: SIGHUP to reload its configuration, SIGTERM and SIGINT to stop.

use std::fmt::Display;

use nix::sys::signal::{SigSet, Signal};

use crate::failure::Failure;

/// Blocked signals, to be waited for.
pub struct Signals(SigSet);

impl Signals {
    /// Blocks them. Must be called before any thread starts, so that only this thread receives them.
    pub fn block() -> Result<Self, Failure> {
        let signals = SigSet::from_iter([Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP]);
        signals.thread_block().map_err(cannot_wait)?;
        Ok(Self(signals))
    }

    /// Waits for SIGTERM or SIGINT, and calls `reload` on SIGHUP. Prints the result; a failed reload changes nothing.
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
