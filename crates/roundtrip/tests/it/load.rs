//! `load` and its plans, by the command line; `workload` tests the distributions.

mod emulated;
mod live;
mod requests;

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;

use serde_json::{Value, json};
use workload::text;

fn roundtrip(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_roundtrip")).args(arguments).current_dir(directory).output().unwrap()
}

#[test]
fn a_plan_is_written_with_the_files_it_requests() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("load-plan");
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    let plan =
        ["load", "plan", "--files", "50", "--cap", "100000", "--users", "5", "--seed", "3", "-o", "plan.txt"];
    let printed = roundtrip(&directory, &plan);
    assert!(printed.status.success(), "{printed:?}");
    assert!(String::from_utf8_lossy(&printed.stdout).contains("The plan is in plan.txt."));
    let text = fs::read_to_string(directory.join("plan.txt")).unwrap();
    assert!(roundtrip(&directory, &plan).status.success());
    assert!(
        text == fs::read_to_string(directory.join("plan.txt")).unwrap(),
        "the same seed gives another plan"
    );
    let plan = text::read(&text).unwrap();
    let printed = roundtrip(&directory, &["site", "surge", "www", "--plan", "plan.txt"]);
    assert!(printed.status.success(), "{printed:?}");
    for (file, size) in plan.files.iter().enumerate() {
        assert_eq!(fs::metadata(directory.join(format!("www/{file}.bin"))).unwrap().len(), *size);
    }
}

#[test]
fn an_invalid_plan_is_refused_with_its_line() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("load-refused");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("cut.txt"), "roundtrip-plan 1\nset surge-1998\n").unwrap();
    for (arguments, expected) in [
        (
            &["site", "surge", "www", "--plan", "cut.txt"][..],
            "cut.txt: line 3 of the plan is not `seed` with its value",
        ),
        (&["site", "microscape", "www", "--plan", "cut.txt"], "--plan is for the site surge"),
        (&["load", "plan", "--rate", "1..x"], "`1..x` is not a rate"),
        (&["load", "plan", "--users", "0"], "--users: `0` is not a number"),
        (&["load", "plan", "--users", "4000000000"], "the plan would have about"),
    ] {
        let refused = roundtrip(&directory, arguments);
        let printed = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(2) && printed.contains(expected), "{arguments:?}: {printed}");
    }
    assert!(!directory.join("www").exists(), "something was left behind");
}

/// A server that is stopped when this is dropped.
struct TestServer {
    child: Child,
    address: String,
}

