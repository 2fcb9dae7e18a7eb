//! Load by datagrams, from many addresses of the loopback network. Connections are in other modules.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use dhttp::batch::{Endpoints, Inbox, Outbox};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{setsockopt, sockopt};

use super::network::client;
use super::{LOADED, now};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Load {
    /// Returning clients with a token, with one request at a time each.
    Known,
    /// Each request from a new address.
    New,
    /// All from one address, many concurrently.
    One,
    /// `GET /` of CoAP, from few addresses.
    Coap,
}

const THREADS: u16 = 2;
/// Requests in flight of each thread.
const WINDOW: usize = 128;
const WINDOW_OF_ONE: usize = 1_024;
/// Number of source addresses of each thread.
const CLIENTS: u16 = 256;

/// Returns the number of responses. `begin` is called when all clients are ready.
pub(crate) fn run(load: Load, server: SocketAddr, begin: impl FnOnce()) -> u64 {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    let loaders: Vec<_> =
        (0..THREADS).map(|_| Loader::new(load, server, RUNS.fetch_add(1, Ordering::Relaxed))).collect();
    begin();
    thread::scope(|scope| {
        let threads: Vec<_> = loaders.into_iter().map(|loader| scope.spawn(|| loader.run())).collect();
        threads.into_iter().map(|thread| thread.join().expect("it has not panicked")).sum()
    })
}

/// Load of one thread.
struct Loader {
    load: Load,
    server: SocketAddr,
    socket: UdpSocket,
    inbox: Inbox,
    outbox: Outbox,
    /// Requests with their clients, sent in turn.
    requests: Vec<(IpAddr, Vec<u8>)>,
    requested: u64,
    /// Different in each thread of each run.
    seed: u64,
}

impl Loader {
    fn new(load: Load, server: SocketAddr, run: u64) -> Self {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a free port");
        socket.set_nonblocking(true).expect("it is a socket");
        dhttp::batch::prepare(&socket);
        enlarge_buffers(&socket);
        let (inbox, outbox) = (Inbox::default(), Outbox::default());
        let mut loader =
            Self { load, server, socket, inbox, outbox, requests: Vec::new(), requested: 0, seed: run << 32 };
        let [.., low] = run.to_be_bytes();
        // Each client in another network, as on the Internet: addresses, sites and networks have rate limits.
        let address = |number: u16| {
            let [high, network] = number.to_be_bytes();
            client(server, [network, low, 1 + high])
        };
        loader.requests = match load {
            Load::Known => (0..CLIENTS).map(|number| loader.known(address(number))).collect(),
            Load::One => vec![loader.known(address(1))],
            Load::New => vec![(address(1), request(b"small.txt", &padding()))],
            // The server stores every client for minutes, and slows down with their number.
            Load::Coap => vec![(client(server, [0, 0, 1]), coap())],
        };
        loader
    }

    /// Returns the request of a client with a token, which it fetches.
    fn known(&mut self, client: IpAddr) -> (IpAddr, Vec<u8>) {
        let first = request(b"small.txt", &format!("{}DHTTP-Token: ?\r\n", padding()));
        for _ in 0..100 {
            self.outbox.slot(Endpoints { peer: self.server, local: Some(client) }).extend_from_slice(&first);
            self.outbox.send(&self.socket);
            self.wait();
            if let Some(token) = self.inbox.datagram(0).and_then(|(_, response)| token(response)) {
                return (client, request(b"small.txt", &token));
            }
            if self.inbox.datagram(0).is_some_and(|(_, response)| response.starts_with(b"rrrr")) {
                return (client, first);
            }
        }
        panic!("{} gives no token", self.server);
    }

