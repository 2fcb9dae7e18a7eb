//! Confinement of a service to its capabilities, files and system calls.

use dhttp_proxy::confinement::Paths;
pub use dhttp_proxy::privileges::{ROUTER, SERVER, retain_capabilities};

/// Confines the process; logs a line where the kernel cannot.
pub fn confine(paths: &Paths) {
    for line in paths.confine() {
        eprintln!("roundtrip: {line}");
    }
}
