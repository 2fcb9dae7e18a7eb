//! Section 4.2.4 and RFC 5861: serving stale responses.

use roundtrip_http1::cache::{ServerFailure, Verdict};

use super::{after, at, requested, retained};

#[test]
fn rfc9111_4_2_4_stale_responses_are_served_only_where_allowed() {
    let may_replace_failure = |control: &str, second, failure| {
        let policy = retained(&requested("GET", &[]), 200, &[("Cache-Control", control)]).unwrap();
        policy.may_replace_failure(at(second), &requested("GET", &[]), failure)
    };
    assert!(may_replace_failure("max-age=2", 3, ServerFailure::Unreachable));
    assert!(!may_replace_failure("max-age=2", 2 + 86_401, ServerFailure::Unreachable));
    assert!(!may_replace_failure("max-age=2", 3, ServerFailure::Status(503)));
    for forbidden in ["must-revalidate", "proxy-revalidate", "no-cache", "s-maxage=2"] {
        assert!(
            !may_replace_failure(&format!("max-age=2, {forbidden}"), 3, ServerFailure::Unreachable),
            "{forbidden}"
        );
    }
    // RFC 5861, section 4.
    for failure in [ServerFailure::Unreachable, ServerFailure::Status(500), ServerFailure::Status(504)] {
        assert!(may_replace_failure("max-age=2, stale-if-error=60", 62, failure));
        assert!(!may_replace_failure("max-age=2, stale-if-error=60", 63, failure));
    }
    assert!(!may_replace_failure("max-age=2, stale-if-error=60", 3, ServerFailure::Status(404)));
    assert!(!may_replace_failure("max-age=2, stale-if-error=0", 3, ServerFailure::Unreachable));
}

#[test]
fn rfc5861_3_stale_responses_are_served_while_revalidating() {
    let control = |suffix| format!("max-age=2, stale-while-revalidate=10{suffix}");
    let lines = control("");
    let verdict = |second| after(second, &[("Cache-Control", &lines)]);
    assert_eq!(
        [verdict(1), verdict(2), verdict(12), verdict(13)].map(Option::unwrap),
        [Verdict::Fresh, Verdict::StaleWhileRevalidate, Verdict::StaleWhileRevalidate, Verdict::Validate]
    );
    assert_eq!(after(3, &[("Cache-Control", &control(", must-revalidate"))]), Some(Verdict::Validate));
}

#[test]
fn rfc5861_4_requests_limit_staleness_too() {
    let policy = retained(&requested("GET", &[]), 200, &[("Cache-Control", "max-age=2")]).unwrap();
    for (control, second, is_given) in [
        ("stale-if-error=10", 12, true),
        ("stale-if-error=10", 13, false),
        ("stale-if-error=0", 3, false),
        ("stale-if-error=10, no-cache", 3, false),
        ("x", 3, false),
    ] {
        let lines = [("Cache-Control", control)];
        let request = requested("GET", &lines);
        assert_eq!(
            policy.may_replace_failure(at(second), &request, ServerFailure::Status(503)),
            is_given,
            "{control}"
        );
    }
    let strict = [("Cache-Control", "max-age=2, must-revalidate, stale-if-error=60")];
    let strict = retained(&requested("GET", &[]), 200, &strict).unwrap();
    let request = requested("GET", &[("Cache-Control", "stale-if-error=60")]);
    assert!(!strict.may_replace_failure(at(3), &request, ServerFailure::Status(503)));
}

#[test]
fn rfc9111_4_2_4_forbidden_stale_responses_stay_forbidden_while_revalidating() {
    for forbidding in ["must-revalidate", "proxy-revalidate", "no-cache", "s-maxage=2"] {
        let control = format!("max-age=2, stale-while-revalidate=60, {forbidding}");
        assert_eq!(after(3, &[("Cache-Control", &control)]), Some(Verdict::Validate), "{forbidding}");
    }
    let policy =
        retained(&requested("GET", &[]), 200, &[("Cache-Control", "max-age=2, stale-while-revalidate=60")]);
    let policy = policy.unwrap();
    for (control, verdict) in [
        ("no-cache", Verdict::Validate),
        ("max-age=2", Verdict::Validate),
        ("min-fresh=1", Verdict::Validate),
        ("max-age=10", Verdict::StaleWhileRevalidate),
        ("max-stale", Verdict::Fresh),
    ] {
        let lines = [("Cache-Control", control)];
        let request = requested("GET", &lines);
        assert_eq!(policy.verdict(at(3), &request), verdict, "{control}");
    }
}
