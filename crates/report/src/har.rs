//! The exchanges of captures as an HTTP archive, a page for each capture: for browsers' network tools.
//!
//! Not the format, which is `trace`'s. A capture has neither bodies nor header fields here.

use diagnose::FlowReport;
use diagnose::report::ExchangeReport;
use trace::har::{self, Visit};
use wire::Time;

use crate::Capture;

/// Returns the archive's text.
pub fn text(captures: &[Capture]) -> String {
    har::file(&captures.iter().map(visit).collect::<Vec<_>>())
}

fn visit(capture: &Capture) -> Visit {
    let flows = (0..).zip(&capture.flows);
    let mut exchanges: Vec<har::Exchange> = flows
        .flat_map(|(number, flow)| flow.exchanges.iter().map(move |one| exchange(capture, number, flow, one)))
        .collect();
    exchanges.sort_by_key(|exchange| exchange.sent);
    Visit {
        title: capture.name.clone(),
        began: capture.started.since(Time::ZERO),
        exchanges,
        ..Visit::default()
    }
}

fn exchange(capture: &Capture, connection: u32, flow: &FlowReport, report: &ExchangeReport) -> har::Exchange {
    let ExchangeReport { request, status, at, elapsed, packets: _, account: _ } = report;
    let (method, target) = request.split_once(' ').unwrap_or((request, ""));
    let sent = at.since(capture.started);
    // The fields of HTTP/2 are compressed: a stream's number stands for them.
    let (method, target, version) = match method {
        "HTTP/2" => ("unknown", format!("/#{}", target.replace(' ', "-")), "HTTP/2"),
        method => (method, target.to_owned(), "unknown"),
    };
    let url = match target.starts_with('/') {
        true => format!("http://{}{target}", flow.server),
        false if target.contains("://") => target,
        false => format!("http://{}/{target}", flow.server),
    };
    har::Exchange {
        method: method.to_owned().into(),
        url,
        version,
        request: None,
        status: *status,
        body: None,
        mime: "",
        connection,
        connects: None,
        sent,
        answered: None,
        complete: sent + *elapsed,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::text;
    use crate::tests::stored;

    #[test]
    fn every_exchange_is_an_entry_with_its_time() {
        let capture = stored("pipelined");
        let exchanges: Vec<_> = capture.flows.iter().flat_map(|flow| &flow.exchanges).collect();
        assert!(exchanges.len() > 1);
        let expected: f64 = exchanges.iter().map(|exchange| exchange.elapsed.as_millis_f64()).sum();
        let archive: Value = serde_json::from_str(&text(&[capture])).unwrap();
        let entries = archive["log"]["entries"].as_array().unwrap();
        let total: f64 = entries.iter().map(|entry| entry["time"].as_f64().unwrap()).sum();
        assert!((total - expected).abs() < 1e-6, "{total} and {expected}");
        assert_eq!(archive["log"]["pages"][0]["title"], "pipelined");
        assert_eq!(archive["log"]["pages"][0]["_roundtrip"], Value::Null);
        let first = &entries[0];
        assert!(first["request"]["url"].as_str().unwrap().starts_with("http://"), "{first}");
        assert_eq!((&first["timings"]["wait"], &first["timings"]["receive"]), (&first["time"], &0.0.into()));
    }

    #[test]
    fn a_capture_of_failures_has_as_many_entries_as_exchanges() {
        let archive: Value = serde_json::from_str(&text(&[stored("timeouts")])).unwrap();
        let count = stored("timeouts").flows.iter().map(|flow| flow.exchanges.len()).sum::<usize>();
        assert_eq!(archive["log"]["entries"].as_array().unwrap().len(), count);
    }
}
