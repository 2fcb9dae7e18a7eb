//! Loads of a URL, of a file of requests, and of an access log; thresholds and exit statuses.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use super::{TestServer, roundtrip};

/// Server with keep-alive that responds by path and method, and stores request lines and bodies.
struct Api {
    address: String,
    received: Arc<Mutex<Vec<String>>>,
}

impl Api {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let received: Arc<Mutex<Vec<String>>> = Arc::default();
        let all = Arc::clone(&received);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let received = Arc::clone(&all);
                thread::spawn(move || serve(stream, &received));
            }
        });
        Self { address, received }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn received(&self) -> Vec<String> {
        self.received.lock().unwrap().clone()
    }
}

fn serve(mut stream: TcpStream, received: &Mutex<Vec<String>>) {
    let (mut text, mut buffer) = (String::new(), [0; 4_096]);
    loop {
        while let Some((head, rest)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
            let length = length.map_or(0, |length| length.parse().unwrap());
            if rest.len() < length {
                break;
            }
            let line = head.lines().next().unwrap().trim_end_matches(" HTTP/1.1").to_owned();
            let field = head.lines().find_map(|line| line.strip_prefix("X-Mark: ")).unwrap_or_default();
            let (body, rest) = rest.split_at(length);
            let status = match line.split(' ').nth(1).unwrap() {
                "/missing" => "404 Not Found",
                "/old" => "302 Found\r\nLocation: /new",
                "/made" => "201 Created",
                _ => "200 OK",
            };
            // A body of another length each time, and none for HEAD.
            let count = if line.starts_with("HEAD") { 0 } else { received.lock().unwrap().len() % 7 };
            let reply = "x".repeat(count);
            let length = if line.starts_with("HEAD") { 5 } else { reply.len() };
            received.lock().unwrap().push(format!("{line}|{field}|{body}"));
            let rest = rest.to_owned();
            text = rest;
            let response = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{reply}");
            if stream.write_all(response.as_bytes()).is_err() {
                return;
            }
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(length) => text += std::str::from_utf8(&buffer[..length]).unwrap(),
        }
    }
}

fn empty_directory(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    directory
}

fn json_of(printed: &Output) -> Value {
    serde_json::from_slice::<Value>(&printed.stdout).unwrap_or_else(|error| panic!("{error}: {printed:?}"))[0]
        .take()
}

#[test]
fn regress_a_url_is_requested_over_and_over_whatever_it_responds_below_400() {
    let (api, directory) = (Api::start(), empty_directory("load-url"));
    let words = ["--users", "3", "--for", "500ms", "--format", "json"];
    let printed = roundtrip(&directory, &[&["load", &api.url("/api?a=b")][..], &words].concat());
    let run = json_of(&printed);
    assert!(printed.status.success() && run["failed"] == 0 && run["answered"].as_u64() > Some(10), "{run}");
    assert_eq!((&run["connections"], &run["workload"]), (&json!(3), &json!("GET, 3 users in a closed loop")));
    assert_eq!(run["statuses"]["200"], run["answered"], "{run}");
    assert!(api.received().iter().all(|line| line == "GET /api?a=b||"), "{:?}", api.received());
    let elapsed = run["elapsed_s"].as_f64().unwrap();
    let rate = run["answered"].as_f64().unwrap() / elapsed;
    assert!((0.5..2.0).contains(&elapsed), "{run}");
    assert!((run["answers_per_second"].as_f64().unwrap() - rate).abs() < 1e-6, "{run}");
}

#[test]
fn an_open_schedule_sends_a_method_fields_and_a_body() {
    let (api, directory) = (Api::start(), empty_directory("load-post"));
    fs::write(directory.join("body.json"), "{}").unwrap();
    for (flags, line) in [
        (&["--body", "@body.json", "-H", "X-Mark: m"][..], "POST /made|m|{}"),
        (&["--method", "PUT", "--body", "text"], "PUT /made||text"),
        // Without the short runs that precede a load of safe requests.
        (&["--method", "HEAD", "--ramp", "0s"], "HEAD /made||"),
    ] {
        let url = api.url("/made");
        let words = ["load", &url, "--rate", "50", "--even", "--for", "1s", "--format", "json"];
        let printed = roundtrip(&directory, &[&words, flags].concat());
        let run = json_of(&printed);
        // All requests of the schedule, and the preflight request.
        assert_eq!((printed.status.code(), &run["answered"]), (Some(0), &json!(50)), "{run}");
        assert_eq!(
            api.received().iter().filter(|received| *received == line).count(),
            51,
            "{line}: {:?}",
            api.received()
        );
    }
}

