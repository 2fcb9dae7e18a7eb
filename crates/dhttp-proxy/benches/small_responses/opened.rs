//! Load by datagrams that request responses too large for one, which arrive on connections that the server opens.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread;

use dhttp::batch::{Endpoints, Inbox, Outbox};
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

use super::datagrams::{arrive, padding, request, token};
use super::network::client;
use super::server::LARGE_BYTES;
use super::{LOADED, now};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Load {
    /// Each client keeps the server's connection open.
    Reused,
    /// Each client closes it after a response, and idles for long before its next request.
    New,
}

const THREADS: u8 = 2;
/// Requests in flight of each thread, each of another client.
const WINDOW: u16 = 64;
/// Number of clients of each thread, for new connections.
const NEW_CLIENTS: u16 = 256;

/// Returns the number of responses. `begin` is called when all clients have their tokens.
pub(crate) fn run(load: Load, server: SocketAddr, begin: impl FnOnce()) -> u64 {
    let loaders: Vec<_> = (0..THREADS).map(|thread| Loader::new(load, server, thread)).collect();
    begin();
    thread::scope(|scope| {
        let threads: Vec<_> = loaders.into_iter().map(|loader| scope.spawn(|| loader.run())).collect();
        threads.into_iter().map(|thread| thread.join().expect("it has not panicked")).sum()
    })
}

struct Loader {
    load: Load,
    server: SocketAddr,
    socket: UdpSocket,
    listener: TcpListener,
    inbox: Inbox,
    outbox: Outbox,
    requests: BTreeMap<IpAddr, Vec<u8>>,
    connections: BTreeMap<u64, Connection>,
    accepted: u64,
    requested: u64,
}

struct Connection {
    stream: TcpStream,
    client: IpAddr,
    /// Received bytes of the current response.
    taken: usize,
    /// Length of the response, once its header section has arrived.
    whole: Option<usize>,
}

const LISTENER: u64 = 0;

impl Loader {
    fn new(load: Load, server: SocketAddr, thread: u8) -> Self {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a free port");
        socket.set_nonblocking(true).expect("it is a socket");
        dhttp::batch::prepare(&socket);
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a free port");
        listener.set_nonblocking(true).expect("it is a socket");
        let mut loader = Self {
            load,
            server,
            socket,
            listener,
            inbox: Inbox::default(),
            outbox: Outbox::default(),
            requests: BTreeMap::new(),
            connections: BTreeMap::new(),
            accepted: LISTENER,
            requested: u64::from(thread) << 32,
        };
        let (network, count): (u8, u16) = match load {
            Load::Reused => (200, WINDOW),
            Load::New => (210, NEW_CLIENTS),
        };
        for number in 0..count {
            let [high, low] = number.to_be_bytes();
            loader.prepare(client(server, [network + thread, high, low.clamp(1, 254)]));
        }
        loader
    }

    /// Fetches a client's token, and encodes its request.
    fn prepare(&mut self, client: IpAddr) {
        let first = request(b"small.txt", &padding());
        for _ in 0..100 {
            self.outbox.slot(Endpoints { peer: self.server, local: Some(client) }).extend_from_slice(&first);
            self.outbox.send(&self.socket);
            arrive(&self.socket);
            let is_here = self.inbox.receive(&self.socket).is_ok();
            if let Some(token) =
                self.inbox.datagram(0).filter(|_| is_here).and_then(|(_, response)| token(response))
            {
                let mut request = request(b"large.txt", &token);
                let port = self.listener.local_addr().expect("it is bound").port();
                request[8..10].copy_from_slice(&port.to_be_bytes());
                self.requests.insert(client, request);
                return;
            }
        }
        panic!("{} gives no token", self.server);
    }

    fn run(mut self) -> u64 {
        let epoll = epoll::create(CreateFlags::CLOEXEC).expect("a free descriptor");
        epoll::add(&epoll, &self.listener, EventData::new_u64(LISTENER), EventFlags::IN).expect("it is new");
        let clients: Vec<IpAddr> = self.requests.keys().copied().collect();
        let end = now() + LOADED;
        let (mut responses, mut buffer, mut events) = (0, vec![0; 65_536], Vec::with_capacity(64));
        let mut turns = clients.iter().copied().cycle();
        let mut due: Vec<IpAddr> = turns.by_ref().take(WINDOW.into()).collect();
        while now() < end {
            for client in due.drain(..) {
                self.send_request(client);
            }
            self.outbox.send(&self.socket);
            events.clear();
            let wait = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
            let count = epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), Some(&wait));
            if count.unwrap_or(0) == 0 {
                // Responses that are missing by now are lost.
                due = turns.by_ref().take(WINDOW.into()).collect();
            }
            for event in &events {
                match event.data.u64() {
                    LISTENER => self.accept(&epoll),
                    number => {
                        if let Some(client) = self.take(number, &mut buffer) {
                            responses += 1;
                            due.extend(match self.load {
                                Load::Reused => Some(client),
                                Load::New => turns.next(),
                            });
                        }
                    }
                }
            }
        }
        responses
    }

    fn send_request(&mut self, client: IpAddr) {
        self.requested += 1;
        let Some(request) = self.requests.get(&client) else { return };
        let slot = self.outbox.slot(Endpoints { peer: self.server, local: Some(client) });
        slot.extend_from_slice(&self.requested.to_be_bytes());
        slot.extend_from_slice(&request[8..]);
    }

    fn accept(&mut self, epoll: &std::os::fd::OwnedFd) {
        while let Ok((stream, _)) = self.listener.accept() {
            self.accepted += 1;
            let client = stream.local_addr().expect("it is connected").ip();
            stream.set_nonblocking(true).expect("it is a socket");
            epoll::add(epoll, &stream, EventData::new_u64(self.accepted), EventFlags::IN).expect("it is new");
            self.connections.insert(self.accepted, Connection { stream, client, taken: 0, whole: None });
        }
    }

    /// Reads from a connection; returns its client if the response is complete.
    fn take(&mut self, number: u64, buffer: &mut [u8]) -> Option<IpAddr> {
        let connection = self.connections.get_mut(&number)?;
        match connection.stream.read(buffer) {
            Ok(0) => {
                self.connections.remove(&number);
                return None;
            }
            Ok(count) => {
                if connection.whole.is_none() {
                    let head = buffer[..count].windows(4).position(|four| four == b"\r\n\r\n")?;
                    connection.whole = Some(head + 4 + LARGE_BYTES);
                }
                connection.taken += count;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
            Err(_) => {
                self.connections.remove(&number);
                return None;
            }
        }
        if connection.whole != Some(connection.taken) {
            return None;
        }
        connection.taken = 0;
        let client = connection.client;
        if self.load == Load::New {
            self.connections.remove(&number);
        }
        Some(client)
    }
}
