//! An external program, with a directory of its own; both are removed when it is dropped.
//!
//! Not its configuration: see `server`. It runs with all its children in a PID namespace, which also ends when the process
//! that started it is killed. Otherwise, Apache's workers would outlive their parent (pid_namespaces(7)). In that case the
//! directory is not removed.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tempfile::TempDir;

/// A running program.
#[derive(Debug)]
pub struct Program {
    child: Child,
    // Removed after the program has ended.
    directory: TempDir,
}

/// Creates a directory that everyone may read: servers drop root's rights, and must still read their files.
///
/// # Errors
/// The system's error.
pub fn directory() -> io::Result<TempDir> {
    let directory = tempfile::Builder::new().prefix("roundtrip-contest-").tempdir()?;
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755))?;
    Ok(directory)
}

impl Program {
    /// Starts it with a configuration that is written for its directory. It ends with the calling thread at the latest.
    /// Needs root.
    ///
    /// # Errors
    /// If it is not installed, or the system refuses something.
    pub fn start(
        path: &Path,
        words: &[&str],
        configuration: impl FnOnce(&Path) -> String,
    ) -> io::Result<Self> {
        let directory = directory()?;
        let file = directory.path().join("configuration");
        fs::write(&file, configuration(directory.path()))?;
        let mut command = Command::new(path);
        let log = File::create(directory.path().join("said"))?;
        command.args(words).arg(&file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        // SAFETY: between fork and exec only prctl is called, which is safe there and takes no pointer.
        unsafe {
            command.pre_exec(|| Ok(set_pdeathsig(Signal::SIGKILL)?));
        }
        // Its children end with it: it is the first process of its namespace. Later programs of this thread are not in
        // that namespace.
        let own = File::open("/proc/thread-self/ns/pid")?;
        unshare(CloneFlags::CLONE_NEWPID)?;
        let child = command.process_group(0).spawn();
        setns(own, CloneFlags::CLONE_NEWPID)?;
        let child = child?;
        Ok(Self { child, directory })
    }

    /// Whether it has ended; if so, the last line of its output.
    pub fn ended(&mut self) -> Option<String> {
        self.child.try_wait().ok().flatten()?;
        let reported = fs::read_to_string(self.directory.path().join("said")).unwrap_or_default();
        Some(reported.lines().next_back().unwrap_or("it said nothing").to_owned())
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

/// Path of a program: the first that exists.
pub fn found(paths: &[&str]) -> Option<PathBuf> {
    paths.iter().map(PathBuf::from).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use std::thread;

    use nix::unistd::geteuid;

    use super::*;

    /// Number of processes whose arguments contain this word.
    fn alive(word: &str) -> usize {
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let words = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
        words.filter(|words| String::from_utf8_lossy(words).contains(word)).count()
    }

    #[expect(clippy::disallowed_methods, reason = "processes do not tell a stranger when they begin and end")]
    fn becomes(word: &str, is_so: impl Fn(usize) -> bool) -> bool {
        let is_it = || {
            thread::sleep(std::time::Duration::from_millis(10));
            is_so(alive(word))
        };
        (0..1_000).any(|_| is_it())
    }

    #[test]
    fn regress_no_child_of_a_server_outlives_a_killed_run() {
        if !geteuid().is_root() {
            return skip::report_skip("it takes root");
        }
        if !skip::has("setsid") {
            return;
        }
        // Two processes, as Apache has: one that waits, and a worker in a session of its own.
        let script = |_: &Path| "setsid sh -c 'while sleep 1; do :; done' \"$0\" &\nwait\n".to_owned();
        let begin = move || {
            let program = Program::start(Path::new("/bin/sh"), &[], script).unwrap();
            let directory = program.directory.path().to_owned();
            // The same as if this process were killed: its children are not terminated.
            std::mem::forget(program);
            let word = directory.display().to_string();
            assert!(becomes(&word, |count| count >= 2));
            directory
        };
        let directory = thread::spawn(begin).join().unwrap();
        assert!(becomes(&directory.display().to_string(), |count| count == 0));
        fs::remove_dir_all(directory).unwrap();
    }
}
