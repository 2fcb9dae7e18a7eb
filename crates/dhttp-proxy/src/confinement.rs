//! Files that a service may open once it has started, by Landlock (Linux 5.13 and later): those that it serves, its own,
//! and nothing else.
//!
//! Sockets and open descriptors are not restricted. Capabilities are the program's own.

use std::path::{Path, PathBuf};

use crate::nft::program_path;
use landlock::{
    ABI, Access, AccessFs, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus,
    path_beneath_rules,
};

/// Newest rights that are restricted; an older kernel restricts those that it knows.
const RIGHTS: ABI = ABI::V5;

/// Paths that every service reads: CPU limits, which set the number of threads and are read again at each reload; the
/// kernel's TCP settings; and the null device, which holds a descriptor in reserve.
const ALWAYS: [&str; 4] = ["/proc/self", "/sys/fs/cgroup", "/proc/sys/net", "/dev/null"];
/// Read to resolve names: configuration, which other programs replace, and the modules that it names.
const RESOLVER: [&str; 6] = ["/etc", "/run/systemd/resolve", "/run/resolvconf", "/lib", "/lib64", "/usr/lib"];

/// Libraries and tables of `nft` and `ip`, which a router's service runs; their own directories are in `PATH`.
const PROGRAMS: [&str; 8] = [
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/local/lib",
    "/usr/share/iproute2",
    "/etc",
    "/nix/store",
    "/gnu/store",
];

/// Files and directories that a service needs from its start on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paths {
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
    execute: Vec<PathBuf>,
}

impl Paths {
    /// Paths of every service: its configuration file and access log, which are opened again at a reload, perhaps as new files
    /// in the same directories.
    pub fn new(config: Option<&Path>, access_log: Option<&Path>) -> Self {
        let paths = Self { read: ALWAYS.map(PathBuf::from).into(), write: Vec::new(), execute: Vec::new() };
        let paths = config.into_iter().fold(paths, |paths, config| paths.read_below(directory_of(config)));
        let log = access_log.filter(|log| *log != Path::new("-"));
        log.into_iter().fold(paths, |paths, log| paths.write_below(directory_of(log)))
    }

    /// Adds a file, or a directory and all below it, for reading.
    #[must_use]
    pub fn read_below(mut self, path: &Path) -> Self {
        self.read.push(path.to_owned());
        self
    }

    /// Adds a directory in which files are read, created, written and removed.
    #[must_use]
    pub fn write_below(mut self, path: &Path) -> Self {
        self.write.push(path.to_owned());
        self
    }

    /// Adds a file that is replaced in its directory when it is damaged.
    #[must_use]
    pub fn write_file(self, file: &Path) -> Self {
        self.write_below(directory_of(file))
    }

    /// Adds the paths that requests to other servers need: name resolution, and unnamed temporary files for long bodies.
    #[must_use]
    pub fn for_requests(self) -> Self {
        let paths = self.write_below(&std::env::temp_dir());
        RESOLVER.iter().fold(paths, |paths, path| paths.read_below(Path::new(path)))
    }

    /// Adds the programs that change a router's rules: these and all others in the directories of `PATH`, with their libraries.
    /// They inherit the confinement.
    #[must_use]
    pub fn for_router(mut self) -> Self {
        let directories: Vec<_> = std::env::split_paths(&program_path()).collect();
        // Either may be a link to a program elsewhere, as `/usr/sbin/ip` is on Debian.
        let programs =
            directories.iter().flat_map(|directory| ["nft", "ip"].map(|name| directory.join(name)));
        self.execute.extend(programs.filter_map(|program| program.canonicalize().ok()));
        self.execute.extend(directories);
        self.execute.extend(PROGRAMS.map(PathBuf::from));
        self
    }

    /// Confines the calling thread, and all that it starts, to these paths. Missing paths stay inaccessible. Returns a line for
    /// the log if the kernel does not support this.
    pub fn confine(&self) -> Option<String> {
        match self.restrict() {
            Ok(RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced) => None,
            Ok(RulesetStatus::NotEnforced) => Some(unconfined("this kernel has no Landlock")),
            Err(error) => Some(unconfined(&error.to_string())),
        }
    }

