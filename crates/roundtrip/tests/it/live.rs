//! Live captures on this host's own interfaces: a server with a fault, which is found while a client runs.
//!
//! The size of the fault depends on the kernel and its clock. Where captures are not permitted, or Python is not
//! installed, the tests report that they were skipped; with `ROUNDTRIP_REQUIRE_KERNEL=1`, as in CI, the former is a
//! failure.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_roundtrip");

/// Five requests over one connection to the given port.
const CLIENT: &str = "
import http.client, sys
connection = http.client.HTTPConnection('127.0.0.1', int(sys.argv[1]))
for _ in range(5):
    connection.request('GET', '/small.txt')
    print(len(connection.getresponse().read()), 'bytes')
sys.exit(7)
";

#[test]
fn pythons_server_is_found_delaying_responses_on_a_kept_alive_connection() {
    let Some(server) = Server::start() else { return };
    let capture = server.directory.join("kept.pcapng");
    let port = server.port.to_string();
    let capture_path = capture.to_str().unwrap();
    let flags = ["diagnose", "--format", "json", "--write", capture_path, "--port", &port, "--run", "--"];
    let client = ["python3", "-c", CLIENT, &port];
    let Some(output) = captured(&[flags.as_slice(), &client].concat()) else { return };
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let live: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&live["connections"], &live["command_status"]), (&1.into(), &7.into()), "{live}");
    let flow = &live["flows"][0];
    assert_eq!((&flow["opening_captured"], &flow["captured_twice"]), (&true.into(), &0.into()), "{flow}");
    assert_eq!(flow["requests"], 5);
    let found = flow["findings"].as_array().unwrap();
    let stalls = found.iter().filter(|finding| finding["cause"] == "nagle-delayed-ack");
    assert!(stalls.clone().count() >= 2, "{flow}");
    assert!(stalls.clone().all(|stall| stall["side"] == "server"), "{flow}");
    let kernel = flow["kernel"].as_array().unwrap();
    let servers = kernel.iter().find(|end| end["side"] == "server").unwrap();
    assert!(servers["busy_ms"].as_f64() > Some(0.0) && servers["retransmitted"] == 0, "{flow}");
    // The client's output does not disturb the diagnosis.
    assert_eq!(text(&output.stderr).matches("5 bytes").count(), 5, "{}", text(&output.stderr));

    let from_file =
        Command::new(PROGRAM).args(["diagnose", "--format", "json", capture_path]).output().unwrap();
    let from_file: Value = serde_json::from_slice(&from_file.stdout).unwrap();
    // The kernel has already removed the sockets.
    let mut flows = live["flows"].clone();
    flows[0]["kernel"] = Value::Array(Vec::new());
    assert_eq!(from_file["flows"], flows, "the file and the live capture differ");
}

/// Ten pipelined requests on each of twenty connections, to the given port. It reads the responses slowly.
const PIPELINING_CLIENT: &str = "
import socket, sys, time
for _ in range(20):
    connection = socket.create_connection(('127.0.0.1', int(sys.argv[1])))
    try:
        for _ in range(10):
            connection.sendall(b'GET /large.bin HTTP/1.1\\r\\nHost: h\\r\\n\\r\\n')
            time.sleep(0.001)
        while connection.recv(4096):
            pass
    except OSError:
        pass
    connection.close()
";

/// By default nginx lingers only if it has noticed that the client sends more.
#[test]
fn nginx_resets_a_client_with_a_sixth_request_unless_it_lingers() {
    // The client's.
    if !skip::has("python3") {
        return;
    }
    for (lingering, is_lost) in [("", true), ("lingering_close always;", false)] {
        let Some(server) = Server::nginx(lingering) else { return };
        let port = server.port.to_string();
        let flags = ["diagnose", "--format", "json", "--port", &port, "--run", "--"];
        let client = ["python3", "-c", PIPELINING_CLIENT, &port];
        let Some(output) = captured(&[flags.as_slice(), &client].concat()) else { return };
        let live: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(live["connections"], 20, "{lingering}: {live}");
        let found =
            live["flows"].as_array().unwrap().iter().flat_map(|flow| flow["findings"].as_array().unwrap());
        let lost: Vec<_> = found.filter(|finding| finding["cause"] == "reset-lost-data").collect();
        assert_eq!(!lost.is_empty(), is_lost, "{lingering}: {live}");
        for finding in lost {
            assert!(finding["evidence"].as_str().unwrap().contains("not answered in full"), "{finding}");
            let fix = finding["fixes"][0]["change"].as_str().unwrap();
            assert!(fix.contains("nginx lingering_close always"), "{fix}");
        }
    }
}

