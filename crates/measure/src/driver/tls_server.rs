//! Server for browsers on kernel sockets: HTTP/1.1 or HTTP/2 over TLS with real keys (rustls), or HTTP/1.1 in the clear.
//!
//! It plays a page: each response is sent when its server time has passed since the request. The state machines of HTTP are
//! those of [`super::server`]; TLS around them is another, because a browser encrypts. What the browser does is recorded:
//! protocols, requests, protocol errors.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;

use fetch::serving::{HeadSizes, HttpConnection, ServerProtocols};
use http1::message::RequestHead;
use http1::server::{Input, Output, RequestId, Response, ResponseBody, ServerConfig, ServerConnection};
use http2::Profile;
use linux::clock::Clock;
use nix::poll::{PollFd, PollFlags};
use nix::sys::eventfd::EventFd;
use wire::{Duration, Time};

use super::listeners::Listeners;
use super::pending_requests::{PendingRequests, Progress};
use super::wait::{WaitStrategy, WaitUntil};
use crate::Error;
use crate::profile;
use crate::socket::Connection;

/// Settings of a server.
pub(crate) struct TlsService {
    /// Listening addresses, each with its certificates; `None`: in the clear.
    pub(crate) origins: Vec<(SocketAddr, Option<Arc<rustls::ServerConfig>>)>,
    /// Responses by the request's target.
    pub(crate) responses: BTreeMap<String, TimedResponse>,
    /// Treatment of HTTP/1's connections.
    pub(crate) config: ServerConfig,
    /// Behaviour over HTTP/2.
    pub(crate) http2: Profile,
    /// Pinned socket settings.
    pub(crate) profile: profile::Profile,
}

/// A response and its time.
#[derive(Clone, Debug)]
pub(crate) struct TimedResponse {
    pub(crate) media_type: &'static str,
    pub(crate) body: Arc<[u8]>,
    /// Minimum size of its header section in HTTP/1's form.
    pub(crate) head: Option<usize>,
    /// Time of the server, from the request.
    pub(crate) delay: Duration,
    /// Whether it says that its host offers HTTP/3 (`Alt-Svc`, RFC 7838).
    pub(crate) offers_http3: bool,
}

/// Result of a server's run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TlsServerResult {
    /// Connections accepted.
    pub(crate) connections: u64,
    /// Number of requests by their target.
    pub(crate) requests: BTreeMap<String, u32>,
    /// The client's errors, in sentences.
    pub(crate) faults: Vec<String>,
}

/// A server whose listeners are open.
pub(crate) struct TlsServer {
    service: TlsService,
    clock: Clock,
    listeners: Listeners,
    connections: BTreeMap<u64, Served>,
    /// Responses that wait for their server time, by its end.
    due: BTreeSet<(Time, u64, RequestId)>,
    result: TlsServerResult,
    buffer: Box<[u8; BUFFER_BYTES]>,
}

const BUFFER_BYTES: usize = 65_536;

/// One connection.
struct Served {
    socket: Connection,
    tls: Option<Box<rustls::ServerConnection>>,
    /// `None` until the handshake has chosen the protocol.
    http: Option<PendingRequests>,
    wakes: Option<Time>,
    is_closing: bool,
}

impl TlsServer {
    /// Listens in the calling thread's namespace.
    pub(crate) fn open(service: TlsService, clock: Clock) -> Result<Self, Error> {
        let listeners = Listeners::open(service.origins.iter().map(|(address, _)| *address))?;
        let (connections, due, result) = Default::default();
        let buffer = Box::new([0; BUFFER_BYTES]);
        Ok(Self { service, clock, listeners, connections, due, result, buffer })
    }

