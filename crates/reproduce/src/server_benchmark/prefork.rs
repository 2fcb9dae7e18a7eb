//! A server with a worker for each connection, as Apache's prefork model: `papers/dhttp#section-vi-b` without Apache.
//!
//! Workers are threads, not processes. Each serves one connection until it closes, and others wait in the kernel's accept
//! queue. Not a product: files are read once, and nothing is logged.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroU32;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration as Elapsed;

use http1::message::{Fields, RequestHead};
use http1::server::{
    ConnectionTimeouts, Input, Output, Response, ResponseBody, ServerConfig, ServerConnection,
};
use linux::clock::Clock;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrStorage, bind, listen, setsockopt, shutdown, socket,
    sockopt,
};
use wire::Duration;

/// Configuration of the server.
#[derive(Clone, Copy, Debug)]
pub struct PreforkConfig {
    /// Number of workers (Apache's `MaxRequestWorkers`).
    pub workers: usize,
    /// Maximum number of connections that wait for a worker (`ListenBacklog`).
    pub backlog: i32,
    /// Idle timeout of a connection (`KeepAliveTimeout`); zero: each carries one response.
    pub idle: Duration,
    /// Whether a worker with an idle connection looks at the accept queue every second, and closes the connection if
    /// others wait: the paper's modified Apache.
    pub closes_idle: bool,
}

/// A running server; its workers end when it is dropped.
#[derive(Debug)]
pub struct Prefork {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

/// State that the workers share.
#[derive(Debug)]
struct Shared {
    listener: TcpListener,
    files: BTreeMap<String, Arc<[u8]>>,
    config: PreforkConfig,
    clock: Clock,
    is_over: AtomicBool,
}

/// Longest wait in one read: how soon a worker notices the end, and Apache's interval between looks at the queue.
const LOOK: Duration = Duration::from_secs(1);
/// Timeout of a write to a client that does not read.
const WRITE_TIMEOUT: Elapsed = Elapsed::from_secs(300);

/// Serves the files of `directory` on threads of the caller's network namespace, until the server is dropped.
///
/// # Errors
/// The system's error.
pub fn serve(address: SocketAddr, directory: &Path, config: PreforkConfig) -> io::Result<Prefork> {
    let mut files = BTreeMap::new();
    for (path, contents) in super::in_memory::read(directory)?.iter() {
        files.insert(path.clone(), Arc::from(contents.as_ref()));
    }
    let listener = listening(address, config.backlog)?;
    let (clock, is_over) = (Clock::start(), AtomicBool::new(false));
    let shared = Arc::new(Shared { listener, files, config, clock, is_over });
    let mut server = Prefork { shared, workers: Vec::new() };
    for _ in 0..config.workers {
        let shared = Arc::clone(&server.shared);
        let worker = thread::Builder::new().name("prefork".to_owned()).stack_size(256 * 1_024);
        server.workers.push(worker.spawn(move || work(&shared))?);
    }
    Ok(server)
}

/// A listener with this backlog: `TcpListener` has a fixed one.
fn listening(address: SocketAddr, backlog: i32) -> io::Result<TcpListener> {
    let family = if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let socket = socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    setsockopt(&socket, sockopt::ReuseAddr, &true)?;
    bind(socket.as_raw_fd(), &SockaddrStorage::from(address))?;
    listen(&socket, Backlog::new(backlog)?)?;
    Ok(TcpListener::from(socket))
}

fn work(shared: &Shared) {
    while !shared.is_over.load(Ordering::Relaxed) {
        // An aborted connection is not an error of the server; the listener's end is noticed above.
        if let Ok((stream, _)) = shared.listener.accept() {
            let _ = shared.serve(stream);
        }
    }
}

impl Shared {
    /// Serves a connection until it ends.
    fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
        let mut connection = ServerConnection::new(self.clock.now(), self.http());
        let (mut request, mut buffer) = (None, vec![0; 8_192]);
        while !self.is_over.load(Ordering::Relaxed) {
            let now = self.clock.now();
            match connection.poll(now) {
                Output::Request(_, head) => request = Some(head),
                Output::RequestEnd(id) => {
                    let response = request.take().map(|head| self.response(&head));
                    // The response is whole and final: only an aborted request refuses it.
                    if let Some(response) = response {
                        let _ = connection.respond(now, id, response);
                    }
                }
                Output::Send(bytes) => stream.write_all(&bytes)?,
                Output::HalfClose => stream.shutdown(Shutdown::Write)?,
                Output::Close | Output::Abort => return Ok(()),
                Output::RequestBody(..) | Output::RequestAborted(_) | Output::Fault(_) => {}
                Output::Timeout(until) => {
                    let wait = until.map_or(LOOK, |until| until.since(now).min(LOOK));
                    let wait = Elapsed::from_nanos(wait.as_nanos()).max(Elapsed::from_millis(1));
                    stream.set_read_timeout(Some(wait))?;
                    match stream.read(&mut buffer) {
                        Ok(0) => connection.handle(self.clock.now(), Input::EndOfStream),
                        Ok(length) => {
                            connection.handle(self.clock.now(), Input::Received(&buffer[..length]));
                        }
                        Err(error) if error.kind() == ErrorKind::WouldBlock => {
                            if self.config.closes_idle && self.has_waiting() {
                                return Ok(());
                            }
                        }
                        Err(error) if error.kind() == ErrorKind::Interrupted => {}
                        Err(error) => return Err(error),
                    }
                }
            }
        }
        Ok(())
    }

