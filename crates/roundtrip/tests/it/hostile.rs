//! Hostile input on the command line: servers that violate HTTP, directories that are not valid pages, and captures that are
//! invalid or inconsistent.
//!
//! `http1` tests the state machines' own limits, byte by byte; these are about the user's view: a sentence, an exit
//! status, and everything that had arrived.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::thread;

use wire::packet::{Flags, TcpBuilder};

const PROGRAM: &str = env!("CARGO_BIN_EXE_roundtrip");

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Result of `roundtrip get` from a server that sends these bytes on every connection and closes.
fn get_from(response: &[u8]) -> (Option<i32>, String, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let response = response.to_vec();
    // It ends with the test.
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut request = [0; 4_096];
            let _ = stream.read(&mut request);
            let _ = stream.write_all(&response);
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
fn a_server_that_breaks_the_rules_is_reported_in_a_sentence() {
    let endless_head = format!("HTTP/1.1 200 OK\r\n{}", "X: y\r\n".repeat(40_000));
    let endless_interim = "HTTP/1.1 100 Continue\r\n\r\n".repeat(100);
    let conflict = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd";
    let both =
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    for (response, expected) in [
        ("", "the server closed the connection without a response"),
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
        (&endless_head, "a longer header section than the limit allows"),
        (&endless_interim, "more interim responses than the limit allows"),
    ] {
        let (status, stdout, stderr) = get_from(response.as_bytes());
        assert_eq!((status, stdout.as_str()), (Some(2), ""), "{stderr}");
        assert!(stderr.contains(expected) && stderr.lines().count() == 1, "{stderr}");
    }
}

#[test]
fn received_bytes_of_an_inconsistent_response_are_not_lost() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length:";
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n5\r\nde".to_owned();
    for (response, status, arrived) in [
        (format!("{head} 100\r\n\r\n0123456789"), 2, "0123456789"),
        (chunked, 2, "abcde"),
        // More than announced, and the response twice: unsolicited data is not read.
        (format!("{head} 3\r\n\r\nabcdefg"), 0, "abc"),
        (format!("{head} 3\r\n\r\nabc{head} 3\r\n\r\ndef"), 0, "abc"),
    ] {
        let (code, stdout, stderr) = get_from(response.as_bytes());
        assert_eq!((code, stdout.as_str()), (Some(status), arrived), "{stderr}");
        assert_eq!(stderr.contains("stream ended inside a message"), status == 2, "{stderr}");
    }
}

