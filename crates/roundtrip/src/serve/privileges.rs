//! Confinement of a service to its capabilities and files.

use dhttp_proxy::confinement::Paths;
pub use dhttp_proxy::privileges::{ROUTER, SERVER, retain_capabilities};

/// Confines the process to these files; logs a line where the kernel cannot.
pub fn confine(paths: &Paths) {
    if let Some(line) = paths.confine() {
        eprintln!("roundtrip: {line}");
    }
}
