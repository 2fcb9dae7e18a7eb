//! A client, a router and the world outside, as three network namespaces of this kernel.
//!
//! ```text
//! client 10.0.0.2 (and .3) ── lan [router] wan 11.0.100.1 ── 11.0.100.2 (and .3) world
//! ```
//!
//! The namespaces are anonymous: everything is removed with the test.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering};

use linux::netlink::Subnet;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use testbed::{Interface, Namespace, Topology};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_roundtrip");
pub(crate) const CLIENT: &str = "10.0.0.2";
pub(crate) const ROUTER: &str = "11.0.100.1";
pub(crate) const SERVER: &str = "11.0.100.2";
pub(crate) const OTHER: &str = "11.0.100.3";
pub(crate) const SERVER6: &str = "[2600:db8:1::2]";
pub(crate) const OTHER6: &str = "[2600:db8:1::3]";

/// Whether the tests can run here; reports a skip if not.
pub(crate) fn available() -> bool {
    test_fixture::has_laboratory() && skip::has_all(&["nft", "ip", "sysctl"])
}

/// The three namespaces.
pub(crate) struct Lab {
    pub(crate) client: Namespace,
    pub(crate) router: Namespace,
    pub(crate) world: Namespace,
    pub(crate) directory: PathBuf,
}

static LABS: AtomicU32 = AtomicU32::new(0);

impl Lab {
    /// Connects the namespaces by IPv4, without translation: the world has no route to the client.
    pub(crate) fn new() -> Self {
        Self::connected(false)
    }

    /// Connects the namespaces by IPv4 and IPv6; the world has a route to the client's IPv6 address.
    pub(crate) fn dual_stack() -> Self {
        Self::connected(true)
    }

