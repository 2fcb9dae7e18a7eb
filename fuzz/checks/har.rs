//! What must hold for any bytes as a browser's HAR: they are a possible page, or refused in a sentence. Not a generator.

use scenario::har;

/// Panics if something does not hold for these bytes.
pub(crate) fn check(data: &[u8]) {
    match har::read("any", data) {
        Ok(recorded) => {
            assert!(recorded.page.check().is_ok());
            assert!(recorded.notes.iter().all(|note| !note.contains(char::is_control)));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
