//! `roundtrip serve`, `get` and `gateway` as users run them, over the loopback interface.
//!
//! The crate `dhttp` tests the protocol; these tests cover flags, signals, files and exit statuses.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::str::FromStr;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use test_fixture::KilledOnDrop;

const PROGRAM: &str = env!("CARGO_BIN_EXE_roundtrip");

/// A server that is killed after the test, and the directory that it serves.
struct TestServer {
    child: Child,
    address: String,
    directory: PathBuf,
    stderr_lines: BufReader<std::process::ChildStderr>,
}

impl TestServer {
    fn start(name: &str, flags: &[&str]) -> Self {
        let directory = std::env::temp_dir().join(format!("roundtrip-serve-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("index.html"), "<p>small</p>").unwrap();
        std::fs::write(directory.join("large.bin"), vec![7; 100_000]).unwrap();
        let mut child = Command::new(PROGRAM)
            .args(["serve", "--listen", "127.0.0.1:0"])
            .arg(&directory)
            .args(flags)
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut stderr_lines = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        // Before that, with --trace, it may have logged other events.
        while !line.contains("dhttp://") && stderr_lines.read_line(&mut line).unwrap() > 0 {}
        let address = line.split("dhttp://").nth(1).unwrap_or_else(|| panic!("{line}"));
        let address = address.split('/').next().unwrap().to_owned();
        Self { child, address, directory, stderr_lines }
    }

    fn signal(&self, name: &str) {
        let signal = Signal::from_str(&format!("SIG{name}")).unwrap();
        kill(Pid::from_raw(self.child.id().cast_signed()), signal).unwrap();
    }

    fn get(&self, arguments: &[&str]) -> Output {
        let arguments = arguments.iter().map(|text| text.replace("HERE", &self.address));
        Command::new(PROGRAM)
            .arg("get")
            .args(arguments)
            .env("XDG_CACHE_HOME", self.directory.with_extension("cache"))
            .output()
            .unwrap()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
        let _ = std::fs::remove_dir_all(self.directory.with_extension("cache"));
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_directory_is_served_and_fetched_and_the_channels_are_shown() {
    let served = TestServer::start("channels", &[]);
    let file = served.directory.join("got");
    let large = served.get(&["-v", "-o", file.to_str().unwrap(), "dhttp://HERE/large.bin"]);
    let (shown, fallback) = (stderr(&large), "fallback message, 34 bytes: use plain HTTP");
    assert!(shown.contains(fallback) && shown.contains("* 200 by tcp-client"), "{shown}");
    assert_eq!(std::fs::read(file).unwrap(), vec![7; 100_000]);
    let small = served.get(&["-v", "dhttp://HERE/"]);
    assert_eq!((small.status.code(), &*small.stdout), (Some(0), &b"<p>small</p>"[..]));
    let shown = stderr(&small);
    assert!(
        shown.contains("> udp ") && shown.contains("< udp ") && shown.contains("* 200 by udp"),
        "{shown}"
    );
    // Both responses, by UDP and over plain HTTP, bring the token without which no server connects.
    for first in ["dhttp://HERE/", "dhttp://HERE/large.bin"] {
        let _ = std::fs::remove_dir_all(served.directory.with_extension("cache"));
        let both = served.get(&["-v", first, "dhttp://HERE/large.bin"]);
        let shown = stderr(&both);
        assert!(shown.contains("server connected") && shown.contains("* 200 by tcp-opened"), "{shown}");
        assert!(both.stdout.ends_with(&[7; 100_000]));
    }
    let missing = served.get(&["dhttp://HERE/missing"]);
    assert_eq!((missing.status.code(), &*missing.stdout), (Some(1), &b"404 Not Found\n"[..]));
}

#[test]
fn a_truncated_response_leaves_the_output_file_untouched() {
    let served = TestServer::start("broken", &[]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4_096]);
            let response = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\nhalf";
            let _ = stream.write_all(response);
        }
    });
    let directory = served.directory.join("got");
    std::fs::create_dir(&directory).unwrap();
    let file = directory.join("file");
    for before in [None, Some("before")] {
        before.inspect(|text| std::fs::write(&file, text).unwrap());
        let output = served.get(&["-o", file.to_str().unwrap(), &url]);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert_eq!(std::fs::read_to_string(&file).ok().as_deref(), before);
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), usize::from(before.is_some()));
    }
}

