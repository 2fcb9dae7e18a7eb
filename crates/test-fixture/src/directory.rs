//! Directories of tests.

use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

/// An empty directory of one test, removed when this is dropped.
#[derive(Debug)]
pub struct TestDirectory(PathBuf);

/// Number of the directories that this process has created: tests may choose the same name.
static CREATED: AtomicU32 = AtomicU32::new(0);

impl TestDirectory {
    /// Creates a directory among the system's temporary files.
    ///
    /// # Panics
    /// Where it cannot be created.
    pub fn new(name: &str) -> Self {
        Self::below(std::env::temp_dir(), name)
    }

    /// Creates a directory below another, such as `env!("CARGO_TARGET_TMPDIR")`: for large files, and programs to run.
    ///
    /// # Panics
    /// Where it cannot be created.
    pub fn below(parent: impl AsRef<Path>, name: &str) -> Self {
        let number = CREATED.fetch_add(1, Ordering::Relaxed);
        let path = parent.as_ref().join(format!("roundtrip-{name}-{}-{number}", process::id()));
        // A former process of this number may have been killed.
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self(path)
    }

    /// Names of the entries, sorted.
    ///
    /// # Panics
    /// Where it cannot be read, or a name is not UTF-8.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap_or_else(|error| panic!("{}: {error}", self.0.display()));
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("a readable entry").file_name().into_string().expect("UTF-8"))
            .collect();
        names.sort();
        names
    }
}

impl Deref for TestDirectory {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl AsRef<Path> for TestDirectory {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl Drop for TestDirectory {
    fn drop(&mut self) {
        // Another user's files may remain in it; that is no reason to fail.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_of_one_name_are_distinct_and_removed() {
        let (one, other) = (TestDirectory::new("same"), TestDirectory::new("same"));
        fs::write(one.join("file"), "").unwrap();
        assert_eq!((one.names(), other.names()), (vec!["file".to_owned()], Vec::new()));
        let path = one.to_path_buf();
        drop(one);
        assert!(!path.exists() && other.exists());
    }
}
