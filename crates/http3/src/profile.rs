//! Behaviour of clients and servers as data: windows, congestion control, datagrams, scheduling.
//!
//! Acknowledgements are alike in all: of every second packet, or after 25 ms (RFC 9000, section 13.2). What `quinn-proto` has
//! no setting for is not modelled: Chromium's and quic-go's HyStart, Chromium's acknowledgement of every tenth packet after
//! the first hundred, quic-go's growing windows, and nginx's and quic-go's bursts: all ends pace.

pub use http2::profile::Scheduling;
use wire::Duration;

/// Behaviour of one end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Its name.
    pub name: &'static str,
    /// Congestion control of what it sends.
    pub congestion: Congestion,
    /// Initial congestion window, in bytes.
    pub initial_window: u64,
    /// Round trip that is assumed before the first sample.
    pub initial_rtt: Duration,
    /// Window of each stream that it grants, in bytes.
    pub stream_window: u32,
    /// Window of the connection that it grants, in bytes; `None`: unlimited.
    pub connection_window: Option<u32>,
    /// Maximum number of the peer's concurrent requests.
    pub max_streams: u32,
    /// Bytes of its first datagrams, at least 1,200 (RFC 9000, section 14).
    pub datagram: u16,
    /// Bytes up to which it probes for larger ones; `None`: it does not probe.
    pub max_datagram: Option<u16>,
    /// Bytes of the connection ids by which it is addressed.
    pub connection_id: usize,
    /// Idle timeout.
    pub idle: Duration,
    /// Order of its data.
    pub scheduling: Scheduling,
    /// Whether it inserts fields into its peer's dynamic table.
    pub has_dynamic_fields: bool,
    /// Its SETTINGS: identifiers and values.
    pub settings: &'static [(u64, u64)],
}

/// Congestion control, of those that `quinn-proto` has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Congestion {
    /// CUBIC (RFC 8312), without HyStart.
    Cubic,
    /// New Reno (RFC 9002, section 7).
    NewReno,
    /// BBR.
    Bbr,
}

/// Setting of the maximum bytes of a dynamic table (RFC 9204, section 5).
pub const QPACK_MAX_TABLE_CAPACITY: u64 = 1;
const MAX_FIELD_SECTION_SIZE: u64 = 6;
/// Setting of the number of streams that may wait for insertions.
pub(crate) const QPACK_BLOCKED_STREAMS: u64 = 7;
const H3_DATAGRAM: u64 = 0x33;

impl Profile {
    /// Chromium. Datagrams, windows: quiche/quic/core/quic_constants.h (`kDefaultMaxPacketSize`, `kInitialCongestionWindow`
    /// packets, `kInitialRttMs`), net/quic/quic_context.h (`kQuicSessionMaxRecvWindowSize`, `kQuicStreamMaxRecvWindowSize`,
    /// `kIdleConnectionTimeout`); SETTINGS: quiche/quic/core/http/quic_spdy_session.cc; its QPACK encoder inserts
    /// what the server's table takes: quiche/quic/core/qpack/qpack_encoder.cc. It has no connection ids of its own.
    pub const CHROMIUM: Self = Self {
        name: "chromium",
        congestion: Congestion::Cubic,
        initial_window: 32 * 1_250,
        initial_rtt: Duration::from_millis(100),
        stream_window: 6 << 20,
        connection_window: Some(15 << 20),
        max_streams: 100,
        datagram: 1_250,
        max_datagram: None,
        connection_id: 0,
        idle: Duration::from_secs(30),
        scheduling: Scheduling::RoundRobin,
        has_dynamic_fields: true,
        settings: &[
            (QPACK_MAX_TABLE_CAPACITY, 65_536),
            (MAX_FIELD_SECTION_SIZE, 262_144),
            (QPACK_BLOCKED_STREAMS, 100),
            (H3_DATAGRAM, 1),
        ],
    };

    /// nginx since 1.27.5, which brought CUBIC: src/event/quic/ngx_event_quic_ack.c (initial window), ngx_event_quic_connid.h
    /// (`NGX_QUIC_SERVER_CID_LEN`), ngx_event_quic_migration.c (path MTU discovery, up to the client's limit), and
    /// src/http/v3 (`http3_max_concurrent_streams` 128, `http3_stream_buffer_size` 64k for each; a table of 4,096 bytes);
    /// `keepalive_timeout` 75 s.
    pub const NGINX: Self = Self {
        name: "nginx",
        congestion: Congestion::Cubic,
        initial_window: 12_000,
        initial_rtt: Duration::from_millis(333),
        stream_window: 65_536,
        connection_window: Some(128 * 65_536),
        max_streams: 128,
        datagram: 1_200,
        max_datagram: Some(1_472),
        connection_id: 20,
        idle: Duration::from_secs(75),
        scheduling: Scheduling::RoundRobin,
        has_dynamic_fields: false,
        settings: &[(QPACK_MAX_TABLE_CAPACITY, 4_096), (QPACK_BLOCKED_STREAMS, 128)],
    };

    /// quic-go: internal/protocol/params.go (`InitialPacketSize`, `DefaultInitialMaxStreamData`, `DefaultInitialMaxData`,
    /// `DefaultMaxIncomingStreams`, `DefaultIdleTimeout`, `MaxPacketBufferSize`), internal/congestion/cubic_sender.go
    /// (`initialCongestionWindow` of 32 packets, with Reno), transport.go (connection ids), framer.go (streams in turn).
    pub const QUIC_GO: Self = Self {
        name: "quic-go",
        congestion: Congestion::NewReno,
        initial_window: 32 * 1_280,
        initial_rtt: Duration::from_millis(100),
        stream_window: 512 << 10,
        connection_window: Some(768 << 10),
        max_streams: 100,
        datagram: 1_280,
        max_datagram: Some(1_452),
        connection_id: 4,
        idle: Duration::from_secs(30),
        scheduling: Scheduling::RoundRobin,
        has_dynamic_fields: false,
        settings: &[(H3_DATAGRAM, 1)],
    };

    /// quinn 0.11 with its defaults: quinn-proto, src/config/transport.rs and src/congestion/cubic.rs; connection ids of
    /// src/cid_generator.rs; SETTINGS of crate `h3`.
    pub const QUINN: Self = Self {
        name: "quinn",
        congestion: Congestion::Cubic,
        initial_window: 12_000,
        initial_rtt: Duration::from_millis(333),
        stream_window: 1_250_000,
        connection_window: None,
        max_streams: 100,
        datagram: 1_200,
        max_datagram: Some(1_452),
        connection_id: 8,
        idle: Duration::from_secs(30),
        scheduling: Scheduling::RoundRobin,
        has_dynamic_fields: false,
        settings: &[(MAX_FIELD_SECTION_SIZE, (1 << 62) - 1)],
    };

    /// Returns a setting's value; 0, the default of QPACK's, if it is not sent.
    pub fn setting(&self, id: u64) -> u64 {
        setting(self.settings.iter().copied(), id)
    }

    /// Every client.
    pub const CLIENTS: [Self; 3] = [Self::CHROMIUM, Self::QUIC_GO, Self::QUINN];
    /// Every server.
    pub const SERVERS: [Self; 3] = [Self::NGINX, Self::QUIC_GO, Self::QUINN];
}

/// The value of a setting among these; 0 if it is not there.
pub(crate) fn setting(settings: impl IntoIterator<Item = (u64, u64)>, id: u64) -> u64 {
    settings.into_iter().find(|(other, _)| *other == id).map_or(0, |(_, value)| value)
}
