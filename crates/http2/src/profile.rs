//! Behaviour of clients and servers as data: settings, windows and their updates, scheduling.

use tls::session::RecordSizes;

use crate::settings::Setting;
use crate::{DEFAULT_WINDOW, PREFACE};

/// Behaviour of one end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Its name.
    pub name: &'static str,
    /// SETTINGS of its first frame.
    pub settings: &'static [Setting],
    /// Window of the connection that it grants; what exceeds the default follows its SETTINGS as WINDOW_UPDATE.
    pub connection_window: u32,
    /// Window of a stream that it grants with each request, beyond that of its SETTINGS; 0 for none.
    pub request_window: u32,
    /// Part of a window after which it grants as much again, as a divisor: 2 is half of the window.
    pub update_divisor: u32,
    /// Maximum bytes of its DATA frames.
    pub max_data: u32,
    /// Maximum bytes of its writes, of which each may have several frames.
    pub max_write: usize,
    /// Order of its DATA.
    pub scheduling: Scheduling,
    /// Sizes of the TLS records of its writes.
    pub records: RecordSizes,
}

/// Order of DATA of several streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// By urgency; within one, streams that are not incremental in their order, then the others in turn (RFC 9218,
    /// section 10).
    Urgency,
    /// All streams in turn, whatever their urgency.
    RoundRobin,
    /// Stream by stream, in the order of their requests.
    InOrder,
}

impl Scheduling {
    /// Every order.
    pub const ALL: [Self; 3] = [Self::Urgency, Self::RoundRobin, Self::InOrder];

    /// Returns its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Urgency => "urgency",
            Self::RoundRobin => "round-robin",
            Self::InOrder => "in-order",
        }
    }
}

const fn setting(id: u16, value: u32) -> Setting {
    Setting { id, value }
}

impl Profile {
    /// Chromium. Its windows: net/http/http_network_session.cc (`kSpdySessionMaxRecvWindowSize`,
    /// `kSpdyStreamMaxRecvWindowSize`, `AddDefaultHttp2Settings`); its updates, at half of a window:
    /// `SpdySession::IncreaseRecvWindowSize` and `SpdyStream::IncreaseRecvWindowSize`.
    pub const CHROMIUM: Self = Self {
        name: "chromium",
        settings: &[
            setting(Setting::HEADER_TABLE_SIZE, 65_536),
            setting(Setting::ENABLE_PUSH, 0),
            setting(Setting::INITIAL_WINDOW_SIZE, 6 << 20),
            setting(Setting::MAX_HEADER_LIST_SIZE, 256 << 10),
        ],
        connection_window: 15 << 20,
        request_window: 0,
        update_divisor: 2,
        max_data: 16_384,
        max_write: 16_384,
        scheduling: Scheduling::RoundRobin,
        records: RecordSizes::Full,
    };

    /// Firefox: netwerk/protocol/http/Http2Session.cpp (`SendHello`), with the preferences `network.http.http2.pull-allowance` and
    /// `network.http.http2.default-hpack-buffer`. SETTINGS grant pushed streams little; each request grants its own stream
    /// `kInitialRwin`. It grants a window again after 4 MiB (`kMinimumToAck`).
    pub const FIREFOX: Self = Self {
        name: "firefox",
        settings: &[
            setting(Setting::HEADER_TABLE_SIZE, 65_536),
            setting(Setting::ENABLE_PUSH, 0),
            setting(Setting::INITIAL_WINDOW_SIZE, 131_072),
            setting(Setting::MAX_FRAME_SIZE, 16_384),
        ],
        connection_window: 12 << 20,
        request_window: 12 << 20,
        update_divisor: 3,
        ..Self::CHROMIUM
    };

    /// Go's client: golang.org/x/net/http2/transport.go (`transportDefaultConnFlow`, `transportDefaultStreamFlow`). It grants
    /// the stream's window again in small parts; half of it here.
    pub const GO_CLIENT: Self = Self {
        name: "go",
        settings: &[
            setting(Setting::ENABLE_PUSH, 0),
            setting(Setting::INITIAL_WINDOW_SIZE, 4 << 20),
            setting(Setting::MAX_HEADER_LIST_SIZE, 10 << 20),
        ],
        connection_window: (1 << 30) + DEFAULT_WINDOW,
        ..Self::CHROMIUM
    };