#[test]
fn a_file_of_requests_is_sent_in_turn_with_separate_results() {
    let (api, directory) = (Api::start(), empty_directory("load-file"));
    fs::write(directory.join("order.txt"), "12 apples").unwrap();
    let text = format!("GET {}\nX-Mark: a\n\nPOST /made\n@order.txt\n\nGET /missing\n", api.url("/api"));
    fs::write(directory.join("requests.txt"), text).unwrap();
    let words =
        ["load", "--requests", "requests.txt", "--rate", "30", "--even", "--for", "1s", "--format", "json"];
    let printed = roundtrip(&directory, &words);
    let run = json_of(&printed);
    assert_eq!(
        (printed.status.code(), &run["answered"], &run["failed"]),
        (Some(1), &json!(20), &json!(10)),
        "{run}"
    );
    let requests = run["requests"].as_array().unwrap();
    let reported: Vec<_> = requests
        .iter()
        .map(|request| (&request["request"], &request["answered"], &request["failed"]))
        .collect();
    assert_eq!(
        reported,
        [
            (&json!("GET /api"), &json!(10), &json!(0)),
            (&json!("POST /made"), &json!(10), &json!(0)),
            (&json!("GET /missing"), &json!(0), &json!(10)),
        ]
    );
    assert!(api.received().contains(&"POST /made||12 apples".to_owned()), "{:?}", api.received());
    // On a busy host requests leave late, which the verdict reports first. Its words are tested in `load::bottleneck`.
    let verdict = run["verdict"].as_str().unwrap();
    let is_late = verdict.starts_with("THE GENERATOR WAS THE BOTTLENECK");
    assert!(is_late || verdict.starts_with("REQUESTS FAILED: 10 of 30, 33.33% (10 status)"), "{run}");
    for (text, expected) in [
        (
            "GET http://127.0.0.1:1/\n\nGET http://127.0.0.2/\n",
            "bad.txt:3: http://127.0.0.2 is another server",
        ),
        ("GET /\n", "bad.txt:1: the server is not known"),
        ("GET http://127.0.0.1:1/\n@none\n", "bad.txt:2: cannot read none"),
        ("GET http://127.0.0.1:1/\nnonsense\n", "bad.txt:2: `nonsense` is not a header field"),
    ] {
        fs::write(directory.join("bad.txt"), text).unwrap();
        let refused = roundtrip(&directory, &["load", "--requests", "bad.txt"]);
        let printed = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(2) && printed.contains(expected), "{expected}: {printed}");
    }
}

#[test]
fn errors_of_the_preflight_request_come_with_a_remedy() {
    let (api, directory) = (Api::start(), empty_directory("load-preflight"));
    for (path, expected) in [
        ("/missing", "/missing responds with 404; check the path, or pass --expect-status 404"),
        (
            "/old",
            "/old redirects to /new (302); give the URL that it redirects to, or pass --expect-status 302",
        ),
    ] {
        let refused = roundtrip(&directory, &["load", &api.url(path), "--for", "1s"]);
        let printed = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(2) && printed.contains(expected), "{path}: {printed}");
    }
    let words = ["--expect-status", "404", "--for", "200ms", "--users", "1"];
    let printed = roundtrip(&directory, &[&["load", &api.url("/missing")][..], &words].concat());
    assert!(printed.status.success(), "{printed:?}");
    let refused = roundtrip(&directory, &["load", &api.url("/"), "--files", "20"]);
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("--files: it belongs to a SURGE workload"),
        "{refused:?}"
    );
}

