//! RFC 9111, section by section, as clients and servers see it: a cache over sockets, before an origin with scripted responses
//! that records its requests.
//!
//! An independent oracle, as `crates/http1/tests/it/rfc9111` is for the decisions alone.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};

use dhttp::{Server, ServerConfig};
use roundtrip_dhttp_proxy::{Cache, CacheConfig, Origin};
use test_fixture::{TestServer, exchange};
use tokio::runtime::{Builder, Runtime};

/// One exchange: the client's request (`GET /path | Field: value`), the origin's response, and the client's response (both
/// `200 | Field: value || body`). An empty origin's response: it must not get a request; `gone`: it closes. `!Field` in the
/// client's response: the field must be absent.
type Step<'a> = (&'a str, &'a str, &'a str);

/// The origin's next response, and the requests it got.
type Script = Arc<Mutex<(String, Vec<String>)>>;

struct CacheServer {
    script: Script,
    server: Server<Cache<Origin>>,
    _runtime: Runtime,
}

impl CacheServer {
    fn new() -> Self {
        let script = Script::default();
        let reported = Arc::clone(&script);
        let origin = TestServer::start(move |head, _, stream| respond(head, stream, &reported)).address;
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let upstream = {
            let _inside = runtime.enter();
            Origin::new(&format!("http://{origin}").parse().unwrap()).unwrap()
        };
        let cache = Cache::new(upstream, CacheConfig::default(), runtime.handle().clone()).unwrap();
        let config = ServerConfig { threads: 1, ..ServerConfig::internet() };
        let server = Server::start("127.0.0.1:0".parse().unwrap(), config, cache, None).unwrap();
        Self { script, server, _runtime: runtime }
    }

