//! Invariants for any file as a page in TOML: it is rejected with a line in it, or it is a possible page that is
//! written and read back unchanged. Not a generator: the bytes are the file.

use page::file;

/// Panics if these bytes violate an invariant.
pub(crate) fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match file::read("any", text) {
        Ok(page) => {
            assert_eq!(page.check(), Ok(()));
            assert_eq!(page.clone().over_network().check(), Ok(()));
            assert_eq!(file::read("another name", &file::write(&page)), Ok(page));
        }
        Err(error) => {
            assert!(
                error.line.is_none_or(|line| (1..=text.matches('\n').count() + 1).contains(&line)),
                "{error}"
            );
            assert!(!error.to_string().contains(char::is_control), "{error:?}");
        }
    }
}
