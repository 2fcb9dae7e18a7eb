//! The attacks: what an attacker sends, from how many addresses, and how it goes on.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use socket2::{Domain, Socket, Type};

use crate::pause;
use crate::two_clients::{one_of_many, service_address, silent_server};

/// An attack.
pub(crate) struct Attack {
    pub(crate) name: &'static str,
    /// The services that it concerns.
    pub(crate) services: &'static [&'static str],
    pub(crate) connections: usize,
    /// Whether each connection has an address of its own, in a /16 of its own. Otherwise all have one address.
    pub(crate) has_many_addresses: bool,
    /// Whether a connection that the service closed is opened again, and the measured host's requests are misses of a cache.
    pub(crate) is_for_slow_responses: bool,
    /// Bytes that a connection with this number sends first.
    first: fn(prefix: &str, number: usize) -> String,
    /// Bytes that each connection sends, and reads, every second.
    rates: (usize, usize),
}

const ALL: &[&str] = &["serve", "cache", "gateway"];
const SERVERS: &[&str] = &["serve", "cache"];
const CACHE: &[&str] = &["cache"];
const GATEWAY: &[&str] = &["gateway"];

const fn attack(
    name: &'static str,
    connections: usize,
    first: fn(&str, usize) -> String,
    rates: (usize, usize),
) -> Attack {
    Attack {
        name,
        services: ALL,
        connections,
        has_many_addresses: false,
        is_for_slow_responses: false,
        first,
        rates,
    }
}

impl Attack {
    const fn of_many_addresses(self, services: &'static [&'static str]) -> Self {
        Self { services, has_many_addresses: true, ..self }
    }

    const fn for_slow_responses(self, services: &'static [&'static str]) -> Self {
        Self { is_for_slow_responses: true, ..self.of_many_addresses(services) }
    }
}

pub(crate) static ATTACKS: [Attack; 9] = [
    attack("12,000 idle connections", 12_000, |_, _| String::new(), (0, 0)),
    attack("2,000 POSTs of 1 MB, 600 B/s each", 2_000, post, (600, 0)),
    attack("300 readers of 1 MiB, 90 B/s each", 300, large, (0, 90)),
    attack("10,000 POSTs, 600 B/s each, many addresses", 10_000, post, (600, 0)).of_many_addresses(SERVERS),
    attack("10,000 readers, 900 B/s each, many addresses", 10_000, large, (0, 900))
        .of_many_addresses(SERVERS),
    attack("10,000 requests for a slow path, many addresses", 10_000, |_, _| get("", "/slow"), (0, 90))
        .for_slow_responses(CACHE),
    attack(
        "10,000 requests for slow paths, many addresses",
        10_000,
        |_, number| get("", &format!("/slow{number}")),
        (0, 90),
    )
    .for_slow_responses(CACHE),
    attack(
        "10,000 requests to a silent server, many addresses",
        10_000,
        |_, _| get(&format!("http://{}", silent_server(0)), "/"),
        (0, 90),
    )
    .for_slow_responses(GATEWAY),
    attack(
        "10,000 requests to 1,000 silent servers, many addresses",
        10_000,
        |_, number| get(&format!("http://{}", silent_server(number)), "/"),
        (0, 90),
    )
    .for_slow_responses(GATEWAY),
];

fn get(prefix: &str, path: &str) -> String {
    format!("GET {prefix}{path} HTTP/1.1\r\nHost: h\r\n\r\n")
}

fn large(prefix: &str, _number: usize) -> String {
    get(prefix, "/large")
}

fn post(prefix: &str, _number: usize) -> String {
    format!("POST {prefix}/ HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n")
}

/// Connections that an attacker opens in a second.
const CONNECTIONS_PER_SECOND: usize = 3_000;
/// Interval of its work.
const TICK: Duration = Duration::from_millis(10);
/// Ticks in which each connection has its turn once.
const TURNS: usize = 100;