#[test]
fn extensions_of_the_paper_are_chosen_by_name() {
    let serve = |flags: &[&str]| {
        let flags = flags.iter().copied();
        Command::new(PROGRAM).args(["serve", ".", "--check"]).args(flags).output().unwrap()
    };
    let chosen = serve(&["--profile", "paper", "--with", "loss-by-prefix", "--without", "more-connections"]);
    let printed = String::from_utf8_lossy(&chosen.stdout).into_owned();
    let end = "with the paper profile, with loss-by-prefix, without more-connections\n";
    assert!(printed.ends_with(end), "{printed}{}", stderr(&chosen));
    let both = serve(&["--with", "loss-by-prefix", "--without", "loss-by-prefix"]);
    assert!(stderr(&both).contains("choose one"), "{}", stderr(&both));
    let unknown = serve(&["--with", "loss"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(stderr(&unknown).contains("loss-by-prefix"), "{}", stderr(&unknown));
}

#[test]
fn parts_are_shown_one_by_one() {
    let served = TestServer::start("parts", &["--with", "parts"]);
    std::fs::write(served.directory.join("middle.txt"), vec![b'm'; 5_000]).unwrap();
    let fetched = served.get(&["-v", "--with", "parts", "dhttp://HERE/", "dhttp://HERE/middle.txt"]);
    assert!(fetched.stdout.ends_with(&[b'm'; 5_000]));
    let reported = stderr(&fetched);
    assert_eq!(reported.matches(": part of a response, ").count(), 5, "{reported}");
    assert!(reported.contains("* 200 by udp"), "{reported}");
}

#[test]
fn a_known_dhttp_server_is_remembered_by_the_next_command() {
    let served = TestServer::start("remembered", &[]);
    assert!(stderr(&served.get(&["-v", "http://HERE/"])).contains("* 200 by tcp-client"));
    assert!(stderr(&served.get(&["-v", "http://HERE/"])).contains("* 200 by udp"));
}

#[test]
fn only_ports_of_the_range_are_used() {
    let served = TestServer::start("ports", &[]);
    let large = served.get(&["-v", "--ports", "41300-41349", "dhttp://HERE/large.bin"]);
    assert_eq!((large.status.code(), large.stdout.len()), (Some(0), 100_000), "{}", stderr(&large));
    let refused = served.get(&["--ports", "80-90", "dhttp://HERE/"]);
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn sigterm_stops_it_and_sighup_reopens_the_log() {
    let directory = std::env::temp_dir().join(format!("roundtrip-logs-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let log = directory.join("access.log");
    let mut served = TestServer::start("signals", &["--access-log", log.to_str().unwrap()]);
    served.get(&["dhttp://HERE/"]);
    std::fs::rename(&log, directory.join("access.log.1")).unwrap();
    served.signal("HUP");
    let mut line = String::new();
    served.stderr_lines.read_line(&mut line).unwrap();
    assert!(line.contains("reloaded the configuration"), "{line}");
    served.get(&["dhttp://HERE/", "dhttp://HERE/large.bin"]);
    served.signal("TERM");
    assert!(served.child.wait().unwrap().success());
    let read = |name| std::fs::read_to_string(directory.join(name)).unwrap();
    assert!(read("access.log.1").ends_with(" udp\n"), "{}", read("access.log.1"));
    assert!(read("access.log").ends_with(" tcp-opened\n"), "{}", read("access.log"));
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn a_server_reads_only_the_directories_that_it_was_started_with() {
    let directory = std::env::temp_dir().join(format!("roundtrip-confined-serve-{}", std::process::id()));
    for name in ["etc", "www", "www/new", "outside"] {
        std::fs::create_dir_all(directory.join(name)).unwrap();
        std::fs::write(directory.join(name).join("index.html"), name).unwrap();
    }
    let config = directory.join("etc/serve.toml");
    let write = |served: &str| {
        let lines = format!("folder = \"{}\"\nlisten = \"127.0.0.1:0\"\n", directory.join(served).display());
        // The file is replaced by a rename, as editors and configuration management do it.
        std::fs::write(config.with_extension("new"), lines).unwrap();
        std::fs::rename(config.with_extension("new"), &config).unwrap();
    };
    write("www");
    let mut command = Command::new(PROGRAM);
    command.args(["serve", "--config"]).arg(&config).stderr(Stdio::piped());
    let mut server = KilledOnDrop(command.spawn().unwrap());
    let mut reported = BufReader::new(server.0.stderr.take().unwrap()).lines();
    let first = reported.next().unwrap().unwrap();
    if first.contains("Landlock") {
        return skip::refused(&first);
    }
    let address = first.split("dhttp://").nth(1).unwrap().split('/').next().unwrap().to_owned();
    let page = || {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").unwrap();
        let mut all = String::new();
        stream.read_to_string(&mut all).unwrap();
        all.split("\r\n\r\n").nth(1).unwrap().to_owned()
    };
    assert_eq!(page(), "www");
    let id = Pid::from_raw(server.0.id().cast_signed());
    for (served, printed, body) in [
        ("outside", "permission denied", "www"),
        ("www/new", "reloaded the configuration", "www/new"),
        ("outside", "the configuration is unchanged", "www/new"),
    ] {
        write(served);
        kill(id, Signal::SIGHUP).unwrap();
        let line = reported.next().unwrap().unwrap();
        assert!(line.contains(printed), "{served}: {line}");
        // Each thread takes the new directory when it wakes next, which may be after the message; requests wake it.
        let is_applied = (0..10_000).any(|_| page() == body);
        assert!(is_applied, "{served} does not lead to {body}");
    }
    drop(server);
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn events_are_logged_if_requested() {
    let mut served = TestServer::start("trace", &["--trace", "debug"]);
    served.get(&["dhttp://HERE/", "dhttp://HERE/large.bin"]);
    let mut plain = TcpStream::connect(&served.address).unwrap();
    plain.write_all(b"no request\r\n\r\n").unwrap();
    plain.read_to_end(&mut Vec::new()).unwrap();
    served.signal("TERM");
    let mut reported = String::new();
    served.stderr_lines.read_to_string(&mut reported).unwrap();
    for line in ["connecting to a client", "a client's fault", "shutting down after pending requests"] {
        assert!(reported.contains(line), "{line} is not in: {reported}");
    }
}

#[test]
fn metrics_are_served_to_prometheus() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let served = TestServer::start("metrics", &["--metrics", &port]);
    served.get(&["dhttp://HERE/"]);
    let mut stream = TcpStream::connect(&port).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.contains("\ndhttp_answers_total{channel=\"udp\"} 1\n"), "{text}");
}

#[test]
fn a_configuration_is_checked_without_serving() {
    let directory = std::env::temp_dir().join(format!("roundtrip-check-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let file = directory.join("server.toml");
    let check = |text: String, flags: &[&str]| {
        std::fs::write(&file, text).unwrap();
        let output = Command::new(PROGRAM)
            .args(["serve", "--check", "--config"])
            .arg(&file)
            .args(flags)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(&output);
        (output.status.code(), text)
    };
    let shown = directory.display();
    let (status, text) = check(format!("folder = \"{shown}\"\nprofile = \"paper\"\n"), &[]);
    assert_eq!(status, Some(0), "{text}");
    assert!(text.contains("127.0.0.1:8080/ with the paper profile"), "{text}");
    let (status, text) =
        check(format!("folder = \"{shown}\"\n"), &["--profile", "paper", "--listen", "0.0.0.0:80"]);
    assert!(status == Some(2) && text.contains("--force"), "{text}");
    let (status, text) = check(format!("folder = \"{shown}\"\nlisten = \"here\"\n"), &[]);
    assert!(status == Some(2) && text.contains("listen"), "{text}");
    let (status, text) = check("folder = \"/nowhere\"\n".to_owned(), &[]);
    assert!(status == Some(2) && text.contains("/nowhere"), "{text}");
    let (status, text) = check("\nfolders = \"x\"\n".to_owned(), &[]);
    assert!(status == Some(2) && text.contains("line 2"), "{text}");
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn a_gateway_logs_the_channel_of_responses_and_remembers_dhttp_servers() {
    let served = TestServer::start("gateway", &[]);
    let cache = served.directory.with_extension("cache");
    let log = served.directory.join("gateway.log");
    let mut gateway = Command::new(PROGRAM)
        .args(["gateway", "--listen", "127.0.0.1:0", "--access-log"])
        .arg(&log)
        .env("XDG_CACHE_HOME", &cache)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut reported = BufReader::new(gateway.stderr.take().unwrap());
    reported.read_line(&mut line).unwrap();
    let at = line.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned();
    let id = Pid::from_raw(gateway.id().cast_signed());
    let signal = |signal| kill(id, signal).unwrap();
    let old = log.with_extension("old");
    for round in 0..2 {
        if round == 1 {
            std::fs::rename(&log, &old).unwrap();
            signal(Signal::SIGHUP);
            reported.read_line(&mut String::new()).unwrap();
        }
        let mut stream = TcpStream::connect(&at).unwrap();
        write!(stream, "GET http://{}/ HTTP/1.0\r\n\r\n", served.address).unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        assert!(
            response.starts_with("HTTP/1.1 200 OK\r\n") && response.ends_with("<p>small</p>"),
            "{response}"
        );
    }
    signal(Signal::SIGTERM);
    assert!(gateway.wait().unwrap().success());
    for (log, channel) in [(old, " tcp-client\n"), (log, " udp\n")] {
        let text = std::fs::read_to_string(log).unwrap();
        assert!(text.lines().count() == 1 && text.ends_with(channel), "{text}");
    }
    let known = std::fs::read_to_string(cache.join("roundtrip").join("dhttp-servers")).unwrap();
    assert!(known.starts_with(&format!("{} ", served.address)), "{known}");
}

#[test]
fn tokens_are_stored_for_the_next_run_and_damaged_files_set_aside() {
    let served = TestServer::start("tokens", &[]);
    let large = "x".repeat(20_000);
    std::fs::write(served.directory.join("large.txt"), &large).unwrap();
    let stored = served.directory.with_extension("cache").join("roundtrip").join("dhttp-servers");
    let channel_of = |output: &Output| {
        let reported = stderr(output);
        let line = reported.lines().find_map(|line| line.strip_prefix("* 200 by "));
        line.unwrap_or_else(|| panic!("{reported}")).to_owned()
    };
    // A client without a token gets no large response by DHTTP; its first response brings one.
    assert_eq!(channel_of(&served.get(&["-v", "dhttp://HERE/large.txt"])), "tcp-client");
    let text = std::fs::read_to_string(&stored).unwrap();
    let token = format!("@token {} ", served.address);
    assert!(text.lines().any(|line| line.starts_with(&token)), "{text}");
    let mode = std::fs::metadata(&stored).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let second = served.get(&["-v", "dhttp://HERE/large.txt"]);
    assert_eq!((channel_of(&second), second.stdout), ("tcp-opened".to_owned(), large.into_bytes()));
    // An expired token is not shown, nor one for a port that another client has taken.
    let port = text.lines().find_map(|line| line.strip_prefix(&token)?.split(' ').nth(1)).unwrap();
    let taken = TcpListener::bind(("0.0.0.0", port.parse::<u16>().unwrap())).unwrap();
    assert_eq!(channel_of(&served.get(&["-v", "dhttp://HERE/large.txt"])), "tcp-client");
    drop(taken);
    let text = std::fs::read_to_string(&stored).unwrap();
    let expired = text.lines().map(|line| match line.rsplit_once(' ') {
        Some((rest, _)) if line.starts_with("@token") => format!("{rest} 1600000000\n"),
        _ => format!("{line}\n"),
    });
    std::fs::write(&stored, expired.collect::<String>()).unwrap();
    assert_eq!(channel_of(&served.get(&["-v", "dhttp://HERE/large.txt"])), "tcp-client");
    std::fs::write(&stored, "damaged\n").unwrap();
    let output = served.get(&["-v", "dhttp://HERE/large.txt"]);
    assert!(
        channel_of(&output) == "tcp-client" && stderr(&output).contains("set aside"),
        "{}",
        stderr(&output)
    );
    assert_eq!(std::fs::read_to_string(stored.with_extension("damaged")).unwrap(), "damaged\n");
    assert!(std::fs::read_to_string(&stored).unwrap().contains(&token));
}

#[test]
fn a_gateway_reloads_its_configuration_without_interrupting_responses() {
    let directory = std::env::temp_dir().join(format!("roundtrip-gateway-reload-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let config = directory.join("gateway.toml");
    let write =
        |profile: &str| std::fs::write(&config, format!("listen = \"127.0.0.1:0\"\nprofile = {profile}\n"));
    write("\"internet\"").unwrap();
    let mut gateway = Command::new(PROGRAM)
        .args(["gateway", "--config"])
        .arg(&config)
        .env("XDG_CACHE_HOME", &directory)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut reported = BufReader::new(gateway.stderr.take().unwrap());
    let mut line = || {
        let mut line = String::new();
        reported.read_line(&mut line).unwrap();
        line
    };
    let at = line().split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned();
    let origin = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut pending_client = TcpStream::connect(&at).unwrap();
    write!(pending_client, "GET http://{}/ HTTP/1.0\r\n\r\n", origin.local_addr().unwrap()).unwrap();
    let (mut requested, _) = origin.accept().unwrap();
    let id = Pid::from_raw(gateway.id().cast_signed());
    for (profile, printed) in [
        ("\"paper\"", "reloaded the configuration"),
        ("\"neither\"", "the configuration is unchanged"),
        ("\"internet\"", "reloaded the configuration"),
    ] {
        write(profile).unwrap();
        kill(id, Signal::SIGHUP).unwrap();
        let line = line();
        assert!(line.contains(printed), "{profile}: {line}");
    }
    let _ = requested.read(&mut [0; 1_024]).unwrap();
    requested.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate").unwrap();
    let mut response = String::new();
    pending_client.read_to_string(&mut response).unwrap();
    assert!(response.ends_with("late"), "{response}");
    gateway.kill().unwrap();
    gateway.wait().unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn a_gateway_logs_events_if_requested() {
    let mut gateway = Command::new(PROGRAM)
        .args(["gateway", "--listen", "127.0.0.1:0", "--trace", "info"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(gateway.stderr.take().unwrap()).read_line(&mut line).unwrap();
    gateway.kill().unwrap();
    gateway.wait().unwrap();
    assert!(line.contains("INFO") && line.contains("a gateway address=127.0.0.1:"), "{line}");
}

#[test]
fn a_server_drops_the_privileges_that_it_does_not_need() {
    let mut child = Command::new(PROGRAM)
        .args(["serve", ".", "--listen", "127.0.0.1:0"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    for task in std::fs::read_dir(format!("/proc/{}/task", child.id())).unwrap() {
        let status = std::fs::read_to_string(task.unwrap().path().join("status")).unwrap();
        let field =
            |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned();
        assert_eq!(field("NoNewPrivs:"), "1");
        for set in ["CapEff:", "CapPrm:"] {
            let rights = u64::from_str_radix(&field(set), 16).unwrap();
            // capabilities(7): CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_NET_BIND_SERVICE.
            assert_eq!(rights & !(1 << 1 | 1 << 2 | 1 << 10), 0, "{set} {rights:x}");
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_gateway_is_not_opened_to_everyone_by_mistake() {
    let run = |flags: &[&str]| Command::new(PROGRAM).arg("gateway").args(flags).output().unwrap();
    // A private address is reachable by other hosts, too.
    for listen in ["0.0.0.0:0", "[::]:0", "10.5.5.5:3131", "192.168.1.1:3128"] {
        for flags in [&["--listen", listen][..], &["--listen", listen, "--force"]] {
            let refused = run(flags);
            assert_eq!(refused.status.code(), Some(2));
            assert!(stderr(&refused).contains("--allow"), "{}", stderr(&refused));
        }
        assert_eq!(run(&["--check", "--listen", listen, "--allow", "10.0.0.0/8"]).status.code(), Some(0));
    }
    assert_eq!(run(&["--check", "--connect-ports", "443,x"]).status.code(), Some(2));
    let checked = run(&["--check", "--ports", "41350-41359"]);
    assert_eq!((checked.status.code(), checked.stderr.len()), (Some(0), 0));
    for flags in
        [&["--check", "--ports", "1-2"][..], &["--check", "--config", "/dev/null/none"], &["--listen", "x"]]
    {
        assert_eq!(run(flags).status.code(), Some(2), "{flags:?}");
    }
}

#[test]
fn small_fresh_responses_of_an_origin_are_cached() {
    let origin = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", origin.local_addr().unwrap());
    std::thread::spawn(move || {
        for (count, stream) in origin.incoming().enumerate() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 2_048]).unwrap();
            let head =
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 1\r\nConnection: close";
            write!(stream, "{head}\r\n\r\n{count}").unwrap();
        }
    });
    for (flags, second) in [(&[][..], "0"), (&["--memory", "0"], "2"), (&["--forwarded"], "4")] {
        let mut child = Command::new(PROGRAM)
            .args(["serve", "--listen", "127.0.0.1:0", "--origin", &url])
            .args(flags)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let at = line.split("dhttp://").nth(1).unwrap().split('/').next().unwrap();
        let get = || {
            let mut command = Command::new(PROGRAM);
            command.args(["get", &format!("dhttp://{at}/")]);
            command
                .env("XDG_CACHE_HOME", std::env::temp_dir().join("no-known-servers"))
                .output()
                .unwrap()
                .stdout
        };
        let _first = get();
        assert_eq!(String::from_utf8(get()).unwrap(), second, "{flags:?}");
        child.kill().unwrap();
        child.wait().unwrap();
    }
    for flags in [&["www", "--memory", "1MiB"][..], &["--origin", &url, "--forwarded", "--memory", "1MiB"]] {
        let refused = Command::new(PROGRAM).args(["serve", "--check"]).args(flags).output().unwrap();
        assert!(refused.status.code() == Some(2) && stderr(&refused).contains("--memory"), "{flags:?}");
    }
}

#[test]
fn responses_of_an_origin_are_served_instead_of_files() {
    let origin = TestServer::start("origin", &[]);
    let front = |flags: &[&str]| Command::new(PROGRAM).arg("serve").args(flags).output().unwrap();
    let refused = front(&["www", "--origin", "http://127.0.0.1:1"]);
    assert_eq!(refused.status.code(), Some(2));
    assert_eq!(front(&["--check"]).status.code(), Some(2));
    assert_eq!(front(&["--check", "--origin", "https://127.0.0.1/"]).status.code(), Some(2));
    let mut child = Command::new(PROGRAM)
        .args(["serve", "--listen", "127.0.0.1:0", "--origin"])
        .arg(format!("http://{}", origin.address))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut reported = BufReader::new(child.stderr.take().unwrap());
    reported.read_line(&mut line).unwrap();
    let at = line.split("dhttp://").nth(1).unwrap().split('/').next().unwrap();
    // A datagram without a token causes no request to the origin; plain HTTP brings the token.
    let url = format!("dhttp://{at}/");
    let fetched = origin.get(&["-v", &url, &url]);
    child.kill().unwrap();
    child.wait().unwrap();
    let twice = b"<p>small</p>".repeat(2);
    assert_eq!((fetched.status.code(), &*fetched.stdout), (Some(0), &*twice), "{}", stderr(&fetched));
    let channels: Vec<_> = stderr(&fetched)
        .lines()
        .filter_map(|line| line.strip_prefix("* 200 by ").map(str::to_owned))
        .collect();
    assert_eq!(channels, ["tcp-client", "udp"]);
}
