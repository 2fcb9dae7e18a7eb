//! A folder as a page: each file in it is an object of its size.
//!
//! Not a site: nothing looks into the files. The document comes first (`index.html`, where there is one), the rest in
//! the order of their paths.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use scenario::Page;
use wire::Bytes;

use crate::failure::{Failure, shown};

/// The page that a folder is, named after it.
pub fn page(folder: &Path) -> Result<Page, Failure> {
    let sizes = files(folder)?.into_iter().map(|(_, size)| size);
    Page::from_sizes(&name(folder), sizes)
        .map_err(|error| Failure::Value(format!("--page: {}: {error}", shown(folder))))
}

/// Its files with anything in them, at least one, in the order in which they are objects.
pub fn files(folder: &Path) -> Result<Vec<(PathBuf, Bytes)>, Failure> {
    let mut files = Vec::new();
    collect(folder, &mut files).map_err(|(path, error)| Failure::Read { path, error })?;
    // Empty files have no bytes to send, and a page no place for them.
    files.retain(|(_, size)| *size > Bytes::ZERO);
    files.sort_by_cached_key(|(path, _)| (path != &folder.join("index.html"), path.clone()));
    if files.is_empty() {
        let folder = shown(folder);
        return Err(Failure::Value(format!("{folder} has no file with anything in it; name another folder")));
    }
    Ok(files)
}

/// Every regular file below `folder`; symbolic links are not followed, so that there is no way round in a circle.
fn collect(folder: &Path, files: &mut Vec<(PathBuf, Bytes)>) -> Result<(), (PathBuf, io::Error)> {
    let at = |path: &Path| {
        let path = path.to_owned();
        |error| (path, error)
    };
    for entry in fs::read_dir(folder).map_err(at(folder))? {
        let path = entry.map_err(at(folder))?.path();
        let found = fs::symlink_metadata(&path).map_err(at(&path))?;
        if found.is_dir() {
            collect(&path, files)?;
        } else if found.is_file() {
            files.push((path, Bytes::new(found.len())));
        }
    }
    Ok(())
}

/// The last part of its path. What would steer a terminal is not shown.
pub fn name(folder: &Path) -> String {
    let whole = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let name = whole.file_name().map_or_else(|| "/".into(), |name| name.to_string_lossy());
    name.replace(char::is_control, "?")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_a_page_with_its_document_first() {
        let folder = std::env::temp_dir().join(format!("roundtrip-folder-{}", std::process::id()));
        fs::create_dir_all(folder.join("images")).unwrap();
        for (file, size) in [("a.css", 10), ("images/b.png", 20), ("index.html", 30), ("empty", 0)] {
            fs::write(folder.join(file), vec![0; size]).unwrap();
        }
        let page = page(&folder);
        fs::remove_dir_all(&folder).unwrap();
        let sizes: Vec<u64> = page.unwrap().objects.iter().map(|object| object.size.get()).collect();
        assert_eq!(sizes, [30, 10, 20]);
    }
}
