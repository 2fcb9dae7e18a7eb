//! `roundtrip site`: a site's files, written into a folder.
//!
//! Not the site itself: `scenario` makes that. All of its files are written, or what was written is taken away again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use scenario::Site;
use scenario::site::File;
use wire::Seed;

use crate::cli;
use crate::failure::{Failure, shown};
use crate::output;

/// Writes the site and says what was written.
pub fn run(arguments: &cli::Site) -> Result<(), Failure> {
    let cli::Site { name, folder, seed } = arguments;
    let site = Site::named(name).map_err(|error| Failure::Value(error.to_string()))?;
    let is_new = !folder.exists();
    if !is_new {
        check_empty(folder)?;
    }
    let files = site.files(Seed::new(*seed));
    if let Err(failure) = write(folder, &files) {
        remove(folder, &files, is_new);
        return Err(failure);
    }
    let bytes: usize = files.iter().map(|file| file.contents.len()).sum();
    let (count, bytes, folder) = (files.len(), output::number::count(bytes as f64), shown(folder));
    output::to_stdout(&format!("{name} in {folder}: {count} files, {bytes} bytes, index.html first\n"))
}

/// Something else there may be somebody's.
fn check_empty(folder: &Path) -> Result<(), Failure> {
    let unreadable = |error| Failure::Read { path: folder.to_owned(), error };
    if !folder.is_dir() {
        return Err(Failure::Value(format!("{} is not a folder; name another place", shown(folder))));
    }
    match fs::read_dir(folder).map_err(unreadable)?.next() {
        None => Ok(()),
        Some(_) => Err(Failure::Value(format!(
            "{} is not empty; name a folder that is, or a new one",
            shown(folder)
        ))),
    }
}

fn write(folder: &Path, files: &[File]) -> Result<(), Failure> {
    for File { path, contents } in files {
        let path = folder.join(path);
        let unwritable = |error: io::Error| Failure::Write { path: path.clone(), error };
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(unwritable)?;
        }
        crate::file::write(&path, contents)?;
    }
    Ok(())
}

/// What could not be written whole is taken away; the first failure is the one to tell.
fn remove(folder: &Path, files: &[File], is_new: bool) {
    for file in files {
        let _ = fs::remove_file(folder.join(&file.path));
    }
    let inner = files
        .iter()
        .filter_map(|file| Path::new(&file.path).parent())
        .filter(|path| !path.as_os_str().is_empty());
    let folders = inner.map(|path| folder.join(path)).chain(is_new.then(|| PathBuf::from(folder)));
    // Only empty ones go.
    folders.for_each(|folder| drop(fs::remove_dir(folder)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_is_written_whole_into_an_empty_folder_and_into_no_other() {
        let folder = std::env::temp_dir().join(format!("roundtrip-site-{}", std::process::id()));
        let files = [("index.html", 3), ("images/1.gif", 2)]
            .map(|(path, size)| File { path: path.to_owned(), contents: vec![0; size] });
        write(&folder, &files).unwrap();
        assert_eq!(fs::read(folder.join("images/1.gif")).unwrap(), [0, 0]);
        let refusal = check_empty(&folder).unwrap_err().to_string();
        remove(&folder, &files, true);
        assert!(refusal.ends_with("is not empty; name a folder that is, or a new one"), "{refusal}");
        assert!(!folder.exists());
    }
}
