//! Section 5, but for 5.2, and RFC 9211: `Age`, `Expires`, `Pragma`, `Warning` and `Cache-Status`.

use roundtrip_http1::cache::{Policy, Times, Verdict};

use super::{
    CHANGED, DATE, FRESH, TAG, after, at, requested, response, retained, serve_stored, serve_stored_ok,
};

#[test]
fn rfc9111_5_1_every_reused_response_has_an_age() {
    let served = serve_stored_ok("GET", &[]);
    assert_eq!((served.status, served.part), (200, (0, 10)));
    assert_eq!(served.fields.all("Age").collect::<Vec<_>>(), [b"5"]);
    assert_eq!(served.fields.get("Date"), Some(DATE.1.as_bytes()));
    assert_eq!(served.fields.get("Cache-Status"), Some(&b"cache; hit; ttl=55"[..]));
}

#[test]
fn rfc9111_5_1_the_received_age_is_added_to_and_not_repeated() {
    let served = serve_stored(200, &[DATE, FRESH, ("Age", "30")], "GET", &[]);
    assert_eq!(served.fields.all("Age").collect::<Vec<_>>(), [b"35"]);
}

#[test]
fn rfc9111_5_1_of_several_ages_the_first_counts_and_an_invalid_one_is_ignored() {
    for (ages, verdict) in [
        (&["0"][..], Verdict::Fresh),
        (&["59"], Verdict::Fresh),
        (&["60"], Verdict::Validate),
        (&["99999999999999999999"], Verdict::Validate),
        (&["0, 60"], Verdict::Fresh),
        (&["60, 0"], Verdict::Validate),
        (&["0", "60"], Verdict::Fresh),
        (&["60", "0"], Verdict::Validate),
        (&["-60"], Verdict::Fresh),
        (&["+60"], Verdict::Fresh),
        (&["60.0"], Verdict::Fresh),
        (&["60;x"], Verdict::Fresh),
        (&["sixty"], Verdict::Fresh),
        (&["sixty, 60"], Verdict::Fresh),
    ] {
        let lines: Vec<_> = [FRESH, TAG].into_iter().chain(ages.iter().map(|age| ("Age", *age))).collect();
        assert_eq!(after(0, &lines), Some(verdict), "{ages:?}");
    }
}

#[test]
fn rfc9213_2_2_a_targeted_field_counts_in_the_place_of_cache_control_and_expires() {
    let targets = ["CDN-Cache-Control".to_owned()];
    let later = ("Expires", "Sun, 06 Nov 1994 09:49:47 GMT");
    let of = |lines: &[(&str, &str)], targets: &[String]| {
        let times = Times { requested: at(0), received_at: at(0), calendar: at(0) };
        let policy = Policy::of(&requested("GET", &[]), &response(200, lines), times, targets)?;
        Some(policy.seconds_left(at(0)))
    };
    for (control, general, seconds_left_expected) in [
        ("max-age=10", FRESH, Some(10)),
        ("max-age=10", ("Cache-Control", "no-store"), Some(10)),
        ("max-age=10", later, Some(10)),
        ("max-age=0", later, Some(0)),
        ("no-store", FRESH, None),
        ("private", FRESH, None),
        ("&", FRESH, Some(60)),
        ("", FRESH, Some(60)),
    ] {
        let lines = [DATE, TAG, general, ("CDN-Cache-Control", control)];
        assert_eq!(of(&lines, &targets), seconds_left_expected, "{control} {general:?}");
    }
}

#[test]
fn rfc9213_3_1_a_cache_that_acts_for_no_origin_takes_only_restrictions_of_cdn_cache_control() {
    let general = ("Cache-Control", "max-age=60, must-understand");
    for (control, line, seconds_left_expected) in [
        // As restrictive as the stricter of the two.
        ("no-store", FRESH, None),
        ("private", FRESH, None),
        ("max-age=10", FRESH, Some(10)),
        ("max-age=99, s-maxage=10", FRESH, Some(10)),
        ("max-age=0", ("Expires", "Sun, 06 Nov 1994 09:49:47 GMT"), Some(0)),
        ("max-age=10", CHANGED, Some(10)),
        ("no-store", general, None),
        // It gives no permission that the general fields do not give.
        ("max-age=99", FRESH, Some(60)),
        ("max-age=99", ("Cache-Control", "no-store"), None),
        ("public, max-age=99", ("Cache-Control", "private"), None),
        // Invalid, it is ignored.
        ("no-store, &", FRESH, Some(60)),
    ] {
        let lines = [DATE, TAG, line, ("CDN-Cache-Control", control)];
        let policy = retained(&requested("GET", &[]), 200, &lines);
        assert_eq!(
            policy.map(|policy| policy.seconds_left(at(0))),
            seconds_left_expected,
            "{control} beside {line:?}"
        );
    }
    let validated = after(0, &[DATE, TAG, FRESH, ("CDN-Cache-Control", "no-cache")]);
    assert_eq!(validated, Some(Verdict::Validate));
}