impl TestServer {
    /// Our own server of a directory, in the papers' profile: it has no limits.
    fn directory(directory: &Path) -> Self {
        let arguments = ["serve", "www", "--listen", "127.0.0.1:0", "--profile", "paper"];
        let mut child = Command::new(env!("CARGO_BIN_EXE_roundtrip"))
            .args(arguments)
            .current_dir(directory)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let address = line
            .split("http://")
            .nth(1)
            .and_then(|rest| rest.split('/').next())
            .expect("an address")
            .to_owned();
        Self { child, address }
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A directory with a plan of 60 requests in a second, and its files.
fn planned(name: &str) -> PathBuf {
    planned_at(name, "60", "1s")
}

/// A directory with a plan of this rate and duration, and its files.
fn planned_at(name: &str, rate: &str, duration: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    let plan = ["load", "plan", "--files", "50", "--cap", "20000", "--conditional", "20%", "--even"];
    let planned_output =
        roundtrip(&directory, &[&plan[..], &["--rate", rate, "--for", duration, "-o", "plan.txt"]].concat());
    assert!(planned_output.status.success(), "{planned_output:?}");
    assert!(roundtrip(&directory, &["site", "surge", "www", "--plan", "plan.txt"]).status.success());
    directory
}

fn load(directory: &Path, address: &str, more: &[&str]) -> Value {
    let target = format!("http://{address}/");
    let share = if more.contains(&"--share") { &[][..] } else { &["--share", "6"] };
    let arguments = [&["load", &target, "--plan", "plan.txt", "--format", "json"], share, more].concat();
    let printed = roundtrip(directory, &arguments);
    let run = serde_json::from_slice::<Value>(&printed.stdout).unwrap()[0].take();
    let fails = run["failed_share"].as_f64() > Some(0.01);
    assert_eq!(printed.status.code(), Some(i32::from(fails)), "{run}");
    run
}

#[test]
fn every_request_of_a_plan_gets_a_response_with_every_protocol() {
    let directory = planned("load-answered");
    let served = TestServer::directory(&directory);
    for (protocol, connections) in
        [("http10", 60..=60), ("http11", 6..=6), ("http11-pipelined", 6..=6), ("dhttp", 1..=60)]
    {
        let run = load(&directory, &served.address, &["--protocol", protocol]);
        assert_eq!((&run["answered"], &run["failed"]), (&json!(60), &json!(0)), "{protocol}: {run}");
        let opened = run["connections"].as_u64().unwrap();
        assert!(connections.contains(&opened), "{protocol}: {opened}");
        assert!(run["intended_ms"]["p50"].as_f64() >= run["experienced_ms"]["p50"].as_f64(), "{run}");
        let udp = run["channels"]["udp"].as_u64().unwrap_or(0);
        assert_eq!(udp > 0, protocol == "dhttp", "{run}");
    }
}

/// nginx gets HTTP/2 with prior knowledge, because Debian's has no HTTP/3; skipped where it is not installed.
#[test]
fn nginx_responds_to_every_request_by_http2() {
    if !skip::has("nginx") {
        return;
    }
    let directory = planned("load-http2");
    let location = directory.display();
    // Bound and released: nginx cannot report ports that the kernel chose.
    let port = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (port, old) = (port(), port());
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let temporary = temporary.map(|kind| format!("{kind}_temp_path {location}/{kind}; ")).concat();
    let reported = format!(
        "daemon off; master_process off; pid {location}/pid; error_log {location}/error.log; events {{}}\n\
         http {{ access_log off; {temporary} server {{ listen 127.0.0.1:{port} http2; root {location}/www; }}\n\
         server {{ listen 127.0.0.1:{old}; root {location}/www; }} }}\n"
    );
    fs::write(directory.join("nginx.conf"), reported).unwrap();
    let mut command = Command::new("nginx");
    command.arg("-c").arg(directory.join("nginx.conf")).env("PATH", skip::path()).stderr(Stdio::null());
    let child = command.spawn().unwrap();
    let served = TestServer { child, address: format!("127.0.0.1:{port}") };
    let is_listening = |_| {
        thread::park_timeout(std::time::Duration::from_millis(20));
        TcpStream::connect(&served.address).is_ok()
    };
    assert!((0..250).any(is_listening), "nginx does not listen");
    let run = load(&directory, &served.address, &["--protocol", "http2"]);
    assert_eq!(
        (&run["answered"], &run["failed"], &run["connections"]),
        (&json!(60), &json!(0), &json!(6)),
        "{run}"
    );
    let refused =
        roundtrip(&directory, &["load", &format!("http://127.0.0.1:{old}/"), "--protocol", "http2"]);
    let printed = String::from_utf8_lossy(&refused.stderr);
    assert!(printed.contains("does not speak HTTP/2 here; switch it on there"), "{printed}");
}

/// A faulty server that handles each of its connections with this function.
fn faulty_server(handler: fn(TcpStream)) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for (number, stream) in listener.incoming().flatten().enumerate() {
            thread::spawn(move || match number {
                // The preflight connection.
                0 => drop(reply(stream, b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n")),
                _ => handler(stream),
            });
        }
    });
    address
}

fn reply(mut stream: TcpStream, response: &[u8]) -> io::Result<TcpStream> {
    let _ = stream.read(&mut [0; 4_096])?;
    stream.write_all(response)?;
    Ok(stream)
}

#[test]
fn faults_of_a_server_are_counted_by_kind() {
    let directory = planned("load-bad");
    type ConnectionHandler = fn(TcpStream);
    let cases: [(ConnectionHandler, &str); 5] = [
        (|stream| drop(reply(stream, b"")), "closed"),
        (|stream| drop(reply(stream, b"220 mail.example ESMTP\r\n")), "garbage"),
        (
            |stream| {
                drop(reply(stream, b"HTTP/1.1 503 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"))
            },
            "status",
        ),
        (
            |stream| {
                drop(reply(stream, b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx"))
            },
            "size",
        ),
        (
            |stream| {
                let connection = reply(stream, b"HTTP/1.1 200 OK\r\n");
                thread::park();
                drop(connection);
            },
            "timeout",
        ),
    ];
    for (handler, kind) in cases {
        let run = load(&directory, &faulty_server(handler), &["--timeout", "300ms"]);
        assert_eq!((&run["answered"], &run["failed"]), (&json!(0), &json!(60)), "{kind}: {run}");
        assert_eq!(run["failures"][kind], json!(60), "{run}");
    }
}

#[test]
fn regress_a_server_that_exhausts_sockets_does_not_cause_busy_waiting() {
    let directory = planned("load-sockets");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let port = UdpSocket::bind(address).unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            drop(reply(stream, b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"));
        }
    });
    thread::spawn(move || {
        let (mut buffer, mut connections) = ([0; 2_048], Vec::new());
        while let Ok((length, from)) = port.recv_from(&mut buffer) {
            // The port for the response follows the request's id.
            let Some(requested) = buffer.get(8..10).filter(|_| length > 10) else { continue };
            let to = SocketAddr::new(from.ip(), u16::from_be_bytes([requested[0], requested[1]]));
            connections.extend((0..30).map_while(|_| TcpStream::connect(to).ok()));
        }
    });
    let command = format!(
        "ulimit -n 80; exec '{}' load http://{address}/ --plan plan.txt --share 6 --threads 1 --protocol dhttp \
         --timeout 500ms --format json",
        env!("CARGO_BIN_EXE_roundtrip")
    );
    let printed = Command::new("sh").args(["-c", &command]).current_dir(&directory).output().unwrap();
    assert_eq!(printed.status.code(), Some(1), "{printed:?}");
    let run = serde_json::from_slice::<Value>(&printed.stdout).unwrap()[0].take();
    assert_eq!((&run["answered"], &run["failed"]), (&json!(0), &json!(60)), "{run}");
    let busy = run["seconds"].as_array().unwrap().iter().map(|second| second["generator_share"].as_f64());
    // Waiting for sockets needs no CPU time; it once took all of a CPU.
    assert!(busy.flatten().fold(0.0, f64::max) < 0.4, "{run}");
}

#[test]
fn an_unreachable_or_remote_server_is_refused_before_the_run() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    for (target, expected) in [
        ("http://127.0.0.1:1/", "127.0.0.1:1 does not respond"),
        ("http://192.0.2.1/", "neither this host nor in a private network"),
        ("http://[::ffff:192.0.2.1]/", "neither this host nor in a private network"),
        ("http://224.0.0.1/", "a multicast or broadcast address"),
        ("http://[fe80::1]/", "without a link; name it, as in [fe80::1%eth0]"),
        ("ftp://127.0.0.1/", "ftp://"),
    ] {
        let refused = roundtrip(directory, &["load", target]);
        let printed = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(2) && printed.contains(expected), "{target}: {printed}");
    }
}

