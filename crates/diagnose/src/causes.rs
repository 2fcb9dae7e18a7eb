//! One file for each cause: its description, the rule that detects it in a gap, what would refute it, and tests.
//!
//! A rule runs only if all rules before it in `judge` returned nothing. It assumes nothing that the facts do not show:
//! it then returns nothing, and the time counts as `unknown`.

pub(crate) mod bandwidth_limited;
pub(crate) mod bottleneck_queue;
pub(crate) mod capture_loss;
pub(crate) mod congestion_window;
pub(crate) mod connection_per_request;
pub(crate) mod connection_refused;
pub(crate) mod connection_setup;
pub(crate) mod delayed_ack;
pub(crate) mod duplicate_capture;
pub(crate) mod expect_continue;
pub(crate) mod head_of_line;
pub(crate) mod nagle;
pub(crate) mod not_tcp;
pub(crate) mod one_direction_only;
pub(crate) mod opening;
pub(crate) mod path_latency;
pub(crate) mod path_mtu;
pub(crate) mod peer_vanished;
pub(crate) mod proxy_in_path;
pub(crate) mod receive_window_limited;
pub(crate) mod reset_lost_data;
pub(crate) mod reset_mid_transfer;
pub(crate) mod retransmission;
pub(crate) mod send_buffer_limited;
pub(crate) mod short_initial_segment;
pub(crate) mod slow_start;
pub(crate) mod slow_start_restart;
pub(crate) mod syn_time_wait;
pub(crate) mod syn_unanswered;
pub(crate) mod think;
pub(crate) mod tls_alert;
pub(crate) mod tls_handshake;
pub(crate) mod zero_window;