#[test]
fn thresholds_are_judged_and_decide_the_exit_status() {
    let (api, directory) = (Api::start(), empty_directory("load-thresholds"));
    let url = api.url("/");
    let load = |flags: &[&str]| {
        let words = ["load", &url, "--users", "1", "--for", "300ms", "--format", "json"];
        let printed = roundtrip(&directory, &[&words, flags].concat());
        (printed.status.code(), json_of(&printed)["thresholds"].take())
    };
    let (status, judged) =
        load(&["--fail-on", "p99=10s", "--fail-on", "rate=1/s", "--fail-on", "error-rate=0%"]);
    assert_eq!((status, judged.as_array().unwrap().len()), (Some(0), 4), "{judged}");
    let (status, judged) = load(&["--fail-on", "p50=10s", "--fail-on", "rate=1000000/s"]);
    assert_eq!(status, Some(1), "{judged}");
    assert_eq!((&judged[1]["passed"], &judged[2]["passed"]), (&json!(true), &json!(false)), "{judged}");
    let refused = roundtrip(&directory, &["load", &url, "--fail-on", "p98=1s"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("unknown threshold `p98`"), "{refused:?}");
}

#[test]
fn regress_a_replayed_log_requests_the_logged_paths() {
    let (api, directory) = (Api::start(), empty_directory("load-replay-paths"));
    let line = |second: u32, request: &str, status: u32| {
        format!(
            "10.0.0.{second} - - [01/Aug/1995:00:00:0{second} -0400] \"{request} HTTP/1.0\" {status} 300\n"
        )
    };
    let log = [
        line(0, "GET /a?b=c", 200),
        line(1, "HEAD /a", 200),
        line(1, "POST /orders", 201),
        line(2, "GET /missing", 404),
        line(3, "GET /\u{e9}", 400),
        line(4, "GET /a?b=c", 304),
    ];
    fs::write(directory.join("access.log"), log.concat()).unwrap();
    let url = api.url("");
    let words = ["load", &url, "--replay", "access.log", "--speed", "10", "--format", "json"];
    let printed = roundtrip(&directory, &words);
    let run = json_of(&printed);
    assert_eq!(
        (printed.status.code(), &run["answered"], &run["failed"]),
        (Some(0), &json!(4), &json!(0)),
        "{run}"
    );
    let mut received = api.received();
    // The preflight request.
    received.remove(0);
    assert_eq!(received, ["GET /a?b=c||", "HEAD /a||", "GET /missing||", "GET /a?b=c||"]);
    let notes = run["notes"].as_array().unwrap();
    assert_eq!(
        notes[0],
        "2 of 6 logged requests are left out (1 POST, 1 with a path that cannot be sent); only GET and HEAD are replayed"
    );
}

#[test]
fn regress_a_site_s_sizes_do_not_depend_on_the_flags_of_the_load() {
    let directory = empty_directory("load-surge");
    let files = ["site", "surge", "www", "--plan", "plan.txt"];
    let plan = ["load", "plan", "--files", "50", "--cap", "20000", "-o", "plan.txt"];
    assert!(roundtrip(&directory, &plan).status.success() && roundtrip(&directory, &files).status.success());
    let served = TestServer::directory(&directory);
    let url = format!("http://{}/", served.address);
    for flags in [&["--users", "30"][..], &["--rate", "100", "--seed", "9"]] {
        let words = ["load", &url, "--surge", "www", "--for", "2s", "--format", "json"];
        let printed = roundtrip(&directory, &[&words, flags].concat());
        let run = json_of(&printed);
        assert!(
            printed.status.success() && run["answered"].as_u64() > Some(10) && run["failed"] == 0,
            "{run}"
        );
    }
    let refused = roundtrip(&directory, &["load", &url, "--surge", "nowhere"]);
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("make it with `roundtrip site surge nowhere`"),
        "{refused:?}"
    );
}

#[test]
fn a_url_is_loaded_by_every_protocol_of_our_own_server() {
    let directory = empty_directory("load-protocols");
    fs::create_dir_all(directory.join("www")).unwrap();
    fs::write(directory.join("www/page.html"), "hello").unwrap();
    let served = TestServer::directory(&directory);
    let url = format!("http://{}/page.html", served.address);
    for protocol in ["http10", "http11", "http11-pipelined", "dhttp"] {
        let words = ["--users", "2", "--for", "300ms", "--format", "json", "--protocol", protocol];
        let printed = roundtrip(&directory, &[&["load", &url][..], &words].concat());
        let run = json_of(&printed);
        assert!(
            printed.status.success() && run["failed"] == 0 && run["answered"].as_u64() > Some(5),
            "{run}"
        );
        assert_eq!(run["channels"]["udp"].as_u64() > Some(0), protocol == "dhttp", "{run}");
    }
}