    fn connected(has_ipv6: bool) -> Self {
        let end = |host, device, addresses: &[&str], reached: &[&str]| {
            let subnets = |texts: &[&str]| {
                let all: Vec<Subnet> = texts.iter().map(|text| text.parse().unwrap()).collect();
                all.into_iter().filter(|subnet| has_ipv6 || subnet.address.is_ipv4()).collect::<Vec<_>>()
            };
            let end = subnets(addresses).into_iter().fold(Interface::of(host, device), Interface::address);
            subnets(reached).into_iter().fold(end, Interface::reaches)
        };
        let inside = ["10.0.0.2/24", "10.0.0.3/24", "2600:db8:2::2/64"];
        let outside = ["11.0.100.2/24", "11.0.100.3/24", "2600:db8:1::2/64", "2600:db8:1::3/64"];
        let ([client, router, world], []) = Topology::new()
            .host("client")
            .router("router")
            .host("world")
            .cable([
                end("client", "eth0", &inside, &["0.0.0.0/0", "::/0"]),
                end("router", "lan", &["10.0.0.1/24", "2600:db8:2::1/64"], &[]),
            ])
            .cable([
                end("router", "wan", &["11.0.100.1/24", "2600:db8:1::1/64"], &[]),
                end("world", "eth0", &outside, &["2600:db8:2::/64"]),
            ])
            .build()
            .unwrap()
            .split()
            .unwrap();
        let number = LABS.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("roundtrip-nat-{}-{number}", std::process::id()));
        std::fs::create_dir_all(directory.join("www")).unwrap();
        std::fs::write(directory.join("www/small"), "small").unwrap();
        std::fs::write(directory.join("www/large"), vec![7; 100_000]).unwrap();
        Self { client, router, world, directory }
    }

    /// Adds rules of the router's owner.
    pub(crate) fn rules(&self, text: &str) {
        std::fs::write(self.directory.join("rules"), text).unwrap();
        sh(&self.router, &format!("nft -f {}", self.directory.join("rules").display()));
    }

    /// Returns all rules of the router's kernel, without counters and timers.
    pub(crate) fn router_state(&self) -> String {
        let state = "nft -s list ruleset; ip -4 rule; ip -4 route show table all; ip -6 rule";
        // On a busy host it takes a while until a link is up.
        sh(&self.router, state).replace(" linkdown", "")
    }

    /// Starts `roundtrip serve` in the world, at port 80.
    pub(crate) fn serve(&self, flags: &[&str]) -> RunningProgram {
        self.serve_at(SERVER, flags)
    }

    /// Starts `roundtrip serve` in the world, at port 80 of this address.
    pub(crate) fn serve_at(&self, address: &str, flags: &[&str]) -> RunningProgram {
        let www = self.directory.join("www").display().to_string();
        let listen = format!("{address}:80");
        RunningProgram::start(
            &self.world,
            &[&["serve", &www, "--listen", &listen, "--reach-private"], flags].concat(),
        )
    }

    /// Starts `roundtrip nat` on the router.
    pub(crate) fn nat(&self, flags: &[&str]) -> RunningProgram {
        RunningProgram::start(
            &self.router,
            &[&["nat", "--inside", "lan", "--outside", "wan"], flags].concat(),
        )
    }

    /// Starts a gateway in the world, for these clients. The server is on the same host, which needs `--force`.
    pub(crate) fn relay(&self, allowed: &str) -> RunningProgram {
        self.relay_at(OTHER, allowed, &["--force"])
    }

    /// Starts a gateway in the world, at this address.
    pub(crate) fn relay_at(&self, address: &str, allowed: &str, flags: &[&str]) -> RunningProgram {
        let log = self.directory.join("relay.log").display().to_string();
        let listen = format!("{address}:3128");
        RunningProgram::start(
            &self.world,
            &[&["gateway", "--listen", &listen, "--allow", allowed, "--access-log", &log], flags].concat(),
        )
    }

    /// Returns the relay's response to a program at the client.
    pub(crate) fn get_via_relay(&self, path: &str) -> Vec<u8> {
        self.get_via_relay_at(OTHER, SERVER, path)
    }

    /// Returns the response of this relay from this server.
    pub(crate) fn get_via_relay_at(&self, relay: &str, server: &str, path: &str) -> Vec<u8> {
        let head = format!("GET http://{server}{path} HTTP/1.1\r\nHost: {server}\r\n");
        self.send_to_relay_at(relay, format!("{head}Connection: close\r\n\r\n"))
    }

    /// Sends a request to the relay, and returns its response.
    pub(crate) fn send_to_relay(&self, request: String) -> Vec<u8> {
        self.send_to_relay_at(OTHER, request)
    }

    fn send_to_relay_at(&self, relay: &str, request: String) -> Vec<u8> {
        let relay = format!("{relay}:3128");
        inside(&self.client, move || {
            let mut stream = TcpStream::connect(relay).unwrap();
            let mut response = Vec::new();
            // A client that is not allowed finds it closed, or reset.
            let _ = stream.write_all(request.as_bytes());
            let _ = stream.read_to_end(&mut response);
            response
        })
    }

    /// Runs `roundtrip get` at the client.
    pub(crate) fn get(&self, path: &str, flags: &[&str]) -> FetchResult {
        self.get_at(SERVER, path, flags)
    }

    /// Runs `roundtrip get` at the client, from this server.
    pub(crate) fn get_at(&self, server: &str, path: &str, flags: &[&str]) -> FetchResult {
        // Without the race: on a busy host plain HTTP may win it, and the channel is what the tests see.
        let mut arguments = ["get", "-v", "--no-race"].map(str::to_owned).to_vec();
        arguments.push(format!("dhttp://{server}/{path}"));
        arguments.extend(flags.iter().map(|flag| (*flag).to_owned()));
        let cache = self.directory.join("cache");
        let output = inside(&self.client, move || {
            Command::new(PROGRAM).args(arguments).env("XDG_CACHE_HOME", cache).output().unwrap()
        });
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{printed}");
        let channel = printed.lines().find_map(|line| line.strip_prefix("* 200 by ")).map(str::to_owned);
        FetchResult { body: output.stdout, channel: channel.unwrap_or_else(|| panic!("{printed}")), printed }
    }

    /// Starts many concurrent `roundtrip get`, without waiting for them.
    pub(crate) fn begin(&self, count: usize) -> Vec<Fetch> {
        let (www, cache) = (self.directory.join("www"), self.directory.join("cache"));
        std::fs::write(www.join("medium"), vec![8; 20_000]).unwrap();
        let number = LABS.fetch_add(1, Ordering::Relaxed);
        let files: Vec<_> =
            (0..count).map(|index| self.directory.join(format!("got-{number}-{index}"))).collect();
        inside(&self.client, move || {
            let begin = |(index, file): (usize, PathBuf)| {
                let path = if index % 2 == 0 { "small" } else { "medium" };
                let child = Command::new("timeout")
                    .args(["120", PROGRAM, "get", &format!("dhttp://{SERVER}/{path}"), "-o"])
                    .arg(&file)
                    .env("XDG_CACHE_HOME", &cache)
                    .stderr(Stdio::null())
                    .spawn()
                    .unwrap();
                Fetch { child, file, expected: www.join(path) }
            };
            files.into_iter().enumerate().map(begin).collect()
        })
    }

    /// Returns the channels of a small and a large response, both complete.
    pub(crate) fn channels(&self) -> (String, String) {
        self.channels_at(SERVER)
    }

    /// Returns the channels of a small and a large response of this server.
    pub(crate) fn channels_at(&self, server: &str) -> (String, String) {
        // By one client: the first response brings the token without which no server connects.
        let FetchResult { body, channel, printed } =
            self.get_at(server, "small", &[&format!("dhttp://{server}/large")]);
        let large = body.strip_prefix(b"small").expect("the small one first");
        assert!(large == vec![7; 100_000], "{} bytes: {printed}", large.len());
        let last = printed.lines().rev().find_map(|line| line.strip_prefix("* 200 by "));
        (channel, last.map(str::to_owned).unwrap_or_else(|| panic!("{printed}")))
    }
}

