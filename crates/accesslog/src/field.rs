//! Names of fields, in JSON and in tables.
//!
//! Format strings (`template`) and W3C extended logs (`w3c`) have names of their own.

use crate::SizeScope;

/// Names of the client, best first; `.` separates an object's name from its member's.
pub const CLIENTS: [&[u8]; 10] = [
    b"request.client_ip", // Caddy since 2.7
    b"request.remote_ip", // Caddy since 2.5
    b"request.remote_addr",
    b"ClientHost",  // Traefik
    b"remote_addr", // nginx
    b"client_ip",
    b"remote_ip",
    b"clientip",
    b"client",
    b"c_ip", // W3C, as tables write it
];
/// Names of the time.
pub const TIMES: [&[u8]; 8] =
    [b"StartUTC", b"msec", b"time_iso8601", b"time_local", b"ts", b"@timestamp", b"timestamp", b"time"];
/// Names of the response's status.
pub const STATUSES: [&[u8]; 4] = [b"DownstreamStatus", b"status", b"status_code", b"sc_status"];
/// Names of the request target: a path or the whole request line.
pub const TARGETS: [&[u8]; 7] = [
    b"request.uri", // Caddy
    b"RequestPath", // Traefik
    b"request_uri", // nginx
    b"request",     // nginx, as a line
    b"uri",
    b"url",
    b"path",
];
/// Names of the method, where it is not part of the request line.
pub const METHODS: [&[u8]; 5] = [
    b"request.method", // Caddy
    b"RequestMethod",  // Traefik
    b"request_method", // nginx
    b"method",
    b"verb",
];
/// Names of the size, and the parts of the response that it covers.
pub const SIZES: [(&[u8], SizeScope); 7] = [
    (b"DownstreamContentSize", SizeScope::Body),
    (b"body_bytes_sent", SizeScope::Body),
    (b"size", SizeScope::Body),
    (b"bytes_sent", SizeScope::Whole),
    (b"response_size", SizeScope::Body),
    (b"bytes", SizeScope::Body),
    (b"sc_bytes", SizeScope::Whole),
];
