//! Targeted cache-control fields, such as `CDN-Cache-Control`: a dictionary of directives for one class of caches
//! (RFC 9213, on the Structured Fields of RFC 9651).
//!
//! Not which caches belong to a class: the operator of a cache sets that with its target list.

use super::control::{MAX_LIFETIME, ResponseControl, Seconds};
use crate::message::Fields;

/// The field for content delivery networks and reverse proxies, which act for the origin (RFC 9213, section 3.1).
pub const CDN_CACHE_CONTROL: &str = "CDN-Cache-Control";

/// Parses the first field of the target list that is valid and not empty (section 2.2). `None` if there is none:
/// `Cache-Control` and `Expires` apply.
pub(super) fn control(fields: &Fields, targets: &[String]) -> Option<ResponseControl> {
    targets.iter().find_map(|name| directives_of(fields, name))
}

/// Adds the restrictions of `CDN-Cache-Control` to the directives of a shared cache that is not a target of it. An origin may
/// exclude a response from its own shared caches (`CDN-Cache-Control: private`) but allow `max-age` to browsers. Other shared
/// caches should not store it either. Storing is optional (RFC 9111, section 3), so this is always correct; permissions are not
/// adopted.
pub(super) fn restrict(control: &mut ResponseControl, fields: &Fields) -> Option<Seconds> {
    let cdn = directives_of(fields, CDN_CACHE_CONTROL)?;
    // `must-understand` overrides `no-store` only within its own field.
    if cdn.no_store && !cdn.must_understand {
        (control.no_store, control.must_understand) = (true, false);
    }
    control.no_cache |= cdn.no_cache;
    control.private |= cdn.private;
    control.must_revalidate |= cdn.must_revalidate || cdn.proxy_revalidate;
    cdn.s_maxage.or(cdn.max_age)
}

/// Reads one field (section 2.1); `None` if it is absent, empty or invalid.
fn directives_of(fields: &Fields, name: &str) -> Option<ResponseControl> {
    let value = fields.all(name).collect::<Vec<_>>().join(&b", "[..]);
    let members = Parser(&value).dictionary().filter(|members| !members.is_empty())?;
    Some(directives(&members))
}

type Member<'a> = (&'a [u8], Item);

/// Bare items, as far as directives distinguish them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Item {
    Integer(i64),
    Boolean(bool),
    /// A decimal, string, token, date, byte sequence or inner list.
    Other,
}

fn directives(members: &[Member<'_>]) -> ResponseControl {
    let mut control = ResponseControl::default();
    for (name, item) in members {
        let is_set = *item != Item::Boolean(false);
        let lifetime = match item {
            Item::Integer(seconds) => {
                Some(Seconds::try_from(*seconds.max(&0)).unwrap_or(MAX_LIFETIME).min(MAX_LIFETIME))
            }
            // A directive of the wrong type is ignored (section 2.1).
            Item::Boolean(_) | Item::Other => None,
        };
        match *name {
            b"no-store" => control.no_store = is_set,
            b"no-cache" => control.no_cache = is_set,
            b"private" => control.private = is_set,
            b"public" => control.public = is_set,
            b"must-revalidate" => control.must_revalidate = is_set,
            b"proxy-revalidate" => control.proxy_revalidate = is_set,
            b"must-understand" => control.must_understand = is_set,
            b"max-age" => control.max_age = lifetime,
            b"s-maxage" => control.s_maxage = lifetime,
            b"stale-while-revalidate" => control.while_revalidate = lifetime,
            b"stale-if-error" => control.if_error = lifetime,
            _ => {}
        }
    }
    control
}

/// The rest of a field value (RFC 9651, section 4.2).
struct Parser<'a>(&'a [u8]);

