//! Counters of a helper.
//!
//! The log has a line for each request.

use dhttp::counters::counters;

counters! {
    /// Requests that left.
    requests = "nat_requests_total", "Datagrams of inside hosts that were sent on.";
    /// Answers that were let in.
    responses = "nat_answers_total", "Datagrams that were passed to inside hosts.";
    /// Holes.
    opened = "nat_holes_opened_total", "Holes that were opened, each for one connection.";
    /// Holes that the answer's datagram closed.
    closed = "nat_holes_closed_total", "Holes closed because the response had come by UDP.";
    /// Requests for holes to where other services listen.
    refused_port = "nat_refused_total{why=\"port\"}", "Datagrams ignored, by reason.";
    /// Requests from where no client is.
    refused_source = "nat_refused_total{why=\"source\"}", "";
    /// Requests for which there was no room.
    refused_crowded = "nat_refused_total{why=\"crowded\"}", "";
    /// Answers that nobody asked for.
    refused_unasked = "nat_refused_total{why=\"unasked\"}", "";
    /// Changes that the kernel did not take.
    failed = "nat_failed_total", "Changes of the rules that the kernel did not take.";
    /// Mappings.
    mappings = "nat_mappings", "Ports of inside hosts that appear outside now.";
}
