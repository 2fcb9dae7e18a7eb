//! A page's files from a browser's recording (HAR 1.2) with bodies.
//!
//! Not a parser: that is `page::har`, also for callers that need sizes only. Here bodies become files, decoded as the
//! browser had them; a response without a recorded body is reported.

use std::io::Read;

use page::har;

use crate::make::Source;

/// The files of a recording, and sentences about missing ones.
pub type Files = (Vec<Source>, Vec<String>);

/// Reads a whole recording.
///
/// # Errors
/// The file is not HAR, or has no bodies.
pub fn read(from: impl Read) -> Result<Files, String> {
    let (responses, left_out) = har::files(from).map_err(|error| error.to_string())?;
    let mut left_out: Vec<String> = left_out.into_iter().collect();
    let mut files = Vec::new();
    for har::File { path, mime, sent, body } in responses {
        match body {
            Some(body) if !body.is_empty() => {
                let ending = ending(&mime, &path).to_owned();
                files.push(Source { path, ending, bytes: body, sent: Some(sent.get()) });
            }
            Some(_) | None => left_out.push(format!("left out {path}: the recording lacks its body")),
        }
    }
    match files.is_empty() {
        true => Err("no bodies; export the recording with content".to_owned()),
        false => Ok((files, left_out)),
    }
}

/// File extension by the response's media type or, without one, by the path.
fn ending<'a>(mime: &str, path: &'a str) -> &'a str {
    match mime {
        "text/html" | "application/xhtml+xml" => "html",
        "image/gif" => "gif",
        "image/svg+xml" => "svg",
        "application/javascript" | "application/json" | "application/xml" => "txt",
        text if text.starts_with("text/") => "txt",
        "" => path.rsplit_once('.').map_or("", |(_, ending)| ending),
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_become_files_with_types_and_sizes_and_missing_ones_are_reported() {
        let entry = |url: &str, content: &str| {
            format!(
                r#"{{"request":{{"url":"{url}"}},"response":{{"status":200,"bodySize":2,"content":{{{content}}}}}}}"#
            )
        };
        let entries = [
            entry("https://a/", r#""mimeType":"text/html; charset=utf-8","text":"<P>""#),
            entry("https://a/x?y", r#""mimeType":"image/gif","text":"R0lGODlh","encoding":"base64""#),
            entry("https://a/big.js", r#""mimeType":"text/javascript""#),
            entry("https://b/z", r#""mimeType":"text/css","text":"p{}""#),
        ];
        let (files, left_out) =
            read(format!(r#"{{"log":{{"entries":[{}]}}}}"#, entries.join(",")).as_bytes()).unwrap();
        let found: Vec<_> = files
            .iter()
            .map(|file| (file.path.as_str(), file.ending.as_str(), file.bytes.as_slice(), file.sent))
            .collect();
        assert_eq!(found, [("index.html", "html", &b"<P>"[..], Some(2)), ("x", "gif", b"GIF89a", Some(2))]);
        let expected = [
            "fetched: 3 of 4 entries, 75% of the bytes; left out: 1 from another host, because other hosts are not \
             modelled",
            "left out big.js: the recording lacks its body",
        ];
        assert_eq!(left_out, expected);
        for wrong in ["", "{}", "[]", r#"{"log":{"entries":[]}}"#] {
            assert!(read(wrong.as_bytes()).is_err());
        }
    }
}
