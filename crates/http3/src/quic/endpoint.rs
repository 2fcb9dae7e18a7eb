//! An end: its QUIC connections, and HTTP/3 on them.
//!
//! The contract of every state machine, with several inputs: [`Endpoint::receive`] and [`Endpoint::expire`] report events,
//! [`Endpoint::next_datagram`] is repeated until there is none, and then [`Endpoint::timeout`] is the time of the next
//! [`Endpoint::expire`].
//!
//! ```
//! use core::net::SocketAddr;
//!
//! use roundtrip_http3::{ClientConfig, Endpoint, Event, Profile, ServerConfig};
//! use tls::session::Handshake;
//! use wire::{Seed, Time};
//!
//! let (seed, max_datagram, handshake) = (Seed::new(1), 1_472, Handshake::Full);
//! let (profile, server) = (Profile::CHROMIUM, Profile::NGINX);
//! let mut client = Endpoint::client(ClientConfig { profile, server, handshake, max_datagram, seed })?;
//! let (profile, certificate_chain) = (Profile::NGINX, 4_000);
//! let mut server =
//!     Endpoint::server(ServerConfig { profile, handshake, certificate_chain, max_datagram, seed })?;
//! let (here, there) = (SocketAddr::from(([10, 0, 0, 1], 40_000)), SocketAddr::from(([10, 0, 0, 2], 443)));
//! client.connect(Time::ZERO, there, "www");
//! let mut is_connected = false;
//! for _ in 0..2 {
//!     while let Some((_, datagram)) = client.next_datagram(Time::ZERO) {
//!         server.receive(Time::ZERO, here, &datagram, &mut |_| {});
//!     }
//!     while let Some((_, datagram)) = server.next_datagram(Time::ZERO) {
//!         client.receive(Time::ZERO, there, &datagram, &mut |event| {
//!             is_connected |= matches!(event, Event::Connected(_));
//!         });
//!     }
//! }
//! assert!(is_connected);
//! # Ok::<(), roundtrip_http3::Unavailable>(())
//! ```

use core::net::SocketAddr;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http2::Priority;
use quinn_proto::{
    ClientConfig as QuicClientConfig, ConnectionHandle, DatagramEvent, Dir, EndpointEvent,
    ServerConfig as QuicServerConfig, Side, StreamId, TransportConfig, VarInt,
};
use tls::session::{Handshake, SessionConfig};
use wire::{Seed, Time};

use crate::profile::{Profile, QPACK_BLOCKED_STREAMS, QPACK_MAX_TABLE_CAPACITY};
use crate::quic::clock::{Instant, to_instant, to_time};
use crate::quic::connection::{Connection, number};
use crate::quic::crypto::{NullKey, NullTls};
use crate::quic::random::SeededIds;
use crate::quic::settings;
use crate::stream::{StreamError, StreamReader};
use crate::{ClientConfig, CloseReason, ConnectionId, Event, Recovery, ServerConfig, Unavailable};

/// H3_NO_ERROR, and H3_GENERAL_PROTOCOL_ERROR (RFC 9114, section 8.1).
const NO_ERROR: u32 = 0x100;
const PROTOCOL_ERROR: u32 = 0x101;
/// Maximum bytes of a datagram.
const BUFFER_BYTES: usize = 1_500;
/// Bytes of memory for datagrams that arrive, of which ten fit.
const RECEIVED_BYTES: usize = 1 << 14;

/// An end of any number of connections.
pub struct Endpoint {
    quic: quinn_proto::Endpoint,
    profile: Profile,
    /// Settings of a client's connections.
    client: Option<QuicClientConfig>,
    /// Behaviour of the servers that a client with early data remembers.
    remembered: Option<Profile>,
    /// By their handles. Each is some kilobytes large.
    connections: Vec<Option<Box<Connection>>>,
    ids: BTreeMap<ConnectionId, ConnectionHandle>,
    /// Number of connections so far.
    opened: u32,
    /// Connections that may have something to send.
    active: BTreeSet<ConnectionHandle>,
    /// Datagrams that belong to no connection.
    replies: VecDeque<(SocketAddr, Vec<u8>)>,
    buffer: Vec<u8>,
    /// Memory of the datagrams that arrive next: one piece for many.
    received: BytesMut,
    /// Changes of recovery, if they are recorded.
    recoveries: Option<Vec<Recovery>>,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").field("profile", &self.profile.name).finish_non_exhaustive()
    }
}

