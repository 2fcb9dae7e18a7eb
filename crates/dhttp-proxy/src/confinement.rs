//! Files that a service may open once it has started, by Landlock (Linux 5.13 and later): those that it serves, its own,
//! and nothing else.
//!
//! Sockets and open descriptors are not restricted. With the files, capabilities end that they do not need (`privileges`), and
//! system calls that no service needs (`system_calls`).

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::nft::program_path;
use crate::{privileges, system_calls};
use landlock::{
    ABI, Access, AccessFs, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus,
    path_beneath_rules,
};
use rustix::fs::{Access as FileAccess, AtFlags, CWD, accessat};
use rustix::io::Errno;

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

/// Files and directories that a service needs from its start on, and whether it listens at a port below 1024.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paths {
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
    execute: Vec<PathBuf>,
    /// Its own files in these directories, which need not exist: the configuration, the log, the cache.
    files: Vec<(PathBuf, FileAccess)>,
    has_low_port: bool,
}

impl Paths {
    /// Paths of every service: its configuration file and access log, which are opened again at a reload, perhaps as new files
    /// in the same directories.
    pub fn new(config: Option<&Path>, access_log: Option<&Path>) -> Self {
        let mut paths = Self { read: ALWAYS.map(PathBuf::from).into(), ..Self::default() };
        if let Some(config) = config {
            paths.files.push((config.to_owned(), FileAccess::READ_OK));
            paths = paths.read_below(directory_of(config));
        }
        let log = access_log.filter(|log| *log != Path::new("-"));
        log.into_iter().fold(paths, Self::write_file)
    }

    /// Adds the addresses at which it listens.
    #[must_use]
    pub fn listening(mut self, at: impl IntoIterator<Item = SocketAddr>) -> Self {
        self.has_low_port |= at.into_iter().any(|at| (1..1_024).contains(&at.port()));
        self
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
    pub fn write_file(mut self, file: &Path) -> Self {
        self.files.push((file.to_owned(), FileAccess::WRITE_OK));
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

    /// Confines the calling thread, and all that it starts, to these paths, to the capabilities that they need, and to the system
    /// calls of services. Missing paths stay inaccessible. Returns lines for the log if the kernel does not support this, or a
    /// path needs a capability.
    pub fn confine(&self) -> Vec<String> {
        let mut inaccessible = None;
        // A router's service sends in the name of servers, from their ports.
        let has_low_port = self.has_low_port || !self.execute.is_empty();
        privileges::release(has_low_port, || {
            inaccessible = self.inaccessible();
            inaccessible.is_none()
        });
        let retained = inaccessible.map(|path| {
            let path = path.display();
            format!("keeps CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH: {path} is not accessible to its user without them")
        });
        let files = match self.restrict() {
            Ok(RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced) => None,
            Ok(RulesetStatus::NotEnforced) => Some(unconfined("this kernel has no Landlock")),
            Err(error) => Some(unconfined(&error.to_string())),
        };
        let calls = system_calls::refuse(!self.execute.is_empty()).err();
        let calls = calls.map(|error| format!("not confined to the system calls of a service: {error}"));
        retained.into_iter().chain(files).chain(calls).collect()
    }

    /// Returns a path that exists, and that the process may not open as it has to.
    fn inaccessible(&self) -> Option<&Path> {
        let read = self.read.iter().map(|path| (path, FileAccess::READ_OK));
        let write = self.write.iter().map(|path| (path, FileAccess::WRITE_OK | FileAccess::EXEC_OK));
        let files = self.files.iter().map(|(path, access)| (path, *access));
        let is_refused = |path: &Path, access: FileAccess| {
            let is_directory = path.is_dir();
            let access = if is_directory { access | FileAccess::EXEC_OK } else { access };
            let checked = accessat(CWD, path, access, AtFlags::EACCESS);
            matches!(checked, Err(error) if error != Errno::NOENT && error != Errno::NOTDIR)
        };
        read.chain(write)
            .chain(files)
            .find(|(path, access)| is_refused(path, *access))
            .map(|(path, _)| path.as_path())
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
    use std::os::unix::fs::PermissionsExt;
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
            if let Some(line) = paths.confine().pop() {
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
            let lacks = Paths::new(None, None).for_router().confine().pop();
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
    fn capabilities_end_unless_a_port_or_a_file_of_the_service_needs_them() {
        if !rustix::process::geteuid().is_root() {
            return skip::refused("only root has capabilities to drop");
        }
        let base = std::env::temp_dir().join(format!("roundtrip-owned-{}", std::process::id()));
        let (own, others) = (base.join("own"), base.join("others"));
        for directory in [&own, &others] {
            fs::create_dir_all(directory).unwrap();
        }
        fs::set_permissions(&others, fs::Permissions::from_mode(0o700)).unwrap();
        std::os::unix::fs::chown(&others, Some(65_534), Some(65_534)).unwrap();
        // Only the thread is confined.
        let held = |directory: &Path, at: &str| {
            let paths =
                Paths::new(None, Some(&directory.join("access.log"))).listening([at.parse().unwrap()]);
            let confined = move || {
                privileges::retain_capabilities(privileges::SERVER);
                let lines = paths.confine();
                (rustix::thread::capabilities(None).unwrap().permitted, lines)
            };
            thread::spawn(confined).join().unwrap()
        };
        let none = rustix::thread::CapabilitySet::empty();
        assert_eq!(held(&own, "192.0.2.1:8080").0, none);
        let (capabilities, _) = held(&own, "192.0.2.1:80");
        assert!(none.union(rustix::thread::CapabilitySet::NET_BIND_SERVICE).contains(capabilities));
        let (capabilities, lines) = held(&others, "192.0.2.1:8080");
        let files = privileges::SERVER - rustix::thread::CapabilitySet::NET_BIND_SERVICE;
        assert!(files.contains(capabilities), "{capabilities:?}");
        assert!(capabilities.is_empty() || lines[0].contains("others is not accessible"), "{lines:?}");
        fs::remove_dir_all(&base).unwrap();
    }

    #[test]
    fn a_file_without_a_directory_is_in_the_current_one() {
        assert_eq!(directory_of(Path::new("access.log")), Path::new("."));
        assert_eq!(directory_of(Path::new("/var/log/a.log")), Path::new("/var/log"));
        let to_stdout = Paths::new(None, Some(Path::new("-")));
        assert_eq!(to_stdout, Paths::new(None, None));
    }
}
