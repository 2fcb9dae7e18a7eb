//! Validators: conditional requests of a client, and their evaluation by a server (RFC 9110, sections 8.8 and 13).
//!
//! Not a cache: storage and freshness are not decided here.

use super::{FieldError, Fields};

/// Validator of an object that a client has stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Validator {
    /// An entity tag, quotes included.
    EntityTag(String),
    /// Date of the last change, as the server wrote it; the only validator in HTTP/1.0.
    LastModified(String),
}

impl Validator {
    /// Makes a request conditional.
    ///
    /// # Errors
    /// If it is not valid in a field.
    pub fn condition(&self, fields: &mut Fields) -> Result<(), FieldError> {
        match self {
            Self::EntityTag(tag) => fields.push("If-None-Match", tag),
            Self::LastModified(date) => fields.push("If-Modified-Since", date),
        }
    }
}

/// Returns whether a request is for changes since this entity tag and date only, so that the response is 304. Dates are
/// compared for equality: none is ever later or earlier, nginx's default.
pub fn is_unchanged(request: &Fields, tag: &str, last_modified: &str) -> bool {
    let mut tags = request.all("If-None-Match").peekable();
    if tags.peek().is_some() {
        // The date counts only without tags (RFC 9110, section 13.1.3).
        return tags.any(|list| {
            list == b"*" || entity_tags(list).any(|listed_tag| listed_tag == opaque(tag.as_bytes()))
        });
    }
    request.get("If-Modified-Since").is_some_and(|date| date == last_modified.as_bytes())
}

/// Returns the tags of a list, without weakness marks, up to the first invalid one. A tag may have commas.
fn entity_tags(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = list;
    std::iter::from_fn(move || {
        let skipped = rest.iter().take_while(|byte| b", \t".contains(byte)).count();
        rest = opaque(rest.get(skipped..)?);
        let inside = rest.strip_prefix(b"\"")?;
        let length = inside.iter().position(|byte| *byte == b'"')? + 2;
        let (tag, after_tag) = rest.split_at_checked(length)?;
        rest = after_tag;
        Some(tag)
    })
}

/// Strips the mark of a weak tag: If-None-Match compares weakly (RFC 9110, section 8.8.3.2).
fn opaque(tag: &[u8]) -> &[u8] {
    tag.strip_prefix(b"W/").unwrap_or(tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATE: &str = "Tue, 24 Jun 1997 00:00:00 GMT";

    fn unchanged(fields: &[(&str, &str)]) -> bool {
        let mut request = Fields::new();
        for (name, value) in fields {
            request.push(name, value).unwrap();
        }
        is_unchanged(&request, "\"a,b\"", DATE)
    }

    #[test]
    fn tag_is_found_anywhere_in_a_list() {
        for list in ["\"a,b\"", "*", "\"x\", \"a,b\"", "W/\"a,b\"", "\"a\",,W/\"a,b\" , \"z\""] {
            assert!(unchanged(&[("If-None-Match", list)]), "{list}");
        }
        for list in ["", "\"a\", \"b\"", "a,b", "\"a,b", "x \"a,b\"", "w/\"a,b\"", "**"] {
            assert!(!unchanged(&[("If-None-Match", list)]), "{list}");
        }
        assert!(unchanged(&[("If-None-Match", "\"x\""), ("if-none-match", "\"a,b\"")]));
    }

    #[test]
    fn date_counts_only_without_a_tag() {
        assert!(unchanged(&[("If-Modified-Since", DATE)]));
        assert!(!unchanged(&[("If-Modified-Since", "Tue, 24 Jun 1997 00:00:01 GMT")]));
        assert!(!unchanged(&[("If-Modified-Since", DATE), ("If-None-Match", "\"x\"")]));
        assert!(!unchanged(&[]));
    }

    #[test]
    fn server_evaluates_the_clients_condition() {
        for validator in [Validator::EntityTag("\"t\"".to_owned()), Validator::LastModified(DATE.to_owned())]
        {
            let mut request = Fields::new();
            validator.condition(&mut request).unwrap();
            assert!(is_unchanged(&request, "\"t\"", DATE));
            assert!(!is_unchanged(&request, "\"u\"", ""));
        }
        let split = Validator::EntityTag("\"t\"\r\nX: y".to_owned());
        assert!(split.condition(&mut Fields::new()).is_err());
    }
}
