//! `roundtrip lab`: the laboratory's page, served at a loopback address until a signal ends it.
//!
//! Not the page itself, which is `browser/`. It computes everything; this server only has its files.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use dhttp::{Request, Response, Server, ServerConfig};
use http1::message::Fields;

use crate::cli::Lab;
use crate::failure::Failure;
use crate::feature::Feature;
use crate::serve::signals::Signals;

// `EMBEDDED`: names and bytes of the page's files; none in a build without them.
include!(concat!(env!("OUT_DIR"), "/lab_page.rs"));

/// Names of the page's files, with their media types.
const FILES: [(&str, &str); 7] = [
    ("index.html", "text/html; charset=utf-8"),
    ("lab.css", "text/css; charset=utf-8"),
    ("lab.js", "text/javascript; charset=utf-8"),
    ("worker.js", "text/javascript; charset=utf-8"),
    ("papers.html", "text/html; charset=utf-8"),
    ("diagnose.wasm", "application/wasm"),
    ("compare.wasm", "application/wasm"),
];

/// Policy of the page, as in its HTML.
const POLICY: &str = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src blob:; connect-src 'self'; \
                      style-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Serves until a signal ends it.
pub fn run(flags: &Lab) -> Result<(), Failure> {
    let Lab { listen, no_open, directory } = flags;
    let files = match directory {
        Some(directory) => read(directory)?,
        None => embedded()?,
    };
    let signals = Signals::block()?;
    let files = Arc::new(files);
    let respond = move |request: &Request<'_>| response(&files, request);
    let config = ServerConfig { threads: 1, ..ServerConfig::internet().reaching_anywhere() };
    let server = Server::start(*listen, config, respond, None).map_err(|error| {
        Failure::Network(format!("cannot listen at {listen}: {error}; choose another address with --listen"))
    })?;
    let address = format!("http://{}/", server.address());
    crate::output::to_stdout(&format!("{address}\n"))?;
    eprintln!("roundtrip: the laboratory is at {address}; Ctrl-C ends it");
    if !no_open && !open_browser(&address) {
        eprintln!("roundtrip: no browser could be opened; open the address yourself");
    }
    signals.wait_for_end(|| Ok("the page has no configuration"))?;
    server.stop();
    Ok(())
}

/// A file: its name and its response.
type PageFile = (&'static str, Response);

/// Returns the files of this program.
fn embedded() -> Result<Vec<PageFile>, Failure> {
    Feature::LabPage.require("lab").map_err(Failure::Value)?;
    let of = |name: &str| EMBEDDED.iter().find(|(existing, _)| *existing == name);
    let files = FILES.iter().filter_map(|(name, kind)| Some((*name, whole(kind, of(name)?.1.to_vec()))));
    let files: Vec<PageFile> = files.collect();
    match files.is_empty() {
        true => Err(Failure::Value(
            "lab: the page was not built before this program; run `./ci.sh lab` and build again, or give --directory \
             target/lab"
                .to_owned(),
        )),
        false => Ok(files),
    }
}

/// Reads the files of a directory.
fn read(directory: &Path) -> Result<Vec<PageFile>, Failure> {
    let file = |(name, kind): &(&'static str, &str)| {
        let path = directory.join(name);
        let bytes = std::fs::read(&path).map_err(|error| Failure::Read { path, error })?;
        Ok((*name, whole(kind, bytes)))
    };
    FILES.iter().map(file).collect()
}

/// Returns the response with a file.
fn whole(kind: &str, bytes: Vec<u8>) -> Response {
    with_fields(Response::whole(200, kind, bytes))
}

/// Adds the fields of every response.
fn with_fields(mut response: Response) -> Response {
    let mut fields = Fields::clone(&response.fields);
    for (name, value) in [
        ("Content-Security-Policy", POLICY),
        ("X-Content-Type-Options", "nosniff"),
        ("Referrer-Policy", "no-referrer"),
        ("Cache-Control", "no-cache"),
    ] {
        // Names and values are valid.
        let _ = fields.push(name, value);
    }
    response.fields = Arc::new(fields);
    response
}

fn response(files: &[PageFile], request: &Request<'_>) -> Response {
    if !matches!(request.method, "GET" | "HEAD") {
        return with_fields(Response::text(405, "only GET and HEAD"));
    }
    let path = request.target.split('?').next().unwrap_or_default();
    let name = if path == "/" { "index.html" } else { path.trim_start_matches('/') };
    let found = files.iter().find(|(existing, _)| *existing == name);
    found.map_or_else(|| with_fields(Response::text(404, "no such file")), |(_, response)| response.clone())
}

/// Opens the address in the desktop's browser. Returns whether there is one.
fn open_browser(address: &str) -> bool {
    let quiet = |program: &str| {
        let mut command = Command::new(program);
        command.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().is_ok()
    };
    let has_desktop = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    has_desktop && quiet("xdg-open")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_has_its_type_and_a_strict_policy() {
        let directory = tempfile::tempdir().unwrap();
        for (name, _) in FILES {
            std::fs::write(directory.path().join(name), name).unwrap();
        }
        let files = read(directory.path()).unwrap();
        let field = |response: &Response, name: &str| {
            String::from_utf8_lossy(response.fields.get(name).unwrap_or_default()).into_owned()
        };
        for ((name, kind), (existing, response)) in FILES.iter().zip(&files) {
            assert_eq!((name, field(response, "Content-Type").as_str()), (existing, *kind));
            let policy = field(response, "Content-Security-Policy");
            assert!(
                policy.starts_with("default-src 'none'") && !policy.contains("unsafe-inline"),
                "{policy}"
            );
        }
    }

    #[test]
    fn a_directory_without_the_page_is_refused_with_the_missing_file() {
        let directory = tempfile::tempdir().unwrap();
        let Err(Failure::Read { path, .. }) = read(directory.path()) else { panic!("no error") };
        assert!(path.ends_with("index.html"));
    }
}