    /// Runs a table; returns the origin's requests, line by line.
    fn goes(&self, section: &str, steps: &[Step<'_>]) -> Vec<String> {
        let mut requested = Vec::new();
        for (number, (request, response, expected)) in steps.iter().enumerate() {
            let location = format!("{section}, line {number}: {request}");
            *self.script.lock().unwrap() = ((*response).to_owned(), Vec::new());
            let (head, body) = send_request(self.server.address(), request);
            let origin_requests = std::mem::take(&mut self.script.lock().unwrap().1);
            assert_eq!(
                origin_requests.is_empty(),
                response.is_empty(),
                "{location}: {origin_requests:?}; {head}"
            );
            requested.push(origin_requests.concat());
            let (expected_head, expected_body) = expected.split_once(" || ").unwrap_or((*expected, ""));
            let mut expected_head = expected_head.split(" | ");
            let status = expected_head.next().unwrap();
            assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{location}: {head}");
            // Field names are case-insensitive, and no values here differ only in case.
            let low = head.to_ascii_lowercase();
            for line in expected_head.map(str::to_ascii_lowercase) {
                match line.strip_prefix('!') {
                    Some(name) => assert!(!low.contains(&format!("\r\n{name}: ")), "{location}: {head}"),
                    None => assert!(low.contains(&format!("\r\n{line}")), "{location}: {head}"),
                }
            }
            // The body of an error response is not compared.
            assert!(status.starts_with('5') || body == expected_body, "{location}: {body}");
        }
        requested
    }
}

/// Sends the scripted response to a request.
fn respond(head: &str, stream: &mut TcpStream, script: &Script) {
    let response = {
        let mut script = script.lock().unwrap();
        script.1.push(head.to_owned());
        script.0.clone()
    };
    if response == "gone" {
        return;
    }
    let (lines, body) = response.split_once(" || ").unwrap_or((&*response, ""));
    let (status, lines) = lines.split_once(" | ").unwrap_or((lines, ""));
    let mut response = format!("HTTP/1.1 {status} X\r\n");
    for line in lines.split(" | ").filter(|line| !line.is_empty()) {
        response += &format!("{line}\r\n");
    }
    if !lines.contains("Content-Length") && !matches!(status, "204" | "304") {
        response += &format!("Content-Length: {}\r\n", body.len());
    }
    if !lines.contains("Connection") {
        response += "Connection: close\r\n";
    }
    let body = if head.starts_with("HEAD ") { "" } else { body };
    let _ = stream.write_all(format!("{response}\r\n{body}").as_bytes());
}

/// Sends a request; returns the response's header section and body.
fn send_request(address: SocketAddr, request: &str) -> (String, String) {
    let (line, fields) = request.split_once(" | ").unwrap_or((request, ""));
    let (method, target) = line.split_once(' ').unwrap();
    let fields: String =
        fields.split(" | ").filter(|line| !line.is_empty()).map(|line| format!("{line}\r\n")).collect();
    let (head, body) = exchange(address, method, target, &fields);
    (head, String::from_utf8(body).unwrap())
}

/// Runs each table with a cache of its own.
fn tables(section: &str, tables: &[&[Step<'_>]]) {
    for steps in tables {
        CacheServer::new().goes(section, steps);
    }
}

#[test]
fn rfc9111_3_1_hop_by_hop_fields_are_neither_stored_nor_forwarded() {
    let response = "200 | Cache-Control: public, max-age=60 | Connection: close, X-Hop | X-Hop: 1 | Keep-Alive: timeout=5 | \
                Proxy-Authenticate: Basic | Proxy-Authentication-Info: a=b | Set-Cookie: c=d | X-End: 2 || whole";
    let expected = "200 | X-End: 2 | Set-Cookie: c=d | !X-Hop | !Keep-Alive | !Proxy-Authenticate | \
                !Proxy-Authentication-Info || whole";
    tables("3.1", &[&[("GET /a", response, expected), ("GET /a", "", expected)]]);
}

#[test]
fn rfc9111_4_1_fields_that_the_origin_did_not_get_choose_no_response() {
    let by = |vary: &str, body: &str| format!("200 | Cache-Control: max-age=60 | Vary: {vary} || {body}");
    let (default, french) = (by("Accept-Language", "default"), by("Accept-Language", "fr"));
    let hop = "GET /a | Accept-Language: fr | Connection: Accept-Language, close";
    tables(
        "4.1",
        &[&[
            (hop, &default, "200 || default"),
            ("GET /a | Accept-Language: fr", &french, "200 || fr"),
            (hop, "", "200 || default"),
            ("GET /a", "", "200 || default"),
            ("GET /a | Accept-Language: fr", "", "200 || fr"),
        ]],
    );
}

#[test]
fn requests_with_method_overrides_are_not_stored() {
    let fresh = |body: &str| format!("200 | Cache-Control: max-age=60 || {body}");
    let (deleted, page) = (fresh("deleted"), fresh("page"));
    let override_request = "GET /a | X-HTTP-Method-Override: DELETE";
    let deletes = (override_request, &*deleted, "200 || deleted");
    // These fields are dropped: the response is the same as without them.
    let dropped = ("GET /a | X-Original-URL: /b | Proxy: x | X_Y: z", &*page, "200 || page");
    tables(
        "9.3",
        &[&[deletes, ("GET /a", &page, "200 || page"), deletes], &[dropped, ("GET /a", "", "200 || page")]],
    );
}

#[test]
fn rfc9111_3_2_and_4_3_4_a_304_changes_the_fields_that_it_names_and_no_others() {
    let stale =
        "200 | Cache-Control: max-age=0 | ETag: \"t\" | X-Old: 1 | X-Both: 1 | Content-Type: a/b || whole";
    let unchanged =
        "304 | Cache-Control: max-age=60 | ETag: \"t\" | X-Both: 2 | X-Both: 3 | Content-Length: 99";
    let expected = "200 | X-Old: 1 | X-Both: 2 | X-Both: 3 | Content-Type: a/b | Content-Length: 5 || whole";
    tables(
        "3.2",
        &[
            &[("GET /a", stale, "200 || whole"), ("GET /a", unchanged, expected), ("GET /a", "", expected)],
            // A request with `no-store` does not evict what is stored for others.
            &[
                ("GET /a", stale, "200 || whole"),
                ("GET /a | Cache-Control: no-store", unchanged, "200 || whole"),
                ("GET /a", "gone", "200 | Cache-Status: roundtrip; fwd=stale; detail=unreachable || whole"),
            ],
        ],
    );
}

#[test]
fn rfc9111_3_3_and_3_4_incomplete_responses_are_not_stored_and_parts_come_from_whole_ones() {
    let fresh = "200 | Cache-Control: max-age=60 | ETag: \"t\" || 0123456789";
    let part = "206 | Cache-Control: max-age=60 | ETag: \"t\" | Content-Range: bytes 2-3/10 || 23";
    let unsatisfiable = "416 | Cache-Control: max-age=60 | Content-Range: bytes */10 || no";
    tables(
        "3.3",
        &[
            &[
                ("GET /a", "200 | Cache-Control: max-age=60 | Content-Length: 10 || 01234", "502"),
                ("GET /a", fresh, "200 || 0123456789"),
            ],
            &[
                ("GET /a | Range: bytes=2-3", part, "206 | Content-Range: bytes 2-3/10 || 23"),
                ("GET /a | Range: bytes=2-3", part, "206 || 23"),
                ("GET /a", fresh, "200 || 0123456789"),
                ("GET /a | Range: bytes=4-5", "", "206 | Content-Range: bytes 4-5/10 || 45"),
                ("GET /a | Range: bytes=20-", "", "416 | Content-Range: bytes */10"),
            ],
            &[
                ("GET /a | Range: bytes=20-", unsatisfiable, "416 || no"),
                ("GET /a", fresh, "200 || 0123456789"),
            ],
        ],
    );
}

#[test]
fn rfc9111_3_5_authenticated_requests_share_only_public_responses() {
    let (first_client, second_client) =
        ("GET /a | Authorization: Basic b25l", "GET /a | Authorization: Basic dHdv");
    let own = "200 | Cache-Control: max-age=60 || own";
    let all = "200 | Cache-Control: max-age=60, public || all";
    tables(
        "3.5",
        &[
            &[
                (first_client, own, "200 || own"),
                (second_client, own, "200 || own"),
                ("GET /a", own, "200 || own"),
            ],
            &[
                (first_client, all, "200 || all"),
                (second_client, "", "200 || all"),
                ("GET /a", "", "200 || all"),
            ],
        ],
    );
}

#[test]
fn rfc9111_4_reuse_requires_the_same_url_and_method() {
    let fresh = "200 | Cache-Control: max-age=60 || whole";
    let no_store = "200 | Cache-Control: no-store || once";
    tables(
        "4",
        &[
            &[
                ("GET /a", fresh, "200 || whole"),
                ("HEAD /a", "", "200 | Content-Length: 5 | Age: 0"),
                ("GET /a?", fresh, "200 || whole"),
                ("GET /A", fresh, "200 || whole"),
                ("OPTIONS /a", fresh, "200 || whole"),
            ],
            // A response to HEAD is not one to GET.
            &[("HEAD /a", fresh, "200 | Content-Length: 5"), ("GET /a", fresh, "200 || whole")],
            &[("GET /a", no_store, "200 || once"), ("GET /a", no_store, "200 || once")],
            &[
                ("GET /a | Cache-Control: no-store", fresh, "200 || whole"),
                ("GET /a", fresh, "200 || whole"),
                ("GET /a | Cache-Control: no-store", "", "200 || whole"),
            ],
        ],
    );
}

#[test]
fn rfc9111_4_1_variants_are_stored_side_by_side() {
    let response = |body: &str| format!("200 | Cache-Control: max-age=60 | Vary: Accept-Language || {body}");
    let (danish, english) = (response("da"), response("en"));
    let any = "200 | Cache-Control: max-age=60 | Vary: * || any";
    tables(
        "4.1",
        &[
            &[
                ("GET /a | Accept-Language: da", &danish, "200 || da"),
                ("GET /a | Accept-Language: en", &english, "200 || en"),
                ("GET /a | Accept-Language: da", "", "200 || da"),
                ("GET /a | accept-language:  en ", "", "200 || en"),
                ("GET /a", &danish, "200 || da"),
                ("HEAD /a | Accept-Language: en", "", "200 | Content-Length: 2"),
            ],
            &[("GET /a", any, "200 || any"), ("GET /a", any, "200 || any")],
        ],
    );
}

#[test]
fn rfc9111_4_2_4_and_rfc5861_4_stale_responses_replace_failures_where_allowed() {
    let response = |control: &str| format!("200 | Cache-Control: {control} | Age: 100 | ETag: \"t\" || old");
    let (lenient, strict) = (response("max-age=60"), response("max-age=60, must-revalidate"));
    let on_error = response("max-age=60, stale-if-error=600");
    let failing = "503 || sick";
    let unreachable = "200 | Cache-Status: roundtrip; fwd=stale; detail=unreachable; ttl=-4 || old";
    tables(
        "4.2.4",
        &[
            &[
                ("GET /a", &lenient, "200 || old"),
                ("GET /a", "gone", &unreachable.replace("; ttl=-4", "")),
                ("GET /a", failing, "503"),
                ("GET /a | Cache-Control: no-cache", "gone", "502"),
                (
                    "GET /a | Cache-Control: max-stale=600",
                    "",
                    "200 | Cache-Status: roundtrip; hit; ttl=-4 || old",
                ),
            ],
            &[("GET /a", &strict, "200 || old"), ("GET /a", "gone", "502"), ("GET /a", failing, "503")],
            &[
                ("GET /a", &on_error, "200 || old"),
                ("GET /a", failing, "200 | Cache-Status: roundtrip; fwd=stale; fwd-status=503 || old"),
                ("GET /a", "404 || lost", "404 || lost"),
            ],
        ],
    );
}

#[test]
fn rfc5861_3_stale_responses_are_served_immediately_and_revalidated_in_the_background() {
    let servers = CacheServer::new();
    let old = "200 | Cache-Control: max-age=60, stale-while-revalidate=600 | Age: 100 | ETag: \"t\" || old";
    servers.goes("RFC 5861, 3", &[("GET /a", old, "200 || old")]);
    let new = "200 | Cache-Control: max-age=60 | ETag: \"u\" || new";
    *servers.script.lock().unwrap() = (new.to_owned(), Vec::new());
    let (mut bodies, mut requested) = (Vec::new(), String::new());
    // The served response changes as soon as the new one has arrived.
    while bodies.last().is_none_or(|body| body == "old") {
        assert!(bodies.len() < 10_000, "the stale response is never validated");
        let (head, body) = send_request(servers.server.address(), "GET /a");
        assert!(head.contains("\r\nCache-Status: roundtrip; hit; ttl="), "{head}");
        bodies.push(body);
        requested += &std::mem::take(&mut servers.script.lock().unwrap().1).concat();
    }
    assert_eq!((&*bodies[0], &**bodies.last().unwrap()), ("old", "new"));
    // Twice, if the new one arrives between a look-up and the next request.
    let validations = requested.to_ascii_lowercase().matches("if-none-match: \"t\"").count();
    assert!((1..=2).contains(&validations), "{requested}");
}

#[test]
fn rfc9111_4_3_1_validation_uses_the_stored_validators_and_not_the_clients() {
    let stale =
        "200 | Cache-Control: max-age=0 | ETag: \"t\" | Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT || old";
    let requested = CacheServer::new().goes(
        "4.3.1",
        &[
            ("GET /a | If-None-Match: \"mine\"", stale, "200 || old"),
            (
                "GET /a | If-None-Match: \"mine\" | Range: bytes=0-0 | If-Range: \"t\"",
                "304 | ETag: \"t\"",
                "206 || o",
            ),
            ("GET /a | If-None-Match: \"t\"", "304 | ETag: \"t\"", "304 | ETag: \"t\""),
            ("GET /a | If-Match: \"mine\"", "412", "412"),
            ("HEAD /a | If-None-Match: \"mine\"", "200 | ETag: \"t\" | Content-Length: 3", "200"),
        ],
    );
    let has =
        |line: usize, field: &str| requested[line].to_ascii_lowercase().contains(&field.to_ascii_lowercase());
    assert!(has(0, "If-None-Match: \"mine\""), "{}", requested[0]);
    for line in [1, 2] {
        assert!(
            has(line, "If-None-Match: \"t\"") && has(line, "If-Modified-Since: Sun, 06 Nov"),
            "{}",
            requested[line]
        );
        assert!(!has(line, "mine") && !has(line, "Range:"), "{}", requested[line]);
    }
    assert!(has(3, "If-Match: \"mine\"") && !has(3, "If-None-Match"), "{}", requested[3]);
    assert!(has(4, "If-None-Match: \"mine\""), "{}", requested[4]);
}

#[test]
fn rfc9111_4_3_3_full_response_to_a_validation_replaces_the_stored_one() {
    let stale = "200 | Cache-Control: max-age=0 | ETag: \"t\" || old";
    let new = "200 | Cache-Control: max-age=60 | ETag: \"u\" || new";
    tables(
        "4.3.3",
        &[
            &[("GET /a", stale, "200 || old"), ("GET /a", new, "200 || new"), ("GET /a", "", "200 || new")],
            // A server error does not replace the stored response.
            &[
                ("GET /a", stale, "200 || old"),
                ("GET /a", "500 || sick", "500"),
                (
                    "GET /a",
                    "304 | ETag: \"t\"",
                    "200 | Cache-Status: roundtrip; fwd=stale; fwd-status=304 || old",
                ),
            ],
            // A 410 replaces it, and is served while it is fresh.
            &[
                ("GET /a", stale, "200 || old"),
                ("GET /a", "410 | Cache-Control: max-age=60 || none", "410 || none"),
                ("GET /a", "", "410 | Cache-Status: roundtrip; hit || none"),
            ],
        ],
    );
}

#[test]
fn rfc9111_4_3_5_head_updates_or_invalidates_the_stored_response() {
    let fresh = "200 | Cache-Control: max-age=60 | ETag: \"t\" | X-Old: 1 || whole";
    let head = "HEAD /a | Cache-Control: no-cache";
    let stored = ("GET /a", fresh, "200 || whole");
    tables(
        "4.3.5",
        &[
            &[
                stored,
                (head, "200 | Cache-Control: max-age=60 | ETag: \"t\" | X-Old: 2 | Content-Length: 5", "200"),
                ("GET /a", "", "200 | X-Old: 2 || whole"),
            ],
            &[stored, (head, "200 | ETag: \"t\" | Content-Length: 6", "200"), stored],
            &[stored, (head, "200 | ETag: \"u\" | Content-Length: 5", "200"), stored],
            &[
                stored,
                (head, "200 | Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT | Content-Length: 5", "200"),
                stored,
            ],
            // An unsuccessful response to HEAD describes nothing.
            &[stored, (head, "404 | Content-Length: 6", "404"), ("GET /a", "", "200 || whole")],
        ],
    );
}

#[test]
fn rfc9111_4_4_successful_changes_invalidate_urls_on_the_same_server() {
    let fresh = "200 | Cache-Control: max-age=60 || whole";
    let stored = |path| (path, fresh, "200 || whole");
    let unchanged = |path| (path, "", "200 || whole");
    let post = "POST /a | Content-Length: 0";
    tables(
        "4.4",
        &[
            &[stored("GET /a"), (post, "204", "204"), stored("GET /a")],
            &[stored("GET /a"), ("DELETE /a", "200", "200"), stored("GET /a")],
            &[stored("GET /a"), ("FROBNICATE /a", "200", "200"), stored("GET /a")],
            &[stored("GET /a"), (post, "303 | Location: /b", "303"), stored("GET /a")],
            &[stored("GET /a"), (post, "404", "404"), unchanged("GET /a")],
            &[stored("GET /a"), (post, "500", "500"), unchanged("GET /a")],
            &[
                stored("GET /a"),
                ("POST /b | Content-Length: 0", "201 | Location: /a", "201"),
                stored("GET /a"),
            ],
            &[
                stored("GET /a"),
                ("PUT /b | Content-Length: 0", "200 | Content-Location: a", "200"),
                stored("GET /a"),
            ],
            &[
                stored("GET /a"),
                ("PUT /b | Content-Length: 0", "200 | Content-Location: http://other/a", "200"),
                unchanged("GET /a"),
            ],
        ],
    );
}

#[test]
fn rfc9111_5_2_1_7_only_if_cached_never_contacts_the_origin() {
    let only = "GET /a | Cache-Control: only-if-cached";
    tables(
        "5.2.1.7",
        &[&[
            (only, "", "504"),
            ("GET /a", "200 | Cache-Control: max-age=60 || whole", "200 || whole"),
            (only, "", "200 || whole"),
            ("GET /b", "200 | Cache-Control: max-age=0 | ETag: \"t\" || stale", "200 || stale"),
            ("GET /b | Cache-Control: only-if-cached", "", "504"),
            ("GET /b | Cache-Control: only-if-cached, max-stale", "", "200 || stale"),
        ]],
    );
}

#[test]
fn rfc9211_2_2_forwarded_requests_state_the_reason() {
    let fresh = "200 | Cache-Control: max-age=60 | ETag: \"t\" || whole";
    let stale = "200 | Cache-Control: max-age=0 | ETag: \"t\" || whole";
    let (private, unchanged) =
        ("200 | Cache-Control: private || own", "304 | ETag: \"t\" | Cache-Control: max-age=0");
    let status = |how: &str| format!("200 | Cache-Status: roundtrip; {how}");
    let stored = status("fwd=miss; stored; ttl=60") + " || whole";
    let reason = status("fwd=request; fwd-status=304") + " || whole";
    tables(
        "RFC 9211, 2.2",
        &[
            &[
                ("GET /a", fresh, &stored),
                ("GET /a", "", &(status("hit; ttl=") + " || whole")),
                ("GET /a | Cache-Control: no-cache", unchanged, &reason),
            ],
            &[
                ("GET /a", stale, "200 || whole"),
                ("GET /a", unchanged, &(status("fwd=stale; fwd-status=304") + " || whole")),
            ],
            &[("GET /a", private, &(status("fwd=miss\r\n") + " || own"))],
            &[("POST /a | Content-Length: 0", fresh, &(status("fwd=method\r\n") + " || whole"))],
            &[("GET /a | If-Match: \"t\"", fresh, &(status("fwd=bypass\r\n") + " || whole"))],
        ],
    );
}
