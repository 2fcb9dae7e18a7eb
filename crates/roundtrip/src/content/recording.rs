//! A page's files out of a browser's recording (HAR 1.2) that kept the bodies.
//!
//! Not a reader of the format: `scenario::har` is, the same for whoever needs sizes only. Here bodies become files, decoded
//! as the browser had them; an answer whose body is not in the recording is named.

use std::io::Read;

use scenario::har;

use super::make::Source;

/// The files of a recording, and what is not among them.
pub type Files = (Vec<Source>, Vec<String>);

/// Reads a recording whole.
///
/// # Errors
/// What is no HAR, or has no body in it.
pub fn read(from: impl Read) -> Result<Files, String> {
    let (answers, left_out) = har::files(from).map_err(|error| error.to_string())?;
    let mut left_out: Vec<String> = left_out.into_iter().collect();
    let mut files = Vec::new();
    for har::File { path, mime, sent, body } in answers {
        match body {
            Some(body) if !body.is_empty() => {
                let ending = ending(&mime, &path).to_owned();
                files.push(Source { path, ending, bytes: body, sent: Some(sent.get()) });
            }
            Some(_) | None => left_out.push(format!("left out {path}: the recording has no body of it")),
        }
    }
    match files.is_empty() {
        true => Err("it has no bodies; export it with content".to_owned()),
        false => Ok((files, left_out)),
    }
}

/// What the answer's type says, and where it says nothing, what the path does.
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
    fn bodies_are_files_of_their_type_as_large_as_they_were_sent_and_missing_ones_are_named() {
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
            "left out big.js: the recording has no body of it",
        ];
        assert_eq!(left_out, expected);
        for wrong in ["", "{}", "[]", r#"{"log":{"entries":[]}}"#] {
            assert!(read(wrong.as_bytes()).is_err());
        }
    }
}
