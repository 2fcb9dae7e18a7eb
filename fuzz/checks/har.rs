//! Invariants for any bytes as a browser's HAR: they are a possible page, or rejected with a message; the page is the
//! same with bodies. Not a generator.

use page::har::{self, HarError};

/// Panics if these bytes violate an invariant.
pub(crate) fn check(data: &[u8]) {
    let files = har::files(data);
    match har::pages("any", data) {
        Ok(pages) => {
            assert!(!pages.is_empty());
            for page in pages {
                assert_eq!(page.check(), Ok(()));
                assert!(page.notes.iter().all(|note| !note.contains(char::is_control)));
                assert!(page.hosts.iter().all(|host| !host.name.contains(char::is_control)));
                assert!(
                    page.objects
                        .iter()
                        .flat_map(|object| &object.path)
                        .all(|path| !path.contains(char::is_control))
                );
                let fetched = page.clone().over_network();
                assert_eq!(fetched.check(), Ok(()));
                assert!(fetched.objects.iter().all(|object| object.local.is_none()));
            }
            if let Ok((files, left_out)) = files {
                assert!(files.iter().all(|file| !file.path.contains(char::is_control)));
                assert!(left_out.iter().all(|note| !note.contains(char::is_control)));
            }
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            // Files of a page have no maximum number or size.
            assert!(files.is_err() || matches!(error, HarError::Page(_)));
        }
    }
}