    /// Serves until `stop` is written to.
    pub(crate) fn serve(mut self, stop: &EventFd) -> Result<TlsServerResult, Error> {
        let mut waiting = WaitStrategy::new(self.clock);
        loop {
            self.send_due_responses();
            let mut sockets = vec![PollFd::new(stop.as_fd(), PollFlags::POLLIN)];
            sockets.extend(self.listeners.poll_fds());
            let connections = self.connections.values();
            sockets.extend(
                connections.map(|served| PollFd::new(served.socket.as_fd(), served.socket.interest())),
            );
            let wakes = self.connections.values().filter_map(|served| served.wakes).min();
            let due = self.due.first().map(|(due, ..)| *due);
            waiting.wait(&mut sockets, WaitUntil::first(due, wakes))?;
            let mut flags = sockets.iter().map(|socket| socket.revents().unwrap_or(PollFlags::empty()));
            if flags.next().is_some_and(|flags| !flags.is_empty()) {
                return Ok(self.result);
            }
            let ready: Vec<(u64, PollFlags)> =
                self.connections.keys().copied().zip(flags.skip(self.listeners.poll_fds().len())).collect();
            for (id, flags) in ready.into_iter().filter(|(_, flags)| !flags.is_empty()) {
                self.handle_readiness(id, flags);
            }
            self.accept()?;
            self.wake();
        }
    }

    fn accept(&mut self) -> Result<(), Error> {
        for (origin, socket) in self.listeners.accept(&self.service.profile)? {
            if self.result.connections == 0 {
                socket.check(&self.service.profile)?;
            }
            let tls = self.service.origins.get(origin).and_then(|(_, tls)| tls.clone());
            self.begin(socket, tls)?;
        }
        Ok(())
    }

    /// Begins to serve an accepted connection.
    fn begin(&mut self, socket: Connection, tls: Option<Arc<rustls::ServerConfig>>) -> Result<(), Error> {
        let http1 = || ServerConnection::new(self.clock.now(), self.service.config);
        let http = tls.is_none().then(|| HttpConnection::new(&ServerProtocols::default(), http1()));
        let http = http.map(PendingRequests::new);
        let tls = tls.map(new_session).transpose()?.map(Box::new);
        let served = Served { socket, tls, http, wakes: None, is_closing: false };
        self.connections.insert(self.result.connections, served);
        self.result.connections += 1;
        Ok(())
    }

    fn handle_readiness(&mut self, id: u64, flags: PollFlags) {
        let now = self.clock.now();
        let Some(served) = self.connections.get_mut(&id) else { return };
        if let Err(fault) = served.handle_readiness(now, flags, self.buffer.as_mut_slice(), &self.service) {
            self.result.faults.push(fault);
        }
        self.advance(id);
    }

    /// Handles expired deadlines of the state machines.
    fn wake(&mut self) {
        let now = self.clock.now();
        let is_due = |served: &Served| served.wakes.is_some_and(|wakes| wakes <= now);
        let expired = self.connections.iter().filter(|(_, served)| is_due(served)).map(|(id, _)| *id);
        for id in expired.collect::<Vec<_>>() {
            self.advance(id);
        }
    }

    fn send_due_responses(&mut self) {
        // Everything that is due on a connection is known before HTTP/2 chooses what it writes first.
        let mut written = BTreeSet::new();
        while let Some((due, id, request)) = self.due.first().copied() {
            let now = self.clock.now();
            if due > now {
                break;
            }
            self.due.pop_first();
            let Some(served) = self.connections.get_mut(&id) else { continue };
            let Some(http) = &mut served.http else { continue };
            http.respond(now, request, |head, is_http2| self.service.respond(head, is_http2));
            written.insert(id);
        }
        written.into_iter().for_each(|id| self.advance(id));
    }

    /// Takes a connection's requests, and passes on what it sends.
    fn advance(&mut self, id: u64) {
        let now = self.clock.now();
        let Some(served) = self.connections.get_mut(&id) else { return };
        let Progress { requests, faults, is_over } = served.advance(now);
        self.result.faults.extend(faults);
        for (request, target) in requests {
            let delay = self.service.responses.get(&target).map(|response| response.delay);
            self.due.insert((now + delay.unwrap_or_default(), id, request));
            *self.result.requests.entry(target).or_default() += 1;
        }
        if is_over {
            self.connections.remove(&id);
        }
    }
}

