//! Asking a server by plain HTTP/1.1, and the connections that are kept for it.
//!
//! The request's body goes out in a thread of its own while the answer is read, so that an interim answer or a refusal
//! comes back before the last of it. Not what becomes of the answer: that is for `browser`.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http1::gateway::Forward;
use http1::message::{Event, Fields, Framing, Limits, ResponseHead, ResponseReader, persists};
use rustix::net::{RecvFlags, recv};
use wire::Time;

use super::chunked;
use super::incoming::{Incoming, ReadBuffer};
use dhttp::Client;
use dhttp::client::unreached;

/// Connections that wait for the next request.
#[derive(Debug, Default)]
pub(super) struct Pool {
    idle: Mutex<BTreeMap<String, Vec<PooledConnection>>>,
}

/// A connection, and since when it waits.
type PooledConnection = (Arc<TcpStream>, Time);

/// So long a connection is kept: less than servers are used to keep them, so that both seldom meet in closing.
const MAX_IDLE: wire::Duration = wire::Duration::from_secs(4);
/// So many are kept for one server: those that programs used at once. If they were fewer, each of the others would leave a
/// port behind that is of no use for a minute.
const MAX_POOLED: usize = 256;

impl Pool {
    /// One that is still open, as far as can be seen.
    fn take(&self, authority: &str, now: Time) -> Option<Arc<TcpStream>> {
        let mut idle = self.idle.lock().ok()?;
        idle.retain(|_, stored| {
            // The last one has waited least.
            let first = stored.partition_point(|(_, since)| now.since(*since) >= MAX_IDLE);
            stored.drain(..first);
            !stored.is_empty()
        });
        let stored = idle.get_mut(authority)?;
        while let Some((stream, _)) = stored.pop() {
            if is_quiet(&stream) {
                return Some(stream);
            }
        }
        None
    }

    fn keep(&self, authority: &str, stream: Arc<TcpStream>, now: Time) {
        if let Ok(mut idle) = self.idle.lock() {
            let stored = idle.entry(authority.to_owned()).or_default();
            if stored.len() < MAX_POOLED {
                stored.push((stream, now));
            }
        }
    }
}

