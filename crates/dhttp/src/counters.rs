//! Counters of a server, and their Prometheus text format.
//!
//! Each thread of a server adds to counters of its own, which are summed on request. Those of `dhttp-proxy`'s cache and gateway
//! are shared by all their threads. Not a log: that is [`crate::log`].

use std::sync::atomic::{AtomicU64, Ordering};

/// Defines the counters once: field, name, help.
#[macro_export]
macro_rules! counters {
    ($($(#[$doc:meta])* $field:ident = $name:literal, $help:literal;)*) => {
        /// Counters of one thread.
        #[derive(Debug, Default)]
        pub struct Counters {
            $($(#[$doc])* pub $field: std::sync::atomic::AtomicU64,)*
        }

        impl Counters {
            /// All threads together, in Prometheus' text format (version 0.0.4).
            pub fn text(threads: &[impl std::borrow::Borrow<Self>]) -> String {
                use std::fmt::Write;
                let mut text = String::new();
                $(
                    let sum: u64 = threads.iter().map(|one| std::borrow::Borrow::<Self>::borrow(one).$field.load(std::sync::atomic::Ordering::Relaxed)).sum();
                    let name = $name.split('{').next().unwrap_or_default();
                    if !text.contains(&format!("# TYPE {name} ")) {
                        let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
                        // Writing to a String cannot fail.
                        let _ = write!(text, "# HELP {name} {}\n# TYPE {name} {kind}\n", $help);
                    }
                    let _ = writeln!(text, "{} {sum}", $name);
                )*
                text
            }
        }
    };
}

pub use counters;

counters! {
    /// Responses in one datagram.
    udp = "roundtrip_dhttp_responses_total{channel=\"udp\"}", "Responses, by channel.";
    /// Datagrams with parts of responses.
    parts = "roundtrip_dhttp_parts_total", "Datagrams with parts of responses; such a response counts once as a response.";
    /// Responses on connections that the server opened.
    tcp_opened = "roundtrip_dhttp_responses_total{channel=\"tcp-opened\"}", "";
    /// Responses on connections that clients opened.
    tcp_client = "roundtrip_dhttp_responses_total{channel=\"tcp-client\"}", "";
    /// Fallback messages.
    referred = "roundtrip_dhttp_responses_total{channel=\"overload\"}", "";
    /// Datagrams from invalid sources.
    ignored_source = "roundtrip_dhttp_ignored_total{reason=\"source\"}", "Datagrams without a response, by reason.";
    /// Malformed datagrams.
    ignored_malformed = "roundtrip_dhttp_ignored_total{reason=\"malformed\"}", "";
    /// Datagrams beyond the limit of their source.
    ignored_limited = "roundtrip_dhttp_ignored_total{reason=\"limited\"}", "";
    /// Late resends.
    ignored_answered = "roundtrip_dhttp_ignored_total{reason=\"answered\"}", "";
    /// Resent requests, late ones included.
    resent = "roundtrip_dhttp_resent_total", "Requests that clients resent over UDP, late ones included.";
    /// Responses that the socket did not accept.
    unsent = "roundtrip_dhttp_unsent_total", "UDP responses that the kernel did not send.";
    /// Bytes received by UDP.
    received_bytes = "roundtrip_dhttp_received_bytes_total", "UDP payload received.";
    /// Bytes sent by UDP.
    sent_bytes = "roundtrip_dhttp_sent_bytes_total", "UDP payload sent.";
    /// Connections opened to clients.
    opened = "roundtrip_dhttp_connections_total{side=\"server\"}", "Connections, by the side that opened them.";
    /// Connections that clients opened.
    accepted = "roundtrip_dhttp_connections_total{side=\"client\"}", "";
    /// Connections to clients that failed or broke.
    broken = "roundtrip_dhttp_connections_broken_total", "Connections opened by the server that failed or broke.";
    /// Connections that ended in malformed HTTP.
    faults = "roundtrip_dhttp_faults_total", "Client connections that ended in malformed HTTP.";
    /// Idle connections closed for others.
    evicted = "roundtrip_dhttp_connections_closed_total{reason=\"idle\"}", "Client connections closed early, by reason.";
    /// Connections whose clients read too slowly.
    too_slow = "roundtrip_dhttp_connections_closed_total{reason=\"slow\"}", "";
    /// Connections whose requests waited, closed for newcomers.
    evicted_waiting = "roundtrip_dhttp_connections_closed_total{reason=\"newcomer\"}", "";
    /// Connections beyond the limit of a client.
    refused_client = "roundtrip_dhttp_connections_refused_total{reason=\"client\"}", "Connections of clients refused, by the limit.";
    /// Connections beyond the share of a network.
    refused_network = "roundtrip_dhttp_connections_refused_total{reason=\"network\"}", "";
    /// Connections beyond the total limit.
    refused_total = "roundtrip_dhttp_connections_refused_total{reason=\"total\"}", "";
    /// Connections refused for lack of descriptors.
    refused_descriptors = "roundtrip_dhttp_connections_refused_total{reason=\"descriptors\"}", "";
    /// Responses by UDP and connections beyond the rate of clients with a token.
    rate_limited = "roundtrip_dhttp_rate_limited_total", "Responses and connections to clients with a token, refused by the limit token-bytes.";
    /// Bodies beyond the maximum length.
    bodies_too_long = "roundtrip_dhttp_bodies_refused_total{reason=\"length\"}", "Bodies of requests refused, by the limit.";
    /// Bodies beyond the buffer limit.
    bodies_unbuffered = "roundtrip_dhttp_bodies_refused_total{reason=\"buffer\"}", "";
    /// Requests beyond the limits of pending ones.
    refused_pending = "roundtrip_dhttp_requests_refused_total{reason=\"pending\"}", "Requests refused (503), by the limit.";
    /// Bytes of buffered bodies.
    body_bytes_now = "roundtrip_dhttp_body_bytes", "Bytes of request bodies buffered now.";
    /// Open connections to clients.
    open_now = "roundtrip_dhttp_connections_open{side=\"server\"}", "Open connections, by the side that opened them.";
    /// Open connections of clients.
    accepted_now = "roundtrip_dhttp_connections_open{side=\"client\"}", "";
}

/// Adds one.
pub(crate) fn count(counter: &AtomicU64) {
    add(counter, 1);
}

/// Adds one to a counter with several writers.
pub fn count_shared(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// Adds a number. There is one writer, so this needs no locked instruction.
pub(crate) fn add(counter: &AtomicU64, number: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(number), Ordering::Relaxed);
}

/// Sets a gauge.
pub fn set(counter: &AtomicU64, number: usize) {
    counter.store(number as u64, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn threads_are_added_up_and_each_family_has_one_head() {
        let threads = [Arc::new(Counters::default()), Arc::new(Counters::default())];
        count(&threads[0].udp);
        add(&threads[1].udp, 2);
        let text = Counters::text(&threads);
        assert!(text.contains("roundtrip_dhttp_responses_total{channel=\"udp\"} 3\n"), "{text}");
        assert_eq!(text.matches("# TYPE roundtrip_dhttp_responses_total counter").count(), 1);
        assert_eq!(text.matches("# TYPE roundtrip_dhttp_connections_open gauge").count(), 1);
    }
}
