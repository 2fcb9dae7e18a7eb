//! A page's files out of a browser's recording (HAR 1.2) that kept the bodies.
//!
//! Not `scenario::har`, which needs sizes only and reads over bodies: here they are what is wanted, decoded as the browser
//! had them. One host's answers make the page, the document first; an answer whose body is not in the file is named.

use std::io::Read;

use serde::Deserialize;

use super::File;

/// The files of a recording, and what is not among them.
pub type Files = (Vec<File>, Vec<String>);

/// Reads a recording whole.
///
/// # Errors
/// What is no HAR, or has no body in it.
pub fn read(from: impl Read) -> Result<Files, String> {
    let recording: Recording = serde_json::from_reader(from)
        .map_err(|error| format!("it is no HAR that can be read: {error}").replace(char::is_control, "?"))?;
    let (mut files, mut left_out): Files = (Vec::new(), Vec::new());
    let (mut host, mut elsewhere) = (None, 0_usize);
    for Entry { request: Request { url }, response: Response { status, content } } in recording.log.entries {
        let Some((of, path)) = address(&url) else { continue };
        if !(200..300).contains(&status) {
            continue;
        }
        if *host.get_or_insert_with(|| of.to_owned()) != of {
            elsewhere += 1;
            continue;
        }
        let path = path.replace(char::is_control, "?");
        match content.body() {
            Some(bytes) if !bytes.is_empty() => {
                files.push(File::called(path.clone(), ending(&content.mime_type, &path), bytes))
            }
            Some(_) => {}
            None => left_out.push(format!("{path} is left out: the recording has no body of it")),
        }
    }
    if elsewhere > 0 {
        left_out.push(format!("{elsewhere} answers of other hosts are left out"));
    }
    match files.is_empty() {
        true => Err("it has no bodies; export it with content".to_owned()),
        false => Ok((files, left_out)),
    }
}

#[derive(Deserialize)]
struct Recording {
    log: Log,
}

#[derive(Deserialize)]
struct Log {
    entries: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    request: Request,
    response: Response,
}

#[derive(Deserialize)]
struct Request {
    url: String,
}

#[derive(Deserialize)]
struct Response {
    #[serde(default)]
    status: i64,
    #[serde(default)]
    content: Content,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Content {
    #[serde(rename = "mimeType")]
    mime_type: String,
    text: Option<String>,
    encoding: Option<String>,
}

impl Content {
    fn body(&self) -> Option<Vec<u8>> {
        let text = self.text.as_ref()?;
        match self.encoding.as_deref() {
            Some("base64") => base64(text),
            Some(_) | None => Some(text.as_bytes().to_vec()),
        }
    }
}

/// Host and path of a URL of http or https; the path without its first slash, a folder's with `index.html`.
fn address(url: &str) -> Option<(&str, String)> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let is_folder = path.is_empty() || path.ends_with('/');
    Some((host, format!("{path}{}", if is_folder { "index.html" } else { "" })))
}

/// What the answer's type says, and where it says nothing, what the path does.
fn ending<'a>(mime: &str, path: &'a str) -> &'a str {
    match mime.split(';').next().unwrap_or_default().trim() {
        "text/html" | "application/xhtml+xml" => "html",
        "image/gif" => "gif",
        "image/svg+xml" => "svg",
        "application/javascript" | "application/json" | "application/xml" => "txt",
        text if text.starts_with("text/") => "txt",
        "" => path.rsplit_once('.').map_or("", |(_, ending)| ending),
        _ => "",
    }
}

/// RFC 4648, section 4; blanks and line ends are passed over.
fn base64(text: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut bits, mut count) = (Vec::with_capacity(text.len() / 4 * 3), 0_u32, 0);
    for letter in text.bytes().filter(|letter| !letter.is_ascii_whitespace() && *letter != b'=') {
        let value = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count).to_le_bytes()[0]);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::Kind;

    #[test]
    fn bodies_of_the_documents_host_are_files_and_the_rest_is_named() {
        let entry = |url: &str, content: &str| {
            format!(r#"{{"request":{{"url":"{url}"}},"response":{{"status":200,"content":{{{content}}}}}}}"#)
        };
        let entries = [
            entry("https://a/", r#""mimeType":"text/html; charset=utf-8","text":"<P>""#),
            entry("https://a/x?y", r#""mimeType":"image/gif","text":"R0lGODlh","encoding":"base64""#),
            entry("https://a/big.js", r#""mimeType":"text/javascript""#),
            entry("https://b/z", r#""mimeType":"text/css","text":"p{}""#),
            entry("data:x", r#""text":"x""#),
        ];
        let (files, left_out) =
            read(format!(r#"{{"log":{{"entries":[{}]}}}}"#, entries.join(",")).as_bytes()).unwrap();
        let found: Vec<_> = files.iter().map(|file| (file.path.as_str(), file.bytes.as_slice())).collect();
        assert_eq!(found, [("index.html", &b"<P>"[..]), ("x", b"GIF89a")]);
        assert!(matches!((&files[0].kind, &files[1].kind), (Kind::Html, Kind::Broken(_))));
        assert_eq!(
            left_out,
            ["big.js is left out: the recording has no body of it", "1 answers of other hosts are left out"]
        );
        for wrong in ["", "{}", "[]", r#"{"log":{"entries":[]}}"#] {
            assert!(read(wrong.as_bytes()).is_err());
        }
    }
}
