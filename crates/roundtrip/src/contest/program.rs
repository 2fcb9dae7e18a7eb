//! A program that others wrote, in a folder of its own: both are gone when it is dropped.
//!
//! Not what it is told: see `server`.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tempfile::TempDir;

/// A program at work.
#[derive(Debug)]
pub struct Program {
    child: Child,
    // Removed after the program has ended.
    folder: TempDir,
}

/// A folder that everybody may read: servers give up what root may do, and must still read what they serve.
///
/// # Errors
/// What the system said.
pub fn folder() -> io::Result<TempDir> {
    let folder = tempfile::Builder::new().prefix("roundtrip-contest-").tempdir()?;
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
    Ok(folder)
}

impl Program {
    /// Starts it with a configuration that is written for its folder.
    ///
    /// # Errors
    /// If it is not there, or the system refuses something.
    pub fn start(
        path: &Path,
        words: &[&str],
        configuration: impl FnOnce(&Path) -> String,
    ) -> io::Result<Self> {
        let folder = folder()?;
        let file = folder.path().join("configuration");
        fs::write(&file, configuration(folder.path()))?;
        let mut command = Command::new(path);
        let log = File::create(folder.path().join("said"))?;
        command.args(words).arg(&file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        // What it starts is ended with it.
        let child = command.process_group(0).spawn()?;
        Ok(Self { child, folder })
    }

    /// Whether it has ended, and the last line that it said.
    pub fn ended(&mut self) -> Option<String> {
        self.child.try_wait().ok().flatten()?;
        let said = fs::read_to_string(self.folder.path().join("said")).unwrap_or_default();
        Some(said.lines().next_back().unwrap_or("it said nothing").to_owned())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if let Ok(group) = i32::try_from(self.child.id()) {
            let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
        }
        let _ = self.child.wait();
    }
}

/// Where a program is, of the places where systems put it.
pub fn found(places: &[&str]) -> Option<PathBuf> {
    places.iter().map(PathBuf::from).find(|path| path.is_file())
}
