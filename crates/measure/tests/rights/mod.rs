//! Whether a test that needs the kernel's favours may run here; said loudly when it may not.

/// True if it may. Where `ROUNDTRIP_REQUIRE_KERNEL=1` (as in CI), it must.
pub(crate) fn granted() -> bool {
    let Err(missing) = measure::available() else { return true };
    skip::refused(&missing.to_string());
    false
}
