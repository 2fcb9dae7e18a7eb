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
    /// Answers in one datagram.
    udp = "dhttp_answers_total{channel=\"udp\"}", "Responses, by channel.";
    /// Datagrams with parts of answers.
    parts = "dhttp_parts_total", "Datagrams with parts of responses; such a response counts once as a response.";
    /// Answers on connections that the server opened.
    tcp_opened = "dhttp_answers_total{channel=\"tcp-opened\"}", "";
    /// Answers on connections that clients opened.
    tcp_client = "dhttp_answers_total{channel=\"tcp-client\"}", "";
    /// Answers of eight bytes.
    referred = "dhttp_answers_total{channel=\"overload\"}", "";
    /// Datagrams from where no client can be.
    ignored_source = "dhttp_ignored_total{why=\"source\"}", "Datagrams without a response, by reason.";
    /// Datagrams that are no requests.
    ignored_malformed = "dhttp_ignored_total{why=\"malformed\"}", "";
    /// Datagrams of those who have had enough.
    ignored_limited = "dhttp_ignored_total{why=\"limited\"}", "";
    /// Late resends.
    ignored_answered = "dhttp_ignored_total{why=\"answered\"}", "";
    /// Requests by UDP that were sent again, answered or not.
    resent = "dhttp_resent_total", "Requests that clients resent over UDP, late ones included.";
    /// Answers that the socket did not take.
    unsent = "dhttp_unsent_total", "UDP responses that the kernel did not accept.";
    /// Bytes received by UDP.
    received_bytes = "dhttp_received_bytes_total", "UDP payload received.";
    /// Bytes sent by UDP.
    sent_bytes = "dhttp_sent_bytes_total", "UDP payload sent.";
    /// Connections opened to clients.
    opened = "dhttp_connections_total{side=\"server\"}", "Connections, by who opened them.";
    /// Connections that clients opened.
    accepted = "dhttp_connections_total{side=\"client\"}", "";
    /// Connections to clients that could not be had or broke.
    broken = "dhttp_connections_broken_total", "Connections opened by the server that failed or broke.";
    /// Requests on connections that were no HTTP.
    faults = "dhttp_faults_total", "Client connections that ended in malformed HTTP.";
    /// Connections that made way for others.
    evicted = "dhttp_connections_closed_total{why=\"idle\"}", "Client connections closed early, by reason.";
    /// Connections whose clients read too slowly.
    too_slow = "dhttp_connections_closed_total{why=\"slow\"}", "";
    /// Connections of clients that had too many.
    refused_client = "dhttp_connections_refused_total{why=\"client\"}", "Connections of clients refused, by the limit.";
    /// Connections beyond the number for all.
    refused_total = "dhttp_connections_refused_total{why=\"total\"}", "";
    /// Connections for which there was no descriptor.
    refused_descriptors = "dhttp_connections_refused_total{why=\"descriptors\"}", "";
    /// Bodies that are too long.
    bodies_too_long = "dhttp_bodies_refused_total{why=\"length\"}", "Bodies of requests refused, by the limit.";
    /// Bodies for which there was no buffer.
    bodies_unbuffered = "dhttp_bodies_refused_total{why=\"buffer\"}", "";
    /// Bytes of bodies that are buffered now.
    body_bytes_now = "dhttp_body_bytes", "Bytes of request bodies buffered now.";
    /// Connections to clients that are there now.
    open_now = "dhttp_connections_open{side=\"server\"}", "Connections now, by who opened them.";
    /// Connections of clients that are there now.
    accepted_now = "dhttp_connections_open{side=\"client\"}", "";
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
        assert!(text.contains("dhttp_answers_total{channel=\"udp\"} 3\n"), "{text}");
        assert_eq!(text.matches("# TYPE dhttp_answers_total counter").count(), 1);
        assert_eq!(text.matches("# TYPE dhttp_connections_open gauge").count(), 1);
    }
}