impl Endpoint {
    /// A client.
    ///
    /// # Errors
    /// Why it cannot be.
    pub fn client(config: ClientConfig) -> Result<Self, Unavailable> {
        let ClientConfig { profile, server, handshake, max_datagram, seed } = config;
        Unavailable::check(max_datagram, handshake)?;
        let tls = null_tls(handshake, 0, settings::remembered(&server));
        let mut client = QuicClientConfig::new(Arc::new(tls));
        let first_ids = SeededIds::new(seed, "quic-first-id", FIRST_ID_BYTES);
        client
            .transport_config(Arc::new(settings::transport(&profile, max_datagram)))
            .initial_dst_cid_provider(Arc::new(move || first_ids.next()))
            .token_store(Arc::new(quinn_proto::NoneTokenStore));
        let mut endpoint = Self::new(profile, seed, max_datagram, Some(client), None);
        endpoint.remembered = (handshake == Handshake::EarlyData).then_some(server);
        Ok(endpoint)
    }

    /// A server.
    ///
    /// # Errors
    /// Why it cannot be.
    pub fn server(config: ServerConfig) -> Result<Self, Unavailable> {
        let ServerConfig { profile, handshake, certificate_chain, max_datagram, seed } = config;
        Unavailable::check(max_datagram, handshake)?;
        let tls = null_tls(handshake, certificate_chain, Vec::new());
        let mut server = QuicServerConfig::new(Arc::new(tls), Arc::new(NullKey));
        let transport: TransportConfig = settings::transport(&profile, max_datagram);
        server.transport_config(Arc::new(transport));
        Ok(Self::new(profile, seed, max_datagram, None, Some(Arc::new(server))))
    }

    fn new(
        profile: Profile,
        seed: Seed,
        max_datagram: u16,
        client: Option<QuicClientConfig>,
        server: Option<Arc<QuicServerConfig>>,
    ) -> Self {
        let config = Arc::new(settings::endpoint(&profile, seed, max_datagram));
        Self {
            quic: quinn_proto::Endpoint::new(config, server, true, None),
            profile,
            client,
            remembered: None,
            connections: Vec::new(),
            ids: BTreeMap::new(),
            opened: 0,
            active: BTreeSet::new(),
            replies: VecDeque::new(),
            buffer: Vec::with_capacity(BUFFER_BYTES),
            received: BytesMut::with_capacity(RECEIVED_BYTES),
            recoveries: None,
        }
    }

    /// Records the state of recovery from now on.
    pub fn record(&mut self) {
        self.recoveries.get_or_insert_default();
    }

    /// Changes of recovery, in order; empty without [`Endpoint::record`].
    pub fn recoveries(&self) -> &[Recovery] {
        self.recoveries.as_deref().unwrap_or_default()
    }

    /// Opens a connection to a server of this name; `None` at a server, or if the address is invalid. With early data its
    /// requests may leave immediately: [`Endpoint::can_request`].
    pub fn connect(&mut self, now: Time, to: SocketAddr, name: &str) -> Option<ConnectionId> {
        let config = self.client.clone()?;
        let (handle, quic) = self.quic.connect(to_instant(now), config, to, name).ok()?;
        Some(self.insert(handle, quic))
    }

    fn insert(&mut self, handle: ConnectionHandle, quic: quinn_proto::Connection) -> ConnectionId {
        let id = ConnectionId(self.opened);
        self.opened += 1;
        let mut connection = Box::new(Connection::new(id, quic, &self.profile));
        if connection.is_connected {
            connection.open_control(&self.profile);
            if let Some(server) = self.remembered.filter(|_| self.profile.has_dynamic_fields) {
                connection.encoder.allow(
                    server.setting(QPACK_MAX_TABLE_CAPACITY),
                    server.setting(QPACK_BLOCKED_STREAMS) > 0,
                );
            }
        }
        if self.connections.len() <= handle.0 {
            self.connections.resize_with(handle.0 + 1, || None);
        }
        self.connections[handle.0] = Some(connection);
        self.ids.insert(id, handle);
        self.active.insert(handle);
        id
    }

