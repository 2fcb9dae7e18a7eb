//! The outside of a private network, reached through a program that needs no root: slirp4netns(1) or pasta(1).
//!
//! The program runs outside and creates a device in the private network. It is started before the network is entered and waits
//! there, because a process cannot return. It ends with this process.

use std::io::Write;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use nix::net::if_::if_nametoindex;

/// Name of the device that the program creates.
pub const DEVICE: &str = "outside";
/// Address of the private network's hosts towards the program (slirp4netns(1)).
pub const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 100);
/// Address of the program, the next hop.
pub const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 2);

/// Programs by name, with their arguments; `$0` is the process whose network they join.
const PROGRAMS: [(&str, &str); 2] = [
    ("slirp4netns", "exec slirp4netns --exit-fd=0 --mtu=1500 --disable-host-loopback \"$0\" outside"),
    (
        "pasta",
        "exec pasta --foreground --quiet -4 -a 10.0.2.100 -n 24 -g 10.0.2.2 -t none -u none -T none -U none \
         --ns-ifname outside --mtu 1500 \"$0\"",
    ),
];

/// Time in which the device must appear.
const START_TIMEOUT: Duration = Duration::from_secs(3);
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// A program that waits for the private network, or serves it.
#[derive(Debug)]
pub struct Outside {
    program: &'static str,
    child: Child,
}

impl Outside {
    /// Starts the first program that is installed. To be called before the private network is entered.
    pub fn prepare() -> Option<Self> {
        let (program, script) = PROGRAMS.into_iter().find(|(program, _)| find(program).is_some())?;
        let script = format!("read -r go && {script}");
        let mut command = Command::new("sh");
        command.arg("-c").arg(script).arg(std::process::id().to_string());
        let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
        Some(Self { program, child })
    }

    /// Lets it join this process's network; returns whether its device has appeared.
    #[expect(clippy::disallowed_methods, reason = "another program starts in its own time")]
    pub fn join(&mut self) -> bool {
        let Some(mut input) = self.child.stdin.as_ref() else { return false };
        if input.write_all(b"go\n").is_err() {
            return false;
        }
        for _ in 0..START_TIMEOUT.as_millis() / POLL_INTERVAL.as_millis() {
            if if_nametoindex(DEVICE).is_ok() {
                return true;
            }
            if !matches!(self.child.try_wait(), Ok(None)) {
                return false;
            }
            thread::sleep(POLL_INTERVAL);
        }
        false
    }

    /// Its process ID.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Name of the program.
    pub const fn program(&self) -> &'static str {
        self.program
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Path of a program in `PATH`.
fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(program)).find(|path| path.is_file())
}