#[test]
fn a_plan_that_needs_more_than_this_host_has_is_refused_with_the_figure() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    // More than the number of ports, whatever this host allows.
    let flags = ["--rate", "200", "--share", "100", "--connections", "1000", "--for", "1s"];
    let refused = roundtrip(directory, &[&["load", "http://127.0.0.1:1/"], &flags[..]].concat());
    let printed = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(2) && printed.contains(" concurrent "), "{printed}");
    assert!(printed.contains("100000 ") || printed.contains("about 1000"), "{printed}");
}

#[test]
fn a_plan_that_needs_more_memory_than_a_process_may_have_is_refused_with_the_figure() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let program = env!("CARGO_BIN_EXE_roundtrip");
    let limited = |arguments: &str| {
        let command = format!("ulimit -v 1000000; exec '{program}' {arguments}");
        let printed = Command::new("sh").args(["-c", &command]).current_dir(directory).output().unwrap();
        assert_eq!(printed.status.code(), Some(2), "{printed:?}");
        String::from_utf8_lossy(&printed.stderr).into_owned()
    };
    let printed = limited("load plan --rate 20000 --for 600s");
    assert!(printed.contains("generating the plan needs about 1554 MB of memory and "), "{printed}");
    let printed = limited("load http://127.0.0.1:1/ --rate 20000 --share 40000 --for 1s --protocol http2");
    assert!(
        printed.contains("concurrent sockets and may have") || printed.contains("of memory and "),
        "{printed}"
    );
    // A sparse file, as long as a plan that exceeds the memory.
    fs::File::create(directory.join("long.txt")).unwrap().set_len(200_000_000).unwrap();
    let printed = limited("load http://127.0.0.1:1/ --plan long.txt");
    assert!(printed.contains("reading the plan needs about 2000 MB of memory and "), "{printed}");
    fs::remove_file(directory.join("long.txt")).unwrap();
}

