//! Conversion of a request's target to a path below the directory, decoded once (RFC 3986, section 2.4).
//!
//! Not the only protection: the kernel confines lookups to the directory whatever passes here. This module rejects what two
//! parsers could interpret differently.

use std::borrow::Cow;

/// Returns the path without its first slash; empty for the directory itself.
///
/// # Errors
/// The status: 400 for a malformed target, 404 for a path that is never served.
pub(super) fn below_root(target: &str) -> Result<Cow<'_, str>, u16> {
    if is_plain(target.as_bytes()) {
        return Ok(Cow::Borrowed(target.get(1..).unwrap_or_default()));
    }
    let path = match target.split_once("://") {
        Some((scheme, rest)) if !scheme.contains('/') => {
            rest.find('/').and_then(|slash| rest.get(slash..)).unwrap_or("/")
        }
        Some(_) | None => target,
    };
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let path = path.strip_prefix("/_dhttp_/").or_else(|| path.strip_prefix('/')).ok_or(400_u16)?;
    let decoded = decode(path)?;
    let segments = decoded.split('/');
    if segments.clone().any(|part| part == ".." || part == ".") {
        return Err(400);
    }
    // Hidden files are not served, except in the directory that standards define (RFC 8615).
    if segments.clone().any(|part| part.starts_with('.') && part != ".well-known") {
        return Err(404);
    }
    let last = decoded.strip_suffix('/').unwrap_or(&decoded);
    if decoded == "/" || (!last.is_empty() && last.split('/').any(str::is_empty)) {
        return Err(404);
    }
    Ok(Cow::Owned(decoded))
}

/// Whether there is nothing to decode and nothing to reject, as in most targets: letters, digits, single slashes, and dots
/// inside of names. A segment that begins with an underscore may be a prefix.
fn is_plain(target: &[u8]) -> bool {
    let Some((b'/', path)) = target.split_first() else { return false };
    let mut before = b'/';
    for byte in path {
        let is_fine = match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' => true,
            b'_' | b'.' | b'/' => before != b'/',
            _ => false,
        };
        if !is_fine {
            return false;
        }
        before = *byte;
    }
    true
}

fn decode(path: &str) -> Result<String, u16> {
    let mut bytes = path.bytes();
    let mut decoded = Vec::with_capacity(path.len());
    while let Some(byte) = bytes.next() {
        let byte = match byte {
            b'%' => {
                let (Some(high), Some(low)) = (hex(bytes.next()), hex(bytes.next())) else { return Err(400) };
                match high << 4 | low {
                    b'/' | 0 => return Err(400),
                    byte => byte,
                }
            }
            byte => byte,
        };
        if byte == b'\\' || byte.is_ascii_control() {
            return Err(400);
        }
        decoded.push(byte);
    }
    String::from_utf8(decoded).map_err(|_| 404)
}

fn hex(digit: Option<u8>) -> Option<u8> {
    u8::try_from(char::from(digit?).to_digit(16)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_below_the_directory_are_decoded_once() {
        for (target, path) in [
            ("/", ""),
            ("/a.html", "a.html"),
            ("/a%20b/c.txt?query#part", "a b/c.txt"),
            ("/_dhttp_/a.html", "a.html"),
            ("http://example.org/a", "a"),
            ("http://example.org", ""),
            ("/sub/", "sub/"),
            ("/.well-known/x", ".well-known/x"),
            ("/100%25", "100%"),
            ("/%2561", "%61"),
        ] {
            assert_eq!(below_root(target).as_deref(), Ok(path), "{target}");
        }
    }

    #[test]
    fn traversal_and_ambiguous_paths_are_rejected() {
        for target in [
            "/../etc/passwd",
            "/a/../../b",
            "/%2e%2e/etc/passwd",
            "/a/%2E./b",
            "/..%2fetc",
            "/a%2fb",
            "/a%5c..%5cb",
            "/a\\b",
            "/a%00.html",
            "/./a",
            "/a//b",
            "//etc/passwd",
            "//",
            "/%zz",
            "/%2",
            "a",
            "*",
            "/.git/config",
            "/a/.htpasswd",
            "/%ff",
            "/a%0d%0ab",
        ] {
            assert!(below_root(target).is_err(), "{target}");
        }
    }
}
