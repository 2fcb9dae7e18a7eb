//! RFC 9111, section by section: what a shared cache keeps, for how long, and what it gives of it.
//!
//! An outside oracle: each test names the section that it holds the decisions to.

use proto::cache::update::{describes, for_server, freshened, is_about, obsolete};
use proto::cache::vary::suits;
use proto::cache::{Asked, Choice, Given, Kept, Policy, Times, Trouble, Verdict, answer};
use proto::http::{Fields, Method, RequestHead, ResponseHead, Version};
use wire::{Duration, Time};

/// `Sun, 06 Nov 1994 08:49:37 GMT`, when every answer here comes.
const CAME: u64 = 784_111_777;
const DATE: (&str, &str) = ("Date", "Sun, 06 Nov 1994 08:49:37 GMT");

type Lines<'a> = &'a [(&'a str, &'a str)];

fn at(second: u64) -> Time {
    Time::ZERO + Duration::from_secs(CAME + second)
}

fn fields(lines: Lines<'_>) -> Fields {
    let mut fields = Fields::new();
    for (name, value) in lines {
        fields.push(name, value).unwrap();
    }
    fields
}

fn asked<'a>(method: &'a str, lines: Lines<'a>) -> Asked<'a> {
    Asked::new(method, lines.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())))
}

fn response(status: u16, lines: Lines<'_>) -> ResponseHead {
    ResponseHead { version: Version::Http11, status, fields: fields(lines) }
}

fn kept(request: &Asked<'_>, status: u16, lines: Lines<'_>) -> Option<Policy> {
    Policy::of(request, &response(status, lines), Times { asked: at(0), came: at(0) })
}

/// What may be done after so many seconds with an answer that says this, for a request that says nothing.
fn after(second: u64, lines: Lines<'_>) -> Option<Verdict> {
    Some(kept(&asked("GET", &[]), 200, lines)?.verdict(at(second), &asked("GET", &[])))
}

#[test]
fn rfc9111_3_only_what_may_be_shared_is_kept() {
    let is_kept =
        |request: Lines<'_>, status, lines: Lines<'_>| kept(&asked("GET", request), status, lines).is_some();
    let fresh = ("Cache-Control", "max-age=60");
    assert!(is_kept(&[], 200, &[fresh]));
    assert!(is_kept(&[], 599, &[fresh]));
    assert!(!is_kept(&[], 200, &[]));
    assert!(!is_kept(&[("Cache-Control", "no-store")], 200, &[fresh]));
    for directive in ["no-store, max-age=60", "private, max-age=60", "PRIVATE=\"x\", max-age=60", "max-age=0"]
    {
        assert!(!is_kept(&[], 200, &[("Cache-Control", directive)]), "{directive}");
    }
    for status in [100, 206, 304] {
        assert!(!is_kept(&[], status, &[fresh]), "{status}");
    }
    for method in ["HEAD", "POST", "PUT", "OPTIONS", "get"] {
        assert!(kept(&asked(method, &[]), 200, &[fresh]).is_none(), "{method}");
    }
}

#[test]
fn rfc9111_3_5_who_says_who_he_is_gets_his_own() {
    let request = asked("GET", &[("Authorization", "Basic eDp5")]);
    let is_kept = |control| kept(&request, 200, &[("Cache-Control", control)]).is_some();
    assert!(!is_kept("max-age=60"));
    assert!(
        is_kept("max-age=60, public") && is_kept("max-age=60, must-revalidate") && is_kept("s-maxage=60")
    );
}

