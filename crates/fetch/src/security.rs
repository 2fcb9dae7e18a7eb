//! TLS between a transport and its connections: handshakes before the first request, and records around every write.

use std::collections::{BTreeMap, VecDeque};

use tls::session::{Session, SessionConfig};

use crate::report::Break;
use crate::transport::{ConnectionId, Endpoint, FromWire, Wire};
use crate::web::WebConfig;

/// Sessions of a client.
#[derive(Debug)]
pub(crate) struct Security {
    config: WebConfig,
    /// Names of the origins.
    names: Vec<String>,
    sessions: BTreeMap<ConnectionId, SecuredConnection>,
    wires: VecDeque<Wire>,
}

#[derive(Debug)]
struct SecuredConnection {
    session: Session,
    /// Whether the transport knows that it can send.
    is_announced: bool,
}

/// Input of a transport, from behind the handshake.
#[derive(Debug)]
pub(crate) enum Arrival {
    Connected(ConnectionId),
    Received(ConnectionId, Vec<u8>),
    Broken(ConnectionId),
}

impl Arrival {
    pub(crate) fn as_input(&self) -> FromWire<'_> {
        match self {
            Self::Connected(id) => FromWire::Connected(*id),
            Self::Received(id, bytes) => FromWire::Received(*id, bytes),
            Self::Broken(id) => FromWire::Broken(*id, Break::Reset),
        }
    }
}

impl Security {
    pub(crate) const fn new(config: WebConfig, names: Vec<String>) -> Self {
        Self { config, names, sessions: BTreeMap::new(), wires: VecDeque::new() }
    }

    /// Handles an event of a connection; `Err` if it concerns no session, and is the transport's.
    pub(crate) fn handle<'a>(&mut self, input: FromWire<'a>) -> Result<Vec<Arrival>, FromWire<'a>> {
        match input {
            FromWire::Connected(id) if self.sessions.contains_key(&id) => Ok(self.advance(id, &[])),
            FromWire::Received(id, bytes) if self.sessions.contains_key(&id) => Ok(self.advance(id, bytes)),
            FromWire::EndOfStream(id) | FromWire::Broken(id, _) => {
                self.sessions.remove(&id);
                Err(input)
            }
            FromWire::Connected(_)
            | FromWire::Received(..)
            | FromWire::Accepted(..)
            | FromWire::Datagram(..)
            | FromWire::Unreachable(_) => Err(input),
        }
    }

    fn advance(&mut self, id: ConnectionId, bytes: &[u8]) -> Vec<Arrival> {
        let Some(SecuredConnection { session, is_announced }) = self.sessions.get_mut(&id) else {
            return Vec::new();
        };
        let mut plaintext = Vec::new();
        let result = session.receive_into(bytes, &mut plaintext);
        let mut arrivals = Vec::new();
        if session.can_send() && !std::mem::replace(is_announced, session.can_send()) {
            arrivals.push(Arrival::Connected(id));
        }
        if !plaintext.is_empty() {
            arrivals.push(Arrival::Received(id, plaintext));
        }
        while let Some(write) = session.next_write() {
            self.wires.push_back(Wire::Send(id, write));
        }
        if result.is_err() {
            self.sessions.remove(&id);
            self.wires.push_back(Wire::Close(id, crate::transport::Ending::Reset));
            arrivals.push(Arrival::Broken(id));
        }
        arrivals
    }

    /// Takes an output of the transport.
    pub(crate) fn send(&mut self, wire: Wire) {
        match wire {
            Wire::Open(id, origin) => {
                self.open(id, origin);
                self.wires.push_back(wire);
            }
            Wire::Send(id, plaintext) => match self.sessions.get_mut(&id) {
                Some(SecuredConnection { session, .. }) => {
                    session.send(&plaintext);
                    while let Some(write) = session.next_write() {
                        self.wires.push_back(Wire::Send(id, write));
                    }
                }
                None => self.wires.push_back(Wire::Send(id, plaintext)),
            },
            Wire::Close(id, _) => {
                self.sessions.remove(&id);
                self.wires.push_back(wire);
            }
            Wire::Datagram(..) => self.wires.push_back(wire),
        }
    }

    fn open(&mut self, id: ConnectionId, origin: Endpoint) {
        let Some(handshake) = self.config.tls(origin) else { return };
        let protocol = if self.config.has_http2(origin) { "h2" } else { "http/1.1" };
        let server_name = self.names.get(origin).cloned().unwrap_or_default();
        let config = SessionConfig { server_name, protocol, ..SessionConfig::new(handshake) };
        let session = Session::client(config);
        self.sessions.insert(id, SecuredConnection { session, is_announced: false });
    }

    /// Next output for the network.
    pub(crate) fn take(&mut self) -> Option<Wire> {
        self.wires.pop_front()
    }
}
