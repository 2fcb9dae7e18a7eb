//! The server's reply to a request: datagrams that are complete, or a message for a connection.
//!
//! A driver describes the application's response by [`Response`] and lends an [`Outbox`] for datagrams. The server
//! writes id, header section and token, chooses the channel, and divides responses that go in parts. It requests the
//! body's bytes only for datagrams: on a connection the driver sends them after the header section, possibly from a
//! file.
//!
//! ```text
//! Ticket, Response -> respond -> Datagrams (in the outbox)
//!                             -> Stream { connection, opens, head }, then the body
//!                             -> Referred (the id alone is in the outbox)
//! ```

use core::net::SocketAddr;
use core::ops::Range;

use http1::message::{Fields, Method};
use http1::server::{Misuse, Response as HttpResponse, ResponseBody};
use wire::Time;

use super::super::message::Id;
use super::super::parts::{DivisibleResponse, write_head};
use super::super::token::{TOKEN_FIELD, Token};
use super::{Channel, ConnectionId, Server, Ticket};

/// An application's response: the properties that the server needs.
pub trait Response {
    /// Status code, 200 to 999.
    fn status(&self) -> u16;

    /// Fields of the header section, without the length of the body.
    fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])>;

    /// Appends the header section and its empty line, with this token as [`TOKEN_FIELD`].
    fn write_head(&self, token: Option<&Token>, out: &mut Vec<u8>);

    /// Bytes of the body that are sent: none in a response to HEAD.
    fn body_bytes(&self) -> u64;

    /// Appends a range of these bytes.
    fn write_body(&self, range: Range<u64>, out: &mut Vec<u8>);
}

/// Datagrams that wait to be sent.
pub trait Outbox {
    /// Begins a datagram to this address; it is empty.
    fn begin(&mut self, destination: SocketAddr) -> &mut Vec<u8>;

    /// Drops the datagram that was begun last.
    fn discard(&mut self);
}

/// A datagram to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Its destination.
    pub destination: SocketAddr,
    /// Its payload.
    pub contents: Vec<u8>,
}

impl Outbox for Vec<Transmit> {
    fn begin(&mut self, destination: SocketAddr) -> &mut Vec<u8> {
        self.push(Transmit { destination, contents: Vec::new() });
        let last = self.len() - 1;
        &mut self[last].contents
    }

    fn discard(&mut self) {
        self.pop();
    }
}

/// The channel of a reply, and what the driver must do.
#[derive(Debug, PartialEq, Eq)]
pub enum Reply {
    /// Send the datagrams in the outbox: the whole response, or its parts.
    Datagrams {
        /// Number of parts; `None`: one datagram with the whole response.
        parts: Option<u64>,
    },
    /// Write this on a connection, after everything queued there. Report when it is written.
    Stream(Stream),
    /// Send the datagram in the outbox, by which the client retries over plain HTTP.
    Referred,
}

/// A response on a connection: its id and header section, followed by the body.
#[derive(Debug, PartialEq, Eq)]
pub struct Stream {
    /// The connection.
    pub connection: ConnectionId,
    /// Address of the client if the connection must be opened first.
    pub opens: Option<SocketAddr>,
    /// The request's id.
    pub id: Id,
    /// Id and header section.
    pub head: Vec<u8>,
}

impl Stream {
    /// The whole message, for bodies in memory.
    pub fn message(mut self, response: &impl Response) -> Vec<u8> {
        response.write_body(0..response.body_bytes(), &mut self.head);
        self.head
    }
}

impl Server {
    /// Responds to a request: chooses the channel, and writes what goes into datagrams.
    pub fn respond(
        &mut self,
        now: Time,
        ticket: Ticket,
        response: &impl Response,
        outbox: &mut impl Outbox,
    ) -> Reply {
        // Most responses leave in a datagram, so they are written directly into one.
        let (id, destination) = (ticket.id, ticket.source);
        let slot = outbox.begin(destination);
        slot.extend_from_slice(&id.to_bytes());
        response.write_head(None, slot);
        let length = response.body_bytes();
        let token = self.token(now, &ticket, || slot.len() as u64 + length);
        if token.is_some() {
            slot.truncate(Id::BYTES);
            response.write_head(token.as_ref(), slot);
        }
        let size = slot.len() as u64 + length;
        let fields = || {
            let token = token.as_ref().map(|token| (TOKEN_FIELD.as_bytes(), token.as_str().as_bytes()));
            response.fields().chain(token)
        };
        let divisible = || DivisibleResponse::of(response.status(), fields(), length);
        let stream = |connection, opens, head| Reply::Stream(Stream { connection, opens, id, head });
        match self.channel_in_parts(now, ticket, size, divisible) {
            Channel::Datagram => {
                response.write_body(0..length, slot);
                Reply::Datagrams { parts: None }
            }
            Channel::Parts(division) => {
                outbox.discard();
                let mut parts = 0;
                for part in division {
                    let slot = outbox.begin(destination);
                    write_head(slot, id, part, fields());
                    let first = division.offset(part);
                    response.write_body(first..first + part.length, slot);
                    parts += 1;
                }
                Reply::Datagrams { parts: Some(parts) }
            }
            Channel::Connection(connection) => {
                let head = slot.clone();
                outbox.discard();
                stream(connection, None, head)
            }
            Channel::Open { connection, client } => {
                let head = slot.clone();
                outbox.discard();
                stream(connection, Some(client), head)
            }
            Channel::Refer(message) => {
                slot.clear();
                slot.extend_from_slice(message.as_bytes());
                Reply::Referred
            }
        }
    }
}