    fn run(mut self) -> u64 {
        let window = if self.load == Load::One { WINDOW_OF_ONE } else { WINDOW };
        let end = now() + LOADED;
        let (mut responses, mut waiting) = (0, 0);
        while now() < end {
            while waiting < window {
                self.send_request();
                waiting += 1;
            }
            self.outbox.send(&self.socket);
            if !self.wait() {
                // Responses that are missing by now are lost.
                waiting = 0;
            }
            waiting = waiting.saturating_sub(self.inbox.len());
            let is_response = |index| self.inbox.datagram(index).is_some_and(|(_, bytes)| bytes.len() > 50);
            responses += (0..self.inbox.len()).filter(|index| is_response(*index)).count() as u64;
        }
        responses
    }

    fn send_request(&mut self) {
        self.requested += 1;
        let id = self.seed + self.requested;
        let turn = usize::try_from(self.requested).unwrap_or(0) % self.requests.len();
        let (owner, request) = &self.requests[turn];
        let local = match self.load {
            Load::Known | Load::One | Load::Coap => *owner,
            // A new address every time, and all networks in turn, because each has a rate share; other loads use other
            // addresses.
            Load::New => {
                let [.., low, middle, high] = (id.wrapping_mul(0x9e37_79b1) ^ self.seed >> 32).to_be_bytes();
                client(self.server, [20 + low % 180, middle, high.clamp(1, 254)])
            }
        };
        let slot = self.outbox.slot(Endpoints { peer: self.server, local: Some(local) });
        slot.extend_from_slice(request);
        match self.load {
            Load::Known | Load::One | Load::New => {
                if let Some(field) = slot.get_mut(..8) {
                    field.copy_from_slice(&id.to_be_bytes());
                }
            }
            Load::Coap => {
                if let Some(field) = slot.get_mut(2..4) {
                    field.copy_from_slice(&self.requested.to_be_bytes()[6..]);
                }
            }
        }
    }

    /// Waits for datagrams and receives them; `false` if none arrived.
    fn wait(&mut self) -> bool {
        arrive(&self.socket);
        self.inbox.receive(&self.socket).is_ok()
    }
}

/// Sets socket buffers for everything in flight, as the server does: a datagram takes more memory than its bytes, and a
/// datagram lost here costs a timeout.
pub(crate) fn enlarge_buffers(socket: &UdpSocket) {
    // The kernel grants what its limits allow.
    let _ = setsockopt(socket, sockopt::RcvBuf, &(4 << 20));
    let _ = setsockopt(socket, sockopt::SndBuf, &(4 << 20));
}

/// Waits for a datagram, up to a timeout.
pub(crate) fn arrive(socket: &UdpSocket) {
    let mut waits = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
    let _ = poll(&mut waits, PollTimeout::from(200_u8));
}

/// Encodes a request with its number, and 50,000 as the client's port.
pub(crate) fn request(page: &[u8], fields: &str) -> Vec<u8> {
    let mut request = b"\0\0\0\0\0\0\0\0\xc3\x50\0GET /".to_vec();
    request.extend_from_slice(page);
    request.extend_from_slice(b" HTTP/1.1\r\nHost: 127.0.0.1\r\n");
    request.extend_from_slice(fields.as_bytes());
    request.extend_from_slice(b"\r\n");
    request
}

/// Returns padding for a first request, so that its response is within three times its size.
pub(crate) fn padding() -> String {
    format!("DHTTP-Fill: {}\r\n", "0".repeat(340))
}

/// Returns the token field of a response, or that of a fallback message, which is an id and a token.
pub(crate) fn token(response: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(response.get(8..)?);
    if response.len() == FALLBACK_BYTES {
        return Some(format!("DHTTP-Token: {text}\r\n"));
    }
    let line = text.lines().find(|line| line.starts_with("DHTTP-Token: "))?;
    Some(format!("{line}\r\n"))
}

/// Length of a fallback message with a token (`docs/dhttp.md`).
const FALLBACK_BYTES: usize = 34;

/// A CoAP request (RFC 7252, section 3): version 1, non-confirmable, GET, a message number; without options, so that the
/// resource is the root.
fn coap() -> Vec<u8> {
    vec![0x50, 1, 0, 0]
}
