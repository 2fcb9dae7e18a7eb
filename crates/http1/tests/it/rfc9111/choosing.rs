//! Section 4.1: selection of a stored response by `Vary`.

use roundtrip_http1::cache::Choice;
use roundtrip_http1::cache::vary::suits;
use roundtrip_http1::message::Fields;

use super::{Lines, fields, requested};

#[test]
fn rfc9111_4_1_a_response_is_reused_for_matching_requests() {
    let vary = |names| fields(&[("Vary", names)]);
    let request = requested("GET", &[("Accept-Language", "da, en"), ("Foo", "1")]);
    let choice = Choice::of(&request, &vary("accept-language, , FOO, foo")).unwrap();
    let is_for = |lines: Lines<'_>| suits(choice.as_bytes(), &requested("GET", lines));
    assert!(is_for(&[("foo", "1"), ("Accept-Language", "da,en"), ("Bar", "2")]));
    assert!(is_for(&[("Accept-Language", "da"), ("Foo", "1"), ("Accept-Language", "en")]));
    assert!(!is_for(&[("Accept-Language", "en, da"), ("Foo", "1")]));
    assert!(!is_for(&[("Accept-Language", "da, en")]));
    let absent = Choice::of(&requested("GET", &[]), &vary("Foo")).unwrap();
    assert!(suits(absent.as_bytes(), &requested("GET", &[])));
    assert!(!suits(absent.as_bytes(), &requested("GET", &[("Foo", "")])));
    for star in ["*", ", *", "Foo, *", "*, *"] {
        assert_eq!(Choice::of(&request, &vary(star)), None, "{star}");
    }
    assert!(suits(Choice::of(&request, &Fields::new()).unwrap().as_bytes(), &requested("GET", &[])));
}

#[test]
fn rfc9111_4_1_every_line_of_vary_counts_and_nothing_else_does() {
    let request = requested("GET", &[("A", "1"), ("B", "2"), ("C", "3")]);
    let choice = Choice::of(&request, &fields(&[("Vary", "A"), ("X", "C"), ("vary", "b")])).unwrap();
    for (lines, is_for) in [
        (&[("A", "1"), ("B", "2")][..], true),
        (&[("a", " 1 "), ("b", "2"), ("C", "4")], true),
        (&[("A", "1")], false),
        (&[("B", "2")], false),
        (&[("A", "1"), ("B", "2"), ("B", "2")], false),
        (&[("A", "1, 1"), ("B", "2")], false),
        (&[], false),
    ] {
        assert_eq!(suits(choice.as_bytes(), &requested("GET", lines)), is_for, "{lines:?}");
    }
    assert!(suits(choice.as_bytes(), &requested("HEAD", &[("A", "1"), ("B", "2")])));
}

#[test]
fn rfc9111_4_1_values_cannot_be_confused() {
    let choice = |lines: Lines<'_>| {
        Choice::of(&requested("GET", lines), &fields(&[("Vary", "a, b")])).unwrap().as_bytes().to_vec()
    };
    let all = [
        choice(&[("a", "x")]),
        choice(&[("a", "x"), ("b", "")]),
        choice(&[("a", "-x")]),
        choice(&[("b", "x")]),
        choice(&[("a", "b:-x")]),
        choice(&[("a", ""), ("b", "x")]),
    ];
    for (index, key) in all.iter().enumerate() {
        assert_eq!(all.iter().position(|candidate| candidate == key), Some(index));
    }
}
