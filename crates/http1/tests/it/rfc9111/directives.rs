//! Section 5.2, and RFC 8246: `Cache-Control` directives of requests and responses.

use roundtrip_http1::cache::Verdict;

use super::{CHANGED, DATE, FRESH, TAG, after, at, requested, retained};

#[test]
fn rfc9111_5_2_1_request_directives_limit_reuse() {
    let lines = [("Cache-Control", "max-age=60")];
    let policy = retained(&requested("GET", &[]), 200, &lines).unwrap();
    let verdict =
        |control, second| policy.verdict(at(second), &requested("GET", &[("Cache-Control", control)]));
    assert_eq!(verdict("max-age=30", 30), Verdict::Fresh);
    assert_eq!(verdict("max-age=30", 31), Verdict::Validate);
    assert_eq!(verdict("max-age=0", 0), Verdict::Fresh);
    assert_eq!(verdict("max-age=0", 1), Verdict::Validate);
    assert_eq!(verdict("min-fresh=10", 49), Verdict::Fresh);
    assert_eq!(verdict("min-fresh=10", 50), Verdict::Validate);
    assert_eq!(verdict("max-stale", 1_000), Verdict::Fresh);
    assert_eq!(verdict("max-stale=5", 65), Verdict::Fresh);
    assert_eq!(verdict("max-stale=5", 66), Verdict::Validate);
    assert_eq!(verdict("no-cache", 0), Verdict::Validate);
    let pragma = |lines| policy.verdict(at(0), &requested("GET", lines));
    assert_eq!(pragma(&[("Pragma", "no-cache")]), Verdict::Validate);
    assert_eq!(pragma(&[("Pragma", "no-cache"), ("Cache-Control", "x")]), Verdict::Fresh);
    assert!(requested("GET", &[("Cache-Control", "only-if-cached")]).is_only_for_cache());
}

#[test]
fn rfc9111_5_2_2_response_directives_limit_reuse() {
    let verdict = |control| after(0, &[("Cache-Control", control), ("ETag", "\"t\"")]);
    assert_eq!(verdict("max-age=60, no-cache"), Some(Verdict::Validate));
    assert_eq!(verdict("max-age=60, No-CaChE=\"Set-Cookie\""), Some(Verdict::Validate));
    assert_eq!(verdict("max-age=60, must-understand, no-store"), Some(Verdict::Fresh));
    let unknown = [("Cache-Control", "max-age=60, must-understand")];
    assert_eq!(retained(&requested("GET", &[]), 599, &unknown), None);
    let strict =
        retained(&requested("GET", &[]), 200, &[("Cache-Control", "max-age=1, must-revalidate")]).unwrap();
    let lenient = requested("GET", &[("Cache-Control", "max-stale")]);
    assert_eq!(strict.verdict(at(2), &lenient), Verdict::Validate);
}

#[test]
fn rfc9111_5_2_1_each_request_directive_alone_and_combined() {
    let policy = retained(&requested("GET", &[]), 200, &[FRESH]).unwrap();
    for (section, control, second, verdict) in [
        ("5.2.1.1", "max-age=10", 10, Verdict::Fresh),
        ("5.2.1.1", "max-age=10", 11, Verdict::Validate),
        ("5.2.1.1", "max-age=10, max-age=20", 11, Verdict::Validate),
        ("5.2.1.1", "max-age=x", 1, Verdict::Validate),
        ("5.2.1.1", "max-age=100", 60, Verdict::Validate),
        ("5.2.1.2", "max-stale=10", 70, Verdict::Fresh),
        ("5.2.1.2", "max-stale=10", 71, Verdict::Validate),
        ("5.2.1.2", "max-stale=0", 61, Verdict::Validate),
        ("5.2.1.2", "max-stale", 100_000, Verdict::Fresh),
        ("5.2.1.2", "max-stale, max-age=80", 81, Verdict::Validate),
        ("5.2.1.3", "min-fresh=20", 39, Verdict::Fresh),
        ("5.2.1.3", "min-fresh=20", 40, Verdict::Validate),
        ("5.2.1.3", "min-fresh=20, max-stale", 61, Verdict::Validate),
        ("5.2.1.3", "min-fresh=x", 0, Verdict::Validate),
        ("5.2.1.4", "no-cache", 0, Verdict::Validate),
        ("5.2.1.4", "no-cache, max-stale", 0, Verdict::Validate),
        ("5.2.1.5", "no-store", 0, Verdict::Fresh),
        ("5.2.1.6", "no-transform", 0, Verdict::Fresh),
        ("5.2.1.7", "only-if-cached", 59, Verdict::Fresh),
        ("5.2.3", "something=\"no-cache\"", 59, Verdict::Fresh),
    ] {
        let lines = [("Cache-Control", control)];
        let request = requested("GET", &lines);
        assert_eq!(policy.verdict(at(second), &request), verdict, "{section} {control} after {second} s");
    }
}

