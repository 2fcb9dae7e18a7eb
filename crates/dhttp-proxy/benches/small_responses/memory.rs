//! Memory per client: that of a server before and after it has responded to a million of them, and while it keeps a hundred
//! thousand connections open; and that of a gateway with a thousand idle programs. The kernel's memory, several KiB for each
//! socket, is not included.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use dhttp::batch::{Endpoints, Outbox};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::datagrams::{self, request};
use super::network::{Network, client};
use super::server::{LARGE_BYTES, ServedDirectory, ServerKind, ServerProcess};

const CLIENTS: u64 = 1_000_000;
const CONNECTIONS: u32 = 100_000;
/// Number of files open for other reasons.
const SPARE: u64 = 1_000;

/// Argument that makes this program a holder of client connections.
pub(crate) const ROLE: &str = "--keep";

/// Prints both results.
pub(crate) fn compare(network: &Network, directory: &ServedDirectory) {
    if let Some(server) = ServerProcess::start(ServerKind::Ours, network, directory) {
        let before = resident(server.process);
        let mut responses = 0;
        while responses < CLIENTS {
            responses += datagrams::run(datagrams::Load::New, server.address, || ());
        }
        let growth = resident(server.process).saturating_sub(before);
        print_row(&format!("{responses} first requests, each from another client"), 64 << 20, growth);
    }
    let each = descriptors();
    let (mut servers, mut held, mut growth) = (0, 0, 0);
    // All holders keep their connections open concurrently.
    let mut all = Vec::new();
    while held < CONNECTIONS {
        let Some(server) = ServerProcess::start(ServerKind::Holding, network, directory) else { return };
        let before = resident(server.process);
        let Some(stored) = HolderProcess::start(server.address, each.min(CONNECTIONS - held)) else { break };
        growth += resident(server.process).saturating_sub(before);
        (servers, held) = (servers + 1, held + stored.count);
        let is_all = stored.count > 0;
        all.push((server, stored));
        if !is_all {
            break;
        }
    }
    let name = format!("each of {held} idle connections that {servers} servers opened");
    print_row(&name, 1_024, growth / u64::from(held).max(1));
    drop(all);
    if let Some(gateway) = ServerProcess::start(ServerKind::Gateway, network, directory) {
        print_idle(&gateway);
    }
}

/// Prints the memory of a gateway for clients that have sent one request and keep their connections open.
fn print_idle(gateway: &ServerProcess) {
    const PROGRAMS: u64 = 1_000;
    // The gateway's one-time allocations for its first client are not counted.
    let first = send_request(gateway.address);
    let (before, threads) = (resident(gateway.process), threads(gateway.process));
    let stored: Option<Vec<_>> = (0..PROGRAMS).map(|_| send_request(gateway.address)).collect();
    let growth = resident(gateway.process).saturating_sub(before);
    let further = self::threads(gateway.process).saturating_sub(threads);
    match (first, stored) {
        (Some(_), Some(_)) => println!(
            "each of {PROGRAMS} idle connections of programs to a gateway: {} bytes more, and {further} threads for all",
            growth / PROGRAMS
        ),
        (None, _) | (_, None) => println!("a gateway did not respond"),
    }
}

/// Returns a program's connection that has received one response, and idles.
fn send_request(gateway: SocketAddr) -> Option<TcpStream> {
    let mut stream = TcpStream::connect(gateway).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    stream.write_all(b"GET /proxy.pac HTTP/1.1\r\nHost: a\r\n\r\n").ok()?;
    let (mut come, mut buffer) = (Vec::new(), [0; 1_024]);
    while !come.ends_with(b"}\n") {
        let length = stream.read(&mut buffer).ok().filter(|length| *length > 0)?;
        come.extend_from_slice(buffer.get(..length)?);
    }
    Some(stream)
}

fn threads(process: u32) -> usize {
    fs::read_dir(format!("/proc/{process}/task")).map_or(0, Iterator::count)
}

fn print_row(name: &str, requested: u64, measured: u64) {
    let verdict = if measured <= requested { "reached" } else { "missed" };
    println!("{name}: target: at most {requested} bytes more; measured: {measured}: {verdict}");
}

/// Returns the number of connections that a server can have: each needs a descriptor, and child processes have this program's
/// limit.
fn descriptors() -> u32 {
    let requested_limit = u64::from(CONNECTIONS) + SPARE;
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap_or_default();
    let max = if setrlimit(Resource::RLIMIT_NOFILE, requested_limit, requested_limit.max(hard)).is_ok() {
        requested_limit
    } else {
        println!("several servers, because the limit is {hard} open files per process");
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
        hard
    };
    u32::try_from(max.saturating_sub(SPARE)).unwrap_or(0).max(1)
}

/// A child process with the client ends, because these need descriptors, too.
struct HolderProcess {
    child: Child,
    count: u32,
}

impl HolderProcess {
    fn start(server: SocketAddr, connections: u32) -> Option<Self> {
        let mut command = Command::new(std::env::current_exe().ok()?);
        command.args([ROLE, &server.to_string(), &connections.to_string()]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take()?).read_line(&mut line).ok()?;
        Some(Self { child, count: line.trim().parse().ok()? })
    }
}

impl Drop for HolderProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Keeps this many connections open until it is killed, or its parent has ended.
pub(crate) fn keep(server: SocketAddr, connections: u32) {
    let held = hold(server, connections);
    println!("{}", held.len());
    let _ = std::io::stdin().read(&mut [0]);
}

/// Resident memory of a process, in bytes.
fn resident(process: u32) -> u64 {
    let statistics = fs::read_to_string(format!("/proc/{process}/statm")).unwrap_or_default();
    let pages = statistics.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * 4_096
}

/// Opens connections by requests of this many clients for a response too large for a datagram.
fn hold(server: SocketAddr, connections: u32) -> Vec<TcpStream> {
    /// Requests in flight.
    const TOGETHER: u32 = 64;
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a free port");
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    let mut request = request(b"large.txt", "");
    request[8..10].copy_from_slice(&port.to_be_bytes());
    let (mut outbox, mut held, mut buffer) = (Outbox::default(), Vec::new(), vec![0; 65_536]);
    for first in (0..connections).step_by(TOGETHER as usize) {
        for number in first..connections.min(first + TOGETHER) {
            let [_, high, middle, low] = number.to_be_bytes();
            let local = Some(client(server, [100 + high, middle, low]));
            request[4..8].copy_from_slice(&number.to_be_bytes());
            outbox.slot(Endpoints { peer: server, local }).extend_from_slice(&request);
        }
        outbox.send(&socket);
        for _ in first..connections.min(first + TOGETHER) {
            let mut waits = [PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
            let is_there = poll(&mut waits, PollTimeout::from(1_000_u16)).is_ok_and(|count| count > 0);
            let stream = is_there.then(|| listener.accept().ok()).flatten();
            held.extend(stream.and_then(|(stream, _)| whole(stream, &mut buffer)));
        }
    }
    held
}

/// Returns a connection whose response has arrived completely.
fn whole(mut stream: TcpStream, buffer: &mut [u8]) -> Option<TcpStream> {
    stream.set_read_timeout(Some(Duration::from_secs(1))).ok()?;
    let mut received = 0;
    // The header section has about two hundred bytes.
    while received < LARGE_BYTES + 100 {
        received += stream.read(buffer).ok().filter(|count| *count > 0)?;
    }
    Some(stream)
}
