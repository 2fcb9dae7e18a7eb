//! Section 4.3, and RFC 9110, sections 13 and 14, where a cache responds by itself: conditions and ranges.

use roundtrip_http1::cache::update::{describes, for_server, freshened, is_about};
use roundtrip_http1::message::{Fields, Method, RequestHead, Version};

use super::{CHANGED, DATE, FRESH, Lines, TAG, fields, requested, serve_stored, serve_stored_ok};

#[test]
fn rfc9111_4_3_1_validation_uses_the_servers_validators() {
    let head = |lines: Lines<'_>| RequestHead {
        method: Method::Get,
        target: "/".to_owned(),
        version: Version::Http11,
        fields: fields(lines),
    };
    let request =
        head(&[("Host", "h"), ("If-None-Match", "\"client\""), ("Range", "bytes=0-1"), ("Accept", "x")]);
    assert_eq!(for_server(&request, None), request);
    let stored = fields(&[("ETag", "\"ours\""), ("Last-Modified", "then"), ("Vary", "Accept")]);
    let sent =
        head(&[("Host", "h"), ("Accept", "x"), ("If-None-Match", "\"ours\""), ("If-Modified-Since", "then")]);
    assert_eq!(for_server(&request, Some(stored.as_lines())), sent);
    let precondition = requested("GET", &[("If-Match", "\"x\"")]);
    assert!(!precondition.is_for_cache());
}

#[test]
fn rfc9111_4_3_2_matching_conditions_get_304() {
    for (lines, status) in [
        (&[("If-None-Match", "\"t\"")][..], 304),
        (&[("If-None-Match", "W/\"t\", \"x\"")], 304),
        (&[("If-None-Match", "*")], 304),
        (&[("If-None-Match", "\"x\"")], 200),
        (&[("If-None-Match", "\"x\""), ("If-Modified-Since", DATE.1)], 200),
        (&[("If-Modified-Since", "Sun, 06 Nov 1994 08:00:00 GMT")], 304),
        (&[("If-Modified-Since", DATE.1)], 304),
        (&[("If-Modified-Since", "Sun, 06 Nov 1994 07:59:59 GMT")], 200),
        (&[("If-Modified-Since", "yesterday")], 200),
    ] {
        let served = serve_stored_ok("GET", lines);
        assert_eq!(served.status, status, "{lines:?}");
        assert_eq!(served.fields.get("ETag"), Some(&b"\"t\""[..]));
        assert_eq!(served.fields.get("Content-Type").is_some(), status == 200);
    }
}

#[test]
fn rfc9111_4_3_4_fields_of_a_304_replace_the_stored_ones() {
    let old = fields(&[
        ("A", "1"),
        ("B", "1"),
        ("b", "2"),
        ("ETag", "\"t\""),
        ("Content-Encoding", "gzip"),
        ("Age", "9"),
    ]);
    let new = fields(&[
        ("B", "3"),
        ("ETag", "\"t\""),
        ("Content-Encoding", "br"),
        ("Content-Length", "0"),
        ("C", "1"),
    ]);
    let expected =
        fields(&[("A", "1"), ("ETag", "\"t\""), ("Content-Encoding", "gzip"), ("B", "3"), ("C", "1")]);
    assert_eq!(freshened(old.as_lines(), &new), expected);
    assert!(is_about(old.as_lines(), &new));
    assert!(is_about(old.as_lines(), &fields(&[("ETag", "W/\"t\"")])));
    assert!(!is_about(old.as_lines(), &fields(&[("ETag", "\"u\"")])));
}

#[test]
fn rfc9111_4_3_5_head_updates_or_invalidates_the_stored_response() {
    let stored = fields(&[("ETag", "\"t\"")]);
    assert!(describes(stored.as_lines(), 5, &fields(&[("ETag", "\"t\""), ("Content-Length", "5")])));
    assert!(describes(stored.as_lines(), 5, &Fields::new()));
    assert!(!describes(stored.as_lines(), 5, &fields(&[("Content-Length", "6")])));
    assert!(!describes(stored.as_lines(), 5, &fields(&[("ETag", "\"u\"")])));
    assert!(!describes(stored.as_lines(), 5, &fields(&[("Last-Modified", "now")])));
}

#[test]
fn rfc9110_14_ranges_are_served_from_whole_stored_responses() {
    let part = |range| {
        let served = serve_stored_ok("GET", &[("Range", range)]);
        let printed =
            served.fields.get("Content-Range").map(|value| String::from_utf8_lossy(value).into_owned());
        (served.status, served.part, printed.unwrap_or_default())
    };
    assert_eq!(part("bytes=2-3"), (206, (2, 2), "bytes 2-3/10".to_owned()));
    assert_eq!(part("bytes=7-"), (206, (7, 3), "bytes 7-9/10".to_owned()));
    assert_eq!(part("bytes=-4"), (206, (6, 4), "bytes 6-9/10".to_owned()));
    assert_eq!(part("bytes=10-"), (416, (0, 0), "bytes */10".to_owned()));
    assert_eq!(part("bytes=0-1,3-4"), (200, (0, 10), String::new()));
    let with = |condition| serve_stored_ok("GET", &[("Range", "bytes=0-0"), ("If-Range", condition)]).status;
    assert_eq!([with("\"t\""), with("\"u\""), with("Sun, 06 Nov 1994 08:00:00 GMT")], [206, 200, 206]);
    assert_eq!(serve_stored_ok("HEAD", &[("Range", "bytes=0-0")]).status, 200);
}