/// A whole response of HTTP's server, to a request by one method.
#[derive(Clone, Copy, Debug)]
pub struct WholeResponse<'a> {
    response: &'a HttpResponse,
    /// The bytes of the body that are sent.
    body: &'a [u8],
}

impl<'a> WholeResponse<'a> {
    /// The response to a request by this method.
    ///
    /// # Errors
    /// A response that cannot be sent, or is incomplete.
    pub fn new(response: &'a HttpResponse, method: &Method) -> Result<Self, Misuse> {
        response.check()?;
        let ResponseBody::Whole(body) = &response.body else { return Err(Misuse::Partial) };
        let is_sent = !response.is_bodiless() && *method != Method::Head;
        Ok(Self { response, body: if is_sent { body } else { &[] } })
    }
}

impl Response for WholeResponse<'_> {
    fn status(&self) -> u16 {
        self.response.status
    }

    fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.response.fields.iter()
    }

    fn write_head(&self, token: Option<&Token>, out: &mut Vec<u8>) {
        let mut more = Fields::new();
        if let Some(token) = token {
            // Hexadecimal digits are valid in a field.
            let _ = more.push(TOKEN_FIELD, token.as_str());
        }
        self.response.encode_head(&more, out);
    }

    fn body_bytes(&self) -> u64 {
        self.body.len() as u64
    }

    fn write_body(&self, range: Range<u64>, out: &mut Vec<u8>) {
        let at = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        out.extend_from_slice(self.body.get(at(range.start)..at(range.end)).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http1::message::Limits;

    use super::*;
    use crate::message::read_response;
    use crate::server::{Secrets, Verdict};
    use crate::{Key, ServerConfig};

    const NOW: Time = Time::ZERO;

    fn client() -> SocketAddr {
        SocketAddr::from(([9, 9, 9, 9], 50_000))
    }

    fn server(config: ServerConfig) -> Server {
        Server::new(config, Secrets { token: Key { generation: 0, secret: [1; 16] }, tables: [2; 16] })
    }

    fn respond(server: &mut Server, request: &str, bytes: usize) -> (Reply, Vec<Transmit>, HttpResponse) {
        let mut datagram = b"\0\0\0\0\0\0\0\x07\x9c\x41\0".to_vec();
        datagram.extend_from_slice(request.as_bytes());
        let Verdict::Serve(ticket, head) = server.receive(NOW, client(), &datagram) else {
            panic!("it is served")
        };
        let body: Vec<u8> = (0..bytes).map(|at| u8::try_from(at % 251).unwrap()).collect();
        let mut response = HttpResponse::whole(200, "text/plain", Arc::from(body)).unwrap();
        response.fields.push("ETag", "\"t\"").unwrap();
        let mut transmits = Vec::new();
        let whole = WholeResponse::new(&response, &head.to_head().method).unwrap();
        let reply = server.respond(NOW, ticket, &whole, &mut transmits);
        (reply, transmits, response)
    }

    fn get(fields: &str) -> String {
        format!("GET / HTTP/1.1\r\nHost: h\r\n{fields}\r\n")
    }

    #[test]
    fn small_response_is_one_datagram_to_the_source_of_the_request() {
        let (reply, transmits, response) = respond(&mut server(ServerConfig::paper()), &get(""), 100);
        assert_eq!(reply, Reply::Datagrams { parts: None });
        let [Transmit { destination, contents }] = &transmits[..] else { panic!("{transmits:?}") };
        assert_eq!((*destination, &contents[..8]), (client(), &7_u64.to_be_bytes()[..]));
        let (head, body) = read_response(&contents[8..], &Method::Get, &Limits::default()).unwrap();
        assert_eq!((head.status, ResponseBody::Whole(Arc::from(body))), (200, response.body));
    }

    #[test]
    fn response_to_head_has_the_length_of_the_body_and_not_the_body() {
        let request = "HEAD / HTTP/1.1\r\nHost: h\r\n\r\n";
        let (reply, transmits, _) = respond(&mut server(ServerConfig::paper()), request, 100_000);
        assert_eq!(reply, Reply::Datagrams { parts: None });
        let text = String::from_utf8_lossy(&transmits[0].contents);
        assert!(text.contains("Content-Length: 100000") && text.ends_with("\r\n\r\n"), "{text}");
    }

    #[test]
    fn first_response_carries_a_token_before_its_length() {
        let request = get(&format!("DHTTP-Fill: {}\r\n", "0".repeat(300)));
        let (reply, transmits, _) = respond(&mut server(ServerConfig::internet()), &request, 10);
        assert_eq!(reply, Reply::Datagrams { parts: None });
        let text = String::from_utf8_lossy(&transmits[0].contents).into_owned();
        assert_eq!(text.matches("DHTTP-Token: ").count(), 1, "{text}");
        assert!(text.find("DHTTP-Token") < text.find("Content-Length"), "{text}");
    }

    #[test]
    fn large_response_goes_in_parts_to_a_client_that_takes_them() {
        let request = get("DHTTP-Parts: 10\r\n");
        let config = ServerConfig { parts: 10, ..ServerConfig::paper() };
        let (reply, transmits, response) = respond(&mut server(config), &request, 4_000);
        assert_eq!(reply, Reply::Datagrams { parts: Some(transmits.len() as u64) });
        let mut resent = Vec::new();
        for Transmit { destination, contents } in &transmits {
            assert_eq!(*destination, client());
            let (head, body) = read_response(&contents[8..], &Method::Get, &Limits::default()).unwrap();
            assert_eq!(head.status, 206);
            resent.extend_from_slice(body);
        }
        assert_eq!(ResponseBody::Whole(Arc::from(resent)), response.body);
    }

    #[test]
    fn large_response_is_a_message_for_a_connection_and_no_datagram() {
        let mut server = server(ServerConfig::paper());
        let (reply, transmits, response) = respond(&mut server, &get(""), 100_000);
        assert!(transmits.is_empty());
        let Reply::Stream(stream) = reply else { panic!("{reply:?}") };
        assert_eq!((stream.id, stream.opens), (Id(7), Some(SocketAddr::new(client().ip(), 40_001))));
        let message = stream.message(&WholeResponse::new(&response, &Method::Get).unwrap());
        let (head, body) = read_response(&message[8..], &Method::Get, &Limits::default()).unwrap();
        assert_eq!((head.status, body.len()), (200, 100_000));
    }

    #[test]
    fn unvalidated_client_is_referred_by_the_id_alone() {
        let (reply, transmits, _) = respond(&mut server(ServerConfig::internet()), &get(""), 100_000);
        assert_eq!(reply, Reply::Referred);
        let contents = 7_u64.to_be_bytes().to_vec();
        assert_eq!(transmits, [Transmit { destination: client(), contents }]);
    }

    #[test]
    fn incomplete_responses_are_refused() {
        let partial = HttpResponse { body: ResponseBody::Length(4), ..HttpResponse::empty(200) };
        assert_eq!(WholeResponse::new(&partial, &Method::Get).unwrap_err(), Misuse::Partial);
    }

    #[test]
    fn late_resends_of_responses_by_tcp_are_loss_in_the_paper_and_not_by_prefix() {
        let by_prefix = ServerConfig::paper().with(crate::Extension::LossByPrefix, true);
        for (config, is_by_udp) in [(ServerConfig::paper(), false), (by_prefix, true)] {
            let mut server = server(config);
            let (reply, ..) = respond(&mut server, &get(""), 100_000);
            assert!(matches!(reply, Reply::Stream(_)), "{reply:?}");
            let mut resend = b"\0\0\0\0\0\0\0\x07\x9c\x41\x01".to_vec();
            resend.extend_from_slice(get("").as_bytes());
            for _ in 0..3 {
                let verdict = server.receive(NOW, client(), &resend);
                assert_eq!(verdict, Verdict::Ignore(crate::server::IgnoreReason::AlreadyAnswered));
            }
            let (reply, ..) = respond(&mut server, &get(""), 100);
            assert_eq!(matches!(reply, Reply::Datagrams { .. }), is_by_udp, "{reply:?}");
        }
    }
}