#[test]
fn connections_of_other_programs_are_left_out() {
    let Some(server) = Server::start() else { return };
    let port = server.port;
    // A connection of this test's own, while the command idles.
    let other = std::thread::spawn(move || {
        for _ in 0..7 {
            let connection = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
            // Long enough for the kernel to be sampled, on a busy host, too.
            Command::new("sleep").arg("0.3").status().unwrap();
            drop(connection);
        }
    });
    let port = port.to_string();
    let output = captured(&["diagnose", "--format", "json", "--port", &port, "--run", "--", "sleep", "1"]);
    other.join().unwrap();
    let Some(output) = output else { return };
    let live: Value = serde_json::from_slice(&output.stdout).unwrap();
    // The last of them may be too new to be in the table.
    let (seen, shown) = (live["connections"].as_u64().unwrap(), live["flows"].as_array().unwrap().len());
    assert!(seen >= 3 && shown <= 1, "{live}");
}

/// A relay without Nagle's algorithm before a server that writes header section and body `apart`, or `whole`. It prints the
/// relay's port. Relay and server are different processes, as a proxy and its origin are.
const RELAY: &str = "
import ctypes, os, socket, sys, threading, time

def listening():
    listener = socket.create_server(('127.0.0.1', 0))
    return listener, listener.getsockname()[1]

def respond(connection):
    head, body = b'HTTP/1.1 200 OK\\r\\nContent-Length: 5\\r\\n\\r\\n', b'small'
    while connection.recv(4096):
        # The healthy twin takes as long, so that its hop is seen, too.
        time.sleep(0.03 if sys.argv[1] == 'whole' else 0)
        for piece in [head + body] if sys.argv[1] == 'whole' else [head, body]:
            connection.sendall(piece)

def pump(source, sink):
    while data := source.recv(65536):
        sink.sendall(data)
    sink.shutdown(socket.SHUT_WR)

def start(function, *arguments):
    threading.Thread(target=function, args=arguments, daemon=True).start()

server, origin = listening()
PR_SET_PDEATHSIG, SIGKILL = 1, 9
if os.fork() == 0:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, SIGKILL)
    while True:
        start(respond, server.accept()[0])
relay, port = listening()
print(port, flush=True)
while True:
    near, far = relay.accept()[0], socket.create_connection(('127.0.0.1', origin))
    for end in near, far:
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    start(pump, near, far)
    start(pump, far, near)
";

#[test]
fn a_proxys_second_hop_is_judged_and_its_healthy_twin_is_not_blamed() {
    for (write_mode, is_held) in [("apart", true), ("whole", false)] {
        let Some(relay) = Server::relay(write_mode) else { return };
        let port = relay.port.to_string();
        let client = ["--run", "--", "python3", "-c", CLIENT, &port];
        let judged = ["diagnose", "--format", "json"];
        let Some(output) = captured(&[judged.as_slice(), &client].concat()) else { return };
        let live: Value = serde_json::from_slice(&output.stdout).unwrap();
        let between = live["flows"].as_array().unwrap().iter().find(|flow| flow["of_other_program"] == true);
        let found =
            between.unwrap_or_else(|| panic!("{write_mode}: {live:#}"))["findings"].as_array().unwrap();
        let held = found.iter().filter(|finding| finding["cause"] == "nagle-delayed-ack").count();
        assert_eq!(held > 0, is_held, "{write_mode}: {live:#}");
        if is_held {
            assert_eq!(output.status.code(), Some(1), "{live:#}");
            let Some(shown) = captured(&[["diagnose"].as_slice(), &client].concat()) else { return };
            let shown = text(&shown.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(shown.contains("1 connection of another program, 127.0.0.1:"), "{shown}");
            assert!(
                shown.contains("stalled: nagle-delayed-ack") && !shown.contains("network is fine"),
                "{shown}"
            );
        }
    }
}

/// A server over TLS that takes half a second for `/slow`. It prints its port.
const SECURE_SERVER: &str = "
import http.server, ssl, sys, time

class Site(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_GET(self):
        time.sleep(0.5 if self.path == '/slow' else 0)
        self.wfile.write(b'HTTP/1.1 200 OK\\r\\nContent-Length: 5\\r\\n\\r\\nsmall')

server = http.server.HTTPServer(('127.0.0.1', 0), Site)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1] + '/certificate.pem', sys.argv[1] + '/key.pem')
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
";