#[test]
fn rfc9111_4_1_an_answer_is_for_requests_like_its_own() {
    let vary = |names| fields(&[("Vary", names)]);
    let request = asked("GET", &[("Accept-Language", "da, en"), ("Foo", "1")]);
    let choice = Choice::of(&request, &vary("accept-language, , FOO, foo")).unwrap();
    let is_for = |lines: Lines<'_>| suits(choice.as_bytes(), &asked("GET", lines));
    assert!(is_for(&[("foo", "1"), ("Accept-Language", "da,en"), ("Bar", "2")]));
    assert!(is_for(&[("Accept-Language", "da"), ("Foo", "1"), ("Accept-Language", "en")]));
    assert!(!is_for(&[("Accept-Language", "en, da"), ("Foo", "1")]));
    assert!(!is_for(&[("Accept-Language", "da, en")]));
    let absent = Choice::of(&asked("GET", &[]), &vary("Foo")).unwrap();
    assert!(suits(absent.as_bytes(), &asked("GET", &[])));
    assert!(!suits(absent.as_bytes(), &asked("GET", &[("Foo", "")])));
    for star in ["*", ", *", "Foo, *", "*, *"] {
        assert_eq!(Choice::of(&request, &vary(star)), None, "{star}");
    }
    assert!(suits(Choice::of(&request, &Fields::new()).unwrap().as_bytes(), &asked("GET", &[])));
}

#[test]
fn rfc9111_4_2_1_the_lifetime_is_the_first_that_is_said() {
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
fn rfc9111_4_2_2_without_a_word_a_tenth_of_its_age_is_guessed() {
    let changed = ("Last-Modified", "Sun, 06 Nov 1994 08:32:57 GMT");
    assert_eq!(after(99, &[DATE, changed]), Some(Verdict::Fresh));
    assert_eq!(after(100, &[DATE, changed]), Some(Verdict::Validate));
    let status = |status, lines: Lines<'_>| {
        let request = asked("GET", &[]);
        kept(&request, status, lines).map(|policy| policy.verdict(at(1), &request))
    };
    for guessable in [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501] {
        assert_eq!(status(guessable, &[DATE, changed]), Some(Verdict::Fresh), "{guessable}");
    }
    for other in [201, 202, 302, 403, 500, 502, 503, 504, 599] {
        assert_eq!(status(other, &[DATE, changed]), Some(Verdict::Validate), "{other}");
    }
    assert_eq!(status(599, &[DATE, changed, ("Cache-Control", "public")]), Some(Verdict::Fresh));
    assert_eq!(status(200, &[DATE, changed, ("Set-Cookie", "a=b")]), None);
    let old = ("Last-Modified", "Sun, 06 Nov 1904 08:32:57 GMT");
    assert_eq!(after(1, &[DATE, old]), Some(Verdict::Validate), "a date before 1970 is none");
}

#[test]
fn rfc9111_4_2_3_the_age_is_the_oldest_that_is_known() {
    let age = |lines: Lines<'_>, asked_at, came_at| {
        let times = Times { asked: at(asked_at), came: at(came_at) };
        let lines: Vec<_> = [("Cache-Control", "max-age=60")].iter().chain(lines).copied().collect();
        let policy = Policy::of(&asked("GET", &[]), &response(200, &lines), times).unwrap();
        policy.age(at(came_at + 5)).as_secs_f64()
    };
    assert_eq!(age(&[], 0, 0), 5.0);
    assert_eq!(age(&[DATE], 0, 30), 35.0);
    assert_eq!(age(&[DATE, ("Age", "20")], 0, 0), 25.0);
    assert_eq!(age(&[("Age", "20")], 0, 3), 28.0);
    let fresh = ("Cache-Control", "max-age=60");
    for unreadable in ["-1", "0, 0", "7200.0", "abc", "0;x", ""] {
        assert_eq!(after(0, &[fresh, ("Age", unreadable)]), Some(Verdict::Validate), "{unreadable}");
    }
    assert_eq!(after(0, &[fresh, ("Age", "0"), ("Age", "0")]), Some(Verdict::Validate));
    assert_eq!(after(0, &[fresh, ("Age", "60")]), Some(Verdict::Validate));
}

