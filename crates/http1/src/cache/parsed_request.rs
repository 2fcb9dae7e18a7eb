//! A request, parsed for a cache: borrowed, whatever its channel.
//!
//! Not the stored response for it: that is for [`super::policy`] and [`mod@super::reuse`].

use super::control::RequestControl;
use crate::gateway::{is_method_override, is_rewriting_field};
use crate::message::Fields;

/// A request, parsed once.
#[derive(Clone, Debug)]
pub struct ParsedRequest<'a> {
    method: &'a str,
    lines: Vec<(&'a [u8], &'a [u8])>,
    pub(super) control: RequestControl,
    /// Whether it has a condition or a range, so that the response may differ from the stored one.
    pub(super) is_conditional: bool,
}

impl<'a> ParsedRequest<'a> {
    /// Parses a request with these fields.
    pub fn new(method: &'a str, fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) -> Self {
        let lines: Vec<_> = fields.into_iter().collect();
        let mut control = RequestControl::default();
        let (mut has_control, mut has_pragma, mut is_conditional) = (false, false, false);
        for (name, value) in &lines {
            match name.len() {
                13 if name.eq_ignore_ascii_case(b"Cache-Control") => {
                    has_control = true;
                    control.read(value);
                }
                13 if name.eq_ignore_ascii_case(b"If-None-Match") => is_conditional = true,
                17 if name.eq_ignore_ascii_case(b"If-Modified-Since") => is_conditional = true,
                5 if name.eq_ignore_ascii_case(b"Range") => is_conditional = true,
                6 if name.eq_ignore_ascii_case(b"Pragma") => {
                    has_pragma |= value.eq_ignore_ascii_case(b"no-cache")
                }
                _ => {}
            }
        }
        // The directive of HTTP/1.0 clients, if there is no better one (RFC 9111, section 5.4).
        control.no_cache |= has_pragma && !has_control;
        Self { method, lines, control, is_conditional }
    }

    /// Returns whether a field of this name concerns caches, conditions or parts. A GET without such a field gets
    /// any fresh response that depends on nothing else, whole.
    pub const fn is_about_caches(name: &[u8]) -> bool {
        matches!(
            (name.len(), name),
            (13, [b'C' | b'c', b'a' | b'A', ..] | [b'I' | b'i', ..])
                | (6, [b'P' | b'p', ..])
                | (5, [b'R' | b'r', ..])
                | (8, [b'I' | b'i', ..])
                | (17 | 19, [b'I' | b'i', ..])
                // Fields that override the method.
                | (13 | 17 | 22, [b'X' | b'x', ..])
        )
    }

    /// Returns whether a stored response may satisfy the request. It must be GET or HEAD, without a condition that only
    /// a server can judge (RFC 9111, section 4.3.1). It must have no field by which a framework may take it for another
    /// request.
    pub fn is_for_cache(&self) -> bool {
        let is_for_server = |name: &[u8]| {
            name.eq_ignore_ascii_case(b"If-Match")
                || name.eq_ignore_ascii_case(b"If-Unmodified-Since")
                || is_method_override(name)
                || (is_rewriting_field(name) && !states_client_only(name))
        };
        matches!(self.method, "GET" | "HEAD") && !self.lines.iter().any(|(name, _)| is_for_server(name))
    }

    /// Returns whether only a stored response may satisfy it (`only-if-cached`); without one, that is 504.
    pub const fn is_only_for_cache(&self) -> bool {
        self.control.only_if_cached
    }

    /// Returns whether the request forbids storing the response (`no-store`).
    pub const fn is_not_to_be_kept(&self) -> bool {
        self.control.no_store
    }

    /// Returns whether the response has no body, because the method is HEAD.
    pub fn is_head(&self) -> bool {
        self.method == "HEAD"
    }

    pub(super) fn is_get(&self) -> bool {
        self.method == "GET"
    }

    /// Returns the values of every field with this name, in any case.
    pub(super) fn all<'s>(&'s self, name: &'s [u8]) -> impl Iterator<Item = &'a [u8]> + 's {
        self.lines
            .iter()
            .filter(move |(field_name, _)| field_name.eq_ignore_ascii_case(name))
            .map(|(_, value)| *value)
    }

    /// Copies the fields.
    pub(super) fn to_fields(&self) -> Fields {
        let mut fields = Fields::new();
        for (name, value) in &self.lines {
            fields.push_checked(name, value);
        }
        fields
    }
}

/// Returns whether a field states no more than where a client is; other proxies add it to everything.
fn states_client_only(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"X-Forwarded-For") || name.eq_ignore_ascii_case(b"X-Real-IP")
}
