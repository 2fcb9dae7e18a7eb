//! Section 4.4: invalidation by unsafe requests.

use roundtrip_http1::cache::update::obsolete;
use roundtrip_http1::message::{Fields, Method, RequestHead, Version};

use super::{Lines, response};

#[test]
fn rfc9111_4_4_a_change_invalidates_the_urls_it_names_on_its_server() {
    let request = |method: &str| RequestHead {
        method: Method::from_name(method),
        target: "/a/b?q".to_owned(),
        version: Version::Http11,
        fields: Fields::new(),
    };
    let named =
        |method: &str, status, lines: Lines<'_>| obsolete(&request(method), "h:81", &response(status, lines));
    for method in ["POST", "PUT", "DELETE", "M-SEARCH"] {
        assert_eq!(named(method, 200, &[]), ["/a/b?q"], "{method}");
        assert_eq!(named(method, 303, &[("Location", "/new")]), ["/a/b?q", "/new"]);
        assert_eq!(named(method, 500, &[]), [""; 0]);
    }
    for method in ["GET", "HEAD", "OPTIONS", "TRACE"] {
        assert_eq!(named(method, 200, &[]), [""; 0], "{method}");
    }
    for (address, path) in [
        ("http://h:81/x", Some("/x")),
        ("HTTP://H:81?x", Some("/?x")),
        ("//h:81/x#y", Some("/x")),
        ("c", Some("/a/c")),
        ("http://h/x", None),
        ("https://h:81/x", None),
    ] {
        let all = named("POST", 201, &[("Content-Location", address)]);
        assert_eq!(all.get(1).map(String::as_str), path, "{address}");
    }
}

#[test]
fn rfc9111_4_4_only_successful_requests_invalidate() {
    let request = RequestHead {
        method: Method::from_name("PUT"),
        target: "/a".to_owned(),
        version: Version::Http11,
        fields: Fields::new(),
    };
    for (status, is_changed) in [
        (200, true),
        (201, true),
        (204, true),
        (302, true),
        (304, true),
        (400, false),
        (404, false),
        (503, false),
    ] {
        let named = obsolete(&request, "h", &response(status, &[]));
        assert_eq!(named == ["/a"], is_changed, "{status}");
    }
}
