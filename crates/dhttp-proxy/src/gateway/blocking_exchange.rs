//! A program's request, handled by a thread that may block.
//!
//! [`http1::gateway`] interprets requests. The gateway's own responses are in `own_responses`.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock, mpsc};
use std::thread;
use std::time::Duration;

use http1::gateway::{self, Forward, Plan, Refusal};
use http1::message::{Fields, Framing, RequestHead, RequestReader, ResponseHead, Version};

use super::Shared;
use super::cached_reply::{ReplyStart, begin, url, without_host};
use super::event_loop::Completion;
use super::incoming::{Incoming, ReadBuffer};
use super::pending_request::IncomingResponse;
use super::reply::{self, Reply, ReplyContext, Size};
use super::tunnel::Tunnel;
use super::upload::Upload;
use super::upstream::{self, ResponseItem, Upstream};
use super::watched_connection::{BlockingTask, Connection};
use crate::cache::streaming_fill::StreamingFill;
use dhttp::client::{Event as Answered, Via};
use dhttp::counters::count_shared;
use dhttp::handler::Request;
use dhttp::log::Channel;
use dhttp::{Client, Url, clock};

/// A connection leased to a thread.
pub(super) struct BlockingExchange<'a> {
    pub(super) shared: &'a Arc<Shared>,
    peer: SocketAddr,
    pub(super) incoming: Incoming<Arc<TcpStream>>,
    pub(super) reader: RequestReader,
}

/// End of an exchange.
pub(super) enum ExchangeEnd {
    /// The connection can carry another request.
    Whole,
    /// It cannot, but the response is complete.
    Last,
    /// The response was cut short.
    Broken,
    /// It becomes a tunnel to this server, by this request.
    Tunnel(Box<(TcpStream, RequestHead)>),
}

/// Maximum delay between the last byte that a server reads and the report that it was sent.
const A_MOMENT: Duration = Duration::from_millis(100);

/// Does the task for which a connection was leased.
pub(super) fn serve(
    shared: &Arc<Shared>,
    connection: Connection,
    call: BlockingTask,
    buffer: &mut ReadBuffer,
) -> Completion {
    let Connection { peer, stream, reader, unread, is_patient } = connection;
    let timeout = shared.config().timeout;
    if !is_patient && stream.set_write_timeout(Some(timeout)).is_err() {
        return Completion::Gone;
    }
    let incoming = Incoming::new(stream, std::mem::take(buffer), &unread);
    let mut browser = BlockingExchange { shared, peer, incoming, reader };
    let ended = match call {
        BlockingTask::Request(head, framing, plan) => browser.exchange(&head, framing, plan),
        BlockingTask::Kept(head, response) => browser.give(&head, ReplyContext::of(&head), &response),
        BlockingTask::Fault(fault) => browser.refuse(None, fault.status(), &fault.to_string()),
        BlockingTask::Coming(coming) => browser.pass_on(coming),
        BlockingTask::Again(head, forward, passing) => {
            browser.ask(&head, ReplyContext::of(&head), &forward, Some(passing))
        }
        BlockingTask::Failed(head, passing, why) => {
            browser.fail(&head, ReplyContext::of(&head), passing, 502, &why)
        }
    };
    let BlockingExchange { shared: _, peer, incoming, reader } = browser;
    let (stream, unread, back) = incoming.end();
    *buffer = back;
    let connection = Connection { peer, stream, reader, unread, is_patient: true };
    match ended {
        ExchangeEnd::Whole => Completion::Open(connection),
        ExchangeEnd::Last => Completion::Ending(connection),
        ExchangeEnd::Tunnel(to) => {
            let (server, requested) = *to;
            Completion::Tunnel(Box::new(Tunnel::new(peer, requested, connection.stream, server)))
        }
        ExchangeEnd::Broken => {
            reply::break_off(&connection.stream);
            Completion::Gone
        }
    }
}