/// An attacker's connections, by number.
struct Attacker<'a> {
    attack: &'a Attack,
    to: SocketAddr,
    prefix: &'a str,
    streams: Vec<Option<TcpStream>>,
    /// Numbers of connections that the service closed.
    closed: Vec<usize>,
    buffer: Vec<u8>,
}

impl Attacker<'_> {
    /// Opens a connection with a small receive buffer, so that the kernel reads little for a slow reader.
    fn open(&self, number: usize) -> Option<TcpStream> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).ok()?;
        socket.set_recv_buffer_size(4_096).ok()?;
        if self.attack.has_many_addresses {
            let from: IpAddr = one_of_many(number);
            socket.bind(&SocketAddr::new(from, 0).into()).ok()?;
        }
        socket.connect_timeout(&self.to.into(), Duration::from_secs(1)).ok()?;
        let mut stream = TcpStream::from(socket);
        stream.set_nonblocking(true).ok()?;
        // A service may refuse the connection already.
        let _ = stream.write_all((self.attack.first)(self.prefix, number).as_bytes());
        Some(stream)
    }

    fn open_some(&mut self) {
        for _ in 0..CONNECTIONS_PER_SECOND / TURNS {
            let number = if self.streams.len() < self.attack.connections {
                self.streams.push(None);
                self.streams.len() - 1
            } else if let Some(number) = self.closed.pop() {
                number
            } else {
                return;
            };
            let stream = self.open(number);
            if stream.is_none() && self.attack.is_for_slow_responses {
                self.closed.push(number);
            }
            self.streams[number] = stream;
        }
    }

    /// Sends and reads what the connections send and read in a second, in the tick whose turn it is.
    fn exchange(&mut self, turn: usize) {
        let (send, read) = self.attack.rates;
        if send + read == 0 {
            return;
        }
        let (sent, read) = (vec![b'x'; send], self.buffer.get_mut(..read).unwrap_or_default());
        for (number, slot) in self.streams.iter_mut().enumerate().skip(turn).step_by(TURNS) {
            let Some(stream) = slot else { continue };
            let _ = stream.write(&sent);
            let is_over = match stream.read(read) {
                Ok(length) => length == 0,
                Err(error) => error.kind() != ErrorKind::WouldBlock,
            };
            // A refusal is a response, too.
            if self.attack.is_for_slow_responses && (is_over || read.starts_with(b"HTTP/1.1 503")) {
                read.fill(0);
                *slot = None;
                self.closed.push(number);
            }
        }
    }
}

/// A process that attacks: it has as many descriptors as the services.
pub(crate) struct AttackProcess(Child);

impl AttackProcess {
    /// Starts one in this thread's namespace.
    pub(crate) fn start(attack: &Attack, prefix: &str) -> Self {
        let program = std::env::current_exe().expect("this program");
        let child = Command::new(program).args([ATTACKER, attack.name, prefix]).stdin(Stdio::piped()).spawn();
        Self(child.expect("a process"))
    }

    pub(crate) fn stop(mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// First argument of a process that attacks.
pub(crate) const ATTACKER: &str = "attacker";

/// Attacks, by the arguments of such a process, until its standard input ends.
pub(crate) fn run(mut arguments: impl Iterator<Item = String>) {
    let (name, prefix) = (arguments.next().unwrap_or_default(), arguments.next().unwrap_or_default());
    let attack = ATTACKS.iter().find(|attack| attack.name == name).expect("an attack");
    dhttp::descriptors::grow_table();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    std::thread::spawn(move || {
        let _ = std::io::stdin().read(&mut [0]);
        stopped.store(true, Ordering::Release);
    });
    attack_until(attack, service_address(1, false), &prefix, &stop);
}

fn attack_until(attack: &Attack, to: SocketAddr, prefix: &str, stop: &AtomicBool) {
    let buffer = vec![0; attack.rates.1];
    let mut attacker = Attacker { attack, to, prefix, streams: Vec::new(), closed: Vec::new(), buffer };
    let mut turn = 0;
    while !stop.load(Ordering::Acquire) {
        attacker.open_some();
        attacker.exchange(turn);
        turn = (turn + 1) % TURNS;
        pause(TICK);
    }
}
