//! Responses that wait for a slow one: HTTP/1.1 sends responses in the order of the requests.
//!
//! **Rule**: while a server computes, more than one request of the connection has no response. **Evidence**: the number
//! of them. The time itself is the server's (`think`); this reports the other requests that waited. **Refuted by**: a
//! single request.
//!
//! **Unknown** where requests are not captured (68 bytes of a packet) or not readable (TLS). A request written in
//! pieces and several requests have the same lengths at the same times, and so do their responses. The evidence for the
//! server's time then states that they cannot be distinguished.

use wire::Duration;

use crate::cause::{CauseInfo, Fix, Party};
use crate::gap::Gap;

pub(crate) const ABOUT: CauseInfo = CauseInfo {
    description: "Several requests were in flight, and the others waited behind a slow response to the first.",
    fixes: &[
        Fix {
            party: Party::ClientApplication,
            change: "send slow requests on a connection of their own, or last",
        },
        Fix { party: Party::ServerApplication, change: "use HTTP/2, where responses may be reordered" },
    ],
    is_fault: false,
    min_duration: Duration::from_millis(30),
};

/// Returns a sentence for where other requests may have waited, but the capture does not show it.
pub(crate) fn unknown(gap: &Gap) -> Option<String> {
    let may_be_several = gap.messages.unanswered.is_none() && gap.pieces > 1;
    may_be_several.then(|| {
        format!(
            "whether several requests waited for it does not show: the {} segments before it were not captured, or \
             cannot be read",
            gap.pieces
        )
    })
}

#[cfg(test)]
mod tests {
    use crate::Cause;
    use crate::script::at_client;

    const REQUEST: &str = "text=GET / HTTP/1.1\\r\\nHost: h\\r\\n\\r\\n";
    const RESPONSE: &str = "text=HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok";

    #[test]
    fn requests_behind_a_slow_response_are_counted() {
        let report = at_client(&format!(
            "30 C {REQUEST}\n30.1 C {REQUEST}\n30.2 C {REQUEST}\n300 S {RESPONSE}\n300.1 S {RESPONSE}\n300.2 S {RESPONSE}"
        ));
        let behind = report.findings.iter().find(|finding| finding.cause == Cause::HeadOfLine).unwrap();
        assert!(behind.evidence.starts_with("2 more requests"), "{}", behind.evidence);
    }

    #[test]
    fn unreadable_messages_are_reported_as_unknown() {
        let of_server = |requests: &str| {
            let report = at_client(&format!("{requests}\n300 S send=900"));
            assert!(report.findings.iter().all(|finding| finding.cause != Cause::HeadOfLine));
            let think_time =
                report.findings.iter().find(|finding| finding.cause == Cause::ServerThink).unwrap();
            think_time.evidence.clone()
        };
        let several = of_server("30 C send=256\n30.1 C send=256\n30.2 C send=256");
        assert!(several.contains("does not show: the 3 segments"), "{several}");
        let one = of_server("30 C send=1460\n30.1 C send=256");
        assert!(!one.contains("does not show"), "{one}");
    }
}