#[test]
fn rfc9111_4_2_4_what_is_stale_stands_in_only_where_that_is_allowed() {
    let stands_in = |control: &str, second, trouble| {
        let policy = kept(&asked("GET", &[]), 200, &[("Cache-Control", control)]).unwrap();
        policy.stands_in(at(second), &asked("GET", &[]), trouble)
    };
    assert!(stands_in("max-age=2", 3, Trouble::Unreachable));
    assert!(!stands_in("max-age=2", 2 + 86_401, Trouble::Unreachable));
    assert!(!stands_in("max-age=2", 3, Trouble::Says(503)));
    for forbidden in ["must-revalidate", "proxy-revalidate", "no-cache", "s-maxage=2"] {
        assert!(!stands_in(&format!("max-age=2, {forbidden}"), 3, Trouble::Unreachable), "{forbidden}");
    }
    // RFC 5861, section 4.
    for trouble in [Trouble::Unreachable, Trouble::Says(500), Trouble::Says(504)] {
        assert!(stands_in("max-age=2, stale-if-error=60", 62, trouble));
        assert!(!stands_in("max-age=2, stale-if-error=60", 63, trouble));
    }
    assert!(!stands_in("max-age=2, stale-if-error=60", 3, Trouble::Says(404)));
    assert!(!stands_in("max-age=2, stale-if-error=0", 3, Trouble::Unreachable));
}

#[test]
fn rfc5861_3_what_is_stale_is_given_while_it_is_asked_for_again() {
    let control = |more| format!("max-age=2, stale-while-revalidate=10{more}");
    let lines = control("");
    let verdict = |second| after(second, &[("Cache-Control", &lines)]);
    assert_eq!(
        [verdict(1), verdict(2), verdict(12), verdict(13)].map(Option::unwrap),
        [Verdict::Fresh, Verdict::Meanwhile, Verdict::Meanwhile, Verdict::Validate]
    );
    assert_eq!(after(3, &[("Cache-Control", &control(", must-revalidate"))]), Some(Verdict::Validate));
}

#[test]
fn rfc9111_4_3_1_the_server_is_asked_with_what_it_gave() {
    let head = |lines: Lines<'_>| RequestHead {
        method: Method::Get,
        target: "/".to_owned(),
        version: Version::Http11,
        fields: fields(lines),
    };
    let request =
        head(&[("Host", "h"), ("If-None-Match", "\"client\""), ("Range", "bytes=0-1"), ("Accept", "x")]);
    assert_eq!(for_server(&request, None), request);
    let ours = fields(&[("ETag", "\"ours\""), ("Last-Modified", "then"), ("Vary", "Accept")]);
    let sent =
        head(&[("Host", "h"), ("Accept", "x"), ("If-None-Match", "\"ours\""), ("If-Modified-Since", "then")]);
    assert_eq!(for_server(&request, Some(ours.as_lines())), sent);
    let judged = asked("GET", &[("If-Match", "\"x\"")]);
    assert!(!judged.is_for_cache());
}

/// What a request gets of ten bytes with a tag and a date, five seconds old.
fn given(method: &str, lines: Lines<'_>) -> Given {
    let stored = fields(&[
        DATE,
        ("ETag", "\"t\""),
        ("Last-Modified", "Sun, 06 Nov 1994 08:00:00 GMT"),
        ("Content-Type", "text/plain"),
        ("Cache-Control", "max-age=60"),
        ("Age", "0"),
    ]);
    let head = ResponseHead { version: Version::Http11, status: 200, fields: stored };
    let policy = Policy::of(&asked("GET", &[]), &head, Times { asked: at(0), came: at(0) }).unwrap();
    let kept = Kept { status: 200, fields: head.fields.as_lines(), length: 10, policy };
    answer(kept, &asked(method, lines), at(5), "cache", "hit")
}

#[test]
fn rfc9111_4_3_2_who_has_it_already_is_told_so() {
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
        let given = given("GET", lines);
        assert_eq!(given.status, status, "{lines:?}");
        assert_eq!(given.fields.get("ETag"), Some(&b"\"t\""[..]));
        assert_eq!(given.fields.get("Content-Type").is_some(), status == 200);
    }
}