    fn restrict(&self) -> Result<RulesetStatus, RulesetError> {
        let ruleset = Ruleset::default().handle_access(AccessFs::from_all(RIGHTS))?.create()?;
        let read = path_beneath_rules(&self.read, AccessFs::ReadFile | AccessFs::ReadDir);
        let written = AccessFs::from_all(RIGHTS) & !AccessFs::Execute;
        let executed = AccessFs::ReadFile | AccessFs::ReadDir | AccessFs::Execute;
        let ruleset = ruleset
            .add_rules(read)?
            .add_rules(path_beneath_rules(&self.write, written))?
            .add_rules(path_beneath_rules(&self.execute, executed))?;
        Ok(ruleset.restrict_self()?.ruleset)
    }
}

fn unconfined(reason: &str) -> String {
    format!("not confined to the files that it needs: {reason}")
}

/// Directory of a file; the current one for a bare name.
fn directory_of(file: &Path) -> &Path {
    file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::ErrorKind;
    use std::thread;

    use super::*;

    #[test]
    fn nothing_outside_the_paths_is_read_or_written() {
        let base = std::env::temp_dir().join(format!("roundtrip-confined-{}", std::process::id()));
        for name in ["served", "log", "outside"] {
            fs::create_dir_all(base.join(name)).unwrap();
            fs::write(base.join(name).join("file"), name).unwrap();
        }
        std::os::unix::fs::symlink(base.join("outside/file"), base.join("served/link")).unwrap();
        let directory = base.clone();
        // Only this thread is confined.
        let lacks = thread::spawn(move || {
            let log = directory.join("log/access.log");
            let paths = Paths::new(None, Some(&log)).read_below(&directory.join("served"));
            if let Some(line) = paths.confine() {
                return Some(line);
            }
            let refused = |result: std::io::Result<()>| result.map_err(|error| error.kind());
            assert_eq!(fs::read_to_string(directory.join("served/file")).unwrap(), "served");
            assert_eq!(
                refused(fs::write(directory.join("served/file"), "")),
                Err(ErrorKind::PermissionDenied)
            );
            assert_eq!(
                refused(fs::write(directory.join("served/new"), "")),
                Err(ErrorKind::PermissionDenied)
            );
            for outside in ["outside/file", "served/link", "served/../outside/file"] {
                let read = fs::read(directory.join(outside)).map(drop);
                assert_eq!(refused(read), Err(ErrorKind::PermissionDenied), "{outside}");
            }
            assert_eq!(refused(fs::read("/etc/passwd").map(drop)), Err(ErrorKind::PermissionDenied));
            fs::write(&log, "line").unwrap();
            fs::rename(&log, directory.join("log/access.log.1")).unwrap();
            fs::write(&log, "another").unwrap();
            fs::remove_file(directory.join("log/access.log.1")).unwrap();
            None
        });
        let lacks = lacks.join().unwrap();
        assert_eq!(fs::read_to_string(base.join("outside/file")).unwrap(), "outside");
        fs::remove_dir_all(&base).unwrap();
        if let Some(line) = lacks {
            skip::refused(&line);
        }
    }

    #[test]
    fn programs_of_a_router_run_within_its_paths() {
        if !skip::has_all(&["ip"]) {
            return;
        }
        let result = thread::spawn(|| {
            let lacks = Paths::new(None, None).for_router().confine();
            let version = || std::process::Command::new("ip").env("PATH", program_path()).arg("-V").output();
            let outside = fs::write(std::env::temp_dir().join("roundtrip-unconfined"), "");
            (lacks, version(), outside.map_err(|error| error.kind()))
        });
        let (lacks, version, outside) = result.join().unwrap();
        if let Some(line) = lacks {
            return skip::refused(&line);
        }
        assert!(version.unwrap().status.success());
        assert_eq!(outside, Err(ErrorKind::PermissionDenied));
    }

    #[test]
    fn a_file_without_a_directory_is_in_the_current_one() {
        assert_eq!(directory_of(Path::new("access.log")), Path::new("."));
        assert_eq!(directory_of(Path::new("/var/log/a.log")), Path::new("/var/log"));
        let to_stdout = Paths::new(None, Some(Path::new("-")));
        assert_eq!(to_stdout, Paths::new(None, None));
    }
}
