//! What others send, through the command line: servers that break the rules of HTTP, and folders that are no decent pages.
//!
//! The machines' own limits are held in `proto`, byte by byte; here is what a user sees: a sentence, an exit status, and
//! everything that had arrived.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::thread;

const PROGRAM: &str = env!("CARGO_BIN_EXE_roundtrip");

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What `roundtrip get` makes of a server that answers every connection with these bytes and closes.
fn got(answer: &[u8]) -> (Option<i32>, String, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let answer = answer.to_vec();
    // It ends with the test.
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut request = [0; 4_096];
            let _ = stream.read(&mut request);
            let _ = stream.write_all(&answer);
        }
    });
    let cache =
        std::env::temp_dir().join(format!("roundtrip-hostile-{}-{}", std::process::id(), address.port()));
    let url = format!("http://{address}/");
    let output = Command::new(PROGRAM).args(["get", &url]).env("XDG_CACHE_HOME", &cache).output().unwrap();
    let _ = std::fs::remove_dir_all(cache);
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_server_that_breaks_the_rules_is_told_of_in_a_sentence() {
    let endless_head = format!("HTTP/1.1 200 OK\r\n{}", "X: y\r\n".repeat(40_000));
    let endless_interim = "HTTP/1.1 100 Continue\r\n\r\n".repeat(100);
    let conflict = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd";
    let both =
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    for (answer, says) in [
        ("", "the server closed the connection without an answer"),
        ("HTTP/1.1 200 OK\r\n", "the peer's stream ended inside a message"),
        ("SSH-2.0-server\r\n\r\n", "is it speaking HTTP?"),
        (conflict, "the peer's Content-Length is not one decimal number"),
        (both, "the peer sent both Content-Length and Transfer-Encoding"),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            "the peer's Content-Length is not one decimal number",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            "a chunk whose size and data do not agree",
        ),
        (&endless_head, "a longer head than the limit allows"),
        (&endless_interim, "announces answers without end"),
    ] {
        let (status, stdout, stderr) = got(answer.as_bytes());
        assert_eq!((status, stdout.as_str()), (Some(2), ""), "{stderr}");
        assert!(stderr.contains(says) && stderr.lines().count() == 1, "{stderr}");
    }
}

#[test]
fn what_had_arrived_of_an_answer_that_lies_is_not_lost() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length:";
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n5\r\nde".to_owned();
    for (answer, status, arrived) in [
        (format!("{head} 100\r\n\r\n0123456789"), 2, "0123456789"),
        (chunked, 2, "abcde"),
        // More than was announced, and the answer twice: what nobody asked for is not read.
        (format!("{head} 3\r\n\r\nabcdefg"), 0, "abc"),
        (format!("{head} 3\r\n\r\nabc{head} 3\r\n\r\ndef"), 0, "abc"),
    ] {
        let (code, stdout, stderr) = got(answer.as_bytes());
        assert_eq!((code, stdout.as_str()), (Some(status), arrived), "{stderr}");
        assert_eq!(stderr.contains("stream ended inside a message"), status == 2, "{stderr}");
    }
}

/// What `roundtrip simulate` makes of a folder of these files: its row, and what it said on the side.
fn simulated(name: &str, files: &[(&str, &[u8])]) -> (Output, Vec<serde_json::Value>) {
    let folder: PathBuf =
        std::env::temp_dir().join(format!("roundtrip-hostile-{name}-{}", std::process::id()));
    for (place, bytes) in files {
        let path = folder.join(place);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    let output = Command::new(PROGRAM)
        .args(["simulate", "--protocol", "http11-pipelined", "--runs", "1", "--format", "json", "--page"])
        .arg(&folder)
        .output()
        .unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let rows = serde_json::from_slice(&output.stdout).unwrap_or_default();
    (output, rows)
}

#[test]
fn a_page_that_never_closes_a_tag_is_fetched_as_far_as_it_names_anything() {
    let open = [b"<p><img src=a.gif><table><tr><td><!-- ", "x".repeat(100_000).as_bytes()].concat();
    let endless = [b"<img src=a.gif><img src=\"", "x".repeat(100_000).as_bytes()].concat();
    let noise: Vec<u8> = (0..=255_u8).cycle().take(50_000).collect();
    for (name, html, objects) in [("open", open, 2), ("endless", endless, 2), ("noise", noise, 1)] {
        let (output, rows) = simulated(name, &[("index.html", &html), ("a.gif", b"GIF89a, says it")]);
        assert_eq!(output.status.code(), Some(0), "{name}: {}", text(&output.stderr));
        assert!(rows[0]["elapsed_ms"].is_number(), "{name}: {}", rows[0]);
        let is_left_out = text(&output.stderr).contains("1 file that index.html does not name left out");
        assert_eq!(is_left_out, objects == 1, "{name}: {}", text(&output.stderr));
    }
}

#[test]
fn a_page_of_too_many_objects_and_one_of_missing_ones_are_told_of_and_fetched() {
    let html: String = (0..10_500).map(|index| format!("<img src=i/{index}>")).collect();
    let (output, rows) = simulated("many", &[("index.html", html.as_bytes())]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let said = text(&output.stderr);
    assert!(said.contains("index.html names /i/0 and 9998 more, which the folder does not have"), "{said}");
    assert!(said.contains("names more than 10000 objects; the others are not fetched"), "{said}");
    assert_eq!(
        rows[0]["notes"],
        serde_json::json!([
            "objects that the document names and the server does not have: 9999.0",
            "the document names more than 10000 objects; those beyond were not fetched"
        ])
    );
}