/// Result of `roundtrip simulate` on a directory of these files: its row, and its warnings.
fn simulate(name: &str, files: &[(&str, &[u8])]) -> (Output, Vec<serde_json::Value>) {
    let directory: PathBuf =
        std::env::temp_dir().join(format!("roundtrip-hostile-{name}-{}", std::process::id()));
    for (name_in_page, bytes) in files {
        let path = directory.join(name_in_page);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    let output = Command::new(PROGRAM)
        .args(["simulate", "--protocol", "http11-pipelined", "--runs", "1", "--format", "json", "--page"])
        .arg(&directory)
        .output()
        .unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
    let rows = serde_json::from_slice(&output.stdout).unwrap_or_default();
    (output, rows)
}

#[test]
fn a_page_with_an_unclosed_tag_is_fetched_with_the_objects_before_it() {
    let open = [b"<p><img src=a.gif><table><tr><td><!-- ", "x".repeat(100_000).as_bytes()].concat();
    let endless = [b"<img src=a.gif><img src=\"", "x".repeat(100_000).as_bytes()].concat();
    let noise: Vec<u8> = (0..=255_u8).cycle().take(50_000).collect();
    for (name, html, objects) in [("open", open, 2), ("endless", endless, 2), ("noise", noise, 1)] {
        let (output, rows) = simulate(name, &[("index.html", &html), ("a.gif", b"GIF89a, says it")]);
        assert_eq!(output.status.code(), Some(0), "{name}: {}", text(&output.stderr));
        assert!(rows[0]["elapsed_ms"].is_number(), "{name}: {}", rows[0]);
        let is_left_out =
            rows[0]["notes"].to_string().contains("left out: 1 that index.html does not reference");
        assert_eq!(is_left_out, objects == 1, "{name}: {}", text(&output.stderr));
    }
}

#[test]
fn too_many_and_missing_objects_are_reported_and_the_page_is_fetched() {
    let html: String = (0..10_500).map(|index| format!("<img src=i/{index}>")).collect();
    let (output, rows) = simulate("many", &[("index.html", html.as_bytes())]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let printed = rows[0]["notes"].to_string();
    assert!(
        printed.contains("index.html references /i/0 and 9998 more, which the directory lacks"),
        "{printed}"
    );
    assert!(printed.contains("references more than 10000 objects; the others are left out"), "{printed}");
    let notes = [
        "objects that the document references and the server lacks: 9999.0",
        "the document references more than 10000 objects; those beyond were not fetched",
        "index.html references /i/0 and 9998 more, which the directory lacks: the response is 404",
        "index.html references more than 10000 objects; the others are left out",
    ];
    assert_eq!(rows[0]["notes"], serde_json::json!(notes));
}

/// Result of `roundtrip diagnose` on a file of these bytes.
fn diagnose(name: &str, bytes: &[u8]) -> (Option<i32>, String, String) {
    let path = std::env::temp_dir().join(format!("roundtrip-hostile-{}-{name}", std::process::id()));
    std::fs::write(&path, bytes).unwrap();
    let output = Command::new(PROGRAM).arg("diagnose").arg(&path).output().unwrap();
    std::fs::remove_file(path).unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// A pcap capture of a request and its response, one packet at each of these seconds.
fn capture(seconds: [u32; 5]) -> Vec<u8> {
    let (client, server) = (([10, 0, 0, 1], 40_000).into(), ([10, 0, 0, 2], 80).into());
    let request = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    let response = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let packets = [
        (true, Flags::SYN, (0, 0), ""),
        (false, Flags::SYN | Flags::ACK, (0, 1), ""),
        (true, Flags::ACK, (1, 1), ""),
        (true, Flags::ACK, (1, 1), request),
        (false, Flags::ACK, (1, 28), response),
    ];
    let mut file = [0xa1b2_c3d4_u32, 0x0002_0004, 0, 0, 0xffff, 101].map(u32::to_be_bytes).concat();
    for (second, (is_up, flags, (seq, ack), payload)) in seconds.into_iter().zip(packets) {
        let (source, destination) = if is_up { (client, server) } else { (server, client) };
        let mut packet = Vec::new();
        let segment = TcpBuilder { source, destination, seq, ack, flags, window: 60_000, options: &[] };
        segment.write(payload.as_bytes(), &mut packet).unwrap();
        let length = u32::try_from(packet.len()).unwrap();
        file.extend([second, 0, length, length].map(u32::to_be_bytes).concat());
        file.extend(packet);
    }
    file
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut file = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    file.write_all(bytes).unwrap();
    file.finish().unwrap()
}

#[test]
fn a_file_that_is_not_a_capture_is_refused_in_a_sentence() {
    let whole = capture([1; 5]);
    let (gzip, zstd) = (gzipped(&whole), zstd::encode_all(whole.as_slice(), 1).unwrap());
    let mut damaged = gzip.clone();
    damaged[12] ^= 0xff;
    let mut endless = whole.clone();
    endless[32] = 0xff;
    for (name, bytes, expected) in [
        ("empty", &[][..], "it is empty, or too short to be a capture: give a pcap or pcapng file"),
        (
            "text",
            b"<!doctype html>",
            "it is not a capture (it begins with 3c 21 64 6f): give a pcap or pcapng file",
        ),
        ("text.gz", &gzipped(b"a text"), "it is not a capture (it begins with 61 20 74 65)"),
        ("magic", &whole[..4], "it ends within its first packet: copy or capture it again"),
        ("first", &whole[..50], "it ends within its first packet"),
        (
            "long",
            &endless,
            "a packet longer than the maximum at packet 1: the capture is damaged from there on",
        ),
        ("cut.gz", &gzip[..12], "its gzip data ends too early; copy or compress it again"),
        ("cut.zst", &zstd[..12], "its zstd data ends too early; copy or compress it again"),
        ("damaged.gz", &damaged, "its gzip data is damaged; copy or compress it again"),
    ] {
        let (status, stdout, stderr) = diagnose(name, bytes);
        assert_eq!((status, stdout.as_str()), (Some(2), ""), "{name}: {stderr}");
        assert!(stderr.contains(expected) && stderr.lines().count() == 1, "{name}: {stderr}");
    }
}

#[test]
fn a_damaged_capture_is_read_as_far_as_possible_and_the_damage_reported() {
    let whole = capture([1; 5]);
    let jumps = |seconds| capture(seconds);
    let other_link = [&whole[..20], &147_u32.to_be_bytes(), &whole[24..]].concat();
    let cut = whole.len() - 3;
    for (name, bytes, expected) in [
        (
            "cut",
            &whole[..cut],
            "it ends within packet 5: the capture was cut off there; the packets before are used",
        ),
        ("header", &whole[..24], ""),
        (
            "link",
            &other_link,
            "packets of a kind of link that is not read (number 147): 5; capture on Ethernet",
        ),
        (
            "forward",
            &jumps([1, 1, 1, 1, u32::MAX]),
            "1 packet with an absurd time, taken as simultaneous with the packet before",
        ),
        ("back", &jumps([u32::MAX, 1, 1, 1, 1]), "packets with an earlier time than those before them: 1"),
        ("zero", &jumps([0; 5]), ""),
    ] {
        let (status, stdout, stderr) = diagnose(name, bytes);
        // No finding is worth fixing, least of all a response that took 136 years; without a packet there is no verdict.
        let expected_status = if name == "header" { 3 } else { 0 };
        assert_eq!(status, Some(expected_status), "{name}: {stdout}{stderr}");
        // The output wraps long lines, but breaks no word (the file's name).
        let is_narrow = |line: &str| line.chars().count() <= 80 || line.split_whitespace().count() <= 2;
        assert!(stderr.lines().all(is_narrow), "{name}: {stderr}");
        let printed = format!("{stdout}{stderr}").split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(printed.contains(expected), "{name}: {printed}");
    }
}

#[test]
fn packets_of_a_file_are_not_stored_again() {
    for words in
        [&["diagnose", "--write", "kept.pcapng"][..], &["diagnose", "a.pcap", "--write", "kept.pcapng"]]
    {
        let output = Command::new(PROGRAM).args(words).output().unwrap();
        let printed = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{printed}");
        assert!(printed.contains("give --run, --port or --for instead of a file"), "{printed}");
    }
}