/// Result of a fetch.
pub(crate) struct FetchResult {
    pub(crate) body: Vec<u8>,
    pub(crate) channel: String,
    /// Log of every datagram and connection.
    pub(crate) printed: String,
}

/// A running `roundtrip get`.
pub(crate) struct Fetch {
    child: Child,
    file: PathBuf,
    expected: PathBuf,
}

impl Fetch {
    /// Whether the response is complete. It must end in time, and never have wrong bytes.
    pub(crate) fn completes(mut self) -> bool {
        let status = self.child.wait().unwrap();
        assert_ne!(status.code(), Some(124), "it hangs");
        let contents = std::fs::read(&self.file).ok();
        assert!(contents.is_none() || contents == std::fs::read(&self.expected).ok(), "wrong bytes");
        assert_eq!(contents.is_some(), status.success());
        status.success()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Roundtrip in a namespace, killed when this is dropped.
pub(crate) struct RunningProgram {
    child: Child,
    reported: BufReader<ChildStderr>,
    /// Its first line.
    pub(crate) first: String,
}

impl RunningProgram {
    pub(crate) fn start(namespace: &Namespace, arguments: &[&str]) -> Self {
        Self::start_with(namespace, arguments, &[])
    }

    /// Starts the program with these environment variables.
    pub(crate) fn start_with(
        namespace: &Namespace,
        arguments: &[&str],
        environment: &[(&'static str, PathBuf)],
    ) -> Self {
        let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let environment = environment.to_vec();
        let mut child = inside(namespace, move || {
            Command::new(PROGRAM)
                .args(arguments)
                .envs(environment)
                .stderr(Stdio::piped())
                .stdout(Stdio::null())
                .spawn()
                .unwrap()
        });
        let mut reported = BufReader::new(child.stderr.take().unwrap());
        let mut first = String::new();
        reported.read_line(&mut first).unwrap();
        Self { child, reported, first }
    }

    pub(crate) fn signal(&self, name: &str) {
        let signal = Signal::from_str(&format!("SIG{name}")).unwrap();
        kill(Pid::from_raw(self.child.id().cast_signed()), signal).unwrap();
    }

    /// The next line of its output.
    pub(crate) fn next_line(&mut self) -> String {
        let mut line = String::new();
        self.reported.read_line(&mut line).unwrap();
        line
    }

    /// Stops it as an administrator would; returns whether it succeeded, and its output since the start.
    pub(crate) fn stop(mut self) -> (bool, String) {
        self.signal("TERM");
        let mut rest = String::new();
        self.reported.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap().success(), rest)
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a job in a namespace.
pub(crate) fn inside<T: Send + 'static>(
    namespace: &Namespace,
    job: impl FnOnce() -> T + Send + 'static,
) -> T {
    namespace.start(job).wait().unwrap()
}

/// Output of these commands; all must succeed.
pub(crate) fn sh(namespace: &Namespace, script: &str) -> String {
    let script = format!("set -e; PATH=$PATH:/usr/sbin:/sbin\n{script}");
    let output = inside(namespace, move || Command::new("sh").args(["-c", &script]).output().unwrap());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