#[test]
fn rfc9111_4_3_4_what_the_server_says_anew_replaces_what_is_kept() {
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
fn rfc9111_4_3_5_the_answer_to_head_describes_what_is_kept_or_not() {
    let stored = fields(&[("ETag", "\"t\"")]);
    assert!(describes(stored.as_lines(), 5, &fields(&[("ETag", "\"t\""), ("Content-Length", "5")])));
    assert!(describes(stored.as_lines(), 5, &Fields::new()));
    assert!(!describes(stored.as_lines(), 5, &fields(&[("Content-Length", "6")])));
    assert!(!describes(stored.as_lines(), 5, &fields(&[("ETag", "\"u\"")])));
    assert!(!describes(stored.as_lines(), 5, &fields(&[("Last-Modified", "now")])));
}

#[test]
fn rfc9111_4_4_a_change_makes_obsolete_what_it_names_on_its_server() {
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
fn rfc9111_5_1_every_answer_that_was_kept_tells_its_age() {
    let given = given("GET", &[]);
    assert_eq!((given.status, given.part), (200, (0, 10)));
    assert_eq!(given.fields.all("Age").collect::<Vec<_>>(), [b"5"]);
    assert_eq!(given.fields.get("Date"), Some(DATE.1.as_bytes()));
    assert_eq!(given.fields.get("Cache-Status"), Some(&b"cache; hit; ttl=55"[..]));
}

#[test]
fn rfc9111_5_2_1_a_request_says_what_it_takes() {
    let lines = [("Cache-Control", "max-age=60")];
    let policy = kept(&asked("GET", &[]), 200, &lines).unwrap();
    let verdict = |control, second| policy.verdict(at(second), &asked("GET", &[("Cache-Control", control)]));
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
    let pragma = |lines| policy.verdict(at(0), &asked("GET", lines));
    assert_eq!(pragma(&[("Pragma", "no-cache")]), Verdict::Validate);
    assert_eq!(pragma(&[("Pragma", "no-cache"), ("Cache-Control", "x")]), Verdict::Fresh);
    assert!(asked("GET", &[("Cache-Control", "only-if-cached")]).is_only_for_cache());
}

#[test]
fn rfc9111_5_2_2_an_answer_says_what_it_allows() {
    let verdict = |control| after(0, &[("Cache-Control", control), ("ETag", "\"t\"")]);
    assert_eq!(verdict("max-age=60, no-cache"), Some(Verdict::Validate));
    assert_eq!(verdict("max-age=60, No-CaChE=\"Set-Cookie\""), Some(Verdict::Validate));
    assert_eq!(verdict("max-age=60, must-understand, no-store"), Some(Verdict::Fresh));
    let unknown = [("Cache-Control", "max-age=60, must-understand")];
    assert_eq!(kept(&asked("GET", &[]), 599, &unknown), None);
    let strict = kept(&asked("GET", &[]), 200, &[("Cache-Control", "max-age=1, must-revalidate")]).unwrap();
    let lenient = asked("GET", &[("Cache-Control", "max-stale")]);
    assert_eq!(strict.verdict(at(2), &lenient), Verdict::Validate);
}

#[test]
fn rfc9110_14_a_part_is_given_of_what_is_kept_whole() {
    let part = |range| {
        let given = given("GET", &[("Range", range)]);
        let said = given.fields.get("Content-Range").map(|value| String::from_utf8_lossy(value).into_owned());
        (given.status, given.part, said.unwrap_or_default())
    };
    assert_eq!(part("bytes=2-3"), (206, (2, 2), "bytes 2-3/10".to_owned()));
    assert_eq!(part("bytes=7-"), (206, (7, 3), "bytes 7-9/10".to_owned()));
    assert_eq!(part("bytes=-4"), (206, (6, 4), "bytes 6-9/10".to_owned()));
    assert_eq!(part("bytes=10-"), (416, (0, 0), "bytes */10".to_owned()));
    assert_eq!(part("bytes=0-1,3-4"), (200, (0, 10), String::new()));
    let with = |condition| given("GET", &[("Range", "bytes=0-0"), ("If-Range", condition)]).status;
    assert_eq!([with("\"t\""), with("\"u\""), with("Sun, 06 Nov 1994 08:00:00 GMT")], [206, 200, 206]);
    assert_eq!(given("HEAD", &[("Range", "bytes=0-0")]).status, 200);
}