impl BlockingExchange<'_> {
    pub(super) fn stream(&self) -> &TcpStream {
        &self.incoming.stream
    }

    fn exchange(&mut self, head: &RequestHead, framing: Framing, plan: Result<Plan, Refusal>) -> ExchangeEnd {
        let requested = ReplyContext::of(head);
        // A body that is not forwarded is not read.
        let asked_alone =
            ReplyContext { stays: requested.stays && framing == Framing::Length(0), ..requested };
        match plan {
            Ok(Plan::Forward(forward)) => self.look(head, requested, &forward),
            Ok(Plan::Tunnel(host, port)) => self.tunnel(head, &host, port),
            Ok(Plan::Own(path)) => self.own(head, asked_alone, &path),
            Err(refusal) => self.refuse(Some((head, asked_alone)), refusal.status, &refusal.sentence),
        }
    }

    /// Forwards the request, with validators if the response may be stored.
    pub(super) fn ask(
        &mut self,
        head: &RequestHead,
        requested: ReplyContext<'_>,
        forward: &Forward,
        passing: Option<Box<StreamingFill>>,
    ) -> ExchangeEnd {
        let request = passing.as_ref().map_or(&forward.head, |passing| passing.request());
        let forward = &Forward { head: request.clone(), ..forward.clone() };
        let url = url(forward);
        let client = self.shared.client();
        if forward.is_for_dhttp() && client.speaks_dhttp(&url) {
            // It has no body: its end is read now, so that the connection is ready for the next request.
            self.skip_end();
            self.by_dhttp(&client, head, requested, forward, &url, passing)
        } else {
            self.by_plain_http(head, requested, forward, passing)
        }
    }

    fn by_dhttp(
        &mut self,
        client: &Arc<Client>,
        head: &RequestHead,
        requested: ReplyContext<'_>,
        forward: &Forward,
        url: &Url,
        passing: Option<Box<StreamingFill>>,
    ) -> ExchangeEnd {
        let fields = without_host(&forward.head);
        let mut exchange = match client.request(forward.head.method.clone(), url, &fields) {
            Ok(exchange) => exchange,
            Err(error) => return self.fail(head, requested, passing, 502, &error.to_string()),
        };
        match exchange.next() {
            Some(Answered::Head(via, response)) => {
                let (head, forward) = (head.clone(), forward.clone());
                let client = Arc::clone(client);
                self.pass_on(IncomingResponse { head, forward, client, exchange, via, response, passing })
            }
            Some(Answered::Failed(why)) => self.fail(head, requested, passing, 502, &why),
            Some(Answered::Body(_) | Answered::End) | None => {
                self.fail(head, requested, passing, 502, "the gateway is being stopped")
            }
        }
    }

    /// Forwards a response that has begun to arrive.
    fn pass_on(&mut self, coming: IncomingResponse) -> ExchangeEnd {
        let IncomingResponse { head, forward, client: _client, mut exchange, via, response, mut passing } =
            coming;
        let requested = ReplyContext::of(&head);
        // A response in one datagram is complete, and its length known.
        let mut ready = Vec::new();
        let size = match via {
            Via::Udp => loop {
                match exchange.next() {
                    Some(Answered::Body(part)) => ready.extend_from_slice(&part),
                    Some(Answered::Head(..)) => {}
                    Some(Answered::End) => break Size::Known(ready.len() as u64),
                    Some(Answered::Failed(why)) => return self.fail(&head, requested, passing, 502, &why),
                    None => return self.fail(&head, requested, passing, 502, "the gateway is being stopped"),
                }
            },
            Via::TcpOpened | Via::TcpClient => length(&response).map_or(Size::Unknown, Size::Known),
        };
        let response = gateway::response(&response, &self.shared.name);
        let channel = match via {
            Via::Udp => Channel::Udp,
            Via::TcpOpened => Channel::TcpOpened,
            Via::TcpClient => Channel::TcpClient,
        };
        let mut reply = match begin(&mut passing, self.stream(), requested, &response, size) {
            Ok(ReplyStart::Reply(reply)) => reply,
            Ok(ReplyStart::Again) => return self.ask(&head, requested, &forward, passing),
            Err(_) => return ExchangeEnd::Broken,
        };
        let status = reply.status;
        let written = if ready.is_empty() { Ok(()) } else { reply.part(&ready) }.and_then(|()| {
            if via == Via::Udp {
                return Ok(());
            }
            loop {
                if !exchange.is_ready() {
                    // A browser requests what the first lines of a page name long before the last ones arrive.
                    reply.flush()?;
                }
                match exchange.next() {
                    Some(Answered::Body(part)) => reply.part(&part)?,
                    Some(Answered::Head(..)) => {}
                    Some(Answered::End) => return Ok(()),
                    Some(Answered::Failed(_)) | None => return Err(io::ErrorKind::UnexpectedEof.into()),
                }
            }
        });
        let ended = written.and_then(|()| reply.end(&Fields::new()));
        self.reported(&head, status, channel, &ended);
        conclude(&ended)
    }

    fn by_plain_http(
        &mut self,
        head: &RequestHead,
        requested: ReplyContext<'_>,
        forward: &Forward,
        mut passing: Option<Box<StreamingFill>>,
    ) -> ExchangeEnd {
        let mut may_be_used = true;
        loop {
            let mut server = match Upstream::open(self.shared, forward, may_be_used) {
                Ok(server) => server,
                Err((status, why)) => {
                    let stays = requested.stays && forward.framing == Framing::Length(0);
                    return self.fail(head, ReplyContext { stays, ..requested }, passing, status, &why);
                }
            };
            if server.is_used {
                count_shared(&self.shared.counters.reused);
            }
            let sent = server.send_head(forward);
            let is_stale = sent.is_err() && server.is_used;
            let is_open = sent.is_ok();
            if is_stale || !is_open {
                if is_stale && forward.may_be_repeated() {
                    may_be_used = false;
                    continue;
                }
                let why = format!("{} closed the connection", forward.authority);
                return self.fail(head, ReplyContext { stays: false, ..requested }, passing, 502, &why);
            }
            match self.respond(head, requested, forward, &mut server, &mut passing) {
                RequestOutcome::Ended(ended, stays) => {
                    if stays {
                        server.keep(self.shared);
                    }
                    return ended;
                }
                // The server closed it just as the request was sent.
                RequestOutcome::Silent(_) if server.is_used && forward.may_be_repeated() => {
                    may_be_used = false
                }
                RequestOutcome::Silent(why) => {
                    return self.fail(head, ReplyContext { stays: false, ..requested }, passing, 502, &why);
                }
                RequestOutcome::Again => return self.ask(head, requested, forward, passing),
            }
        }
    }

    /// Sends the request's body and forwards the response, concurrently.
    fn respond(
        &mut self,
        head: &RequestHead,
        requested: ReplyContext<'_>,
        forward: &Forward,
        server: &mut Upstream,
        passing: &mut Option<Box<StreamingFill>>,
    ) -> RequestOutcome {
        let shared = self.shared;
        let program = Arc::clone(&self.incoming.stream);
        let to = server.stream();
        let has_body = forward.framing != Framing::Length(0);
        let (tell, reported) = mpsc::channel();
        // Whether the body has been sent whole, once that is known; and its error if it is invalid.
        let mut sent = (!has_body).then_some(true);
        let fault = OnceLock::new();
        let (mut reply, mut is_to_be_asked_again) = (None, false);
        let has_progressed = AtomicBool::new(false);
        let came = thread::scope(|scope| {
            if has_body {
                scope.spawn(|| {
                    let sent = self.upload(&to, forward.framing, &has_progressed);
                    if let Err(why) = &sent {
                        if let Upload::Faulty(found) = why {
                            let _ = fault.set(*found);
                        }
                        // The server must not wait for the rest of an invalid body.
                        upstream::abandon(&to);
                    }
                    // If the response was cut short, the receiver is gone.
                    let _ = tell.send(sent.is_ok());
                });
            }
            let mut each = |came: ResponseItem<'_>| -> io::Result<()> {
                match came {
                    ResponseItem::Interim(_) if requested.version == Version::Http10 => Ok(()),
                    ResponseItem::Interim(interim) => {
                        let mut bytes = Vec::new();
                        gateway::response(&interim, &shared.name).encode(&mut bytes);
                        (&*program).write_all(&bytes)
                    }
                    ResponseItem::Head(response, framing) => {
                        let size = match framing {
                            Framing::Length(length) => Size::Known(length),
                            Framing::Chunked | Framing::UntilClose => Size::Unknown,
                        };
                        // A response that precedes the end of the request's body is usually a refusal, and the connection is
                        // not reused.
                        sent = sent.or_else(|| reported.recv_timeout(A_MOMENT).ok());
                        let stays = requested.stays && sent == Some(true);
                        let response = gateway::response(&response, &shared.name);
                        match begin(passing, &program, ReplyContext { stays, ..requested }, &response, size)?
                        {
                            ReplyStart::Reply(begun) => reply = Some(begun),
                            ReplyStart::Again => is_to_be_asked_again = true,
                        }
                        Ok(())
                    }
                    ResponseItem::Body(part) => {
                        reply.as_mut().map_or(Ok(()), |reply: &mut Reply<'_>| reply.part(part))
                    }
                    ResponseItem::Pause => reply.as_mut().map_or(Ok(()), Reply::flush),
                }
            };
            let came = server.respond(forward, shared.config().timeout, &has_progressed, &mut each);
            sent = sent.or_else(|| reported.recv_timeout(A_MOMENT).ok());
            if sent != Some(true) {
                // Stops the upload: the response is complete, or will never be.
                upstream::abandon(&to);
                let _ = program.shutdown(std::net::Shutdown::Read);
            }
            came
        });
        if !has_body {
            self.skip_end();
        }
        match (came, reply) {
            (Ok((stays, trailers)), Some(reply)) => {
                let status = reply.status;
                let ended = reply.end(&gateway::trailers(&trailers));
                self.reported(head, status, Channel::TcpClient, &ended);
                RequestOutcome::Ended(conclude(&ended), stays && sent == Some(true))
            }
            (Err(broken), Some(_)) => {
                count_shared(&shared.counters.failed);
                drop(broken);
                RequestOutcome::Ended(ExchangeEnd::Broken, false)
            }
            (Err(_), None) if let Some(fault) = fault.get() => {
                let requested = ReplyContext { stays: false, ..requested };
                RequestOutcome::Ended(
                    self.refuse(Some((head, requested)), fault.status(), &fault.to_string()),
                    false,
                )
            }
            (Err(broken), None) if broken.is_silent => RequestOutcome::Silent(broken.why),
            (Err(broken), None) => {
                let requested = ReplyContext { stays: false, ..requested };
                RequestOutcome::Ended(
                    self.fail(head, requested, passing.take(), broken.status, &broken.why),
                    false,
                )
            }
            (Ok(_), None) if is_to_be_asked_again => RequestOutcome::Again,
            // A response cannot end without having begun: the reader returns the header section first.
            (Ok(_), None) => RequestOutcome::Ended(ExchangeEnd::Broken, false),
        }
    }

    /// Reads the end of a request without a body, which needs no more bytes.
    pub(super) fn skip_end(&mut self) {
        let mut nothing: &[u8] = &[];
        // Without input the reader can only report the end of the message.
        let _ = self.reader.read(&mut nothing);
    }

    fn tunnel(&mut self, head: &RequestHead, host: &str, port: u16) -> ExchangeEnd {
        let ports = self.shared.config();
        let is_allowed = ports.connect_ports.as_ref().is_none_or(|ports| ports.contains(&port));
        let connected = match is_allowed {
            true => upstream::connect(host, port, self.shared),
            false => Err((403, format!("CONNECT does not lead to port {port} here (--connect-ports)"))),
        };
        let server = match connected {
            Ok(server) => server,
            Err((status, why)) => {
                let requested = ReplyContext { method: &head.method, version: head.version, stays: false };
                return self.refuse(Some((head, requested)), status, &why);
            }
        };
        count_shared(&self.shared.counters.tunnels);
        self.skip_end();
        // Bytes that the program sent behind its request go first.
        let (mut program, mut first) = (self.stream(), &server);
        let reported = program.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        match reported.and_then(|()| first.write_all(self.incoming.unread())) {
            Ok(()) => ExchangeEnd::Tunnel(Box::new((server, head.clone()))),
            Err(_) => ExchangeEnd::Broken,
        }
    }

    /// Counts and logs a forwarded response.
    pub(super) fn reported(
        &self,
        head: &RequestHead,
        status: u16,
        channel: Channel,
        ended: &io::Result<(bool, u64)>,
    ) {
        let counters = &self.shared.counters;
        match ended {
            Ok((_, bytes)) => {
                count_shared(counters.responses(channel));
                self.log(head, status, *bytes, channel);
            }
            Err(_) => count_shared(&counters.failed),
        }
    }

    pub(super) fn log(&self, head: &RequestHead, status: u16, bytes: u64, channel: Channel) {
        if let Some(log) = self.shared.log() {
            let request = Request::of_connection(head, &[]);
            let second = clock::calendar().as_nanos() / 1_000_000_000;
            log.line(second, self.peer.ip(), &request, status, bytes, channel);
            // One computer's programs are little load: the log always shows the last request.
            log.flush();
        }
    }
}

/// Result of a request to a server.
enum RequestOutcome {
    /// The exchange ended, and whether the server's connection can carry another.
    Ended(ExchangeEnd, bool),
    /// The connection ended without a byte of a response.
    Silent(String),
    /// The response does not belong to the client's request.
    Again,
}

pub(super) fn conclude(ended: &io::Result<(bool, u64)>) -> ExchangeEnd {
    match ended {
        Ok((true, _)) => ExchangeEnd::Whole,
        Ok((false, _)) => ExchangeEnd::Last,
        Err(_) => ExchangeEnd::Broken,
    }
}

fn length(response: &ResponseHead) -> Option<u64> {
    let digits = response.fields.get("Content-Length")?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}
