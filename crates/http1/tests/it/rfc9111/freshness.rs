//! Section 4.2, except 4.2.4: freshness lifetime and age of a response.

use roundtrip_http1::cache::{Policy, Times, Verdict};

use super::{CHANGED, DATE, Lines, TAG, after, at, requested, response, retained};

#[test]
fn rfc9111_4_2_1_the_first_stated_lifetime_counts() {
    let control = |value| ("Cache-Control", value);
    let expires = |value| ("Expires", value);
    let minute_later = expires("Sun, 06 Nov 1994 08:50:37 GMT");
    for (lines, lifetime) in [
        (&[control("max-age=10, s-maxage=20"), minute_later][..], 20),
        (&[control("max-age=10"), minute_later], 10),
        (&[minute_later], 60),
        (&[expires("Sunday, 06-Nov-94 08:50:37 GMT")], 60),
        (&[control("max-age=10"), control("max-age=30")], 10),
        (&[control("max-age=\"10\"")], 10),
    ] {
        let lines: Vec<_> = lines.iter().copied().chain([DATE]).collect();
        assert_eq!(after(lifetime - 1, &lines), Some(Verdict::Fresh), "{lines:?}");
        assert_eq!(after(lifetime, &lines), Some(Verdict::Validate), "{lines:?}");
    }
    let tag = ("ETag", "\"t\"");
    for lines in [
        &[expires("0"), tag][..],
        &[expires("Sun, 06 Nov 1994 08:49:37 GMT"), tag],
        &[minute_later, minute_later, tag],
        &[control("max-age=-10"), minute_later, tag],
        &[control("max-age=0"), minute_later, tag],
        &[control("max-age='60'"), tag],
    ] {
        assert_eq!(after(0, lines), Some(Verdict::Validate), "{lines:?}");
    }
}

#[test]
fn rfc9111_4_2_2_heuristic_lifetime_is_a_tenth_of_the_age() {
    let changed = ("Last-Modified", "Sun, 06 Nov 1994 08:32:57 GMT");
    assert_eq!(after(99, &[DATE, changed]), Some(Verdict::Fresh));
    assert_eq!(after(100, &[DATE, changed]), Some(Verdict::Validate));
    let status = |status, lines: Lines<'_>| {
        let request = requested("GET", &[]);
        retained(&request, status, lines).map(|policy| policy.verdict(at(1), &request))
    };
    for guessable in [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501] {
        assert_eq!(status(guessable, &[DATE, changed]), Some(Verdict::Fresh), "{guessable}");
    }
    for other in [201, 202, 302, 403, 500, 502, 503, 504, 599] {
        assert_eq!(status(other, &[DATE, changed]), None, "{other}");
    }
    assert_eq!(status(599, &[DATE, changed, ("Cache-Control", "public")]), Some(Verdict::Fresh));
    assert_eq!(status(200, &[DATE, changed, ("Set-Cookie", "a=b")]), None);
    let old = ("Last-Modified", "Sun, 06 Nov 1904 08:32:57 GMT");
    assert_eq!(after(1, &[DATE, old]), Some(Verdict::Validate), "a date before 1970 is none");
}

#[test]
fn rfc9111_4_2_3_the_age_is_the_oldest_that_is_known() {
    let age = |lines: Lines<'_>, requested_at, received_at| {
        let times =
            Times { requested: at(requested_at), received_at: at(received_at), calendar: at(received_at) };
        let lines: Vec<_> = [("Cache-Control", "max-age=60")].iter().chain(lines).copied().collect();
        let policy = Policy::of(&requested("GET", &[]), &response(200, &lines), times, &[]).unwrap();
        policy.age(at(received_at + 5)).as_secs_f64()
    };
    assert_eq!(age(&[], 0, 0), 5.0);
    assert_eq!(age(&[DATE], 0, 30), 35.0);
    assert_eq!(age(&[DATE, ("Age", "20")], 0, 0), 25.0);
    assert_eq!(age(&[("Age", "20")], 0, 3), 28.0);
    let fresh = ("Cache-Control", "max-age=60");
    assert_eq!(after(0, &[fresh, ("Age", "60")]), Some(Verdict::Validate));
}

