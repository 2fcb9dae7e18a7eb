//! The programs on the hosts, and their logs: times of requests, reads and responses.
//!
//! Header sections have a fixed length, so that neither end has to parse them. Roundtrip's own server and client have
//! none of these faults.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::os::linux::net::TcpStreamExt;
use std::sync::mpsc::Sender;

use linux::clock::Clock;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::sockopt::{RcvBuf, SndBuf};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, connect, setsockopt, socket};
use wire::{Duration, Time};

use super::cases::{Acks, ProgramBehaviour, RequestOrder};
use super::hosts::SERVER;

pub(crate) const REQUEST: usize = 256;
pub(crate) const UPLOAD: usize = 3_000;
pub(crate) const HEAD: usize = 200;
pub(crate) const PERMISSION: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Log of the client.
#[derive(Clone, Debug, Default)]
pub(crate) struct Visit {
    pub(crate) connections: Vec<ConnectionLog>,
    pub(crate) request_logs: Vec<RequestLog>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionLog {
    pub(crate) began: Time,
    pub(crate) opened: Time,
    pub(crate) port: u16,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestLog {
    /// Index in `connections`.
    pub(crate) connection: usize,
    pub(crate) at: Time,
    /// Time of the permission to send its body.
    pub(crate) permitted: Option<Time>,
    /// Time at which it had read the response; `None` if that is incomplete.
    pub(crate) finished: Option<Time>,
}

/// Log of the server for a response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResponseLog {
    pub(crate) began: Time,
    /// Time at which the kernel had accepted all of it.
    pub(crate) ended: Time,
}

pub(crate) fn wait(span: Duration) {
    let millis = i32::try_from(span.as_nanos() / 1_000_000).unwrap_or(i32::MAX);
    // There is nothing to wait for: it can only time out.
    let _ = poll(&mut [], PollTimeout::try_from(millis).unwrap_or(PollTimeout::NONE));
}

const TIMEOUT: std::time::Duration = std::time::Duration::from_secs(30);

/// Responds to every request of a visit. `watched` gets each new connection.
pub(crate) fn serve(
    listener: &TcpListener,
    behaviour: &ProgramBehaviour,
    clock: Clock,
    watched: &Sender<(SocketAddr, SocketAddr)>,
) -> io::Result<Vec<ResponseLog>> {
    let mut response_logs = Vec::new();
    while response_logs.len() < behaviour.responses.len()
        && behaviour.closes_after != Some(response_logs.len())
    {
        let mut ready = [PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
        if poll(&mut ready, PollTimeout::from(30_000_u16))? == 0 {
            return Err(io::Error::other("no client connected"));
        }
        let (mut stream, peer) = listener.accept()?;
        stream.set_nodelay(!behaviour.nagle)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        if let Some(size) = behaviour.send_buffer {
            setsockopt(&stream, SndBuf, &size)?;
        }
        // The receiver may be gone.
        let _ = watched.send((stream.local_addr()?, peer));
        while response_logs.len() < behaviour.responses.len()
            && behaviour.closes_after != Some(response_logs.len())
        {
            response_logs.push(respond(&mut stream, behaviour, response_logs.len(), clock)?);
            if behaviour.request_order == RequestOrder::SeparateConnections {
                break;
            }
        }
        if behaviour.closes_after == Some(response_logs.len()) {
            // The client's extra data stays unread, so that the kernel resets.
            continue;
        }
        stream.shutdown(Shutdown::Write)?;
        while stream.read(&mut [0; 4_096])? > 0 {}
    }
    Ok(response_logs)
}

fn respond(
    stream: &mut TcpStream,
    behaviour: &ProgramBehaviour,
    number: usize,
    clock: Clock,
) -> io::Result<ResponseLog> {
    stream.read_exact(&mut [0; REQUEST])?;
    if behaviour.expects {
        stream.write_all(PERMISSION)?;
    }
    if behaviour.uploads {
        stream.read_exact(&mut [0; UPLOAD])?;
    }
    if !behaviour.thinks_once || number == 0 {
        wait(behaviour.server_think);
    }
    let size = behaviour.responses.get(number).copied().unwrap_or_default();
    let head = padded(&format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n"), HEAD);
    let body = vec![b'x'; size];
    let began = clock.now();
    match (behaviour.head_apart, behaviour.send_buffer) {
        (true, _) => {
            stream.write_all(&head)?;
            stream.write_all(&body)?;
        }
        (false, None) => stream.write_all(&[head, body].concat())?,
        // One large write would be accepted as a whole, whatever the buffer's size.
        (false, Some(_)) => {
            let all = [head, body].concat();
            all.chunks(8_192).try_for_each(|part| stream.write_all(part))?;
        }
    }
    Ok(ResponseLog { began, ended: clock.now() })
}

/// Sends all requests, and reads the responses. A reset by the server ends it, and is not an error.
pub(crate) fn visit(behaviour: &ProgramBehaviour, clock: Clock) -> io::Result<Visit> {
    let mut visit = Visit::default();
    match behaviour.request_order {
        RequestOrder::Pipelined => {
            let mut stream = open(behaviour, clock, &mut visit)?;
            for _ in &behaviour.responses {
                visit.send_request(&mut stream, behaviour, clock)?;
            }
            for (number, size) in behaviour.responses.iter().enumerate() {
                if read(&mut stream, behaviour, *size).is_err() {
                    break;
                }
                visit.request_logs[number].finished = Some(clock.now());
            }
        }
        RequestOrder::Sequential => {
            let mut stream = open(behaviour, clock, &mut visit)?;
            for (number, size) in behaviour.responses.iter().enumerate() {
                if number > 0 {
                    wait(behaviour.client_think);
                }
                visit.exchange(&mut stream, behaviour, *size, clock)?;
            }
        }
        RequestOrder::SeparateConnections => {
            for size in &behaviour.responses {
                let mut stream = open(behaviour, clock, &mut visit)?;
                visit.exchange(&mut stream, behaviour, *size, clock)?;
                // The server closes first.
                let _ = stream.read(&mut [0]);
            }
        }
    }
    Ok(visit)
}

impl Visit {
    fn exchange(
        &mut self,
        stream: &mut TcpStream,
        behaviour: &ProgramBehaviour,
        size: usize,
        clock: Clock,
    ) -> io::Result<()> {
        self.send_request(stream, behaviour, clock)?;
        if behaviour.expects {
            stream.read_exact(&mut vec![0; PERMISSION.len()])?;
            self.last().permitted = Some(clock.now());
        }
        if behaviour.uploads {
            stream.write_all(&[b'y'; UPLOAD])?;
        }
        read(stream, behaviour, size)?;
        self.last().finished = Some(clock.now());
        Ok(())
    }

    fn send_request(
        &mut self,
        stream: &mut TcpStream,
        behaviour: &ProgramBehaviour,
        clock: Clock,
    ) -> io::Result<()> {
        let expect = if behaviour.expects { "Expect: 100-continue\r\n" } else { "" };
        let head_lines = if behaviour.uploads {
            format!("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: {UPLOAD}\r\n{expect}")
        } else {
            "GET / HTTP/1.1\r\nHost: h\r\n".to_owned()
        };
        if behaviour.acks == Acks::Delayed {
            stream.set_quickack(false)?;
        }
        let connection = self.connections.len() - 1;
        self.request_logs.push(RequestLog { connection, at: clock.now(), permitted: None, finished: None });
        match stream.write_all(&padded(&head_lines, REQUEST)) {
            // A client learns of the reset when it reads.
            Err(error) if behaviour.closes_after.is_none() => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn last(&mut self) -> &mut RequestLog {
        self.request_logs.last_mut().expect("a request was just sent")
    }
}

fn read(stream: &mut TcpStream, behaviour: &ProgramBehaviour, size: usize) -> io::Result<()> {
    stream.read_exact(&mut [0; HEAD])?;
    let (first, pause_span) = match behaviour.reading_pause {
        Some((after, span)) if after < size => (after, Some(span)),
        Some(_) | None => (size, None),
    };
    stream.read_exact(&mut vec![0; first])?;
    if let Some(span) = pause_span {
        wait(span);
        stream.read_exact(&mut vec![0; size - first])?;
    }
    Ok(())
}

fn open(behaviour: &ProgramBehaviour, clock: Clock, visit: &mut Visit) -> io::Result<TcpStream> {
    let server: SocketAddrV4 = SERVER.parse().expect("it is an address");
    let socket = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    if let Some(size) = behaviour.receive_buffer {
        setsockopt(&socket, RcvBuf, &size)?;
    }
    let began = clock.now();
    connect(socket.as_raw_fd(), &SockaddrIn::from(server))?;
    let opened = clock.now();
    let stream = TcpStream::from(socket);
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    visit.connections.push(ConnectionLog { began, opened, port: stream.local_addr()?.port() });
    Ok(stream)
}

/// A header section of exactly `length` bytes.
fn padded(lines: &str, length: usize) -> Vec<u8> {
    let padding = length.saturating_sub(lines.len() + "P: \r\n\r\n".len());
    format!("{lines}P: {}\r\n\r\n", "p".repeat(padding)).into_bytes()
}