fn new_session(config: Arc<rustls::ServerConfig>) -> Result<rustls::ServerConnection, Error> {
    let mut session = rustls::ServerConnection::new(config)
        .map_err(|error| Error::io("begin a TLS session")(std::io::Error::other(error)))?;
    // The kernel's send buffer limits what waits.
    session.set_buffer_limit(None);
    Ok(session)
}

impl TlsService {
    fn respond(&self, request: &RequestHead, is_http2: bool) -> Response {
        let known = self.responses.get(&request.target);
        let mut response = Response {
            status: if known.is_some() { 200 } else { 404 },
            fields: http1::message::Fields::new(),
            body: ResponseBody::Whole(known.map_or_else(|| Arc::from([]), |known| Arc::clone(&known.body))),
        };
        let mut field = |name: &str, value: &str| drop(response.fields.push(name, value));
        if let Some(known) = known {
            field("Content-Type", known.media_type);
            field("Cache-Control", "max-age=3600");
            if known.offers_http3 {
                field("Alt-Svc", "h3=\":443\"");
            }
        }
        // Fonts, and what scripts fetch, of other hosts.
        if let Some(origin) = request.fields.get("origin") {
            field("Access-Control-Allow-Origin", &String::from_utf8_lossy(origin));
            field("Access-Control-Allow-Credentials", "true");
        }
        let own = known.and_then(|known| known.head);
        HeadSizes::default().pad(own, is_http2, request, &mut response);
        response
    }
}

impl Served {
    /// Passes the socket's events on; an error is the client's, in a sentence.
    fn handle_readiness(
        &mut self,
        now: Time,
        flags: PollFlags,
        buffer: &mut [u8],
        service: &TlsService,
    ) -> Result<(), String> {
        match self.socket.handle_readiness(flags, !self.is_closing, buffer) {
            None => Ok(()),
            Some(Input::Received(received)) => self.receive(now, received, service),
            Some(end) => {
                self.end(now, end);
                Ok(())
            }
        }
    }

    /// Passes received bytes on, through TLS if there is any.
    fn receive(&mut self, now: Time, received: &[u8], service: &TlsService) -> Result<(), String> {
        let Some(tls) = &mut self.tls else {
            if let Some(http) = &mut self.http {
                http.handle(now, Input::Received(received));
            }
            return Ok(());
        };
        let mut plaintext = Vec::new();
        let result = decrypt(tls, received, &mut plaintext);
        if self.http.is_none() && !tls.is_handshaking() {
            let http2 = (tls.alpn_protocol() == Some(b"h2")).then_some(service.http2);
            let protocols = ServerProtocols { http2, ..ServerProtocols::default() };
            let http1 = ServerConnection::new(now, service.config);
            self.http = Some(PendingRequests::new(HttpConnection::new(&protocols, http1)));
        }
        if let Some(http) = &mut self.http
            && !plaintext.is_empty()
        {
            http.handle(now, Input::Received(&plaintext));
        }
        self.flush_tls();
        self.is_closing |= result.is_err();
        result
    }

    fn end(&mut self, now: Time, input: Input<'_>) {
        self.is_closing = true;
        if let Some(http) = &mut self.http {
            http.handle(now, input);
        }
    }