#[test]
fn rfc9111_7_3_a_cookie_is_shared_only_if_the_response_is_public() {
    let cookie = ("Set-Cookie", "id=1");
    for (control, is_kept) in [
        ("max-age=60", false),
        ("s-maxage=60", false),
        ("max-age=60, public", true),
        ("max-age=60, public, private", false),
    ] {
        let policy = retained(&requested("GET", &[]), 200, &[DATE, TAG, cookie, ("Cache-Control", control)]);
        assert_eq!(policy.is_some(), is_kept, "{control}");
    }
}

#[test]
fn rfc9111_5_3_an_invalid_expires_has_passed() {
    let later = "Sun, 06 Nov 1994 08:49:47 GMT";
    for (expires, lifetime) in [
        (&[later][..], 10),
        (&["Sunday, 06-Nov-94 08:49:47 GMT"], 10),
        (&["Sun Nov  6 08:49:47 1994"], 10),
        (&[DATE.1], 0),
        (&["0"], 0),
        (&["-1"], 0),
        (&["10"], 0),
        (&["SUN, 06 NOV 1994 08:49:47 gmt"], 10),
        (&["Sun, 06 Nov 1994 08:49:47 PST"], 0),
        (&["Sun, 06 Nov 1994 08:49:47 UTC"], 0),
        (&["Sun 06 Nov 1994 08:49:47 GMT"], 0),
        (&["Sun, 06  Nov 1994 08:49:47 GMT"], 0),
        (&["Sun, 06 Nov 1994 8:49:47 GMT"], 0),
        (&["Sun, 06 Nov 1994 08:49:47"], 0),
        (&[later, later], 0),
    ] {
        let mut lines = vec![DATE, TAG];
        lines.extend(expires.iter().map(|value| ("Expires", *value)));
        let policy = retained(&requested("GET", &[]), 200, &lines).unwrap();
        assert_eq!(policy.seconds_left(at(0)), lifetime, "{expires:?}");
    }
}

#[test]
fn rfc9111_5_4_pragma_counts_only_in_requests_without_cache_control() {
    for pragma in ["no-cache", "No-Cache"] {
        let policy = retained(&requested("GET", &[]), 200, &[FRESH, ("Pragma", pragma)]).unwrap();
        assert_eq!(
            policy.verdict(at(0), &requested("GET", &[])),
            Verdict::Fresh,
            "it has no meaning in a response"
        );
        assert_eq!(policy.verdict(at(0), &requested("GET", &[("Pragma", pragma)])), Verdict::Validate);
        let both = [("Pragma", pragma), ("Cache-Control", "max-age=10")];
        assert_eq!(policy.verdict(at(0), &requested("GET", &both)), Verdict::Fresh);
    }
    let policy = retained(&requested("GET", &[]), 200, &[FRESH]).unwrap();
    assert_eq!(policy.verdict(at(0), &requested("GET", &[("Pragma", "x")])), Verdict::Fresh);
}

#[test]
fn rfc9111_5_5_warning_is_an_ordinary_field() {
    let warning = ("Warning", "110 other \"Response is Stale\"");
    let lines = [DATE, CHANGED, ("Cache-Control", "max-age=1"), warning];
    let served = serve_stored(200, &lines, "GET", &[]);
    assert_eq!(served.fields.all("Warning").collect::<Vec<_>>(), [warning.1.as_bytes()]);
    let silent = serve_stored(200, &[DATE, TAG, ("Cache-Control", "max-age=1")], "GET", &[]);
    assert_eq!(silent.fields.get("Warning"), None, "five seconds old, and good for one");
}

#[test]
fn rfc9211_2_a_cache_appends_its_status_to_those_of_others() {
    for (received_at, wanted) in [
        (&[][..], "cache; hit; ttl=55"),
        (&[("Cache-Status", "origin; fwd=uri-miss")], "origin; fwd=uri-miss, cache; hit; ttl=55"),
        (&[("Cache-Status", "a; hit"), ("cache-status", "b; hit")], "a; hit, b; hit, cache; hit; ttl=55"),
    ] {
        let lines: Vec<_> = received_at.iter().copied().chain([DATE, FRESH]).collect();
        let served = serve_stored(200, &lines, "GET", &[]);
        assert_eq!(served.fields.all("Cache-Status").collect::<Vec<_>>(), [wanted.as_bytes()]);
    }
    // A stale response has a negative time to live.
    let stale = serve_stored(200, &[DATE, TAG, ("Cache-Control", "max-age=1")], "GET", &[]);
    assert_eq!(stale.fields.get("Cache-Status"), Some(&b"cache; hit; ttl=-4"[..]));
}