#[test]
fn rfc9111_4_2_1_and_1_2_2_an_overflowing_lifetime_is_infinite() {
    for control in ["max-age=2147483648", "max-age=4294967296", "max-age=99999999999999999999999"] {
        let policy = retained(&requested("GET", &[]), 200, &[("Cache-Control", control)]).unwrap();
        assert_eq!(policy.seconds_left(at(0)), 1 << 31, "{control}");
    }
}

#[test]
fn rfc9111_4_2_2_no_heuristic_with_a_stated_lifetime() {
    for lines in [
        &[("Cache-Control", "max-age=0")][..],
        &[("Cache-Control", "max-age=x")],
        &[("Cache-Control", "s-maxage=0")],
        &[("Expires", "never")],
        &[("Expires", "")],
    ] {
        let lines: Vec<_> = lines.iter().copied().chain([DATE, CHANGED]).collect();
        assert_eq!(after(0, &lines), Some(Verdict::Validate), "{lines:?}");
    }
    assert_eq!(after(0, &[DATE, CHANGED, ("Cache-Control", "no-transform")]), Some(Verdict::Fresh));
}

#[test]
fn rfc9111_4_2_2_the_heuristic_is_at_most_a_day_and_none_for_future_dates() {
    let old = ("Last-Modified", "Sun, 06 Nov 1984 08:49:37 GMT");
    assert_eq!(after(86_399, &[DATE, old]), Some(Verdict::Fresh));
    assert_eq!(after(86_400, &[DATE, old]), Some(Verdict::Validate));
    let later = ("Last-Modified", "Sun, 06 Nov 2094 08:49:37 GMT");
    assert_eq!(after(0, &[DATE, later]), Some(Verdict::Validate));
    assert_eq!(after(0, &[DATE, ("Last-Modified", "long ago"), TAG]), Some(Verdict::Validate));
}

#[test]
fn rfc9111_4_2_3_transit_time_and_clock_difference_count_once() {
    let age = |lines: Lines<'_>, requested_at, received_at, now| {
        let times =
            Times { requested: at(requested_at), received_at: at(received_at), calendar: at(received_at) };
        let lines: Vec<_> = [super::FRESH].iter().chain(lines).copied().collect();
        let policy = Policy::of(&requested("GET", &[]), &response(200, &lines), times, &[]).unwrap();
        policy.age(at(now)).as_secs_f64()
    };
    for (lines, requested_at, received_at, now, wanted) in [
        // Neither a date nor an age: the age is the time since the request.
        (&[][..], 0, 4, 10, 10.0),
        // The server's clock shows a higher age.
        (&[DATE], 18, 20, 30, 30.0),
        // Another cache reports a higher age.
        (&[DATE, ("Age", "100")], 18, 20, 30, 112.0),
        // A server's clock that is ahead gives no negative age.
        (&[("Date", "Sun, 06 Nov 1994 09:49:37 GMT")], 20, 20, 25, 5.0),
        // An invalid date.
        (&[("Date", "today")], 20, 20, 25, 5.0),
    ] {
        assert_eq!(age(lines, requested_at, received_at, now), wanted, "{lines:?}");
    }
}

#[test]
fn rfc9111_4_2_3_steps_of_the_calendar_neither_extend_nor_end_freshness() {
    // The calendar is a day behind the clock of ages, or a day ahead: only `Date` is compared with it.
    let day = 86_400;
    for calendar in [at(0), at(day), wire::Time::ZERO + wire::Duration::from_secs(super::RECEIVED - day)] {
        let date = if calendar == at(day) {
            "Mon, 07 Nov 1994 08:49:37 GMT"
        } else {
            "Sun, 06 Nov 1994 08:49:37 GMT"
        };
        let lines = [("Date", date), ("Cache-Control", "max-age=60"), ("ETag", "\"t\"")];
        let times = Times { requested: at(5), received_at: at(5), calendar };
        let policy = Policy::of(&requested("GET", &[]), &response(200, &lines), times, &[]).unwrap();
        assert_eq!(policy.seconds_left(at(5)), 60, "{calendar:?}");
        assert!(policy.is_fresh(at(64)) && !policy.is_fresh(at(65)));
        // Stored by a clock that was ahead: of unknown age.
        assert!(!policy.is_fresh(at(4)));
        assert_eq!(policy.verdict(at(4), &requested("GET", &[])), Verdict::Validate);
    }
}
