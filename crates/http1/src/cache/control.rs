//! `Cache-Control`: the directives of requests and responses (RFC 9111, section 5.2; RFC 5861).
//!
//! Not its consequences: those are for [`super::policy`].

/// Duration in whole seconds, as directives give it; anything beyond 68 years counts as infinite.
pub(crate) type Seconds = u32;

/// Maximum duration (RFC 9111, section 1.2.2).
pub(crate) const MAX_LIFETIME: Seconds = 1 << 31;

/// Directives of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequestControl {
    /// Revalidate, whatever is stored.
    pub(crate) no_cache: bool,
    /// Do not store the response.
    pub(crate) no_store: bool,
    /// Do not contact the server.
    pub(crate) only_if_cached: bool,
    /// Maximum age.
    pub(crate) max_age: Option<Seconds>,
    /// Minimum remaining freshness.
    pub(crate) min_fresh: Option<Seconds>,
    /// Accepts responses that have been stale for up to this time.
    pub(crate) max_stale: Option<Seconds>,
    /// Accepts responses that have been stale for up to this time if the server fails.
    pub(crate) if_error: Option<Seconds>,
}

impl RequestControl {
    /// Reads the value of one field; call it once per field line.
    pub(crate) fn read(&mut self, value: &[u8]) {
        for (name, argument) in Directives(value) {
            // An invalid number requests the freshest response.
            let strictly = seconds(argument).unwrap_or(0);
            match &*name.to_ascii_lowercase() {
                b"no-cache" => self.no_cache = true,
                b"no-store" => self.no_store = true,
                b"only-if-cached" => self.only_if_cached = true,
                b"max-age" => self.max_age = Some(self.max_age.unwrap_or(MAX_LIFETIME).min(strictly)),
                b"min-fresh" => self.min_fresh = Some(seconds(argument).unwrap_or(MAX_LIFETIME)),
                b"max-stale" if argument.is_none() => self.max_stale = Some(MAX_LIFETIME),
                b"max-stale" => self.max_stale = Some(strictly),
                b"stale-if-error" => self.if_error = Some(strictly),
                _ => {}
            }
        }
    }
}

/// Directives of a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResponseControl {
    pub(crate) no_store: bool,
    pub(crate) no_cache: bool,
    pub(crate) private: bool,
    pub(crate) public: bool,
    /// Never serve it stale.
    pub(crate) must_revalidate: bool,
    /// Never serve it stale, as above, but without permission to share a response to `Authorization`.
    pub(crate) proxy_revalidate: bool,
    pub(crate) must_understand: bool,
    pub(crate) max_age: Option<Seconds>,
    pub(crate) s_maxage: Option<Seconds>,
    pub(crate) while_revalidate: Option<Seconds>,
    pub(crate) if_error: Option<Seconds>,
}

impl ResponseControl {
    /// Reads the value of one field; call it once per field line. The first of duplicate directives counts.
    pub(crate) fn read(&mut self, value: &[u8]) {
        for (name, argument) in Directives(value) {
            // A lifetime that is not a number counts as zero (RFC 9111, section 4.2.1).
            let lifetime = seconds(argument).unwrap_or(0);
            match &*name.to_ascii_lowercase() {
                b"no-store" => self.no_store = true,
                // With field names they would allow the rest to be stored; storing nothing is always allowed.
                b"no-cache" => self.no_cache = true,
                b"private" => self.private = true,
                b"public" => self.public = true,
                b"must-revalidate" => self.must_revalidate = true,
                b"proxy-revalidate" => self.proxy_revalidate = true,
                b"must-understand" => self.must_understand = true,
                b"max-age" => self.max_age = self.max_age.or(Some(lifetime)),
                b"s-maxage" => self.s_maxage = self.s_maxage.or(Some(lifetime)),
                b"stale-while-revalidate" => self.while_revalidate = self.while_revalidate.or(Some(lifetime)),
                b"stale-if-error" => self.if_error = self.if_error.or(Some(lifetime)),
                _ => {}
            }
        }
    }
}

/// Parses a number of any length that has only digits.
pub(crate) fn seconds(argument: Option<&[u8]>) -> Option<Seconds> {
    let digits = argument.filter(|digits| !digits.is_empty())?;
    digits.iter().try_fold(0, |number: Seconds, byte| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit <= 9)?;
        Some(number.saturating_mul(10).saturating_add(Seconds::from(digit)).min(MAX_LIFETIME))
    })
}

/// Iterator over directives: names and unquoted arguments.
struct Directives<'a>(&'a [u8]);

impl<'a> Iterator for Directives<'a> {
    type Item = (&'a [u8], Option<&'a [u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let text = self.0.trim_ascii_start();
            if text.is_empty() {
                return None;
            }
            let end = end_of_element(text);
            self.0 = text.get(end + 1..).unwrap_or_default();
            let element = text.get(..end)?.trim_ascii();
            let equals = element.iter().position(|byte| *byte == b'=' || *byte == b'"');
            match equals {
                None if element.is_empty() => {}
                None => return Some((element, None)),
                // White space before the equals sign makes it another name.
                Some(at) => {
                    let (name, argument) = (element.get(..at)?, element.get(at + 1..)?);
                    return Some((name, Some(unquoted(argument))));
                }
            }
        }
    }
}

/// Returns the index of the comma after the first element, outside of quotes.
fn end_of_element(text: &[u8]) -> usize {
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, byte) in text.iter().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            b',' if !is_quoted => return at,
            _ => {}
        }
    }
    text.len()
}

fn unquoted(argument: &[u8]) -> &[u8] {
    let inside = argument.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\""));
    inside.unwrap_or(argument)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn max_age(value: &str) -> Option<Seconds> {
        let mut control = ResponseControl::default();
        control.read(value.as_bytes());
        control.max_age
    }

    #[test]
    fn a_lifetime_is_digits_with_or_without_quotes() {
        for value in
            ["max-age=3600", "MAX-AGE=3600", "max-age=003600", "max-age=\"3600\"", ", ,max-age=3600,"]
        {
            assert_eq!(max_age(value), Some(3_600), "{value}");
        }
        for value in ["max-age=-1", "max-age=1.5", "max-age='3600'", "max-age", "max-age=", "max-age= 5"] {
            assert_eq!(max_age(value), Some(0), "{value}");
        }
        assert_eq!(max_age("max-age=99999999999999999999"), Some(MAX_LIFETIME));
        assert_eq!(max_age("max-age =5"), None);
    }

    #[test]
    fn quoted_text_is_no_directive() {
        assert_eq!(max_age("extension=\"max-age=3600\""), None);
        assert_eq!(max_age("extension=\"a, max-age=3600, \\\", b\", max-age=1"), Some(1));
        assert_eq!(max_age("extension=\"max-age=3600"), None);
        assert_eq!(max_age("a=\"x\", max-age=2, max-age=3"), Some(2));
    }

    #[test]
    fn invalid_request_directives_request_the_freshest() {
        let mut control = RequestControl::default();
        control.read(b"max-age=10, no-cache, max-stale");
        control.read(b"max-age=5, min-fresh=x, ONLY-IF-CACHED");
        assert_eq!((control.max_age, control.min_fresh), (Some(5), Some(MAX_LIFETIME)));
        assert_eq!(control.max_stale, Some(MAX_LIFETIME));
        assert!(control.no_cache && control.only_if_cached && !control.no_store);
    }
}
