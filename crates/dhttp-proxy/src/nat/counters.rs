//! Counters of a helper.
//!
//! The log has a line for each request.

use dhttp::counters::counters;

counters! {
    /// Requests forwarded.
    requests = "roundtrip_nat_requests_total", "Datagrams of inside hosts that were forwarded.";
    /// Responses passed to inside hosts.
    responses = "roundtrip_nat_responses_total", "Datagrams that were passed to inside hosts.";
    /// Opened pinholes.
    opened = "roundtrip_nat_holes_opened_total", "Pinholes opened, each for one connection.";
    /// Pinholes closed because the response came by UDP.
    closed = "roundtrip_nat_holes_closed_total", "Pinholes closed because the response came by UDP.";
    /// Requests for pinholes at ports of services.
    refused_port = "roundtrip_nat_refused_total{reason=\"port\"}", "Datagrams ignored, by reason.";
    /// Requests from invalid sources.
    refused_source = "roundtrip_nat_refused_total{reason=\"source\"}", "";
    /// Requests beyond the table's capacity.
    refused_crowded = "roundtrip_nat_refused_total{reason=\"crowded\"}", "";
    /// Unsolicited responses.
    refused_unasked = "roundtrip_nat_refused_total{reason=\"unasked\"}", "";
    /// Rule changes that the kernel refused.
    failed = "roundtrip_nat_failed_total", "Changes of the rules that the kernel rejected.";
    /// Current mappings.
    mappings = "roundtrip_nat_mappings", "Current port mappings of inside hosts.";
}
