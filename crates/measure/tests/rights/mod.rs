//! Whether a test that needs the kernel's favours may run here; said loudly when it may not.

/// True if it may. Where `ROUNDTRIP_REQUIRE_KERNEL=1` (as in CI), it must.
pub(crate) fn granted() -> bool {
    let Err(missing) = measure::available() else { return true };
    let required = std::env::var_os("ROUNDTRIP_REQUIRE_KERNEL").is_some_and(|value| value == "1");
    assert!(!required, "ROUNDTRIP_REQUIRE_KERNEL is set, and {missing}");
    eprintln!("skipped: {missing}");
    false
}
