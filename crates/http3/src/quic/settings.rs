//! A profile as settings of `quinn-proto`.

use std::sync::Arc;

use quinn_proto::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn_proto::{EndpointConfig, IdleTimeout, MtuDiscoveryConfig, TransportConfig, VarInt};
use wire::{Duration, Seed};

use super::crypto::NullKey;
use super::random::{self, SeededIds};
use crate::profile::{Congestion, Profile, Scheduling};
use crate::varint;

/// Unidirectional streams of the peer: control, QPACK's two, and some of unknown types (RFC 9114, section 6.2).
const MAX_UNIDIRECTIONAL: u32 = 100;
/// Maximum bytes of handshake messages that are out of order: certificate chains of this size are in public use.
const MAX_HANDSHAKE_BYTES: usize = 1 << 20;

/// Settings of an end. The ids by which it is addressed come from the seed.
pub(crate) fn endpoint(profile: &Profile, seed: Seed, max_datagram: u16) -> EndpointConfig {
    let mut config = EndpointConfig::new(Arc::new(NullKey));
    let ids = SeededIds::new(seed, "quic-connection-id", profile.connection_id);
    config.cid_generator(move || Box::new(ids.clone()));
    // No profile's implementation greases the bit (RFC 9287).
    config.grease_quic_bit(false);
    config.rng_seed(Some(random::library_seed(seed)));
    // The setting is at least 1,200, as has been checked.
    let _ = config.max_udp_payload_size(max_datagram);
    config
}

/// Settings of its connections.
pub(crate) fn transport(profile: &Profile, max_datagram: u16) -> TransportConfig {
    let Profile {
        name: _,
        congestion,
        initial_window,
        initial_rtt,
        stream_window,
        connection_window,
        max_streams,
        datagram,
        max_datagram: probed,
        // Setting of the end.
        connection_id: _,
        idle,
        scheduling,
        // Of HTTP/3.
        has_dynamic_fields: _,
        settings: _,
    } = *profile;
    let mut config = TransportConfig::default();
    let datagram = datagram.min(max_datagram);
    config
        .initial_mtu(datagram)
        .min_mtu(datagram)
        .mtu_discovery_config(probed.map(|probed| {
            let mut discovery = MtuDiscoveryConfig::default();
            discovery.upper_bound(probed.min(max_datagram));
            discovery
        }))
        .initial_rtt(std(initial_rtt))
        .stream_receive_window(stream_window.into())
        .receive_window(connection_window.map_or(VarInt::MAX, VarInt::from))
        .send_window(u64::MAX)
        .send_fairness(scheduling == Scheduling::RoundRobin)
        .max_concurrent_bidi_streams(max_streams.into())
        .max_concurrent_uni_streams(MAX_UNIDIRECTIONAL.into())
        .max_idle_timeout(IdleTimeout::try_from(std(idle)).ok())
        .crypto_buffer_size(MAX_HANDSHAKE_BYTES)
        .datagram_receive_buffer_size(None)
        .allow_spin(false)
        .enable_segmentation_offload(false)
        .congestion_controller_factory(controller(congestion, initial_window));
    config
}

fn controller(congestion: Congestion, initial_window: u64) -> Arc<dyn ControllerFactory + Send + Sync> {
    match congestion {
        Congestion::Cubic => {
            let mut config = CubicConfig::default();
            config.initial_window(initial_window);
            Arc::new(config)
        }
        Congestion::NewReno => {
            let mut config = NewRenoConfig::default();
            config.initial_window(initial_window);
            Arc::new(config)
        }
        Congestion::Bbr => {
            let mut config = BbrConfig::default();
            config.initial_window(initial_window);
            Arc::new(config)
        }
    }
}

/// Transport parameters of a server as a client remembers them (RFC 9000, section 7.4.1).
pub(crate) fn remembered(profile: &Profile) -> Vec<u8> {
    let connection = profile.connection_window.map_or(varint::MAX, u64::from);
    let stream = u64::from(profile.stream_window);
    let streams = [u64::from(profile.max_streams), u64::from(MAX_UNIDIRECTIONAL)];
    let parameters =
        [(4, connection), (5, stream), (6, stream), (7, stream), (8, streams[0]), (9, streams[1])];
    let mut encoded = Vec::new();
    parameters.into_iter().for_each(|(id, value)| varint::put_parameter(id, value, &mut encoded));
    encoded
}

const fn std(duration: Duration) -> core::time::Duration {
    core::time::Duration::from_nanos(duration.as_nanos())
}
