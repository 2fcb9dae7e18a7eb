//! Counters of a helper.
//!
//! The log has a line for each request.

use dhttp::counters::counters;

counters! {
    /// Requests forwarded.
    requests = "nat_requests_total", "Datagrams of inside hosts that were sent on.";
    /// Responses passed to inside hosts.
    responses = "nat_answers_total", "Datagrams that were passed to inside hosts.";
    /// Opened holes.
    opened = "nat_holes_opened_total", "Holes that were opened, each for one connection.";
    /// Holes closed because the response came by UDP.
    closed = "nat_holes_closed_total", "Holes closed because the response had come by UDP.";
    /// Requests for holes at ports of services.
    refused_port = "nat_refused_total{why=\"port\"}", "Datagrams ignored, by reason.";
    /// Requests from invalid sources.
    refused_source = "nat_refused_total{why=\"source\"}", "";
    /// Requests beyond the table's capacity.
    refused_crowded = "nat_refused_total{why=\"crowded\"}", "";
    /// Unsolicited responses.
    refused_unasked = "nat_refused_total{why=\"unasked\"}", "";
    /// Rule changes that the kernel refused.
    failed = "nat_failed_total", "Changes of the rules that the kernel did not take.";
    /// Current mappings.
    mappings = "nat_mappings", "Ports of inside hosts that appear outside now.";
}
