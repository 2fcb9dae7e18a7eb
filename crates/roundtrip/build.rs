//! Lists the files of the laboratory's page for `verb::lab`, if the feature `lab-page` selects them and `./ci.sh lab` has
//! built them: in `target/lab`, or where `ROUNDTRIP_LAB` names another directory.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Names of the files.
const NAMES: [&str; 7] =
    ["index.html", "lab.css", "lab.js", "worker.js", "papers.html", "diagnose.wasm", "compare.wasm"];

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=ROUNDTRIP_LAB");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("lab_page.rs");
    let built = env::var_os("ROUNDTRIP_LAB").map_or_else(|| PathBuf::from("../../target/lab"), PathBuf::from);
    if env::var_os("CARGO_FEATURE_LAB_PAGE").is_none() {
        return fs::write(out, list(None));
    }
    // Files that are missing now may be built later. Cargo would run this again in every build until then, and compile the
    // program again; not so if it watches a directory that exists.
    match built.is_dir() || create(&built).is_ok() {
        true => println!("cargo::rerun-if-changed={}", built.display()),
        false => {
            NAMES.iter().for_each(|name| println!("cargo::rerun-if-changed={}", built.join(name).display()))
        }
    }
    let directory = fs::canonicalize(built).ok();
    let directory = directory.filter(|directory| NAMES.iter().all(|name| directory.join(name).exists()));
    fs::write(out, list(directory.as_deref()))
}

/// Creates the directory in one that exists, as if it had been there before this run.
fn create(directory: &Path) -> io::Result<()> {
    fs::create_dir(directory)?;
    fs::File::open(directory)?.set_modified(SystemTime::UNIX_EPOCH)
}

/// Returns the source of a constant with each file's name and bytes.
fn list(directory: Option<&Path>) -> String {
    let mut source = String::from("const EMBEDDED: &[(&str, &[u8])] = &[\n");
    for name in NAMES.iter().filter(|_| directory.is_some()) {
        let path = directory.unwrap_or(Path::new("")).join(name);
        let _ = writeln!(source, "    ({name:?}, include_bytes!({:?})),", path.display().to_string());
    }
    source + "];\n"
}
