//! A gateway's handling of messages (RFC 9110, section 7; RFC 9112, section 3.2).
//!
//! A proxy's request flows in; the action for it flows out: forward, tunnel, respond here, or refuse with a status and a
//! sentence. Responses are rewritten for the next hop. Header sections are always written anew, never forwarded as received, so
//! that two parsers cannot see two messages in one (docs/http.md).
//!
//! Not the sockets, and not the protocol to the server: the driver chooses DHTTP or plain HTTP, with [`Forward::is_for_dhttp`].

use crate::message::field::list;
use crate::message::{Fields, Framing, Method, RequestHead, ResponseHead, Version};

/// Action for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Forward it to a server.
    Forward(Forward),
    /// Connect to this host and port, and relay bytes in both directions.
    Tunnel(String, u16),
    /// The gateway itself serves this path (`*` for `OPTIONS *`).
    Own(String),
}

/// A request as the next hop gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forward {
    /// A name or an address; IPv6 without brackets.
    pub host: String,
    /// The port; 80 by default.
    pub port: u16,
    /// Value of `Host`: `host` or `host:port`.
    pub authority: String,
    /// Header section for the server: path and query as target, `Host` first, `Via` last, without the fields for the gateway
    /// alone.
    pub head: RequestHead,
    /// Framing of its body.
    pub framing: Framing,
}

impl Forward {
    /// Returns whether it may be sent in a datagram that anyone on the path can read: a safe method without body,
    /// expectation or credentials (docs/dhttp.md).
    pub fn is_for_dhttp(&self) -> bool {
        let is_bare =
            ["Authorization", "Cookie", "Expect"].iter().all(|name| self.head.fields.get(name).is_none());
        self.head.method.is_safe() && self.framing == Framing::Length(0) && is_bare
    }

    /// Returns whether it may be retried if the connection closed without a response: it changes nothing, and has no
    /// body (RFC 9110, section 9.2.2).
    pub fn may_be_repeated(&self) -> bool {
        self.head.method.is_safe() && self.framing == Framing::Length(0)
    }
}

/// Reason for which a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Status code, 400 to 599.
    pub status: u16,
    /// The culprit and the remedy.
    pub sentence: String,
}

fn refuse<T>(status: u16, sentence: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal { status, sentence: sentence.into() })
}

/// Decides about a request. `name` identifies the gateway in `Via`, and must be unique.
///
/// # Errors
/// If it cannot be forwarded, or has passed through this gateway before.
pub fn plan(head: &RequestHead, framing: Framing, name: &str) -> Result<Plan, Refusal> {
    if head.fields.all("Via").flat_map(list).any(|hop| hop_name(hop) == Some(name.as_bytes())) {
        return refuse(508, "proxy loop: this request has already passed through this gateway");
    }
    match (&head.method, head.target.as_bytes().first()) {
        (Method::Other(method), _) if method == "CONNECT" => {
            return match authority(&head.target) {
                Some((host, Some(port))) => Ok(Plan::Tunnel(host, port)),
                Some((_, None)) | None => {
                    refuse(400, "CONNECT takes a host and a port, such as example.org:443")
                }
            };
        }
        (Method::Other(method), _) if method == "TRACE" => {
            return refuse(405, "TRACE would reveal fields meant for servers only; it is not forwarded");
        }
        (_, Some(b'/' | b'*')) => return Ok(Plan::Own(head.target.clone())),
        (Method::Get | Method::Head | Method::Options | Method::Other(_), _) => {}
    }
    let rest = match head.target.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => rest,
        Some((scheme, _)) if scheme.eq_ignore_ascii_case("https") => {
            return refuse(
                501,
                "https goes through a gateway by CONNECT; set it as the proxy for https, too",
            );
        }
        // Parsed requests have no other scheme.
        Some((scheme, _)) => return refuse(400, format!("a gateway for http cannot fetch {scheme}")),
        None => return refuse(400, "a proxy takes absolute URLs, such as http://example.org/"),
    };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (host_and_port, target) = rest.split_at(end);
    let Some((host, port)) = authority(host_and_port) else {
        return refuse(400, "invalid host in the URL; write http://host/path, without a user's name");
    };
    let port = port.unwrap_or(80);
    let is_options = head.method == Method::Options;
    let hops = match is_options.then(|| head.fields.get("Max-Forwards")).flatten().map(decimal) {
        None => None,
        Some(None) => return refuse(400, "Max-Forwards is not a number"),
        Some(Some(0)) => return Ok(Plan::Own("*".to_owned())),
        Some(Some(hops)) => Some(hops - 1),
    };
    let target = match target.as_bytes().first() {
        Some(b'/') => target.to_owned(),
        Some(_) => format!("/{target}"),
        None if is_options => "*".to_owned(),
        None => "/".to_owned(),
    };
    let authority = match (host.contains(':'), port) {
        (true, 80) => format!("[{host}]"),
        (true, _) => format!("[{host}]:{port}"),
        (false, 80) => host.clone(),
        (false, _) => format!("{host}:{port}"),
    };
    if let Some(expected) =
        head.fields.get("Expect").filter(|value| !value.eq_ignore_ascii_case(b"100-continue"))
    {
        return refuse(
            417,
            format!("unsupported expectation {:?} (Expect)", String::from_utf8_lossy(expected)),
        );
    }
    let fields = request_fields(head, framing, &authority, hops, name);
    let head = RequestHead { method: head.method.clone(), target, version: Version::Http11, fields };
    Ok(Plan::Forward(Forward { host, port, authority, head, framing }))
}

