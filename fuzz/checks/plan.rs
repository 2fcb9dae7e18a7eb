//! Invariants of any bytes that are given as a plan of `load`: they are read, or refused in a sentence; and what was
//! read is written and read again as the same.

use workload::text;

/// Panics if it does not hold.
pub(crate) fn check(data: &[u8]) {
    let given = String::from_utf8_lossy(data);
    match text::read(&given) {
        Ok(plan) => {
            let mut written = String::new();
            text::write(&plan, &mut written).expect("a string takes whatever is written");
            assert_eq!(text::read(&written).as_ref(), Ok(&plan));
        }
        Err(error) => {
            assert!(error.line >= 1 && error.line <= given.lines().count() + 1, "{error}");
            assert!(!error.to_string().contains(char::is_control), "{error:?}");
        }
    }
}
