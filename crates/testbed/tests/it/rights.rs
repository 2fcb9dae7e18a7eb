//! Whether a test that needs kernel privileges may run here; a message if it may not.

/// Returns true if it may. With `ROUNDTRIP_REQUIRE_KERNEL=1` (as in CI), it must.
pub(crate) fn granted() -> bool {
    let Err(missing) = testbed::available() else { return true };
    skip::refused(&missing.to_string());
    false
}