    /// Whether a request may leave now: the connection is ready, and the server takes one more stream.
    pub fn can_request(&mut self, id: ConnectionId) -> bool {
        // A stream is opened only when the request is sent.
        self.connection(id)
            .is_some_and(|(_, connection)| connection.is_connected && !connection.quic.is_closed())
    }

    /// Sends a request; returns its stream, or `None` if the server takes no more of them now.
    pub fn request<'a>(
        &mut self,
        id: ConnectionId,
        fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
        priority: Priority,
        body: Arc<[u8]>,
    ) -> Option<u64> {
        let scheduling = self.profile.scheduling;
        let (handle, connection) = self.connection(id).filter(|(_, connection)| connection.is_connected)?;
        let stream = connection.quic.streams().open(Dir::Bi)?;
        connection.readers.insert(stream, StreamReader::message());
        connection.send(stream, fields, (priority, scheduling), body);
        self.active.insert(handle);
        Some(number(stream))
    }

    /// Sends a response. One whose connection or stream has ended needs none.
    pub fn respond<'a>(
        &mut self,
        id: ConnectionId,
        stream: u64,
        fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
        priority: Priority,
        body: Arc<[u8]>,
    ) {
        let scheduling = self.profile.scheduling;
        let Some(stream) = stream_id(stream) else { return };
        let Some((handle, connection)) = self.connection(id) else { return };
        connection.send(stream, fields, (priority, scheduling), body);
        self.active.insert(handle);
    }

    /// Resets a stream that is no longer wanted.
    pub fn reset(&mut self, id: ConnectionId, stream: u64) {
        let Some(stream) = stream_id(stream) else { return };
        let Some((handle, connection)) = self.connection(id) else { return };
        connection.reset(stream);
        self.active.insert(handle);
    }

    /// Closes a connection; its last datagrams remain to be sent.
    pub fn close(&mut self, now: Time, id: ConnectionId) {
        if let Some((handle, connection)) = self.connection(id) {
            connection.quic.close(to_instant(now), VarInt::from_u32(NO_ERROR), Bytes::new());
            self.active.insert(handle);
        }
    }

    fn connection(&mut self, id: ConnectionId) -> Option<(ConnectionHandle, &mut Connection)> {
        let handle = *self.ids.get(&id)?;
        Some((handle, at(&mut self.connections, handle)?))
    }

    /// Handles a datagram of a peer.
    pub fn receive(&mut self, now: Time, from: SocketAddr, datagram: &[u8], on: &mut dyn FnMut(Event<'_>)) {
        let instant = to_instant(now);
        self.buffer.clear();
        self.received.extend_from_slice(datagram);
        let event = self.quic.handle(instant, from, None, None, self.received.split(), &mut self.buffer);
        match event {
            None => {}
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some(connection) = at(&mut self.connections, handle) {
                    connection.quic.handle_event(event);
                    self.drive(instant, handle, on);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                match self.quic.accept(incoming, instant, &mut self.buffer, None) {
                    Ok((handle, quic)) => {
                        self.insert(handle, quic);
                        self.drive(instant, handle, on);
                    }
                    Err(error) => {
                        if let Some(transmit) = error.response {
                            let bytes = self.buffer.get(..transmit.size).unwrap_or_default();
                            self.replies.push_back((transmit.destination, bytes.to_vec()));
                        }
                    }
                }
            }
            Some(DatagramEvent::Response(transmit)) => {
                let bytes = self.buffer.get(..transmit.size).unwrap_or_default();
                self.replies.push_back((transmit.destination, bytes.to_vec()));
            }
        }
    }

    /// Handles what is due.
    pub fn expire(&mut self, now: Time, on: &mut dyn FnMut(Event<'_>)) {
        let instant = to_instant(now);
        while let Some((_, handle)) = self.next_timer().filter(|(due, _)| *due <= instant)
            && let Some(connection) = at(&mut self.connections, handle)
        {
            connection.quic.handle_timeout(instant);
            self.drive(instant, handle, on);
            if let Some(connection) = at(&mut self.connections, handle) {
                connection.timer = connection.quic.poll_timeout();
            }
        }
    }

    /// Next datagram, and its destination.
    pub fn next_datagram(&mut self, now: Time) -> Option<(SocketAddr, Vec<u8>)> {
        if let Some(reply) = self.replies.pop_front() {
            return Some(reply);
        }
        let instant = to_instant(now);
        while let Some(handle) = self.active.first().copied() {
            let Some(connection) = at(&mut self.connections, handle) else {
                self.active.pop_first();
                continue;
            };
            self.buffer.clear();
            if let Some(transmit) = connection.quic.poll_transmit(instant, 1, &mut self.buffer) {
                let bytes = self.buffer.get(..transmit.size).unwrap_or_default();
                return Some((transmit.destination, bytes.to_vec()));
            }
            self.active.pop_first();
            if connection.quic.is_closed() {
                // Whatever else arrives for it needs no reply: its peer has been told, or has told.
                self.forget(handle);
            } else {
                connection.timer = connection.quic.poll_timeout();
            }
        }
        None
    }

    /// Time of the next [`Endpoint::expire`].
    pub fn timeout(&self) -> Option<Time> {
        self.next_timer().map(|(due, _)| to_time(due))
    }

    /// The timer that is due first.
    fn next_timer(&self) -> Option<(Instant, ConnectionHandle)> {
        let connections = self.connections.iter().enumerate();
        let timer = |(place, connection): (usize, &Option<Box<Connection>>)| {
            Some((connection.as_ref()?.timer?, ConnectionHandle(place)))
        };
        connections.filter_map(timer).min()
    }

    fn forget(&mut self, handle: ConnectionHandle) {
        let Some(connection) = self.connections.get_mut(handle.0).and_then(Option::take) else { return };
        self.ids.remove(&connection.id);
        self.quic.handle_event(handle, EndpointEvent::drained());
    }

    /// Handles all events of a connection.
    fn drive(&mut self, now: Instant, handle: ConnectionHandle, on: &mut dyn FnMut(Event<'_>)) {
        self.active.insert(handle);
        loop {
            let Some(connection) = at(&mut self.connections, handle) else { return };
            while let Some(event) = connection.quic.poll_endpoint_events() {
                if event.is_drained() {
                    return self.forget(handle);
                }
                if let Some(event) = self.quic.handle_event(handle, event) {
                    connection.quic.handle_event(event);
                }
            }
            let Some(event) = connection.quic.poll() else { break };
            if connection.event(event, &self.profile, on) == Err(StreamError) {
                let id = connection.id;
                connection.quic.close(now, VarInt::from_u32(PROTOCOL_ERROR), Bytes::new());
                on(Event::Closed(id, CloseReason::Fault));
                return;
            }
        }
        let Some(connection) = at(&mut self.connections, handle) else { return };
        if !connection.has_control && connection.quic.side() == Side::Server {
            connection.open_control(&self.profile);
        }
        if let Some(recoveries) = &mut self.recoveries {
            recoveries.extend(connection.changed_recovery(to_time(now)));
        }
    }
}

fn at(connections: &mut [Option<Box<Connection>>], handle: ConnectionHandle) -> Option<&mut Connection> {
    connections.get_mut(handle.0)?.as_deref_mut()
}

/// Bytes of the first destination id of a client: Chromium's, and the least (RFC 9000, section 7.2).
const FIRST_ID_BYTES: usize = 8;

fn null_tls(handshake: Handshake, certificate_chain: usize, remembered: Vec<u8>) -> NullTls {
    let config = SessionConfig { protocol: "h3", certificate_chain, ..SessionConfig::new(handshake) };
    NullTls { config, remembered }
}

fn stream_id(stream: u64) -> Option<StreamId> {
    VarInt::from_u64(stream).ok().map(StreamId::from)
}
