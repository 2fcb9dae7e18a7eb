//! Programs of tests.

use std::process::Child;

/// Program that is killed when this is dropped, so that it does not outlive a failed test.
#[derive(Debug)]
pub struct KilledOnDrop(pub Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_program_ends_with_its_test() {
        let Ok(child) = Command::new("sleep").arg("1000").spawn() else { return };
        let process = format!("/proc/{}", child.id());
        let running = KilledOnDrop(child);
        assert!(std::fs::exists(&process).unwrap());
        drop(running);
        assert!(!std::fs::exists(&process).unwrap());
    }
}