    /// Takes requests and faults; passes output on, as far as the kernel accepts it.
    fn advance(&mut self, now: Time) -> Progress {
        let mut progress = Progress::default();
        self.wakes = self.http.as_mut().and_then(|http| http.read(now, &mut progress));
        while !self.is_closing && !self.socket.has_writes() {
            let Some(output) = self.http.as_mut().and_then(PendingRequests::next_output) else { break };
            match output {
                Output::Send(bytes) => self.send(bytes),
                Output::HalfClose | Output::Close => {
                    if let Some(tls) = &mut self.tls {
                        tls.send_close_notify();
                    }
                    self.flush_tls();
                    self.is_closing = true;
                }
                Output::Abort => {
                    progress.faults.push("it broke the rules of its protocol".to_owned());
                    self.is_closing = true;
                }
                Output::Request(..)
                | Output::RequestBody(..)
                | Output::RequestEnd(_)
                | Output::RequestAborted(_)
                | Output::Fault(_)
                | Output::Timeout(_) => {}
            }
        }
        progress.is_over = self.is_closing && !self.socket.has_writes();
        progress
    }

    fn send(&mut self, bytes: Vec<u8>) {
        match &mut self.tls {
            None => self.is_closing |= self.socket.write(bytes).is_err(),
            Some(tls) => {
                // Into memory, without a limit.
                self.is_closing |= tls.writer().write_all(&bytes).is_err();
                self.flush_tls();
            }
        }
    }

    /// Passes encrypted records to the kernel, in one write.
    fn flush_tls(&mut self) {
        let Some(tls) = &mut self.tls else { return };
        let mut records = Vec::new();
        while tls.wants_write() && tls.write_tls(&mut records).is_ok() {}
        if !records.is_empty() {
            self.is_closing |= self.socket.write(records).is_err();
        }
    }
}

/// Passes received bytes to the session, and appends its plaintext.
fn decrypt(
    tls: &mut rustls::ServerConnection,
    mut received: &[u8],
    plaintext: &mut Vec<u8>,
) -> Result<(), String> {
    while !received.is_empty() {
        tls.read_tls(&mut received).map_err(|error| error.to_string())?;
        tls.process_new_packets().map_err(|error| match error {
            rustls::Error::AlertReceived(alert) => {
                format!("it refused the certificate or the handshake: TLS alert {alert:?}")
            }
            error => format!("its TLS handshake failed: {error}"),
        })?;
        // It ends with `WouldBlock` when there is no more plaintext.
        let _ = tls.reader().read_to_end(plaintext);
    }
    Ok(())
}

impl fmt::Debug for TlsServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsServer").field("result", &self.result).finish_non_exhaustive()
    }
}

