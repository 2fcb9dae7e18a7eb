//! Invariants for any bytes as a plan of `load`: they are accepted, or rejected with a message; an accepted plan is unchanged
//! when written and read again.

use workload::text;

/// Panics if these bytes violate an invariant.
pub(crate) fn check(data: &[u8]) {
    let given = String::from_utf8_lossy(data);
    match text::read(&given) {
        Ok(plan) => {
            let mut written = String::new();
            text::write(&plan, &mut written).expect("writing to a string does not fail");
            assert_eq!(text::read(&written).as_ref(), Ok(&plan));
        }
        Err(error) => {
            assert!(error.line >= 1 && error.line <= given.lines().count() + 1, "{error}");
            assert!(!error.to_string().contains(char::is_control), "{error:?}");
        }
    }
}