#[test]
fn rfc9111_5_2_2_each_response_directive_alone_and_combined() {
    for (section, control, second, verdict) in [
        ("5.2.2.1", "max-age=10", 9, Some(Verdict::Fresh)),
        ("5.2.2.1", "max-age=10", 10, Some(Verdict::Validate)),
        ("5.2.2.2", "max-age=10, must-revalidate", 9, Some(Verdict::Fresh)),
        ("5.2.2.3", "max-age=10, must-understand", 9, Some(Verdict::Fresh)),
        ("5.2.2.3", "max-age=10, must-understand, no-store", 9, Some(Verdict::Fresh)),
        ("5.2.2.4", "max-age=10, no-cache", 0, Some(Verdict::Validate)),
        ("5.2.2.4", "max-age=10, no-cache=\"Set-Cookie\"", 0, Some(Verdict::Validate)),
        ("5.2.2.5", "max-age=10, no-store", 0, None),
        ("5.2.2.5", "no-store, public, max-age=10", 0, None),
        ("5.2.2.6", "max-age=10, no-transform", 9, Some(Verdict::Fresh)),
        ("5.2.2.7", "max-age=10, private", 0, None),
        ("5.2.2.7", "max-age=10, private=\"Set-Cookie\"", 0, None),
        ("5.2.2.7", "max-age=10, public, private", 0, None),
        ("5.2.2.8", "max-age=10, proxy-revalidate", 9, Some(Verdict::Fresh)),
        ("5.2.2.9", "public", 0, Some(Verdict::Validate)),
        ("5.2.2.10", "s-maxage=20, max-age=10", 19, Some(Verdict::Fresh)),
        ("5.2.2.10", "s-maxage=5, max-age=10", 5, Some(Verdict::Validate)),
        ("5.2.3", "max-age=10, community=\"UCI\"", 9, Some(Verdict::Fresh)),
        ("5.2.3", "x=\"no-store, private\", max-age=10", 9, Some(Verdict::Fresh)),
        ("5.2", "MAX-AGE=10", 9, Some(Verdict::Fresh)),
        ("5.2", ", ,max-age=10 ,", 9, Some(Verdict::Fresh)),
    ] {
        assert_eq!(after(second, &[DATE, TAG, ("Cache-Control", control)]), verdict, "{section} {control}");
    }
    let lines = [("Cache-Control", "public"), ("Cache-Control", "no-store"), ("Cache-Control", "max-age=10")];
    assert_eq!(after(0, &lines), None, "all lines are one");
}

#[test]
fn rfc9111_5_2_2_2_and_8_and_10_no_request_directive_permits_forbidden_stale_responses() {
    for control in ["max-age=1, must-revalidate", "max-age=1, proxy-revalidate", "s-maxage=1"] {
        let policy = retained(&requested("GET", &[]), 200, &[("Cache-Control", control)]).unwrap();
        for request in ["max-stale", "max-stale=1000", "only-if-cached, max-stale", "stale-if-error=60"] {
            let lines = [("Cache-Control", request)];
            let request = requested("GET", &lines);
            assert_eq!(policy.verdict(at(2), &request), Verdict::Validate, "{control}");
        }
    }
}

#[test]
fn rfc8246_2_immutable_does_not_extend_the_lifetime() {
    let control = ("Cache-Control", "max-age=10, immutable");
    assert_eq!(after(9, &[control]), Some(Verdict::Fresh));
    assert_eq!(after(10, &[control]), Some(Verdict::Validate));
    // It gives no lifetime: alone it leaves the heuristic that applies without it.
    assert_eq!(after(1, &[DATE, CHANGED, ("Cache-Control", "immutable")]), Some(Verdict::Fresh));
    assert_eq!(after(1, &[DATE, ("Cache-Control", "immutable")]), None);
    // It concerns browsers; a request for validation gets it.
    let policy = retained(&requested("GET", &[]), 200, &[control]).unwrap();
    let reload = requested("GET", &[("Cache-Control", "no-cache")]);
    assert_eq!(policy.verdict(at(1), &reload), Verdict::Validate);
}
