//! Invariants for any bytes as a browser's HAR: they are a possible page, or rejected with a message; the page is the
//! same with bodies. Not a generator.

use page::har::{self, HarError};

/// Panics if these bytes violate an invariant.
pub(crate) fn check(data: &[u8]) {
    let files = har::files(data);
    match har::read("any", data) {
        Ok(page) => {
            assert!(page.check().is_ok());
            assert!(page.notes.iter().all(|note| !note.contains(char::is_control)));
            // A body that is no text loses its entry, and only where bodies are wanted.
            if let Ok((files, left_out)) = files {
                assert!(files.len() <= page.objects.len());
                assert!(files.iter().all(|file| !file.path.contains(char::is_control)));
                assert!(left_out.iter().all(|note| !note.contains(char::is_control)));
            }
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            // With all of their bodies, there can be too many objects or too large ones; that is a matter of sizes.
            assert!(files.is_err() || matches!(error, HarError::Page(_)));
        }
    }
}
