//! Section 3: the responses that are stored.

use super::{CHANGED, DATE, FRESH, Lines, TAG, requested, retained};

#[test]
fn rfc9111_3_only_shareable_responses_are_stored() {
    let is_stored = |request: Lines<'_>, status, lines: Lines<'_>| {
        retained(&requested("GET", request), status, lines).is_some()
    };
    let fresh = ("Cache-Control", "max-age=60");
    assert!(is_stored(&[], 200, &[fresh]));
    assert!(is_stored(&[], 599, &[fresh]));
    assert!(!is_stored(&[], 200, &[]));
    assert!(!is_stored(&[("Cache-Control", "no-store")], 200, &[fresh]));
    for directive in ["no-store, max-age=60", "private, max-age=60", "PRIVATE=\"x\", max-age=60", "max-age=0"]
    {
        assert!(!is_stored(&[], 200, &[("Cache-Control", directive)]), "{directive}");
    }
    for status in [100, 206, 304] {
        assert!(!is_stored(&[], status, &[fresh]), "{status}");
    }
    for method in ["HEAD", "POST", "PUT", "OPTIONS", "get"] {
        assert!(retained(&requested(method, &[]), 200, &[fresh]).is_none(), "{method}");
    }
}

#[test]
fn rfc9111_3_5_authenticated_requests_get_their_own_responses() {
    let request = requested("GET", &[("Authorization", "Basic eDp5")]);
    let is_stored = |control| retained(&request, 200, &[("Cache-Control", control)]).is_some();
    assert!(!is_stored("max-age=60"));
    assert!(
        is_stored("max-age=60, public")
            && is_stored("max-age=60, must-revalidate")
            && is_stored("s-maxage=60")
    );
}

#[test]
fn rfc9111_3_without_lifetime_only_heuristic_statuses_are_stored() {
    let public = ("Cache-Control", "public");
    for (status, lines, is_stored) in [
        (200, &[TAG][..], true),
        (404, &[CHANGED], true),
        (501, &[TAG], true),
        (302, &[TAG], false),
        (302, &[CHANGED], false),
        (302, &[TAG, public], true),
        (302, &[FRESH], true),
        (302, &[("Expires", "Sun, 06 Nov 1994 09:49:37 GMT")], true),
        (403, &[TAG], false),
        (500, &[CHANGED], false),
        (500, &[FRESH], true),
        (599, &[CHANGED], false),
        (599, &[CHANGED, public], true),
    ] {
        let lines: Vec<_> = lines.iter().copied().chain([DATE]).collect();
        assert_eq!(
            retained(&requested("GET", &[]), status, &lines).is_some(),
            is_stored,
            "{status} {lines:?}"
        );
    }
}

#[test]
fn rfc9111_3_3_partial_responses_are_not_stored() {
    let ranges = requested("GET", &[("Range", "bytes=0-1")]);
    for status in [206, 304, 416] {
        assert!(retained(&ranges, status, &[FRESH, TAG]).is_none(), "{status}");
    }
    assert!(retained(&ranges, 200, &[FRESH]).is_some(), "a server that gave the whole all the same");
}

#[test]
fn rfc9111_3_5_only_named_directives_share_authenticated_responses() {
    let request = requested("GET", &[("Authorization", "Basic eDp5")]);
    for (control, is_stored) in [
        ("max-age=60", false),
        ("max-age=60, proxy-revalidate", false),
        ("max-age=60, immutable", false),
        ("max-age=60, stale-if-error=60", false),
        ("max-age=60, must-revalidate", true),
        ("max-age=60, public", true),
        ("s-maxage=60", true),
        ("s-maxage=60, private", false),
        ("public, no-store", false),
    ] {
        let policy = retained(&request, 200, &[("Cache-Control", control)]);
        assert_eq!(policy.is_some(), is_stored, "{control}");
    }
}
