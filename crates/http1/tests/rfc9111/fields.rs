//! Section 5, but for 5.2, and RFC 9211: `Age`, `Expires`, `Pragma`, `Warning` and `Cache-Status`.

use roundtrip_http1::cache::Verdict;

use crate::{CHANGED, DATE, FRESH, TAG, after, asked, at, given, given_of, kept};

#[test]
fn rfc9111_5_1_every_answer_that_was_kept_tells_its_age() {
    let given = given("GET", &[]);
    assert_eq!((given.status, given.part), (200, (0, 10)));
    assert_eq!(given.fields.all("Age").collect::<Vec<_>>(), [b"5"]);
    assert_eq!(given.fields.get("Date"), Some(DATE.1.as_bytes()));
    assert_eq!(given.fields.get("Cache-Status"), Some(&b"cache; hit; ttl=55"[..]));
}

#[test]
fn rfc9111_5_1_the_age_that_came_is_added_to_and_not_given_beside_ours() {
    let given = given_of(200, &[DATE, FRESH, ("Age", "30")], "GET", &[]);
    assert_eq!(given.fields.all("Age").collect::<Vec<_>>(), [b"35"]);
}

/// The section would have what cannot be read ignored, and of a list the first; to take such an answer for stale is
/// stricter, and what the public suite of tests wants.
#[test]
fn rfc9111_5_1_an_age_that_cannot_be_read_is_as_old_as_any() {
    for (age, verdict) in [
        ("0", Verdict::Fresh),
        ("59", Verdict::Fresh),
        ("60", Verdict::Validate),
        ("99999999999999999999", Verdict::Validate),
        ("0, 60", Verdict::Validate),
        ("60, 0", Verdict::Validate),
        ("+1", Verdict::Validate),
        ("1.0", Verdict::Validate),
        ("one", Verdict::Validate),
    ] {
        assert_eq!(after(0, &[FRESH, TAG, ("Age", age)]), Some(verdict), "{age}");
    }
}

#[test]
fn rfc9111_5_3_a_date_that_is_none_has_passed() {
    let later = "Sun, 06 Nov 1994 08:49:47 GMT";
    for (expires, lifetime) in [
        (&[later][..], 10),
        (&["Sunday, 06-Nov-94 08:49:47 GMT"], 10),
        (&["Sun Nov  6 08:49:47 1994"], 10),
        (&[DATE.1], 0),
        (&["0"], 0),
        (&["-1"], 0),
        (&["10"], 0),
        (&["Sun, 06 Nov 1994 08:49:47 PST"], 0),
        (&["Sun, 06 Nov 1994 08:49:47"], 0),
        (&[later, later], 0),
    ] {
        let mut lines = vec![DATE, TAG];
        lines.extend(expires.iter().map(|value| ("Expires", *value)));
        let policy = kept(&asked("GET", &[]), 200, &lines).unwrap();
        assert_eq!(policy.seconds_left(at(0)), lifetime, "{expires:?}");
    }
}

#[test]
fn rfc9111_5_4_pragma_is_of_requests_and_only_where_nothing_better_is_said() {
    for pragma in ["no-cache", "No-Cache"] {
        let policy = kept(&asked("GET", &[]), 200, &[FRESH, ("Pragma", pragma)]).unwrap();
        assert_eq!(policy.verdict(at(0), &asked("GET", &[])), Verdict::Fresh, "of an answer it says nothing");
        assert_eq!(policy.verdict(at(0), &asked("GET", &[("Pragma", pragma)])), Verdict::Validate);
        let both = [("Pragma", pragma), ("Cache-Control", "max-age=10")];
        assert_eq!(policy.verdict(at(0), &asked("GET", &both)), Verdict::Fresh);
    }
    let policy = kept(&asked("GET", &[]), 200, &[FRESH]).unwrap();
    assert_eq!(policy.verdict(at(0), &asked("GET", &[("Pragma", "x")])), Verdict::Fresh);
}

#[test]
fn rfc9111_5_5_nobody_is_warned_and_what_others_warned_of_is_a_field_like_any() {
    let warning = ("Warning", "110 other \"Response is Stale\"");
    let lines = [DATE, CHANGED, ("Cache-Control", "max-age=1"), warning];
    let given = given_of(200, &lines, "GET", &[]);
    assert_eq!(given.fields.all("Warning").collect::<Vec<_>>(), [warning.1.as_bytes()]);
    let silent = given_of(200, &[DATE, TAG, ("Cache-Control", "max-age=1")], "GET", &[]);
    assert_eq!(silent.fields.get("Warning"), None, "five seconds old, and good for one");
}

#[test]
fn rfc9211_2_a_cache_puts_its_word_behind_those_of_others() {
    for (came, wanted) in [
        (&[][..], "cache; hit; ttl=55"),
        (&[("Cache-Status", "origin; fwd=uri-miss")], "origin; fwd=uri-miss, cache; hit; ttl=55"),
        (&[("Cache-Status", "a; hit"), ("cache-status", "b; hit")], "a; hit, b; hit, cache; hit; ttl=55"),
    ] {
        let lines: Vec<_> = came.iter().copied().chain([DATE, FRESH]).collect();
        let given = given_of(200, &lines, "GET", &[]);
        assert_eq!(given.fields.all("Cache-Status").collect::<Vec<_>>(), [wanted.as_bytes()]);
    }
    // What is stale has a time to live below nothing.
    let stale = given_of(200, &[DATE, TAG, ("Cache-Control", "max-age=1")], "GET", &[]);
    assert_eq!(stale.fields.get("Cache-Status"), Some(&b"cache; hit; ttl=-4"[..]));
}