fn request_fields(
    head: &RequestHead,
    framing: Framing,
    authority: &str,
    hops: Option<u64>,
    name: &str,
) -> Fields {
    let mut fields = Fields::new();
    // The target names the host; a different `Host` must be ignored (RFC 9112, section 3.2.2).
    fields.push_checked(b"Host", authority.as_bytes());
    let own = ["Host", "Content-Length", "Proxy-Authorization", "Via"];
    for (field, value) in passing(&head.fields, &own) {
        match hops.filter(|_| field.eq_ignore_ascii_case(b"Max-Forwards")) {
            Some(hops) => fields.push_checked(field, hops.to_string().as_bytes()),
            None => fields.push_checked(field, value),
        }
    }
    // Written once, with the parsed value, however often and in whatever form it was received.
    match framing {
        Framing::Length(length) if head.fields.get("Content-Length").is_some() => {
            fields.push_checked(b"Content-Length", length.to_string().as_bytes());
        }
        Framing::Length(_) | Framing::Chunked | Framing::UntilClose => {}
    }
    if head.fields.has_token("TE", "trailers") {
        fields.push_checked(b"TE", b"trailers");
        fields.push_checked(b"Connection", b"TE");
    }
    push_via(&mut fields, &head.fields, head.version, name);
    fields
}

/// Returns a response for the next hop, without the fields for the gateway alone. The caller frames its body there: it adds
/// `Transfer-Encoding`, or replaces the received `Content-Length`.
pub fn response(head: &ResponseHead, name: &str) -> ResponseHead {
    let mut fields = Fields::new();
    for (field, value) in passing(&head.fields, &["Via"]) {
        fields.push_checked(field, value);
    }
    push_via(&mut fields, &head.fields, head.version, name);
    ResponseHead { version: Version::Http11, status: head.status, fields }
}

/// Returns trailers for the next hop: without those that would change the header section (RFC 9110, section 6.5.1).
pub fn trailers(fields: &Fields) -> Fields {
    let mut stored = Fields::new();
    let heads_only =
        ["Content-Length", "Content-Encoding", "Content-Type", "Content-Range", "Host", "Trailer"];
    for (field, value) in passing(fields, &heads_only) {
        stored.push_checked(field, value);
    }
    stored
}

/// Returns the end-to-end fields (RFC 9110, section 7.6.1), except those named.
fn passing<'a>(fields: &'a Fields, but: &[&str]) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
    let hop = HopByHop::named_by(fields.all("Connection"));
    let but: Vec<String> = but.iter().map(|name| (*name).to_owned()).collect();
    fields.iter().filter(move |(field, _)| {
        let is_kept_back = but.iter().any(|name| name.as_bytes().eq_ignore_ascii_case(field));
        !is_kept_back && !hop.covers(field) && !is_dhttp_field(field)
    })
}

/// Hop-by-hop fields of one message (RFC 9110, section 7.6.1).
#[derive(Clone, Debug)]
pub struct HopByHop<'a>(Vec<&'a [u8]>);

impl<'a> HopByHop<'a> {
    /// Collects those that these values of `Connection` name; the standard ones are always included.
    pub fn named_by(connection: impl Iterator<Item = &'a [u8]>) -> Self {
        // `Connection` must not remove these for the next hop (vulnerabilities such as CVE-2022-1388).
        const NEVER_REMOVED: [&str; 6] =
            ["Host", "Content-Length", "Authorization", "Cookie", "Cache-Control", "Via"];
        Self(connection.flat_map(list).filter(|name| !is_one_of(name, &NEVER_REMOVED)).collect())
    }

