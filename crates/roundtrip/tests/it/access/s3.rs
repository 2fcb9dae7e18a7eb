//! A local object store with the part of S3 that reading needs: ListObjectsV2 with two keys per page, and range requests for
//! objects. It refuses unsigned requests.
//!
//! Signatures are not verified: they must only be present, with the right key. Where a response is truncated, the connection is
//! closed.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};
use std::thread;

/// Access key with the right to read.
const KEY: &str = "AKIDEXAMPLE";
const PAGE: usize = 2;

/// Running store with one bucket, `bucket`; stopped at the end of the test.
pub(crate) struct Store {
    address: SocketAddr,
    request_log: Arc<Mutex<Vec<String>>>,
}

struct Objects {
    objects: BTreeMap<String, Vec<u8>>,
    /// Objects whose responses are truncated, with the number of bytes sent.
    cut: BTreeMap<String, usize>,
    request_log: Arc<Mutex<Vec<String>>>,
}

impl Store {
    pub(crate) fn new(objects: &[(&str, &[u8])], cut: &[(&str, usize)]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let request_log = Arc::new(Mutex::new(Vec::new()));
        let objects = Arc::new(Objects {
            objects: objects.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec())).collect(),
            cut: cut.iter().map(|(name, at)| ((*name).to_owned(), *at)).collect(),
            request_log: Arc::clone(&request_log),
        });
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let objects = Arc::clone(&objects);
                // A client that has read enough closes the connection.
                thread::spawn(move || drop(objects.serve(&stream)));
            }
        });
        Self { address, request_log }
    }

    /// Runs the program with the store's address and this key.
    pub(crate) fn roundtrip(&self, key: &str, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_roundtrip"))
            .args(arguments)
            .env("AWS_ENDPOINT_URL", format!("http://{}", self.address))
            .env("AWS_ACCESS_KEY_ID", key)
            .env("AWS_SECRET_ACCESS_KEY", "not a secret")
            .env("AWS_REGION", "eu-central-1")
            .env("NO_PROXY", "127.0.0.1")
            .output()
            .unwrap()
    }

    /// Requests so far, as `GET name range`.
    pub(crate) fn request_log(&self) -> Vec<String> {
        self.request_log.lock().unwrap().clone()
    }

    /// An object's HTTP URL.
    pub(crate) fn on_the_web(&self, name: &str) -> String {
        format!("http://{}/public/{name}", self.address)
    }
}

impl Objects {
    fn serve(&self, stream: &TcpStream) -> std::io::Result<()> {
        let mut lines = BufReader::new(stream).lines();
        while let Some(request) = lines.next().transpose()? {
            let (mut range, mut signed) = (None, false);
            for line in lines.by_ref() {
                let line = line?;
                let Some((name, value)) = line.split_once(": ") else { break };
                match name.to_ascii_lowercase().as_str() {
                    "range" => range = Some(value.to_owned()),
                    "authorization" => {
                        let by = format!("AWS4-HMAC-SHA256 Credential={KEY}/");
                        signed = value.starts_with(&by) && value.contains("Signature=");
                    }
                    _ => {}
                }
            }
            let mut words = request.split(' ');
            let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            let (path, query) = target.split_once('?').unwrap_or((target, ""));
            let name = path.strip_prefix("/bucket").or_else(|| path.strip_prefix("/public/"));
            let name = name.unwrap_or_default().trim_start_matches('/');
            let entry = [method, name, range.as_deref().unwrap_or_default()].join(" ");
            self.request_log.lock().unwrap().push(entry.trim_end().to_owned());
            if !signed && !path.starts_with("/public/") {
                respond(stream, "403 Forbidden", "", b"<Error><Code>AccessDenied</Code></Error>")?;
            } else if query.contains("list-type=2") {
                respond(stream, "200 OK", "", self.list_page(query).as_bytes())?;
            } else if let Some(bytes) = self.objects.get(name) {
                if !self.send_object(stream, method, name, bytes, range.as_deref())? {
                    return Ok(());
                }
            } else {
                respond(stream, "404 Not Found", "", b"")?;
            }
        }
        Ok(())
    }

    /// A page of keys, with the token of the next page.
    fn list_page(&self, query: &str) -> String {
        let parameter = |name: &str| {
            query
                .split('&')
                .filter_map(|pair| pair.split_once('='))
                .find(|(key, _)| *key == name)
                .map(|(_, value)| value.replace("%2F", "/"))
        };
        let prefix = parameter("prefix").unwrap_or_default();
        let after = parameter("continuation-token").unwrap_or_default();
        let mut keys = self.objects.iter().filter(|(key, _)| key.starts_with(&prefix) && **key > after);
        let page: Vec<_> = keys.by_ref().take(PAGE).collect();
        let contents: String = page
            .iter()
            .map(|(key, bytes)| {
                format!(
                    "<Contents><Key>{key}</Key><LastModified>2026-11-21T00:00:00.000Z</LastModified>\
                     <ETag>\"1\"</ETag><Size>{}</Size></Contents>",
                    bytes.len()
                )
            })
            .collect();
        let next = match (keys.next(), page.last()) {
            (Some(_), Some((last, _))) => {
                format!(
                    "<IsTruncated>true</IsTruncated><NextContinuationToken>{last}</NextContinuationToken>"
                )
            }
            _ => "<IsTruncated>false</IsTruncated>".to_owned(),
        };
        format!("<?xml version=\"1.0\"?><ListBucketResult>{contents}{next}</ListBucketResult>")
    }

    /// Sends an object or a range of it; returns whether the connection stays open.
    fn send_object(
        &self,
        mut stream: &TcpStream,
        method: &str,
        name: &str,
        bytes: &[u8],
        range: Option<&str>,
    ) -> std::io::Result<bool> {
        let tag = "ETag: \"1\"\r\nLast-Modified: Sat, 21 Nov 2026 00:00:00 GMT\r\n";
        if method == "HEAD" {
            write!(stream, "HTTP/1.1 200 OK\r\n{tag}Content-Length: {}\r\n\r\n", bytes.len())?;
            return Ok(true);
        }
        let (from, to) = range
            .and_then(|range| range.strip_prefix("bytes=")?.split_once('-'))
            .map_or((0, bytes.len()), |(from, to)| (from.parse().unwrap(), to.parse::<usize>().unwrap() + 1));
        let to = to.min(bytes.len());
        let head = format!("{tag}Content-Range: bytes {from}-{}/{}\r\n", to - 1, bytes.len());
        match self.cut.get(name).filter(|cut| **cut < to) {
            Some(cut) => {
                write!(
                    stream,
                    "HTTP/1.1 206 Partial Content\r\n{head}Content-Length: {}\r\n\r\n",
                    to - from
                )?;
                stream.write_all(&bytes[from.min(*cut)..*cut])?;
                Ok(false)
            }
            None => respond(stream, "206 Partial Content", &head, &bytes[from..to]).map(|()| true),
        }
    }
}

fn respond(mut stream: &TcpStream, status: &str, head: &str, body: &[u8]) -> std::io::Result<()> {
    write!(stream, "HTTP/1.1 {status}\r\n{head}Content-Length: {}\r\n\r\n", body.len())?;
    stream.write_all(body)
}

/// The valid key.
pub(crate) fn key() -> &'static str {
    KEY
}