impl fmt::Debug for TlsService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsService").field("responses", &self.responses.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;
    use std::net::{TcpListener, TcpStream};
    use std::thread;

    use nix::sys::eventfd::EfdFlags;
    use rustls::pki_types::CertificateDer;
    use testbed::End;
    use wire::Bytes;

    use super::*;
    use crate::whole_page::test_identity;

    /// Runs a client over TLS; returns the server's result.
    fn served(
        tls: &Arc<rustls::ServerConfig>,
        root: CertificateDer<'static>,
        protocol: &[u8],
        client: impl FnOnce(&mut rustls::Stream<'_, rustls::ClientConnection, TcpStream>),
    ) -> TlsServerResult {
        let response = |body: usize, delay| TimedResponse {
            media_type: "text/html",
            body: vec![b'x'; body].into(),
            head: Some(400),
            offers_http3: true,
            delay: Duration::from_millis(delay),
        };
        let responses = [("/".to_owned(), response(100_000, 40)), ("/a".to_owned(), response(5, 0))];
        let profile = profile::Profile::of(&scenario::Stack::LINUX, Bytes::new(1_460), End::Client).unwrap();
        let service = TlsService {
            origins: Vec::new(),
            responses: responses.into(),
            config: ServerConfig::default(),
            http2: Profile::NGINX,
            profile,
        };
        let (clock, flags) = (Clock::start(), EfdFlags::EFD_NONBLOCK);
        let mut server = TlsServer::open(service, clock).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut connected = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let socket = socket2::Socket::from(listener.accept().unwrap().0);
        let socket = Connection::accepted(socket, &server.service.profile).unwrap();
        server.begin(socket, Some(Arc::clone(tls))).unwrap();
        let stop = Arc::new(EventFd::from_value_and_flags(0, flags).unwrap());
        let stopped = Arc::clone(&stop);
        let running = thread::spawn(move || server.serve(&stopped).unwrap());
        let mut roots = rustls::RootCertStore::empty();
        roots.add(root).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![protocol.to_vec()];
        let name = "a.example".try_into().unwrap();
        let mut session = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
        client(&mut rustls::Stream::new(&mut session, &mut connected));
        stop.write(1).unwrap();
        running.join().unwrap()
    }

    #[test]
    fn http1_over_tls_responds_after_its_server_time() {
        for is_12 in [false, true] {
            let (config, root) = test_identity(is_12, scenario::Protocol::Http11Parallel);
            let result = served(&config, root, b"http/1.1", |stream| {
                let clock = Clock::start();
                stream.write_all(b"GET / HTTP/1.1\r\nHost: a.example\r\nOrigin: https://b\r\n\r\n").unwrap();
                let (mut reader, mut head) = (BufReader::new(stream), String::new());
                while !head.ends_with("\r\n\r\n") {
                    std::io::BufRead::read_line(&mut reader, &mut head).unwrap();
                }
                assert!(clock.now().since(Time::ZERO) >= Duration::from_millis(40));
                assert!(
                    head.len() >= 400 && head.contains("Access-Control-Allow-Origin: https://b\r\n"),
                    "{head}"
                );
                let mut body = vec![0; 100_000];
                reader.read_exact(&mut body).unwrap();
                assert!(body.iter().all(|byte| *byte == b'x'));
            });
            assert_eq!((result.faults.len(), &result.requests["/"]), (0, &1), "{result:?}");
        }
    }

    #[test]
    fn http2_over_tls_serves_streams_and_counts_requests() {
        let (config, root) = test_identity(false, scenario::Protocol::Http2);
        let result = served(&config, root, b"h2", |stream| {
            let mut client = http2::Endpoint::client(Profile::CHROMIUM);
            for path in ["/", "/a", "/missing"] {
                let fields =
                    [(":method", "GET"), (":scheme", "https"), (":authority", "a.example"), (":path", path)];
                let fields = fields.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
                client.request(fields, http2::Priority::default(), [].into()).unwrap();
            }
            let (mut lengths, mut ended) = (BTreeMap::new(), 0);
            let mut buffer = [0; 4_096];
            while ended < 3 {
                while let Some(bytes) = client.next_write() {
                    stream.write_all(&bytes).unwrap();
                }
                let length = stream.read(&mut buffer).unwrap();
                let event = &mut |event: http2::Event<'_>| match event {
                    http2::Event::Data { stream, bytes, ends } => {
                        *lengths.entry(stream).or_insert(0) += bytes.len();
                        ended += usize::from(ends);
                    }
                    http2::Event::Fields { ends, .. } => ended += usize::from(ends),
                    _ => {}
                };
                client.receive(&buffer[..length], event).unwrap();
            }
            assert_eq!(lengths, BTreeMap::from([(1, 100_000), (3, 5)]));
        });
        assert_eq!(result.requests.values().sum::<u32>(), 3);
        assert_eq!(result.faults, Vec::<String>::new());
    }

    #[test]
    fn regress_a_refused_certificate_is_a_fault() {
        let (config, _) = test_identity(false, scenario::Protocol::Http2);
        let (_, other_root) = test_identity(false, scenario::Protocol::Http2);
        let result = served(&config, other_root, b"h2", |stream| {
            stream.write_all(b"x").unwrap_err();
            // The alert must have been read before the server is stopped.
            let _ = stream.sock.shutdown(std::net::Shutdown::Write);
            let _ = stream.sock.read(&mut [0; 64]);
        });
        assert!(result.faults[0].starts_with("it refused the certificate"), "{result:?}");
    }
}
