//! The servers: processes of their own, on CPUs of their own where there are three. Nginx, and our DHTTP server.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use dhttp::handler::{Request, Response};
use dhttp::{Server as Serving, ServerConfig};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rustix::time::{ClockId, clock_gettime};

/// Argument that makes this program a server.
pub(crate) const ROLE: &str = "--serve";
/// Bytes of each response's body.
pub(crate) const BODY_BYTES: u64 = 600;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerKind {
    /// DHTTP server, as in `roundtrip serve`, with tokens.
    Dhttp,
    /// nginx, with a worker for each of its CPUs.
    Nginx,
    /// A server that pauses for a second, counted from the first request.
    Pausing,
}

/// Beginning and duration of the pause.
pub(crate) const PAUSE: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(1));

pub(crate) struct Server {
    child: Child,
    directory: PathBuf,
    pub(crate) address: SocketAddr,
}

impl Drop for Server {
    fn drop(&mut self) {
        // SIGTERM also ends nginx's workers; after SIGKILL they would continue.
        let own = i32::try_from(self.child.id()).map(Pid::from_raw);
        let _ = own.map(|own| kill(own, Signal::SIGTERM));
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

impl Server {
    pub(crate) fn start(kind: ServerKind) -> Option<Self> {
        match start(kind) {
            Ok(server) => Some(server),
            Err(error) => {
                eprintln!("left out: {kind:?}, {error}; Debian has nginx in nginx-light");
                None
            }
        }
    }
}

/// The CPUs of the client, and those of servers.
pub(crate) fn cpu_ranges() -> (Range<usize>, Range<usize>) {
    match thread::available_parallelism().map_or(1, usize::from) {
        few @ ..3 => (0..few, 0..few),
        many => (0..many - 2, many - 2..many),
    }
}

/// Pins the calling thread, and its children, to these CPUs.
pub(crate) fn pin_to_cpus(cpus: Range<usize>) {
    let mut set = CpuSet::new();
    for cpu in cpus {
        set.set(cpu).expect("there are not so many");
    }
    sched_setaffinity(Pid::from_raw(0), &set).expect("they are this machine's");
}

#[expect(clippy::disallowed_methods, reason = "other people's programs do not say when they are ready")]
fn start(kind: ServerKind) -> io::Result<Server> {
    let directory = std::env::temp_dir().join(format!("load-generator-{}", std::process::id()));
    fs::create_dir_all(&directory)?;
    let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
    let mut command = match kind {
        ServerKind::Dhttp | ServerKind::Pausing => {
            let mut command = Command::new(std::env::current_exe()?);
            command.args([
                ROLE,
                if kind == ServerKind::Pausing { "pausing" } else { "dhttp" },
                &address.to_string(),
            ]);
            command
        }
        ServerKind::Nginx => {
            fs::write(directory.join("0.bin"), body())?;
            let path = directory.join("nginx.conf");
            let (root, workers) = (directory.display(), cpu_ranges().1.len());
            let configuration = format!(
                "daemon off; worker_processes {workers}; pid {root}/pid; error_log stderr crit;
events {{ worker_connections 8192; }}
http {{
  access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000000; open_file_cache max=100;
  client_body_temp_path {root}/a; proxy_temp_path {root}/b; fastcgi_temp_path {root}/c;
  uwsgi_temp_path {root}/d; scgi_temp_path {root}/e;
  server {{ listen {address} backlog=4096 reuseport; root {root}; }}
}}
"
            );
            fs::write(&path, configuration)?;
            let mut command = Command::new("/usr/sbin/nginx");
            command.arg("-p").arg(&directory).arg("-c").arg(path).args(["-e", "stderr"]);
            command
        }
    };
    let (client_cpus, servers) = cpu_ranges();
    pin_to_cpus(servers);
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
    pin_to_cpus(client_cpus);
    let child = child?;
    thread::sleep(Duration::from_millis(500));
    Ok(Server { child, directory, address })
}

fn body() -> Vec<u8> {
    vec![b'b'; usize::try_from(BODY_BYTES).expect("a few")]
}

fn respond() -> Vec<u8> {
    let mut response = format!("HTTP/1.1 200 OK\r\nContent-Length: {BODY_BYTES}\r\n\r\n").into_bytes();
    response.extend(body());
    response
}

/// Serves until it is killed.
pub(crate) fn run(kind: &str, address: SocketAddr) {
    match kind {
        "dhttp" => serve_dhttp(address),
        "pausing" => pausing(address),
        other => panic!("unknown server {other}"),
    }
}

fn serve_dhttp(address: SocketAddr) {
    let response = Response::whole(200, "application/octet-stream", body());
    let config =
        ServerConfig { threads: cpu_ranges().1.len(), ..ServerConfig::internet().reaching_anywhere() };
    let serving = Serving::start(address, config, move |_: &Request<'_>| response.clone(), None);
    let _serving = serving.expect("the port is free");
    loop {
        thread::park();
    }
}

fn pausing(address: SocketAddr) {
    let listener = TcpListener::bind(address).expect("the port is free");
    for stream in listener.incoming().flatten() {
        thread::spawn(move || serve(stream));
    }
}

#[expect(clippy::disallowed_methods, reason = "it pauses by the clock")]
fn serve(mut stream: TcpStream) -> io::Result<()> {
    static FIRST: OnceLock<Instant> = OnceLock::new();
    let (mut buffer, mut had, respond) = ([0; 4_096], 0, respond());
    stream.set_nodelay(true)?;
    loop {
        match stream.read(&mut buffer[had..])? {
            0 => return Ok(()),
            more => had += more,
        }
        if !buffer[..had].ends_with(b"\r\n\r\n") {
            continue;
        }
        had = 0;
        let since = FIRST.get_or_init(Instant::now).elapsed();
        let (begins, lasts) = PAUSE;
        if since >= begins && since < begins + lasts {
            thread::sleep(begins + lasts - since);
        }
        stream.write_all(&respond)?;
    }
}

/// Sleeps, so that other processes get the CPUs.
#[expect(clippy::disallowed_methods, reason = "a measurement between others")]
pub(crate) fn yield_cpus() {
    thread::sleep(Duration::from_millis(700));
}

/// CPU time of this program, in seconds.
pub(crate) fn own_time() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
