//! `roundtrip site`: writes a site's files to a directory.
//!
//! `scenario` makes the site. After an error, the files already written are removed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use page::site::File;
use scenario::Site;
use wire::Seed;
use workload::plan::{contents, path};

use crate::cli;
use crate::failure::{Failure, shown};
use crate::loading::plan;

/// Writes the site, and prints a summary.
pub fn run(arguments: &cli::Site) -> Result<(), Failure> {
    let cli::Site { name, directory, seed, plan: plan_path } = arguments;
    let is_new = !directory.exists();
    if !is_new {
        check_empty(directory)?;
    }
    let seed = Seed::new(*seed);
    if name == SURGE {
        let plan = match plan_path {
            Some(path) => plan::read(path)?,
            None => plan::default_plan(seed)?,
        };
        let bytes: u64 = plan.files.iter().sum();
        crate::file::check_space(directory, bytes, "the site", "plan fewer files, or a smaller --cap")?;
        let seed = plan.spec.seed;
        let file = |(file, size): (u32, u64)| File { path: path(file), contents: contents(seed, file, size) };
        let paths: Vec<String> = (0..plan.spec.files).map(path).collect();
        let written = write(directory, (0..).zip(plan.files).map(file));
        return finish(name, directory, is_new, &paths, bytes, written);
    }
    if plan_path.is_some() {
        return Err(Failure::Value(format!("--plan is for the site surge; {name} has files of its own")));
    }
    let site = Site::named(name).map_err(|mut unknown| {
        unknown.known.push(SURGE);
        Failure::Value(unknown.to_string())
    })?;
    let files = site.files(seed);
    let paths: Vec<String> = files.iter().map(|file| file.path.clone()).collect();
    let bytes = files.iter().map(|file| file.contents.len() as u64).sum();
    let written = write(directory, files.into_iter());
    finish(name, directory, is_new, &paths, bytes, written)
}

/// Name of the site of a `load` plan.
const SURGE: &str = "surge";

/// Removes an incomplete site, or prints a summary of a complete one.
fn finish(
    name: &str,
    directory: &Path,
    is_new: bool,
    paths: &[String],
    bytes: u64,
    written: Result<(), Failure>,
) -> Result<(), Failure> {
    if let Err(failure) = written {
        remove(directory, paths, is_new);
        return Err(failure);
    }
    let (count, bytes, directory) =
        (paths.len(), render::output::number::count(bytes as f64), shown(directory));
    let first = paths.first().map_or("", String::as_str);
    crate::output::to_stdout(&format!("{name} in {directory}: {count} files, {bytes} bytes, {first} first\n"))
}

/// Refuses a directory with other files.
fn check_empty(directory: &Path) -> Result<(), Failure> {
    let unreadable = |error| Failure::Read { path: directory.to_owned(), error };
    if !directory.is_dir() {
        return Err(Failure::Value(format!("{} is not a directory; name another path", shown(directory))));
    }
    match fs::read_dir(directory).map_err(unreadable)?.next() {
        None => Ok(()),
        Some(_) => Err(Failure::Value(format!(
            "{} is not empty; name an empty directory, or a new one",
            shown(directory)
        ))),
    }
}

fn write(directory: &Path, files: impl Iterator<Item = File>) -> Result<(), Failure> {
    for File { path, contents } in files {
        let path = directory.join(path);
        let unwritable = |error: io::Error| Failure::Write { path: path.clone(), error };
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(unwritable)?;
        }
        crate::file::write_unsynced(&path, &contents)?;
    }
    Ok(())
}

/// Removes the files of an incomplete site, ignoring further errors.
fn remove(directory: &Path, paths: &[String], is_new: bool) {
    for path in paths {
        let _ = fs::remove_file(directory.join(path));
    }
    let inner =
        paths.iter().filter_map(|path| Path::new(path).parent()).filter(|path| !path.as_os_str().is_empty());
    let directories = inner.map(|path| directory.join(path)).chain(is_new.then(|| PathBuf::from(directory)));
    // Only empty directories are removed.
    directories.for_each(|directory| drop(fs::remove_dir(directory)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_is_written_completely_and_only_into_an_empty_directory() {
        let directory = std::env::temp_dir().join(format!("roundtrip-site-{}", std::process::id()));
        let files = [("index.html", 3), ("images/1.gif", 2)]
            .map(|(path, size)| File { path: path.to_owned(), contents: vec![0; size] });
        write(&directory, files.iter().cloned()).unwrap();
        assert_eq!(fs::read(directory.join("images/1.gif")).unwrap(), [0, 0]);
        let refusal = check_empty(&directory).unwrap_err().to_string();
        remove(&directory, &files.map(|file| file.path), true);
        assert!(refusal.ends_with("is not empty; name an empty directory, or a new one"), "{refusal}");
        assert!(!directory.exists());
    }
}