impl<'a> Parser<'a> {
    /// Parses the members in order; the last of equal keys counts. `None` if the value is not a dictionary.
    fn dictionary(mut self) -> Option<Vec<Member<'a>>> {
        let mut members: Vec<Member<'a>> = Vec::new();
        self.skip(b" ");
        while !self.0.is_empty() {
            let key = self.key()?;
            let item = match self.take(b'=') {
                true => self.item_or_list()?,
                false => Item::Boolean(true),
            };
            self.parameters()?;
            members.retain(|(known, _)| *known != key);
            members.push((key, item));
            self.skip(b" \t");
            if !self.0.is_empty() {
                self.take(b',').then_some(())?;
                self.skip(b" \t");
                // A trailing comma is invalid.
                (!self.0.is_empty()).then_some(())?;
            }
        }
        Some(members)
    }

    fn item_or_list(&mut self) -> Option<Item> {
        if !self.take(b'(') {
            return self.bare_item();
        }
        loop {
            self.skip(b" ");
            if self.take(b')') {
                return Some(Item::Other);
            }
            self.bare_item()?;
            self.parameters()?;
            matches!(self.0.first(), Some(b' ' | b')')).then_some(())?;
        }
    }

    fn parameters(&mut self) -> Option<()> {
        while self.take(b';') {
            self.skip(b" ");
            self.key()?;
            if self.take(b'=') {
                self.bare_item()?;
            }
        }
        Some(())
    }

    fn key(&mut self) -> Option<&'a [u8]> {
        let starts = self.0.first().is_some_and(|byte| byte.is_ascii_lowercase() || *byte == b'*');
        let is_of_key =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-.*".contains(&byte);
        starts.then(|| self.span(is_of_key))
    }

    fn bare_item(&mut self) -> Option<Item> {
        match *self.0.first()? {
            b'-' | b'0'..=b'9' => self.number(),
            b'@' => {
                self.0 = self.0.get(1..)?;
                matches!(self.number()?, Item::Integer(_)).then_some(Item::Other)
            }
            b'"' => self.string(),
            b'?' => {
                let is_true = match self.0.get(1)? {
                    b'0' => false,
                    b'1' => true,
                    _ => return None,
                };
                self.0 = self.0.get(2..)?;
                Some(Item::Boolean(is_true))
            }
            b':' => {
                self.0 = self.0.get(1..)?;
                self.span(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte));
                self.take(b':').then_some(Item::Other)
            }
            b'*' | b'a'..=b'z' | b'A'..=b'Z' => {
                self.span(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(&byte));
                Some(Item::Other)
            }
            _ => None,
        }
    }

    /// An integer of at most 15 digits, or a decimal of at most 12 and 3.
    fn number(&mut self) -> Option<Item> {
        let is_negative = self.take(b'-');
        let digits = self.span(|byte| byte.is_ascii_digit());
        if self.take(b'.') {
            let fraction = self.span(|byte| byte.is_ascii_digit());
            let is_decimal = (1..=12).contains(&digits.len()) && (1..=3).contains(&fraction.len());
            return is_decimal.then_some(Item::Other);
        }
        if !(1..=15).contains(&digits.len()) {
            return None;
        }
        let number: i64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
        Some(Item::Integer(if is_negative { -number } else { number }))
    }

    fn string(&mut self) -> Option<Item> {
        let mut rest = self.0.get(1..)?;
        loop {
            let (byte, after) = rest.split_first()?;
            rest = match byte {
                b'"' => {
                    self.0 = after;
                    return Some(Item::Other);
                }
                b'\\' => after.strip_prefix(b"\"").or_else(|| after.strip_prefix(b"\\"))?,
                b' '..=b'~' => after,
                _ => return None,
            };
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_next = self.0.first() == Some(&byte);
        if is_next {
            self.0 = &self.0[1..];
        }
        is_next
    }

    fn skip(&mut self, bytes: &[u8]) {
        self.span(|byte| bytes.contains(&byte));
    }

    fn span(&mut self, is_of_it: impl Fn(u8) -> bool) -> &'a [u8] {
        let end = self.0.iter().position(|byte| !is_of_it(*byte)).unwrap_or(self.0.len());
        let (span, rest) = self.0.split_at(end);
        self.0 = rest;
        span
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(value: &str) -> Option<ResponseControl> {
        let mut fields = Fields::new();
        fields.push_checked(b"cdn-cache-control", value.as_bytes());
        control(&fields, &[CDN_CACHE_CONTROL.to_owned()])
    }

    #[test]
    fn directives_are_members_of_a_dictionary() {
        let control =
            parsed("max-age=600;x=1, stale-if-error=60,\tno-cache=?0, private, y=(1 a \"b\");z").unwrap();
        assert_eq!((control.max_age, control.if_error), (Some(600), Some(60)));
        assert!(control.private && !control.no_cache && !control.no_store);
        assert_eq!(parsed("max-age=1, max-age=2").unwrap().max_age, Some(2), "the last of equal keys");
        assert_eq!(parsed("max-age=99999999999").unwrap().max_age, Some(MAX_LIFETIME));
        assert_eq!(parsed("max-age=-5").unwrap().max_age, Some(0));
    }

    #[test]
    fn directives_of_the_wrong_type_are_ignored() {
        for value in
            ["max-age=\"60\"", "max-age=60.0", "max-age=sixty", "max-age=@60", "max-age", "max-age=:YQ==:"]
        {
            assert_eq!(parsed(value).map(|control| control.max_age), Some(None), "{value}");
        }
    }

    #[test]
    fn a_field_that_is_not_a_dictionary_is_ignored() {
        for value in [
            "",
            "max-age=1,",
            ",max-age=1",
            "max-age=1, &&&",
            "MAX-AGE=1",
            "max-age =1",
            "max-age= 1",
            "max-age=1 private",
            "x=\"a",
            "x=\"\\a\"",
            "x=(1",
            "x=1234567890123456",
            "x=1.",
            "x=?2",
            "x=\u{e4}",
        ] {
            assert_eq!(parsed(value), None, "{value}");
        }
    }

    #[test]
    fn the_first_valid_field_of_the_target_list_counts() {
        let mut fields = Fields::new();
        fields.push("A-Cache-Control", "=").unwrap();
        fields.push("B-Cache-Control", "no-store").unwrap();
        fields.push("C-Cache-Control", "max-age=1").unwrap();
        let targets = ["A-Cache-Control", "B-Cache-Control", "C-Cache-Control"].map(str::to_owned);
        assert!(control(&fields, &targets).unwrap().no_store);
        assert_eq!(control(&fields, &targets[..1]), None);
        assert_eq!(control(&fields, &[]), None);
    }
}
