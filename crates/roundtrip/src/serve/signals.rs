//! How whoever runs a service tells it things: SIGHUP to read its configuration again, SIGTERM and SIGINT to end.
//!
//! Not what is done then: that is each verb's own.

use std::fmt::Display;

use nix::sys::signal::{SigSet, Signal};

use crate::failure::Failure;

/// The signals that are waited for in place of dying by them.
pub struct Signals(SigSet);

impl Signals {
    /// From now on they wait. To be called before there are threads, so that only this one hears them.
    pub fn expect() -> Result<Self, Failure> {
        let signals = SigSet::from_iter([Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP]);
        signals.thread_block().map_err(cannot_wait)?;
        Ok(Self(signals))
    }

    /// Waits for the end. What `reload` cannot do leaves everything as it is: a slip in a file must not end a service.
    /// What it has done it says in a sentence.
    pub fn until_the_end<S: Display>(
        &self,
        mut reload: impl FnMut() -> Result<S, Failure>,
    ) -> Result<(), Failure> {
        while self.0.wait().map_err(cannot_wait)? == Signal::SIGHUP {
            match reload() {
                Ok(sentence) => eprintln!("roundtrip: {sentence}"),
                Err(failure) => eprintln!("roundtrip: {failure}; everything stays as it was"),
            }
        }
        Ok(())
    }
}

fn cannot_wait(error: nix::Error) -> Failure {
    Failure::Network(format!("cannot wait for signals: {error}"))
}
