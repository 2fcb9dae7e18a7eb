//! A program and its directory, both removed after the run.

use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use linux::clock::Clock;
use wire::Duration;

use crate::Error;

/// Directory of one run, for a server's files or a client's cache; removed with its contents.
#[derive(Debug)]
pub(crate) struct RunDirectory(PathBuf);

impl RunDirectory {
    pub(crate) fn new() -> Result<Self, Error> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("roundtrip-{}-{number}", std::process::id()));
        // Servers drop root privileges, and must still read their files.
        DirBuilder::new()
            .mode(0o755)
            .create(&path)
            .map_err(Error::io("create a directory for a program's files"))?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    pub(super) fn write(&self, name: &str, contents: &[u8]) -> Result<PathBuf, Error> {
        let path = self.0.join(name);
        fs::write(&path, contents).map_err(Error::io(format!("write {}", path.display())))?;
        Ok(path)
    }
}

impl Drop for RunDirectory {
    fn drop(&mut self) {
        // A directory that cannot be removed remains among the temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A running program, and all processes that it started.
#[derive(Debug)]
pub(super) struct Process {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts it in the calling thread's network namespace; its output goes to a file in the directory.
    pub(super) fn start(
        name: &'static str,
        mut command: Command,
        directory: &RunDirectory,
    ) -> Result<Self, Error> {
        let log = directory.path().join("log");
        let output = File::create(&log).map_err(Error::io(format!("store the output of {name}")))?;
        let stderr = output.try_clone().map_err(Error::io(format!("store the output of {name}")))?;
        command
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(stderr)
            .process_group(0)
            .env("HOME", directory.path());
        // SAFETY: between fork and exec only prctl is called, which is safe there and takes no pointer.
        unsafe {
            command.pre_exec(|| {
                // If this process is killed, the child is too: nothing may be left behind.
                match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
                    0 => Ok(()),
                    _ => Err(std::io::Error::last_os_error()),
                }
            });
        }
        let child = command.spawn().map_err(Error::io(format!("start {name}")))?;
        Ok(Self { name, child, log })
    }

    /// Returns its exit status, if it has exited.
    pub(super) fn exit_status(&mut self) -> Result<Option<ExitStatus>, Error> {
        self.child.try_wait().map_err(Error::io(format!("watch {}", self.name)))
    }

    /// Waits until `condition` holds, at most `timeout`; returns whether it holds.
    #[expect(clippy::disallowed_methods, reason = "others' programs have no descriptor that could be polled")]
    pub(super) fn wait_until(
        &mut self,
        timeout: Duration,
        clock: Clock,
        mut condition: impl FnMut(&mut Self) -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        let began = clock.now();
        loop {
            if condition(self)? {
                return Ok(true);
            }
            if clock.now().since(began) > timeout {
                return Ok(false);
            }
            thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    /// Its output so far.
    pub(super) fn output(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// Last line of its output, for users.
    pub(super) fn last_output_line(&self) -> String {
        self.output()
            .lines()
            .rev()
            .find(|line| !line.trim().is_empty())
            .unwrap_or("it printed nothing")
            .trim()
            .to_owned()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let group = i32::try_from(self.child.id()).ok().map(nix::unistd::Pid::from_raw);
        if let Some(group) = group {
            // The whole process group: servers have workers, and browsers a dozen processes.
            let _ = nix::sys::signal::killpg(group, nix::sys::signal::Signal::SIGKILL);
        }
        let _ = self.child.wait();
    }
}