    /// Returns whether a field of this name is not forwarded.
    pub fn covers(&self, name: &[u8]) -> bool {
        const HOP: [&str; 8] = [
            "Connection",
            "Keep-Alive",
            "Proxy-Connection",
            "Proxy-Authenticate",
            "TE",
            "Transfer-Encoding",
            "Upgrade",
            "HTTP2-Settings",
        ];
        is_one_of(name, &HOP) || self.0.iter().any(|named| named.eq_ignore_ascii_case(name))
    }
}

fn is_one_of(name: &[u8], names: &[&str]) -> bool {
    names.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
}

/// Request fields from which frameworks derive another scheme, host, port, path or client than the request names, with the
/// framework or the report. No response has them in `Vary`.
const REWRITING_FIELDS: [&str; 22] = [
    "CF-Connecting-IP",                // Cloudflare: the client, for its origins
    "Client-IP",                       // Rails: `ActionDispatch::RemoteIp`
    "Forwarded",                       // RFC 7239
    "Front-End-Https",                 // as X-Forwarded-Proto (MDN's page about that)
    "Proxy",                           // CGI programs: CVE-2016-5385
    "True-Client-IP",                  // Akamai, Cloudflare; go-chi's `RealIP`
    "X-Amz-Website-Redirect-Location", // Amazon S3: the redirect of an object
    "X-Client-IP",                     // Apache's mod_remoteip
    "X-Cluster-Client-IP",             // Rackspace's load balancers
    "X-Host",                          // "Practical Web Cache Poisoning" (PortSwigger, 2018)
    "X-Host-Override",                 // the same
    "X-HTTP-Host-Override",            // the same
    "X-Invoke-Path",                   // Next.js: the path that its router would choose
    "X-Matched-Path",                  // the same
    "X-Middleware-Subrequest",         // Next.js: CVE-2025-29927
    "X-Now-Route-Matches",             // Next.js: CVE-2024-46982
    "X-Override-URL",                  // Symfony, Zend: CVE-2018-14773
    "X-Proto",                         // as X-Forwarded-Proto
    "X-Real-IP",                       // Rails, nginx's realip
    "X-Rewrite-URL",                   // Symfony, Zend: CVE-2018-14773
    "X-Scheme",                        // Rack, as X-Forwarded-Proto
    "X-URL-Scheme",                    // as X-Forwarded-Proto
];

/// Whether frameworks derive another scheme, host, port or path from this request field than the request names, or CGI programs
/// mistake it for another field. A proxy in front of an origin drops it, and shares no response to it.
pub fn is_rewriting_field(name: &[u8]) -> bool {
    let starts_with =
        |start: &[u8]| name.get(..start.len()).is_some_and(|prefix| prefix.eq_ignore_ascii_case(start));
    is_one_of(name, &REWRITING_FIELDS)
        || starts_with(b"X-Forwarded-")
        || starts_with(b"X-Original-")
        // CGI maps `Content-Length` and `Content_Length` to one name (RFC 3875, section 4.1.18).
        || name.contains(&b'_')
}

/// Whether frameworks derive another method, or another representation that `Vary` may not name, from this request field. It
/// passes, and its response is not shared.
pub fn is_method_override(name: &[u8]) -> bool {
    const METHODS: [&str; 3] = ["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"];
    // Next.js responds with data instead of a page, or not at all; IIS with the source of a script (CVE-2010-2731).
    const REPRESENTATIONS: [&str; 3] = ["RSC", "X-Middleware-Prefetch", "Translate"];
    is_one_of(name, &METHODS) || is_one_of(name, &REPRESENTATIONS)
}

/// Returns whether a field is DHTTP's own (`docs/dhttp.md`, "Fields"): it concerns one client and one server, and a proxy drops
/// it in both directions.
pub fn is_dhttp_field(name: &[u8]) -> bool {
    name.get(..PREFIX.len()).is_some_and(|start| start.eq_ignore_ascii_case(PREFIX))
}

const PREFIX: &[u8] = b"DHTTP-";

