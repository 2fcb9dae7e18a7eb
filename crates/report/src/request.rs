//! The request within which a finding's wait was, where one can be named.

use diagnose::Finding;
use diagnose::report::{ExchangeReport, FlowReport};

/// Maximum number of characters of a request within a sentence.
const MAX_CHARS: usize = 60;

/// Returns the method and the target of the request. All packets of the finding are of its exchange; of several, it is the one
/// that began with one of them. `None` if there is no such exchange, or more than one.
pub fn of<'a>(flow: &'a FlowReport, finding: &Finding) -> Option<&'a str> {
    let (first, last) = finding.packets.iter().min().zip(finding.packets.iter().max())?;
    let contains = |exchange: &&ExchangeReport| exchange.packets.0 <= *first && *last <= exchange.packets.1;
    let within: Vec<&ExchangeReport> = flow.exchanges.iter().filter(contains).collect();
    let mut begun = within.iter().filter(|exchange| finding.packets.contains(&exchange.packets.0));
    match (&within[..], begun.next(), begun.next()) {
        ([exchange], _, _) | (_, Some(exchange), None) => Some(&exchange.request),
        (_, _, _) => None,
    }
}

/// Returns the request as a part of a sentence, on one line; empty if it cannot be named.
pub(crate) fn phrase(flow: &FlowReport, finding: &Finding) -> String {
    let Some(request) = of(flow, finding) else { return String::new() };
    let mut shown: String = request.chars().take(MAX_CHARS).collect();
    if shown.len() < request.len() {
        shown += "...";
    }
    format!(", in {}", shown.replace(char::is_control, "?"))
}

#[cfg(test)]
mod tests {
    use diagnose::Cause;

    use super::*;
    use crate::filter::Filter;
    use crate::reading;

    #[test]
    fn a_finding_within_one_exchange_names_its_request() {
        let bytes = include_bytes!("../../../fuzz/corpus/capture/tls13-secrets").as_slice();
        let reader = packets::Reader::new(bytes).unwrap();
        let mut capture = reading::read("secrets".to_owned(), reader, &Filter::default(), false).unwrap();
        let mut flow = capture.flows.remove(0);
        let finding =
            flow.findings.iter().find(|finding| finding.cause == Cause::ServerThink).unwrap().clone();
        assert_eq!(of(&flow, &finding), Some("GET /slow"));
        assert_eq!(phrase(&flow, &finding), ", in GET /slow");
        // Another at the same time makes it ambiguous, unless the request itself is a packet of the finding.
        let mut other =
            flow.exchanges.iter().find(|exchange| exchange.request == "GET /slow").unwrap().clone();
        other.packets.0 -= 1;
        "GET /\u{1b}[2J".clone_into(&mut other.request);
        flow.exchanges.push(other.clone());
        let waiting = |packets: &[u64]| Finding { packets: packets.to_vec(), ..finding.clone() };
        let (first, last) = other.packets;
        assert_eq!(of(&flow, &waiting(&[last])), None);
        assert_eq!(of(&flow, &waiting(&[first + 1, last])), Some("GET /slow"));
        assert_eq!(phrase(&flow, &waiting(&[first, last])), ", in GET /?[2J");
        assert_eq!(of(&flow, &waiting(&[first - 1, last])), None, "it began before");
        assert_eq!(of(&flow, &waiting(&[])), None);
    }
}
