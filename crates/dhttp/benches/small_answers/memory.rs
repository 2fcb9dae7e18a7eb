//! What clients cost in memory: what a server holds before and after it has answered a million of them, and while it keeps
//! a hundred thousand connections that it opened. Not the kernel's memory, which has several KiB for each socket.

use std::fs;
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::time::Duration;

use dhttp::batch::{Ends, Outbox};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::datagrams::{self, request};
use super::network::{Network, client};
use super::server::{Folder, Kind, LARGE_BYTES, One};

const CLIENTS: u64 = 1_000_000;
const CONNECTIONS: u32 = 100_000;
/// Files that are open for other reasons.
const SPARE: u64 = 1_000;

/// Prints both.
pub(crate) fn compare(network: &Network, folder: &Folder) {
    if let Some(server) = One::start(Kind::Ours, network, folder) {
        let before = resident(server.process);
        let mut answers = 0;
        while answers < CLIENTS {
            answers += datagrams::run(datagrams::Load::New, server.address);
        }
        let more = resident(server.process).saturating_sub(before);
        println!("{answers} first requests, each from another client: {} KiB more than idle", more / 1_024);
    }
    let connections = descriptors();
    if let Some(server) = One::start(Kind::Holding, network, folder) {
        let before = resident(server.process);
        let held = hold(server.address, connections);
        let more = resident(server.process).saturating_sub(before);
        let each = more / (held.len() as u64).max(1);
        println!("{} idle connections that the server opened: {each} bytes of its memory each", held.len());
    }
}

/// How many connections there can be: each end needs a descriptor for each, and what is started from here may have as
/// many as this program.
fn descriptors() -> u32 {
    let wanted = u64::from(CONNECTIONS) + SPARE;
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap_or_default();
    let most = if setrlimit(Resource::RLIMIT_NOFILE, wanted, wanted.max(hard)).is_ok() {
        wanted
    } else {
        println!(
            "memory: fewer connections than {CONNECTIONS}, because this system allows {hard} open files"
        );
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
        hard
    };
    u32::try_from(most.saturating_sub(SPARE)).unwrap_or(0)
}

/// Bytes of memory that a process holds.
fn resident(process: u32) -> u64 {
    let statistics = fs::read_to_string(format!("/proc/{process}/statm")).unwrap_or_default();
    let pages = statistics.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * 4_096
}

/// Has so many clients ask for what is too large for a datagram, and keeps the connections.
fn hold(server: SocketAddr, connections: u32) -> Vec<TcpStream> {
    /// Requests on their way.
    const TOGETHER: u32 = 64;
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a free port");
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    let mut request = request(b"large.txt", "");
    request[8..10].copy_from_slice(&port.to_be_bytes());
    let (mut outbox, mut held, mut room) = (Outbox::default(), Vec::new(), vec![0; 65_536]);
    for first in (0..connections).step_by(TOGETHER as usize) {
        for number in first..connections.min(first + TOGETHER) {
            let [_, high, middle, low] = number.to_be_bytes();
            let local = Some(client(server, [100 + high, middle, low]));
            request[4..8].copy_from_slice(&number.to_be_bytes());
            outbox.slot(Ends { peer: server, local }).extend_from_slice(&request);
        }
        outbox.send(&socket);
        for _ in first..connections.min(first + TOGETHER) {
            let mut waits = [PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
            let is_there = poll(&mut waits, PollTimeout::from(1_000_u16)).is_ok_and(|count| count > 0);
            let stream = is_there.then(|| listener.accept().ok()).flatten();
            held.extend(stream.and_then(|(stream, _)| whole(stream, &mut room)));
        }
    }
    held
}

/// A connection whose answer has come to its last byte.
fn whole(mut stream: TcpStream, room: &mut [u8]) -> Option<TcpStream> {
    stream.set_read_timeout(Some(Duration::from_secs(1))).ok()?;
    let mut taken = 0;
    // The head has some two hundred bytes.
    while taken < LARGE_BYTES + 100 {
        taken += stream.read(room).ok().filter(|count| *count > 0)?;
    }
    Some(stream)
}