/// Three requests over TLS to the given port, in contexts that log their secrets where Python's default ones do.
const SECURE_CLIENT: &str = "
import http.client, ssl, sys
context = ssl.create_default_context()
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
connection = http.client.HTTPSConnection('127.0.0.1', int(sys.argv[1]), context=context)
for path in '/small', '/slow', '/small':
    connection.request('GET', path)
    connection.getresponse().read()
";

#[test]
fn a_command_logs_its_keys_and_the_slow_request_within_tls_is_named() {
    let Some(server) = Server::secure() else { return };
    let keys = server.directory.join("keys.log");
    let port = server.port.to_string();
    let flags =
        ["diagnose", "--format", "json", "--port", &port, "--keys", keys.to_str().unwrap(), "--run", "--"];
    let client = ["python3", "-c", SECURE_CLIENT, &port];
    let Some(output) = captured(&[flags.as_slice(), &client].concat()) else { return };
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let live: Value = serde_json::from_slice(&output.stdout).unwrap();
    let flow = &live["flows"][0];
    assert_eq!((&live["keys"]["read"], &flow["requests"]), (&1.into(), &3.into()), "{live}");
    let slow = flow["findings"].as_array().unwrap().iter().find(|found| found["request"] == "GET /slow");
    assert_eq!(slow.map(|slow| &slow["cause"]), Some(&"server-think".into()), "{flow}");

    // A client that logs nothing is judged from outside, and the reader learns why.
    let unwritten = server.directory.join("unwritten.log");
    let flags = ["diagnose", "--port", &port, "--keys", unwritten.to_str().unwrap(), "--run", "--"];
    let client = ["env", "-u", "SSLKEYLOGFILE", "python3", "-c", SECURE_CLIENT, &port];
    let Some(output) = captured(&[flags.as_slice(), &client].concat()) else { return };
    let told = text(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("unwritten.log") && told.contains("what is within TLS was not read"), "{told}");
    assert!(text(&output.stdout).contains("server-think"), "{}", text(&output.stdout));
}

#[test]
fn connections_opened_before_the_command_are_left_out() {
    let Some(server) = Server::start() else { return };
    let _before = std::net::TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    let port = server.port.to_string();
    let shown = ["diagnose", "--format", "json", "--port", &port, "--run", "--"];
    // Its close was captured, its opening was not.
    let Some(output) = captured(&[shown.as_slice(), &["kill", &server.process.id().to_string()]].concat())
    else {
        return;
    };
    let live: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(live["flows"].as_array().map(Vec::len), Some(0), "{live}");
}

