//! Requests to a server by plain HTTP/1.1, on pooled connections.
//!
//! A separate thread sends the request's body while the response is read, so that an interim response or a refusal comes back
//! before the last of it. The response is handled by `blocking_exchange`.

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

/// Idle connections.
#[derive(Debug, Default)]
pub(super) struct Pool {
    idle: Mutex<BTreeMap<String, Vec<PooledConnection>>>,
}

/// A connection, and since when it is idle.
type PooledConnection = (Arc<TcpStream>, Time);

/// Idle timeout of a pooled connection: shorter than servers' own, so that both seldom close at the same time.
const MAX_IDLE: wire::Duration = wire::Duration::from_secs(4);
/// Maximum number of pooled connections to one server: as many as clients used concurrently. With fewer, each of the others
/// would leave a port in TIME-WAIT for a minute.
const MAX_POOLED: usize = 256;

impl Pool {
    /// Takes a pooled connection that appears to be open.
    fn take(&self, authority: &str, now: Time) -> Option<Arc<TcpStream>> {
        let mut idle = self.idle.lock().ok()?;
        idle.retain(|_, stored| {
            // The last one has been idle for the shortest time.
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

/// Whether neither unsolicited bytes nor the end of the stream have arrived.
fn is_quiet(stream: &TcpStream) -> bool {
    let peeked = recv(stream, &mut [0_u8; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT);
    matches!(peeked, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
}

/// Connects to the first of a name's addresses that responds.
///
/// # Errors
/// A status and a sentence for the client.
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
                // Writes are complete messages already.
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

/// A connection to a server, with one request in flight.
pub(super) struct Upstream {
    incoming: Incoming<Arc<TcpStream>>,
    reader: ResponseReader,
    authority: String,
    /// The DHTTP client, which may await responses of the same server, and that server's address.
    client: Arc<Client>,
    server: Option<IpAddr>,
    /// Whether it carried another request before: then the server may just have closed it.
    pub(super) is_used: bool,
}

/// Next item of the response.
#[derive(Debug)]
pub(super) enum ResponseItem<'a> {
    /// An interim response (1xx).
    Interim(ResponseHead),
    /// The final response, and its framing.
    Head(ResponseHead, Framing),
    Body(&'a [u8]),
    /// All received bytes are read: buffered output may be written.
    Pause,
}

impl Upstream {
    /// Takes a pooled connection, or opens a new one.
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

    /// Sends a request's header section, which includes the port on which DHTTP's client accepts connections.
    ///
    /// # Errors
    /// The connection's error.
    pub(super) fn send_head(&self, forward: &Forward) -> io::Result<()> {
        let mut head = forward.head.clone();
        if forward.framing == Framing::Chunked {
            // Constant, and a valid field; the request's own was hop-by-hop.
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

    /// Returns the socket, for writing.
    pub(super) fn stream(&self) -> Arc<TcpStream> {
        Arc::clone(&self.incoming.stream)
    }

    /// Reads the response, and passes each item to `each` until that returns that it is done.
    ///
    /// Returns the trailers and whether the connection can carry another request. The server may be silent for as long as
    /// `has_progressed` is set repeatedly: the request's body is still being sent.
    ///
    /// # Errors
    /// The reason for a missing or incomplete response, in a sentence, and whether not a byte of one had arrived.
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
                        // A server that sends more than one response is not reused.
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

    /// Returns the connection to the pool, for the next request to the same server.
    pub(super) fn keep(self, shared: &super::Shared) {
        shared.pool.keep(&self.authority, self.incoming.stream, shared.clock.now());
    }
}

/// Whether a connection's error is a timeout.
fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// Reason why a response is missing or incomplete.
#[derive(Debug)]
pub(super) struct UpstreamError {
    /// 502 or 504, for a client that has received nothing yet.
    pub(super) status: u16,
    /// The reason, as a sentence.
    pub(super) why: String,
    /// Whether not a byte of a response had arrived.
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

/// Closes a connection in both directions.
pub(super) fn abandon(stream: &TcpStream) {
    let _ = stream.shutdown(Shutdown::Both);
}
