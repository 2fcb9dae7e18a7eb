//! Resolution of references relative to their document: a path on the same host, or nothing. Follows
//! RFC 3986, section 5.2, and the URL standard where browsers differ from it.
//!
//! There is one host and one scheme; references to other hosts are ignored.

/// Base address of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    /// Requested host, with its port if that is not 80.
    host: Vec<u8>,
    /// Path to which references without a host are relative; `None`: on another host.
    path: Option<Vec<u8>>,
}

/// Maximum length of a path: servers need not accept longer ones (RFC 9112, section 3).
const MAX_PATH_BYTES: usize = 8_000;

impl Base {
    /// Base of a document with this path, with query, on this host.
    pub fn new(host: &str, path: &str) -> Self {
        let host = normalize_host(host.as_bytes());
        Self { host, path: Some(path.as_bytes().to_vec()) }
    }

    /// Changes the base for later references.
    pub fn rebase(&mut self, reference: &[u8]) {
        let reference = trim(reference);
        self.path = match self.target(&reference) {
            Target::SameSite(path) => Some(path),
            Target::Document => return,
            Target::OtherSite => None,
        };
    }

    /// The path, with query, of a reference: visible ASCII that begins with `/`. `None` for a reference to
    /// another host or to the document itself, or one longer than 8,000 bytes.
    pub fn resolve(&self, reference: &[u8]) -> Option<String> {
        match self.target(&trim(reference)) {
            Target::SameSite(path) if path.len() <= MAX_PATH_BYTES => String::from_utf8(path).ok(),
            Target::SameSite(_) | Target::Document | Target::OtherSite => None,
        }
    }

    fn target(&self, reference: &[u8]) -> Target {
        let reference = reference.split(|byte| *byte == b'#').next().unwrap_or_default();
        if reference.is_empty() {
            return Target::Document;
        }
        let (is_http, rest) = match scheme(reference) {
            None => (false, reference),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case(b"http") => (true, rest),
            Some(_) => return Target::OtherSite,
        };
        if let [b'/' | b'\\', b'/' | b'\\', rest @ ..] = rest {
            let end = rest.iter().position(|byte| b"/\\?".contains(byte)).unwrap_or(rest.len());
            let (host, path) = rest.split_at(end);
            return if normalize_host(host) == self.host {
                Target::SameSite(normalize(b"/", path))
            } else {
                Target::OtherSite
            };
        }
        match &self.path {
            None => Target::OtherSite,
            // `http:a.gif` is an error by the standard, and a relative reference in browsers.
            Some(_) if is_http && rest.is_empty() => Target::Document,
            Some(base) => Target::SameSite(normalize(base, rest)),
        }
    }
}

/// The URL path of a file whose path below a site's root is `file`, such as `images/a b.gif`. It is the
/// result of resolving a properly encoded reference to the file.
pub fn path_of(file: &str) -> String {
    let mut path = vec![b'/'];
    for byte in file.bytes() {
        // Delimiters of a path, and the beginning of a percent-encoding, are part of the name here.
        if b"?#%".contains(&byte) {
            path.extend_from_slice(format!("%{byte:02X}").as_bytes());
        } else {
            encode(byte, &mut path);
        }
    }
    String::from_utf8_lossy(&path).into_owned()
}

/// The path below a site's root of the file with this URL path: without a query, and percent-decoded; `None`
/// if it is not UTF-8.
pub fn site_path(path: &str) -> Option<String> {
    let (path, _) = split_query(path.as_bytes());
    let mut file = Vec::new();
    let mut rest = path.strip_prefix(b"/").unwrap_or(path);
    while let [byte, tail @ ..] = rest {
        let digits = tail
            .first_chunk::<2>()
            .filter(|digits| *byte == b'%' && digits.iter().all(u8::is_ascii_hexdigit));
        let escaped =
            digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        file.push(escaped.unwrap_or(*byte));
        rest = if escaped.is_some() { tail.get(2..).unwrap_or_default() } else { tail };
    }
    String::from_utf8(file).ok()
}

/// Target of a reference.
enum Target {
    SameSite(Vec<u8>),
    Document,
    OtherSite,
}

/// The reference without surrounding white space, and without line breaks in it.
fn trim(reference: &[u8]) -> Vec<u8> {
    let is_relevant = |byte: &&u8| !b"\t\r\n".contains(byte);
    let inner = reference.trim_ascii().iter().filter(is_relevant).copied();
    inner.collect()
}

/// Splits off a scheme, if there is one.
fn scheme(reference: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = reference.iter().position(|byte| !(byte.is_ascii_alphanumeric() || b"+-.".contains(byte)))?;
    let (scheme, rest) = reference.split_at(end);
    let is_scheme = scheme.first().is_some_and(u8::is_ascii_alphabetic);
    rest.strip_prefix(b":").filter(|_| is_scheme).map(|rest| (scheme, rest))
}

/// The host normalised for comparison: lower case, without port 80.
fn normalize_host(host: &[u8]) -> Vec<u8> {
    let host = host.to_ascii_lowercase();
    host.strip_suffix(b":80").or(host.strip_suffix(b":")).unwrap_or(&host).to_vec()
}