#[test]
fn datagrams_and_the_connection_that_the_server_opens_are_one_dialogue_of_dhttp() {
    let directory =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("live-dhttp-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("small.txt"), "small").unwrap();
    fs::write(directory.join("large.bin"), vec![7; 10_000]).unwrap();
    let serve = ["serve", "--listen", "127.0.0.1:0", directory.to_str().unwrap()];
    let process = Command::new(PROGRAM).args(serve).stderr(Stdio::piped()).spawn().unwrap();
    let mut server = Server { process, port: 0, directory };
    let mut line = String::new();
    BufReader::new(server.process.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.split("dhttp://").nth(1).and_then(|rest| rest.split('/').next()).unwrap();
    let port = address.rsplit(':').next().unwrap();
    let [small, large] = ["small.txt", "large.bin"].map(|name| format!("dhttp://{address}/{name}"));
    let flags =
        ["diagnose", "--format", "json", "--port", port, "--run", "--", PROGRAM, "get", &small, &large];
    // The client stores known servers in a directory of its own.
    let output = Command::new(PROGRAM).args(flags).env("XDG_CACHE_HOME", &server.directory).output().unwrap();
    let Some(output) = allowed(output) else { return };
    let live: Value = serde_json::from_slice(&output.stdout).unwrap();
    let flows = live["flows"].as_array().unwrap();
    let dialogue = flows.iter().find(|flow| flow["protocol"] == "dhttp").unwrap();
    let seen = dialogue["exchanges"].as_array().unwrap();
    let seen: Vec<_> =
        seen.iter().map(|exchange| (exchange["request"].as_str().unwrap(), &exchange["status"])).collect();
    assert_eq!(seen, [("GET /small.txt", &200.into()), ("GET /large.bin", &200.into())], "{live}");
    assert!(dialogue["account_ms"]["connection-setup"].as_f64() > Some(0.0), "{live}");
}

#[test]
fn without_the_capability_to_capture_the_error_names_the_remedy() {
    let without = ["--bounding-set=-net_raw", "--inh-caps=-net_raw", PROGRAM, "diagnose", "--port", "80"];
    if !skip::has("setpriv") {
        return;
    }
    let output = Command::new("setpriv").args(without).output().unwrap();
    let reported = text(&output.stderr);
    if reported.contains("setpriv:") {
        return skip::report_skip(&reported);
    }
    assert_eq!(output.status.code(), Some(2), "{reported}");
    assert!(reported.contains("CAP_NET_RAW") && reported.contains("run as root"), "{reported}");
    assert_eq!(reported.lines().count(), 1);
}

/// Runs a live capture; `None`, with a message, where captures are not permitted.
fn captured(arguments: &[&str]) -> Option<Output> {
    allowed(Command::new(PROGRAM).args(arguments).output().unwrap())
}

fn allowed(output: Output) -> Option<Output> {
    let reported = text(&output.stderr);
    if reported.contains("cannot capture here") {
        skip::refused(&reported);
        return None;
    }
    Some(output)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// An external server program, in a directory of its own.
struct Server {
    process: Child,
    port: u16,
    directory: PathBuf,
}

impl Server {
    /// Python's own, with a file of five bytes.
    fn start() -> Option<Self> {
        if !skip::has("python3") {
            return None;
        }
        let directory = directory();
        fs::write(directory.join("small.txt"), "small").unwrap();
        let words = ["-u", "-m", "http.server", "--protocol", "HTTP/1.1", "--bind", "127.0.0.1", "0"];
        let mut command = Command::new("python3");
        command.args(words).current_dir(&directory).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        // Serving HTTP on 127.0.0.1 port 40001 ...
        let port = line.split_whitespace().skip_while(|word| *word != "port").nth(1);
        let port = port.and_then(|port| port.parse().ok());
        let mut server = Self { process, port: 0, directory };
        server.port = port.unwrap_or_else(|| panic!("python3 -m http.server printed: {line}"));
        Some(server)
    }

    /// The relay and its server.
    fn relay(write_mode: &str) -> Option<Self> {
        if !skip::has("python3") {
            return None;
        }
        let mut command = Command::new("python3");
        command.args(["-c", RELAY, write_mode]).stdout(Stdio::piped()).stderr(Stdio::null());
        Some(Self::printing_its_port(command, directory()))
    }

    /// Python's own over TLS, with a certificate of OpenSSL's.
    fn secure() -> Option<Self> {
        if !["python3", "openssl"].into_iter().all(skip::has) {
            return None;
        }
        let directory = directory();
        let request =
            ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-keyout", "key.pem"];
        let mut certificate = Command::new("openssl");
        certificate
            .args(request)
            .args(["-out", "certificate.pem"])
            .current_dir(&directory)
            .stderr(Stdio::null());
        assert!(certificate.status().unwrap().success());
        let mut command = Command::new("python3");
        command.args(["-c", SECURE_SERVER]).arg(&directory).stdout(Stdio::piped()).stderr(Stdio::null());
        Some(Self::printing_its_port(command, directory))
    }

    fn printing_its_port(mut command: Command, directory: PathBuf) -> Self {
        let mut process = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { process, port: line.trim().parse().unwrap(), directory }
    }

    /// nginx, which closes after five requests, with a file of ten thousand bytes.
    fn nginx(more: &str) -> Option<Self> {
        if !skip::has("nginx") {
            return None;
        }
        let directory = directory();
        let location = directory.display();
        fs::write(directory.join("large.bin"), vec![7; 10_000]).unwrap();
        // Bound and released: nginx cannot report a port that the kernel chose.
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
        let temporary = temporary.map(|kind| format!("{kind}_temp_path {location}/{kind}; ")).concat();
        let reported = format!(
            "daemon off; master_process off; pid {location}/pid; error_log {location}/error.log; events {{}}\n\
             http {{ access_log off; {temporary} keepalive_requests 5; {more}\n\
             server {{ listen 127.0.0.1:{port}; root {location}; }} }}\n"
        );
        let file = directory.join("nginx.conf");
        fs::write(&file, reported).unwrap();
        let mut command = Command::new("nginx");
        command.arg("-c").arg(&file).env("PATH", skip::path()).stderr(Stdio::null());
        let process = command.spawn().unwrap();
        let server = Self { process, port, directory };
        let is_listening = |_| {
            Command::new("sleep").arg("0.02").status().unwrap();
            std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
        };
        assert!((0..250).any(is_listening), "nginx does not listen");
        Some(server)
    }
}

/// Creates a directory for this test.
fn directory() -> PathBuf {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let directory = directory.join(format!("live-{}-{number}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    directory
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}