    fn http(&self) -> ServerConfig {
        let is_kept = self.config.idle > Duration::ZERO;
        let usual = ConnectionTimeouts::default();
        let idle = if is_kept { self.config.idle } else { usual.idle };
        let requests = if is_kept { None } else { NonZeroU32::new(1) };
        ServerConfig { timeout: ConnectionTimeouts { idle, ..usual }, requests, ..ServerConfig::default() }
    }

    fn response(&self, head: &RequestHead) -> Response {
        let (status, body) = match self.files.get(&head.target) {
            Some(file) => (200, Arc::clone(file)),
            None => (404, Arc::from([])),
        };
        Response { status, fields: Fields::new(), body: ResponseBody::Whole(body) }
    }

    /// Whether a connection waits in the accept queue.
    fn has_waiting(&self) -> bool {
        let mut queue = [PollFd::new(self.listener.as_fd(), PollFlags::POLLIN)];
        poll(&mut queue, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
    }
}

impl Drop for Prefork {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        // Ends the calls of accept(2), all with an error.
        let _ = shutdown(self.shared.listener.as_raw_fd(), nix::sys::socket::Shutdown::Both);
        for worker in self.workers.drain(..) {
            let _ = worker.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server with one worker on a free port of the loopback interface.
    fn server(idle: Duration, closes_idle: bool) -> (Prefork, SocketAddr) {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("file"), "contents").unwrap();
        let config = PreforkConfig { workers: 1, backlog: 8, idle, closes_idle };
        let server = serve(SocketAddr::from(([127, 0, 0, 1], 0)), directory.path(), config).unwrap();
        let address = server.shared.listener.local_addr().unwrap();
        (server, address)
    }

    fn connected(address: SocketAddr) -> TcpStream {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Elapsed::from_secs(20))).unwrap();
        stream
    }

    fn request(stream: &mut TcpStream, path: &str) {
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: server\r\n\r\n").as_bytes()).unwrap();
    }

    /// Bytes up to the end of `text`.
    fn read_until(stream: &mut TcpStream, text: &str) -> String {
        let mut all = String::new();
        while !all.ends_with(text) {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            all.push(char::from(byte[0]));
        }
        all
    }

    #[test]
    fn files_are_served_on_a_connection_that_is_kept() {
        let (_server, address) = server(Duration::from_secs(15), false);
        let mut stream = connected(address);
        request(&mut stream, "/file");
        assert!(read_until(&mut stream, "contents").starts_with("HTTP/1.1 200 "));
        request(&mut stream, "/none");
        assert!(read_until(&mut stream, "\r\n\r\n").starts_with("HTTP/1.1 404 "));
    }

    #[test]
    fn a_connection_is_closed_after_its_response_where_none_is_kept() {
        let (_server, address) = server(Duration::ZERO, false);
        let mut text = String::new();
        let mut stream = connected(address);
        request(&mut stream, "/file");
        stream.read_to_string(&mut text).unwrap();
        assert!(text.ends_with("contents"), "{text}");
    }

    #[test]
    fn a_waiting_connection_gets_the_worker_when_the_idle_timeout_expires() {
        let (_server, address) = server(Duration::from_millis(300), false);
        let [mut first, mut second] = [connected(address), connected(address)];
        request(&mut first, "/file");
        read_until(&mut first, "contents");
        request(&mut second, "/file");
        drop(read_until(&mut second, "contents"));
        assert_eq!(first.read(&mut [0]).unwrap(), 0, "closed");
    }

    #[test]
    fn paper_the_modified_server_closes_an_idle_connection_while_others_wait() {
        let (_server, address) = server(Duration::from_secs(300), true);
        let [mut first, mut second] = [connected(address), connected(address)];
        request(&mut first, "/file");
        read_until(&mut first, "contents");
        request(&mut second, "/file");
        drop(read_until(&mut second, "contents"));
        assert_eq!(first.read(&mut [0]).unwrap(), 0, "closed");
    }
}