/// Whether nothing has come on it, neither bytes that nobody asked for nor its end.
fn is_quiet(stream: &TcpStream) -> bool {
    let peeked = recv(stream, &mut [0_u8; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT);
    matches!(peeked, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
}

/// Connects to the first of a name's addresses that answers.
///
/// # Errors
/// A status and a sentence for the program that asked.
pub(super) fn connect(host: &str, port: u16, shared: &super::Shared) -> Result<TcpStream, (u16, String)> {
    let addresses = (host, port).to_socket_addrs();
    let addresses = addresses.map_err(|error| (502, format!("{host} has no address: {error}")))?;
    let mut why = (502, format!("{host} has no address"));
    let (own, config) = (shared.address, shared.config());
    for address in addresses {
        if address.port() == own.port() && is_own(address, own) {
            return Err((508, format!("{host} port {port} is this gateway itself")));
        }
        if !config.client.reaches(address.ip()) {
            return Err((403, unreached(address)));
        }
        match TcpStream::connect_timeout(&address, config.timeout) {
            Ok(stream) => {
                // What is written is whole already.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Err(error) => {
                let status = if error.kind() == io::ErrorKind::TimedOut { 504 } else { 502 };
                why = (status, format!("cannot connect to {address}: {error}"));
            }
        }
    }
    Err(why)
}

fn is_own(address: SocketAddr, own: SocketAddr) -> bool {
    let (address, own) = (address.ip().to_canonical(), own.ip().to_canonical());
    address == own || (own.is_unspecified() && (address.is_loopback() || address.is_unspecified()))
}

/// A connection to a server, with one request under way.
pub(super) struct Upstream {
    incoming: Incoming<Arc<TcpStream>>,
    reader: ResponseReader,
    authority: String,
    /// The DHTTP client, which may await responses of the same server, and that server's address.
    client: Arc<Client>,
    server: Option<IpAddr>,
    /// Whether it carried another request before: then it may have been closed just now.
    pub(super) is_used: bool,
}

/// Next item of the response.
#[derive(Debug)]
pub(super) enum ResponseItem<'a> {
    /// An answer that announces another.
    Interim(ResponseHead),
    /// The answer, and how its body ends.
    Head(ResponseHead, Framing),
    Body(&'a [u8]),
    /// All that has come is read: what waits may be written.
    Pause,
}

impl Upstream {
    /// On a connection that is open already, or on a new one.
    ///
    /// # Errors
    /// A status and a sentence.
    pub(super) fn open(
        shared: &super::Shared,
        forward: &Forward,
        may_be_used: bool,
    ) -> Result<Self, (u16, String)> {
        let stored = may_be_used.then(|| shared.pool.take(&forward.authority, shared.clock.now())).flatten();
        let is_used = stored.is_some();
        let timeout = shared.config().timeout;
        let stream = match stored {
            Some(stream) => stream,
            None => Arc::new(connect(&forward.host, forward.port, shared)?),
        };
        let server = stream.peer_addr().ok().map(|peer| peer.ip().to_canonical());
        let set = stream.set_write_timeout(Some(timeout));
        set.map_err(|error| (502, format!("cannot use the connection to {}: {error}", forward.authority)))?;
        Ok(Self {
            incoming: Incoming::new(stream, ReadBuffer::default(), &[]),
            reader: ResponseReader::new(Limits::default()),
            authority: forward.authority.clone(),
            client: shared.client(),
            server,
            is_used,
        })
    }

    /// Sends a request's head, which names the port on which DHTTP's client accepts connections.
    ///
    /// # Errors
    /// The connection's error.
    pub(super) fn send_head(&self, forward: &Forward) -> io::Result<()> {
        let mut head = forward.head.clone();
        if forward.framing == Framing::Chunked {
            // Constant, and a valid field; what came with the request was for one hop.
            let _ = head.fields.push("Transfer-Encoding", "chunked");
        }
        if let Some((name, port)) = self.client.port_field() {
            // A number is a valid field.
            let _ = head.fields.push(name, &port);
        }
        let mut bytes = Vec::with_capacity(1_024);
        head.encode(&mut bytes);
        (&*self.incoming.stream).write_all(&bytes)
    }

    /// Its other end, to write to.
    pub(super) fn stream(&self) -> Arc<TcpStream> {
        Arc::clone(&self.incoming.stream)
    }

    /// Reads the answer, and gives each part of it to `each` until that says that it has had enough.
    ///
    /// Gives the final head and whether the connection can carry another request. The server may be silent for as long as
    /// `has_progressed` is set again and again: the request's body is on its way.
    ///
    /// # Errors
    /// Why there is no (whole) answer, in a sentence, and whether not a byte of one had come.
    pub(super) fn respond(
        &mut self,
        forward: &Forward,
        timeout: Duration,
        has_progressed: &AtomicBool,
        each: &mut dyn FnMut(ResponseItem<'_>) -> io::Result<()>,
    ) -> Result<(bool, Fields), UpstreamError> {
        let mut last: Option<bool> = None;
        let (mut interim, mut is_silent) = (0, true);
        loop {
            let mut input = self.incoming.unread();
            let before = input.len();
            let event = self.reader.read(&mut input, &forward.head.method);
            let used = before - input.len();
            let event =
                event.map_err(|fault| UpstreamError::server(&self.authority, &fault.to_string(), false))?;
            match event {
                Some(Event::Head(head, _)) if head.is_interim() => {
                    interim += 1;
                    if interim > Limits::default().interim_responses {
                        return Err(UpstreamError::server(
                            &self.authority,
                            "too many interim responses",
                            false,
                        ));
                    }
                    each(ResponseItem::Interim(head)).map_err(|_| UpstreamError::program())?;
                }
                Some(Event::Head(head, framing)) => {
                    self.client.hear(&self.authority, self.server, &head.fields);
                    last = Some(persists(head.version, &head.fields));
                    each(ResponseItem::Head(head, framing)).map_err(|_| UpstreamError::program())?;
                }
                Some(Event::Body(part)) => {
                    each(ResponseItem::Body(part)).map_err(|_| UpstreamError::program())?
                }
                Some(Event::End) => {
                    if let Some(persists) = last {
                        self.incoming.consume(used);
                        // Whoever says more than was asked for is not asked again.
                        let stays = persists && self.incoming.unread().is_empty();
                        return Ok((stays, self.reader.trailers().clone()));
                    }
                }
                None => {
                    self.incoming.consume(used);
                    each(ResponseItem::Pause).map_err(|_| UpstreamError::program())?;
                    let mut filled = self.incoming.fill(timeout);
                    while filled.as_ref().is_err_and(is_late) && has_progressed.swap(false, Ordering::Relaxed)
                    {
                        filled = self.incoming.fill(timeout);
                    }
                    let broken = |why: &str| UpstreamError::server(&self.authority, why, is_silent);
                    let filled = filled.map_err(|error| match is_late(&error) {
                        true => UpstreamError::late(&self.authority, timeout),
                        false => broken(&error.to_string()),
                    });
                    if !filled? {
                        return match self.reader.end_of_stream() {
                            Ok(true) => Ok((false, Fields::new())),
                            Ok(false) => Err(broken("it closed the connection")),
                            Err(fault) => Err(broken(&fault.to_string())),
                        };
                    }
                    is_silent = false;
                    if let Some(server) = self.server {
                        self.client.hear_bytes(server, self.incoming.unread().len());
                    }
                    continue;
                }
            }
            self.incoming.consume(used);
        }
    }

    /// Keeps the connection for the next request to the same server.
    pub(super) fn keep(self, shared: &super::Shared) {
        shared.pool.keep(&self.authority, self.incoming.stream, shared.clock.now());
    }
}

/// Whether a connection's error is a timeout.
fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// Why an answer did not come whole.
#[derive(Debug)]
pub(super) struct UpstreamError {
    /// 502 or 504, for a program that has heard nothing yet.
    pub(super) status: u16,
    /// For people.
    pub(super) why: String,
    /// Whether not a byte of an answer had come.
    pub(super) is_silent: bool,
}

impl UpstreamError {
    fn server(authority: &str, why: &str, is_silent: bool) -> Self {
        Self { status: 502, why: format!("{authority}: {why}"), is_silent }
    }

    /// Error of a timeout. It is not retried: a server this slow once is as slow again.
    fn late(authority: &str, timeout: Duration) -> Self {
        let why = format!("{authority} has sent nothing for {} s", timeout.as_secs_f32());
        Self { status: 504, why, is_silent: false }
    }

    fn program() -> Self {
        Self { status: 502, why: "the client closed the connection".to_owned(), is_silent: false }
    }
}

/// Sends a part of a request's body.
///
/// # Errors
/// The connection's error.
pub(super) fn send_part(mut stream: &TcpStream, framing: Framing, part: &[u8]) -> io::Result<()> {
    match framing {
        Framing::Length(_) | Framing::UntilClose => stream.write_all(part),
        Framing::Chunked => {
            let mut chunk = Vec::with_capacity(part.len() + 20);
            chunked::part(&mut chunk, part);
            stream.write_all(&chunk)
        }
    }
}

/// Ends a request's body.
///
/// # Errors
/// The connection's error.
pub(super) fn send_end(mut stream: &TcpStream, framing: Framing, trailers: &Fields) -> io::Result<()> {
    if framing != Framing::Chunked {
        return Ok(());
    }
    let mut bytes = Vec::with_capacity(64);
    chunked::end(&mut bytes, trailers);
    stream.write_all(&bytes)
}

/// Ends a connection that nobody is to write to any more.
pub(super) fn abandon(stream: &TcpStream) {
    let _ = stream.shutdown(Shutdown::Both);
}