/// The normalised path of `reference`, which has no host, relative to `base`.
fn normalize(base: &[u8], reference: &[u8]) -> Vec<u8> {
    let (path, query) = split_query(reference);
    let (base_path, _) = split_query(base);
    let mut out = Vec::new();
    let directory_end = base_path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    let directory = base_path.get(..directory_end).unwrap_or_default();
    match path.first() {
        None => push_segments(base_path, &mut out),
        Some(b'/' | b'\\') => push_segments(path, &mut out),
        Some(_) => push_segments(&[directory, path].concat(), &mut out),
    }
    if let Some(query) = query {
        out.push(b'?');
        query.iter().for_each(|byte| encode(*byte, &mut out));
    }
    out
}

fn split_query(reference: &[u8]) -> (&[u8], Option<&[u8]>) {
    let mut parts = reference.splitn(2, |byte| *byte == b'?');
    (parts.next().unwrap_or_default(), parts.next())
}

/// Appends an absolute path without dot segments (RFC 3986, section 5.2.4).
fn push_segments(path: &[u8], out: &mut Vec<u8>) {
    let mut retained: Vec<&[u8]> = Vec::new();
    let relative = if let [b'/' | b'\\', rest @ ..] = path { rest } else { path };
    let mut is_directory = false;
    for segment in relative.split(|byte| b"/\\".contains(byte)) {
        is_directory = true;
        match segment {
            b"." => {}
            b".." => drop(retained.pop()),
            _ => {
                is_directory = false;
                retained.push(segment);
            }
        }
    }
    if is_directory {
        retained.push(b"");
    }
    for segment in &retained {
        out.push(b'/');
        segment.iter().for_each(|byte| encode(*byte, out));
    }
    if retained.is_empty() {
        out.push(b'/');
    }
}

/// Appends a byte of a path or a query, percent-encoded unless it is allowed there.
fn encode(byte: u8, out: &mut Vec<u8>) {
    if byte.is_ascii_graphic() && !b"\"<>`".contains(&byte) {
        out.push(byte);
    } else {
        out.extend_from_slice(format!("%{byte:02X}").as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_of_the_standard_hold() {
        // RFC 3986, section 5.4, where host and scheme stay the same; fragments are not requested.
        let base = Base::new("a", "/b/c/d;p?q");
        for (reference, path) in [
            ("g", "/b/c/g"),
            ("./g", "/b/c/g"),
            ("g/", "/b/c/g/"),
            ("/g", "/g"),
            ("?y", "/b/c/d;p?y"),
            ("g?y", "/b/c/g?y"),
            ("g#s", "/b/c/g"),
            (";x", "/b/c/;x"),
            (".", "/b/c/"),
            ("./", "/b/c/"),
            ("..", "/b/"),
            ("../g", "/b/g"),
            ("../..", "/"),
            ("../../../g", "/g"),
            ("/./g", "/g"),
            ("/../g", "/g"),
            ("g.", "/b/c/g."),
            ("..g", "/b/c/..g"),
            ("./g/.", "/b/c/g/"),
            ("g/../h", "/b/c/h"),
            ("g;x=1/../y", "/b/c/y"),
            ("g?y/../x", "/b/c/g?y/../x"),
            ("http:g", "/b/c/g"),
            ("//a/g", "/g"),
            ("http://A:80?x", "/?x"),
            ("HTTP://a", "/"),
            ("\\g\\h", "/g/h"),
            ("a b\t%20\"", "/b/c/a%20b%20%22"),
        ] {
            assert_eq!(base.resolve(reference.as_bytes()).as_deref(), Some(path), "{reference}");
        }
        for foreign in ["", "#s", "g:h", "//g", "https://a/", "http://a:8080/", "mailto:a", "javascript:x"] {
            assert_eq!(base.resolve(foreign.as_bytes()), None, "{foreign}");
        }
    }

    #[test]
    fn paths_of_files_round_trip() {
        for (file, path) in [
            ("index.html", "/index.html"),
            ("images/a b.gif", "/images/a%20b.gif"),
            ("50%?.gif", "/50%25%3F.gif"),
            ("\u{e9}", "/%C3%A9"),
        ] {
            assert_eq!(path_of(file), path);
            assert_eq!(site_path(path).as_deref(), Some(file));
        }
        assert_eq!(site_path("/a.css?v=3").as_deref(), Some("a.css"));
        assert_eq!(site_path("/%+1%zz%4").as_deref(), Some("%+1%zz%4"));
        assert_eq!(site_path("/%ff"), None);
    }

    #[test]
    fn a_port_belongs_to_the_host() {
        let base = Base::new("127.0.0.1:8080", "/");
        assert_eq!(base.resolve(b"http://127.0.0.1:8080/x").as_deref(), Some("/x"));
        assert_eq!(base.resolve(b"http://127.0.0.1/x"), None);
        assert_eq!(base.resolve("x".repeat(8_000).as_bytes()), None);
    }
}