#[test]
fn a_log_that_cannot_be_written_is_refused_before_the_run() {
    let directory = planned("load-no-log");
    let served = TestServer::directory(&directory);
    let target = format!("http://{}/", served.address);
    let refused = roundtrip(&directory, &["load", &target, "--plan", "plan.txt", "--log", "none/run.hlog"]);
    let printed = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(2) && refused.stdout.is_empty(), "{refused:?}");
    assert!(printed.contains("cannot write none/run.hlog"), "{printed}");
}

#[test]
fn a_mismatch_of_encryption_is_refused_before_the_run() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    for (arguments, expected) in [
        (&["https://127.0.0.1/", "--protocol", "dhttp"][..], "DHTTP is not encrypted"),
        (&["http://127.0.0.1/", "--protocol", "http3"], "HTTP/3 is always encrypted; give an https:// URL"),
        (&["http://127.0.0.1/", "--insecure"], "--ca and --insecure are for https:// URLs"),
        (&["http://127.0.0.1/", "--protocol", "http2", "--insecure"], "--ca and --insecure are for https://"),
        (
            &["https://127.0.0.1/", "--protocol", "http2", "--early-data"],
            "--early-data is for --protocol http3",
        ),
        (&["http://127.0.0.1/", "--protocol", "dhttp", "--fast-open"], "--fast-open is for HTTP/1"),
        (&["https://127.0.0.1/", "--protocol", "http2", "--ca", "none.pem"], "--ca: none.pem: "),
    ] {
        let refused = roundtrip(directory, &[&["load"], arguments].concat());
        let printed = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(2) && printed.contains(expected), "{arguments:?}: {printed}");
    }
}

#[test]
fn connections_close_as_configured_and_are_counted_over_time() {
    let directory = planned("load-kept");
    let served = TestServer::directory(&directory);
    let most = |run: &Value| run["most_open"].as_u64().unwrap();
    for (flags, connections, open) in [
        (&["--keep-alive", "0s"][..], 60..=60, 1..=6),
        (&["--keep-alive", "10s"], 6..=6, 6..=6),
        (&["--early-close"], 60..=60, 1..=6),
        // Whether the server allows requests with the SYN or not.
        (&["--keep-alive", "0s", "--fast-open"], 60..=60, 1..=6),
    ] {
        let run = load(&directory, &served.address, flags);
        assert_eq!((&run["answered"], &run["failed"]), (&json!(60), &json!(0)), "{flags:?}: {run}");
        assert!(connections.contains(&run["connections"].as_u64().unwrap()), "{flags:?}: {run}");
        assert!(open.contains(&most(&run)), "{flags:?}: {run}");
        let opened =
            run["seconds"].as_array().unwrap().iter().map(|second| second["opened"].as_u64().unwrap());
        assert_eq!(opened.sum::<u64>(), run["connections"].as_u64().unwrap(), "{flags:?}: {run}");
    }
}

#[test]
fn an_idle_connection_is_closed_by_its_user() {
    let directory = planned_at("load-idle", "2", "2s");
    let served = TestServer::directory(&directory);
    let run = load(&directory, &served.address, &["--share", "1", "--keep-alive", "50ms"]);
    assert_eq!((&run["answered"], &run["connections"]), (&json!(4), &json!(4)), "{run}");
}