#[test]
fn rfc9111_4_3_2_conditions_apply_only_to_successful_responses() {
    let condition = ("If-None-Match", "\"t\"");
    for (status, method, wanted) in
        [(200, "GET", 304), (200, "HEAD", 304), (404, "GET", 404), (301, "GET", 301), (500, "GET", 500)]
    {
        assert_eq!(
            serve_stored(status, &[TAG, FRESH], method, &[condition]).status,
            wanted,
            "{status} {method}"
        );
    }
    // Without a tag no condition matches; without `Last-Modified` the response's `Date` counts.
    assert_eq!(serve_stored(200, &[FRESH], "GET", &[condition]).status, 200);
    let condition = [("If-Modified-Since", DATE.1)];
    assert_eq!(serve_stored(200, &[DATE, FRESH], "GET", &condition).status, 304);
    assert_eq!(serve_stored(200, &[FRESH], "GET", &condition).status, 200);
}

#[test]
fn rfc9111_4_3_2_and_rfc9110_15_4_5_a_304_has_only_the_required_fields() {
    let stored = [
        DATE,
        TAG,
        FRESH,
        ("Vary", "Accept"),
        ("Content-Location", "/x"),
        ("Content-Type", "a/b"),
        ("X", "y"),
    ];
    let served = serve_stored(200, &stored, "GET", &[("If-None-Match", "*"), ("Range", "bytes=0-0")]);
    assert_eq!((served.status, served.part), (304, (0, 0)));
    for (name, is_there) in [
        ("Date", true),
        ("ETag", true),
        ("Cache-Control", true),
        ("Vary", true),
        ("Content-Location", true),
        ("Age", true),
        ("Content-Type", false),
        ("Content-Range", false),
        ("X", false),
    ] {
        assert_eq!(served.fields.get(name).is_some(), is_there, "{name}");
    }
}

#[test]
fn rfc9111_4_3_4_a_304_matches_by_tag_or_date_or_the_only_response() {
    let other_date = ("Last-Modified", "Sun, 06 Nov 1994 08:00:01 GMT");
    for (stored, update, is_match) in [
        (&[TAG][..], &[TAG][..], true),
        (&[TAG], &[("ETag", "\"u\"")], false),
        (&[TAG, CHANGED], &[("ETag", "\"u\""), CHANGED], false),
        (&[TAG, CHANGED], &[TAG, other_date], true),
        (&[CHANGED], &[TAG], false),
        (&[CHANGED], &[CHANGED], true),
        (&[CHANGED], &[other_date], false),
        (&[TAG], &[], true),
        // Weak comparison: servers that compress send weak tags (nginx).
        (&[("ETag", "W/\"t\"")], &[TAG], true),
    ] {
        assert_eq!(is_about(fields(stored).as_lines(), &fields(update)), is_match, "{stored:?} {update:?}");
    }
}

#[test]
fn rfc9110_13_1_5_if_range_serves_a_part_only_of_the_same_response() {
    let same_second = ("Last-Modified", DATE.1);
    for (stored, condition, status) in [
        (&[TAG, CHANGED][..], TAG.1, 206),
        (&[TAG, CHANGED], CHANGED.1, 206),
        (&[TAG, CHANGED], "\"u\"", 200),
        (&[("ETag", "W/\"t\"")], "W/\"t\"", 200),
        (&[("ETag", "W/\"t\"")], "\"t\"", 200),
        // It may have changed again within that second (section 8.8.2.2).
        (&[same_second], same_second.1, 200),
        (&[CHANGED], "Sun, 06 Nov 1994 08:00:01 GMT", 200),
        (&[], "\"t\"", 200),
    ] {
        let stored: Vec<_> = stored.iter().copied().chain([DATE, FRESH]).collect();
        let lines = [("Range", "bytes=0-0"), ("If-Range", condition)];
        assert_eq!(serve_stored(200, &stored, "GET", &lines).status, status, "{stored:?} {condition}");
    }
}

#[test]
fn rfc9110_14_2_ranges_apply_to_200_and_invalid_ones_are_ignored() {
    let part = |status, range| serve_stored(status, &[TAG, FRESH], "GET", &[("Range", range)]).status;
    for (range, status) in [
        ("bytes=0-0", 206),
        ("bytes=0-99", 206),
        ("bytes=-0", 416),
        ("bytes=11-12", 416),
        ("bytes=3-2", 200),
        ("bytes=a-b", 200),
        ("lines=0-1", 200),
        ("", 200),
    ] {
        assert_eq!(part(200, range), status, "{range}");
    }
    assert_eq!(part(404, "bytes=0-0"), 404);
    let two = [("Range", "bytes=0-0"), ("Range", "bytes=1-1")];
    assert_eq!(serve_stored(200, &[TAG, FRESH], "GET", &two).status, 200);
}
