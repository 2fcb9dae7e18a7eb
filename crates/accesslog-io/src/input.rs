//! Sources of logs: files, directories, patterns, standard input, object stores; and their bytes, decompressed.
//!
//! Compression is recognised by the first bytes, not by the file's name.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use unpack::unpacked;

use crate::error::{Error, Part};
use crate::glob::fits;
use crate::object::Object;
use crate::store::Stores;

/// One log.
#[derive(Clone, Debug)]
pub enum Input {
    /// Standard input.
    Stdin,
    /// A file.
    File(PathBuf),
    /// An object of a store, or a web page.
    Object(Object),
}

impl Input {
    /// The name for messages.
    pub fn name(&self) -> String {
        match self {
            Self::Stdin => "standard input".to_owned(),
            Self::File(path) => path.display().to_string(),
            Self::Object(object) => object.name(),
        }
    }

    /// Whether it can be opened again with the same contents: not a pipe, such as a shell's `<(...)`.
    pub fn is_reopenable(&self) -> bool {
        match self {
            Self::Stdin => false,
            Self::File(path) => path.is_file(),
            Self::Object(_) => true,
        }
    }

    /// Its bytes, decompressed.
    pub fn open(&self) -> io::Result<Box<dyn Read + Send>> {
        match self {
            Self::Stdin => unpacked(io::stdin()),
            Self::File(path) => unpacked(File::open(path)?),
            Self::Object(object) => unpacked(object.open()),
        }
    }
}

/// Inputs that the arguments name, sorted by name. `-` and an empty list are standard input. A directory stands for
/// all files below it; `*` and `?` are wildcards. The same holds in an object store. The order in time is not known
/// here.
pub fn named(arguments: &[PathBuf]) -> Result<Vec<Input>, Error> {
    let mut inputs = Vec::new();
    let mut stores = None;
    for argument in arguments {
        if argument.as_os_str() == "-" {
            inputs.push(Input::Stdin);
            continue;
        }
        let at = |error| Error::Unreadable { path: argument.clone(), error };
        let pattern = argument.to_string_lossy();
        let mut found = Vec::new();
        match fs::metadata(argument) {
            Ok(metadata) if metadata.is_dir() => below(argument, &mut found).map_err(at)?,
            Ok(_) => found.push(argument.clone()),
            Err(_) if is_address(&pattern) => {
                Part::ObjectStore.require(&pattern)?;
                let stores = match &mut stores {
                    Some(stores) => stores,
                    none => none.insert(Stores::new().map_err(Error::Store)?),
                };
                let objects = Object::named(stores, &pattern).map_err(Error::Store)?;
                inputs.extend(objects.into_iter().map(Input::Object));
                continue;
            }
            Err(_) if pattern.contains(['*', '?']) => matching(&pattern, &mut found).map_err(at)?,
            Err(error) => return Err(at(error)),
        }
        if found.is_empty() {
            return Err(Error::NoFile(pattern.into_owned()));
        }
        found.sort();
        inputs.extend(found.into_iter().map(Input::File));
    }
    if inputs.is_empty() {
        inputs.push(Input::Stdin);
    }
    Ok(inputs)
}

/// Whether an argument is a URL and not the name of a file.
pub fn is_address(argument: &str) -> bool {
    argument.split_once("://").is_some_and(|(scheme, _)| {
        !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

/// Every file below a directory; links are not followed, so that there are no cycles.
fn below(directory: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let metadata = fs::symlink_metadata(&path)?;
        if metadata.is_dir() {
            below(&path, found)?;
        } else if metadata.is_file() {
            found.push(path);
        }
    }
    Ok(())
}

/// Every file whose path matches a pattern, component by component.
fn matching(pattern: &str, found: &mut Vec<PathBuf>) -> io::Result<()> {
    let mut prefixes = vec![PathBuf::from(if pattern.starts_with('/') { "/" } else { "" })];
    for part in pattern.split('/').filter(|part| !part.is_empty()) {
        let mut next = Vec::new();
        for prefix in prefixes {
            if !part.contains(['*', '?']) {
                next.push(prefix.join(part));
                continue;
            }
            let directory = if prefix.as_os_str().is_empty() { Path::new(".") } else { &prefix };
            if !directory.is_dir() {
                continue;
            }
            for entry in fs::read_dir(directory)? {
                let name = entry?.file_name();
                if fits(part.as_bytes(), name.as_encoded_bytes()) {
                    next.push(prefix.join(name));
                }
            }
        }
        prefixes = next;
    }
    found.extend(prefixes.into_iter().filter(|path| path.is_file()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_distinguished_from_files() {
        assert!(is_address("s3://bucket/access.log"));
        assert!(!is_address("logs/s3://x"));
        assert!(!is_address("access.log"));
    }
}