#[test]
fn shards_of_a_plan_run_independently_and_are_merged() {
    let directory = planned("load-parts");
    let served = TestServer::directory(&directory);
    let mut answered = 0;
    for number in 1..=3 {
        let (shard, log) = (format!("{number}/3"), format!("{number}.hlog"));
        let run = load(&directory, &served.address, &["--shard", &shard, "--log", &log]);
        answered += run["answered"].as_u64().unwrap();
        assert_eq!(run["parts"], json!([number]), "{run}");
    }
    assert_eq!(answered, 60);
    let merge = |logs: &[&str]| {
        roundtrip(&directory, &[&["load", "merge", "--format", "json", "-o", "whole.hlog"], logs].concat())
    };
    let printed = merge(&["1.hlog", "2.hlog", "3.hlog"]);
    assert!(printed.status.success(), "{printed:?}");
    let whole = serde_json::from_slice::<Value>(&printed.stdout).unwrap()[0].take();
    assert!(whole["began"][0].as_f64() > Some(1e9), "{whole}");
    assert_eq!((&whole["answered"], &whole["parts"]), (&json!(60), &json!([1, 2, 3])), "{whole}");
    let printed = roundtrip(&directory, &["load", "merge", "whole.hlog", "--format", "csv"]);
    let (rows, verdict) =
        (String::from_utf8_lossy(&printed.stdout), String::from_utf8_lossy(&printed.stderr));
    let mut rows = rows.lines().map(|row| row.split(',').collect::<Vec<_>>());
    let heading = rows.next().unwrap();
    let answered = heading.iter().position(|name| *name == "answered").unwrap();
    let rows: Vec<_> = rows.collect();
    assert!(rows.iter().all(|row| row.len() == heading.len()), "{rows:?}");
    assert_eq!(rows.iter().map(|row| row[answered].parse::<u32>().unwrap()).sum::<u32>(), 60);
    assert!(verdict.to_lowercase().contains("bottleneck in"), "{verdict}");
    let printed = merge(&["whole.hlog", "2.hlog"]);
    let printed = String::from_utf8_lossy(&printed.stderr);
    assert!(printed.contains("2.hlog: shard 2 of 3 is given twice"), "{printed}");
    let printed = roundtrip(&directory, &["load", "http://127.0.0.1/", "--shard", "4/3"]);
    assert!(
        String::from_utf8_lossy(&printed.stderr).contains("--shard: `4/3` is not a shard"),
        "{printed:?}"
    );
}

#[test]
fn a_log_is_replayed_faster() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("load-replay");
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    let line = |second: u32, client: u32, status: u32, size: u32| {
        format!(
            "10.0.0.{client} - - [01/Aug/1995:00:00:{second:02} -0400] \"GET /a HTTP/1.0\" {status} {size}\n"
        )
    };
    let log = [
        line(0, 1, 200, 300),
        line(0, 2, 200, 70),
        line(5, 1, 404, 9),
        line(5, 1, 200, 70),
        line(9, 3, 304, 0),
    ];
    fs::write(directory.join("access.log"), log.concat()).unwrap();
    let printed =
        roundtrip(&directory, &["load", "plan", "--replay", "access.log", "--speed", "10", "-o", "plan.txt"]);
    assert!(printed.status.success(), "{printed:?}");
    assert!(
        String::from_utf8_lossy(&printed.stderr)
            .starts_with("roundtrip: left out of the log: 1 request whose status"),
        "{printed:?}"
    );
    assert!(roundtrip(&directory, &["site", "surge", "www", "--plan", "plan.txt"]).status.success());
    let served = TestServer::directory(&directory);
    let run = load(&directory, &served.address, &[]);
    assert_eq!(
        (&run["answered"], &run["failed"], &run["connections"]),
        (&json!(4), &json!(0), &json!(3)),
        "{run}"
    );
    let printed = roundtrip(&directory, &["load", "plan", "--replay", "plan.txt"]);
    assert!(String::from_utf8_lossy(&printed.stderr).contains(": unknown access log format"), "{printed:?}");
}