/// Adds `Via` as received, with this hop.
fn push_via(fields: &mut Fields, received: &Fields, version: Version, name: &str) {
    let mut via: Vec<u8> = received.all("Via").collect::<Vec<_>>().join(&b", "[..]);
    if !via.is_empty() {
        via.extend_from_slice(b", ");
    }
    let version = match version {
        Version::Http10 => "1.0 ",
        Version::Http11 => "1.1 ",
    };
    via.extend_from_slice(version.as_bytes());
    via.extend_from_slice(name.as_bytes());
    fields.push_checked(b"Via", &via);
}

/// Returns the name of a hop in `Via`: its second word.
fn hop_name(hop: &[u8]) -> Option<&[u8]> {
    hop.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).nth(1)
}

/// Parses host and port; user information is invalid in a request.
fn authority(text: &str) -> Option<(String, Option<u16>)> {
    let (host, port) = match text.strip_prefix('[') {
        Some(inside) => {
            let (host, rest) = inside.split_once(']')?;
            let is_address = host.parse::<core::net::Ipv6Addr>().is_ok();
            (is_address.then_some(host)?, rest.strip_prefix(':').or_else(|| rest.is_empty().then_some(""))?)
        }
        None => text.split_once(':').unwrap_or((text, "")),
    };
    let is_of_a_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte);
    if host.is_empty() || !host.bytes().all(is_of_a_host) || (host.contains(':') && !text.starts_with('[')) {
        return None;
    }
    let port = match port {
        "" => None,
        digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some(digits.parse().ok().filter(|port| *port > 0)?)
        }
        _ => return None,
    };
    Some((host.to_ascii_lowercase(), port))
}

