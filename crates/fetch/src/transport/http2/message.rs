//! Requests and responses of HTTP/1.1's form as fields of HTTP/2, and back (RFC 9113, section 8).

use std::sync::Arc;

use http1::message::{Fields, ResponseHead, Version};
use http2::hpack::FieldList;
use http2::{Endpoint, Priority};

use crate::transport::Request;
use crate::web::WebConfig;

/// Fields of a connection, which HTTP/2 does not have (RFC 9113, section 8.2.2), and the one that becomes `:authority`.
const LEFT_OUT: [&[u8]; 5] = [b"host", b"connection", b"keep-alive", b"transfer-encoding", b"upgrade"];

/// Sends a request; returns its stream, or `None` if the server takes no more of them now.
pub(super) fn send(endpoint: &mut Endpoint, request: &Request, config: &WebConfig) -> Option<u32> {
    if !endpoint.can_request() {
        return None;
    }
    with_fields(request, config, |fields, priority, body| endpoint.request(fields, priority, body))
}

/// Passes a request on as fields, a priority and a body.
pub(in crate::transport) fn with_fields<R>(
    request: &Request,
    config: &WebConfig,
    send: impl for<'a> FnOnce(&mut dyn Iterator<Item = (&'a [u8], &'a [u8])>, Priority, Arc<[u8]>) -> R,
) -> R {
    let head = &request.head;
    let scheme: &[u8] = if config.tls(request.origin).is_some() { b"https" } else { b"http" };
    let priority = priority(request);
    let names = head.fields.in_lower_case();
    let value = priority.value();
    let pseudo = [
        (&b":method"[..], head.method.name().as_bytes()),
        (b":authority", head.fields.get("Host").unwrap_or_default()),
        (b":scheme", scheme),
        (b":path", head.target.as_bytes()),
    ];
    let fields = names.iter().filter(|(name, _)| !LEFT_OUT.contains(name));
    let mut fields = pseudo.into_iter().chain(fields).chain([(&b"priority"[..], value.as_bytes())]);
    let body = vec![0; usize::try_from(request.body).unwrap_or_default()];
    send(&mut fields, priority, body.into())
}

/// Priority as Chromium signals it: net/http (`ConvertRequestPriorityToQuicPriority`), urgency 0 for the highest.
fn priority(request: &Request) -> Priority {
    let urgency = match request.priority {
        page::Priority::Highest => 0,
        page::Priority::High => 1,
        page::Priority::Medium => 2,
        page::Priority::Low => 3,
        page::Priority::Lowest => 4,
    };
    Priority { urgency, is_incremental: request.is_incremental }
}

/// The head of a response; `None` for trailers, or without a valid status.
pub(in crate::transport) fn response_head(fields: &FieldList) -> Option<ResponseHead> {
    let mut rest = fields.iter();
    let (first, status) = rest.next()?;
    let status = std::str::from_utf8(status).ok()?.parse().ok()?;
    if first != b":status" || !(100..1_000).contains(&status) {
        return None;
    }
    let mut fields = Fields::new();
    for (name, value) in rest {
        fields.push(std::str::from_utf8(name).ok()?, std::str::from_utf8(value).ok()?).ok()?;
    }
    Some(ResponseHead { version: Version::Http11, status, fields })
}