    /// The defaults of RFC 9113, of a client that changes no window.
    pub const DEFAULT_CLIENT: Self = Self {
        name: "default",
        settings: &[setting(Setting::ENABLE_PUSH, 0)],
        connection_window: DEFAULT_WINDOW,
        ..Self::CHROMIUM
    };

    /// nginx: src/http/v2/ngx_http_v2.c (`ngx_http_v2_send_settings`); `http2_max_concurrent_streams` 128,
    /// `http2_body_preread_size` 64k, `http2_chunk_size` 8k, `ssl_buffer_size` 16k.
    pub const NGINX: Self = Self {
        name: "nginx",
        settings: &[
            setting(Setting::MAX_CONCURRENT_STREAMS, 128),
            setting(Setting::INITIAL_WINDOW_SIZE, 65_536),
            setting(Setting::MAX_FRAME_SIZE, (1 << 24) - 1),
        ],
        connection_window: (1 << 31) - 1,
        request_window: 0,
        update_divisor: 2,
        max_data: 8_192,
        max_write: 16_384,
        scheduling: Scheduling::Urgency,
        records: RecordSizes::Full,
    };

    /// Go's server: golang.org/x/net/http2/server.go (`initialSettings`, `initialConnRecvWindowSize`); frames of 16 kB, as a
    /// peer with default settings allows, in records that grow.
    pub const GO_SERVER: Self = Self {
        name: "go",
        settings: &[
            setting(Setting::MAX_FRAME_SIZE, 1 << 20),
            setting(Setting::MAX_CONCURRENT_STREAMS, 250),
            setting(Setting::MAX_HEADER_LIST_SIZE, 1 << 20),
            setting(Setting::INITIAL_WINDOW_SIZE, 1 << 20),
        ],
        connection_window: 1 << 20,
        request_window: 0,
        update_divisor: 2,
        max_data: 16_384,
        max_write: 16_384,
        scheduling: Scheduling::RoundRobin,
        records: RecordSizes::Growing,
    };

    /// Every client.
    pub const CLIENTS: [Self; 4] = [Self::CHROMIUM, Self::FIREFOX, Self::GO_CLIENT, Self::DEFAULT_CLIENT];
    /// Every server.
    pub const SERVERS: [Self; 2] = [Self::NGINX, Self::GO_SERVER];

    /// Returns a setting's value; `None` where the default holds.
    pub fn setting(&self, id: u16) -> Option<u32> {
        self.settings.iter().find(|setting| setting.id == id).map(|setting| setting.value)
    }

    /// Returns the window of each stream that it grants: by its SETTINGS, and with a request.
    pub fn stream_window(&self) -> u32 {
        self.initial_window().max(self.request_window)
    }

    /// Returns the bytes by which a request widens the window of its stream.
    pub fn request_increment(&self) -> u32 {
        self.request_window.saturating_sub(self.initial_window())
    }

    fn initial_window(&self) -> u32 {
        self.setting(Setting::INITIAL_WINDOW_SIZE).unwrap_or(DEFAULT_WINDOW)
    }

    /// Returns the bytes of its first flight: a client's preface, SETTINGS, and the connection's WINDOW_UPDATE.
    pub fn first_flight(&self, is_client: bool) -> Vec<u8> {
        let mut bytes = if is_client { PREFACE.to_vec() } else { Vec::new() };
        crate::write::settings(self.settings, &mut bytes);
        if self.connection_window > DEFAULT_WINDOW {
            crate::write::window_update(0, self.connection_window - DEFAULT_WINDOW, &mut bytes);
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Captures of Chrome: settings 1, 2, 4 and 6, and an update of 15,663,105 bytes.
    #[test]
    fn chromiums_first_flight_has_its_known_bytes() {
        let bytes = Profile::CHROMIUM.first_flight(true);
        assert_eq!(bytes.len(), 24 + 9 + 4 * 6 + 9 + 4);
        assert!(bytes.ends_with(&15_663_105_u32.to_be_bytes()));
    }

    /// Captures of Firefox: settings 1, 2, 4 and 5, an update of 12,517,377 bytes, and of 12,451,840 with each request.
    #[test]
    fn firefoxs_updates_have_their_known_sizes() {
        let bytes = Profile::FIREFOX.first_flight(true);
        assert!(bytes.ends_with(&12_517_377_u32.to_be_bytes()));
        assert_eq!(Profile::FIREFOX.request_increment(), 12_451_840);
        assert_eq!(Profile::CHROMIUM.request_increment(), 0);
    }
}