fn decimal(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits)
        .ok()
        .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Limits;

    const NAME: &str = "roundtrip-1";

    fn head(text: &str) -> RequestHead {
        RequestHead::parse(format!("{text}\r\n\r\n").as_bytes(), &Limits::default()).unwrap()
    }

    fn planned(text: &str) -> Result<Plan, Refusal> {
        plan(&head(text), Framing::Length(0), NAME)
    }

    fn forwarded(text: &str) -> Forward {
        match planned(text) {
            Ok(Plan::Forward(forward)) => forward,
            other => panic!("{text}: {other:?}"),
        }
    }

    fn written(forward: &Forward) -> String {
        let mut bytes = Vec::new();
        forward.head.encode(&mut bytes);
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_request_is_written_anew_for_the_next_hop() {
        let forward = forwarded(
            "GET http://Example.org:8080?q HTTP/1.0\r\nHost: elsewhere\r\nAccept: */*\r\nProxy-Connection: keep-alive\r\n\
             Connection: x-hop, close\r\nX-Hop: 1\r\nKeep-Alive: 5\r\nProxy-Authorization: b\r\nVia: 1.1 other",
        );
        assert_eq!(
            written(&forward),
            "GET /?q HTTP/1.1\r\nHost: example.org:8080\r\nAccept: */*\r\nVia: 1.1 other, 1.0 roundtrip-1\r\n\r\n"
        );
        assert_eq!((forward.host.as_str(), forward.port), ("example.org", 8080));
        assert_eq!(forwarded("GET http://[::1]/a HTTP/1.1\r\nHost: x").authority, "[::1]");
        assert_eq!(forwarded("OPTIONS http://h HTTP/1.1\r\nHost: h").head.target, "*");
    }

    #[test]
    fn fields_by_which_frameworks_rewrite_requests_are_known() {
        for name in [
            "x-original-url",
            "X-Rewrite-URL",
            "X-Forwarded-Scheme",
            "X-Host",
            "Proxy",
            "Content_Length",
            "x-proto",
            "true-client-ip",
            "X-Now-Route-Matches",
        ] {
            assert!(is_rewriting_field(name.as_bytes()), "{name}");
        }
        for name in ["X-Forwarded", "Proxy-Authorization", "Host", "X-Requested-With"] {
            assert!(!is_rewriting_field(name.as_bytes()), "{name}");
        }
        assert!(
            is_method_override(b"x-http-method-override")
                && is_method_override(b"rsc")
                && !is_method_override(b"X-HTTP-Version")
        );
        assert!(is_dhttp_field(b"dhttp-token") && !is_dhttp_field(b"DHTTP"));
    }

    #[test]
    fn fields_of_dhttp_pass_no_proxy() {
        let forward = forwarded(
            "GET http://h/ HTTP/1.1\r\nHost: h\r\nDHTTP-Port: 4000\r\ndhttp-token: a\r\nDHTTP-Fill: 0\r\nDHTTP: x\r\n\
             DHTTP-Parts: 2\r\nDHTTP-Past: x",
        );
        assert_eq!(
            written(&forward),
            "GET / HTTP/1.1\r\nHost: h\r\nDHTTP: x\r\nVia: 1.1 roundtrip-1\r\n\r\n"
        );
        let mut fields = Fields::new();
        fields.push("DHTTP-Token", "a").unwrap();
        fields.push("Age", "1").unwrap();
        let head = ResponseHead { version: Version::Http11, status: 200, fields };
        let names: Vec<Vec<u8>> =
            response(&head, NAME).fields.iter().map(|(name, _)| name.to_vec()).collect();
        assert_eq!(names, [&b"Age"[..], b"Via"]);
    }

    #[test]
    fn connection_options_never_remove_required_fields() {
        let forward = forwarded("GET http://h/ HTTP/1.1\r\nHost: h\r\nConnection: cookie, host\r\nCookie: a");
        assert_eq!(forward.head.fields.get("Cookie"), Some(&b"a"[..]));
        assert!(!forward.is_for_dhttp());
    }

    #[test]
    fn trailers_are_requested_if_the_client_accepts_them() {
        let forward = forwarded("GET http://h/ HTTP/1.1\r\nHost: h\r\nTE: gzip, trailers");
        assert_eq!(forward.head.fields.get("TE"), Some(&b"trailers"[..]));
        let mut fields = Fields::new();
        fields.push("Content-Length", "5").unwrap();
        fields.push("Digest", "x").unwrap();
        assert_eq!(trailers(&fields).iter().count(), 1);
    }

    #[test]
    fn loops_are_detected_by_via() {
        let status = |text: &str| planned(text).unwrap_err().status;
        assert_eq!(status("GET http://h/ HTTP/1.1\r\nHost: h\r\nVia: 1.1 a, HTTP/1.1  roundtrip-1 (x)"), 508);
        assert!(planned("GET http://h/ HTTP/1.1\r\nHost: h\r\nVia: 1.1 roundtrip-12").is_ok());
    }

    #[test]
    fn invalid_requests_are_refused_with_a_reason() {
        let status =
            |line: &str| planned(&format!("{line} HTTP/1.1\r\nHost: h")).map_err(|refusal| refusal.status);
        for (line, expected) in [
            ("GET https://h/", 501),
            ("GET ftp://h/", 400),
            ("GET http://user@h/", 400),
            ("GET http://:80/", 400),
            ("GET http://h:0/", 400),
            ("GET http://h:65536/", 400),
            ("GET http://[::1/", 400),
            ("GET http://a:b:c/", 400),
            ("GET h/x", 400),
            ("TRACE http://h/", 405),
            ("CONNECT h", 400),
            ("CONNECT h:x", 400),
        ] {
            assert_eq!(status(line), Err(expected), "{line}");
        }
        assert_eq!(planned("GET http://h/ HTTP/1.1\r\nHost: h\r\nExpect: wonders").unwrap_err().status, 417);
        assert_eq!(planned("CONNECT H:443 HTTP/1.1\r\nHost: h"), Ok(Plan::Tunnel("h".to_owned(), 443)));
        assert_eq!(planned("GET /proxy.pac HTTP/1.1\r\nHost: h"), Ok(Plan::Own("/proxy.pac".to_owned())));
    }

    #[test]
    fn max_forwards_limits_options() {
        let requested =
            |hops: &str| planned(&format!("OPTIONS http://h/ HTTP/1.1\r\nHost: h\r\nMax-Forwards: {hops}"));
        assert_eq!(requested("0"), Ok(Plan::Own("*".to_owned())));
        assert_eq!(requested("x").unwrap_err().status, 400);
        let Ok(Plan::Forward(forward)) = requested("3") else { panic!("not passed on") };
        assert_eq!(forward.head.fields.get("Max-Forwards"), Some(&b"2"[..]));
    }

    #[test]
    fn hop_by_hop_fields_are_removed_from_responses() {
        let text =
            "HTTP/1.1 200 OK\r\nConnection: x\r\nX: 1\r\nTransfer-Encoding: chunked\r\nETag: \"a\"\r\n\r\n";
        let head = ResponseHead::parse(text.as_bytes(), &Limits::default()).unwrap();
        let mut bytes = Vec::new();
        response(&head, NAME).encode(&mut bytes);
        assert_eq!(
            String::from_utf8(bytes).unwrap(),
            "HTTP/1.1 200 OK\r\nETag: \"a\"\r\nVia: 1.1 roundtrip-1\r\n\r\n"
        );
    }
}
