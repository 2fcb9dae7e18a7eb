//! Nothing is left behind, however a measurement ends, and any user may measure where the system allows it.
//!
//! Without the test harness: a user namespace can only be entered by a process with one thread. The
//! measurement to interrupt is this program, run again with the argument `page`.

extern crate roundtrip_measure as measure;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use measure::{Error, Options, measure};
use nix::sys::signal::{SigHandler, Signal, kill};
use nix::unistd::{Pid, Uid};
use scenario::{Network, Object, Page, Protocol, Scenario, Stack};
use wire::{Bytes, Duration, Rate};

fn main() {
    if std::env::args().nth(1).as_deref() == Some("page") {
        default_dispositions();
        return page(std::env::args().nth(2).and_then(|runs| runs.parse().ok()).unwrap_or(1));
    }
    // `ci.sh test` runs tests of other programs by their names.
    if std::env::args().any(|word| word == "--exact") || !test_fixture::has_laboratory() {
        return;
    }
    let before = kernel_state();
    interrupted_runs_leave_nothing(&before);
    a_run_that_succeeds_leaves_nothing(&before);
    if Uid::effective().is_root() {
        other_user_measures_or_gets_the_reason(&before);
    }
    println!("nothing left behind: ok");
}

/// Restores the default action of the signals that are sent here: a shell's background jobs inherit an ignored SIGINT.
fn default_dispositions() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        // SAFETY: The default action runs no code of this process.
        let former = unsafe { nix::sys::signal::signal(signal, SigHandler::SigDfl) };
        former.expect("its action can be set");
    }
}

/// Measurement in the child process: a page of 0.1 s, `runs` times.
fn page(runs: u32) {
    let rate = Rate::from_bits_per_second(10_000_000).expect("above zero");
    let scenario = Scenario {
        runs,
        ..Scenario::new(
            Network::new("custom".to_owned(), Duration::from_millis(40), rate, Bytes::new(512)),
            Page::of("custom", vec![Object::sized(Bytes::new(1_000))]),
            Protocol::Http10,
            Stack::named("period").expect("a stack's name"),
        )
    };
    let result = testbed::prepare().and_then(|()| testbed::available()).map_err(Error::from).and_then(|()| {
        let mut completed = 0;
        let count = |_| {
            completed += 1;
            println!("{completed}");
        };
        measure(&scenario, &Options::default(), count).map(drop)
    });
    if let Err(missing) = result {
        println!("{missing}");
        std::process::exit(2);
    }
}

fn interrupted_runs_leave_nothing(before: &KernelState) {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGKILL] {
        let mut running = start(Command::new(this_program()).args(["page", "1000"]));
        let first: Vec<_> = lines(&mut running).take(2).collect();
        assert_eq!(first, ["1", "2"]);
        // In the middle of a run: its own network, the client's and the server's.
        assert!(holds_soon(|| networks_of(running.id()) == 3), "it never had networks of its own");
        kill(Pid::from_raw(running.id().cast_signed()), signal).expect("it is running");
        let status = running.wait().expect("it is our child");
        assert_eq!(status.signal(), Some(signal as i32));
        assert_gone(before, signal.as_str());
    }
}

fn a_run_that_succeeds_leaves_nothing(before: &KernelState) {
    let mut running = start(Command::new(this_program()).args(["page", "2"]));
    assert_eq!(lines(&mut running).collect::<Vec<_>>(), ["1", "2"]);
    assert!(running.wait().expect("it is our child").success());
    assert_gone(before, "success");
}

fn other_user_measures_or_gets_the_reason(before: &KernelState) {
    const NOBODY: u32 = 65_534;
    let program = ProgramCopy::of(&this_program());
    let mut running =
        start(Command::new(&program.0).args(["page", "2"]).uid(NOBODY).gid(NOBODY).current_dir("/"));
    let printed: Vec<_> = lines(&mut running).collect();
    let status: ExitStatus = running.wait().expect("it is our child");
    match status.code() {
        Some(0) => assert_eq!(printed, ["1", "2"]),
        // Without real-time priority on a busy host every run may remain void; that is reported, too.
        Some(2) => {
            let is_reported =
                printed.iter().any(|line| line.starts_with("cannot measure") || line.contains("void"));
            assert!(is_reported, "{printed:?}");
        }
        Some(_) | None => panic!("{status}: {printed:?}"),
    }
    println!("as another user: {}", printed.join(", "));
    assert_gone(before, "another user's run");
}

/// The names of network devices here, and of named namespaces.
type KernelState = BTreeSet<String>;

fn kernel_state() -> KernelState {
    let devices = fs::read_to_string("/proc/net/dev").expect("proc is mounted");
    let devices =
        devices.lines().skip(2).filter_map(|line| line.split(':').next()).map(|name| name.trim().to_owned());
    let named = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    devices.chain(named.map(|entry| entry.path().display().to_string())).collect()
}

/// Network namespaces that the threads of a process are in.
fn networks_of(process: u32) -> usize {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let networks = threads.filter_map(|thread| fs::read_link(thread.path().join("ns/net")).ok());
    networks.collect::<BTreeSet<_>>().len()
}

/// Asserts that all new devices vanish: other programs may create some, which must be gone a moment later.
fn assert_gone(before: &KernelState, after: &str) {
    let new = || kernel_state().difference(before).cloned().collect::<Vec<_>>();
    assert!(holds_soon(|| new().is_empty()), "after {after} there is more than before: {:?}", new());
}

/// Whether the condition holds within 5 s.
fn holds_soon(condition: impl Fn() -> bool) -> bool {
    (0..500).any(|_| {
        condition() || {
            wait_a_moment();
            false
        }
    })
}

fn wait_a_moment() {
    let none: &mut [nix::poll::PollFd<'_>] = &mut [];
    nix::poll::poll(none, 10_u16).expect("waiting needs nothing");
}

fn this_program() -> PathBuf {
    std::env::current_exe().expect("proc is mounted")
}

fn start(command: &mut Command) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("this program can be started again")
}

fn lines(child: &mut Child) -> impl Iterator<Item = String> {
    BufReader::new(child.stdout.as_mut().expect("it is piped")).lines().map_while(Result::ok)
}

/// Copy of the program that every user may read; removed on drop.
struct ProgramCopy(PathBuf);

impl ProgramCopy {
    fn of(program: &Path) -> Self {
        let copy = std::env::temp_dir().join(format!("roundtrip-nothing-left-{}", std::process::id()));
        fs::copy(program, &copy).expect("the temporary directory can be written");
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).expect("it is our file");
        Self(copy)
    }
}

impl Drop for ProgramCopy {
    fn drop(&mut self) {
        // A copy that remains in the temporary directory is no reason to fail.
        let _ = fs::remove_file(&self.0);
    }
}
