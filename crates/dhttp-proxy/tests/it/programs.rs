//! Today's programs through the gateway, with only their proxy setting: curl, Wget and apt-get, to a server that speaks DHTTP.
//!
//! Programs that are not installed are skipped, with a message. The handling of messages is tested in `gateway`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use dhttp::client::KnownServers;
use dhttp::{ClientConfig, Files, Server, ServerConfig};
use roundtrip_dhttp_proxy::{Gateway, GatewayConfig};

/// A file server, a gateway that does not know it yet, and a directory for both.
struct TestServers {
    directory: PathBuf,
    server: Server<Files>,
    gateway: Gateway,
}

impl TestServers {
    fn new(name: &str) -> Self {
        let directory =
            std::env::temp_dir().join(format!("roundtrip-programs-{name}-{}", std::process::id()));
        let www = directory.join("www");
        fs::create_dir_all(&www).unwrap();
        fs::write(www.join("small"), "small").unwrap();
        fs::write(www.join("large"), large()).unwrap();
        let config = ServerConfig { threads: 1, ..ServerConfig::internet().reaching_anywhere() };
        let server =
            Server::start("127.0.0.1:0".parse().unwrap(), config, Files::below(&www).unwrap(), None).unwrap();
        let config = GatewayConfig::new(ClientConfig::internet());
        let gateway =
            Gateway::start("127.0.0.1:0".parse().unwrap(), config, KnownServers::default(), None, None)
                .unwrap();
        Self { directory, server, gateway }
    }

    fn proxy(&self) -> String {
        format!("http://{}/", self.gateway.address())
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.server.address())
    }

    /// Returns the output of a program that has only the proxy configured.
    fn run(&self, program: &str, arguments: &[&str]) -> Vec<u8> {
        let mut command = Command::new(program);
        command.args(arguments).env("http_proxy", self.proxy()).env_remove("no_proxy").env_remove("NO_PROXY");
        let output = command.output().unwrap();
        let printed = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program} {arguments:?}: {printed}");
        output.stdout
    }

    /// Waits until this many responses have been counted on this channel; they are counted after they are written.
    fn has_counted(&self, channel: &str, min: u64) {
        let name = format!("roundtrip_gateway_responses_total{{channel=\"{channel}\"}} ");
        let count = || {
            let text = self.gateway.metrics()();
            text.lines().find_map(|line| line.strip_prefix(&name)?.parse::<u64>().ok()).unwrap()
        };
        for _ in 0..1_000 {
            if count() >= min {
                return;
            }
            thread::park_timeout(Duration::from_millis(10));
        }
        panic!("{}", self.gateway.metrics()());
    }
}

impl Drop for TestServers {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn large() -> Vec<u8> {
    (0..=250).cycle().take(300_000).collect()
}

fn is_installed(program: &str) -> bool {
    skip::has(program)
}

#[test]
fn curl_uses_dhttp_transparently_through_the_gateway() {
    if !is_installed("curl") {
        return;
    }
    let servers = TestServers::new("curl");
    let curl = |flags: &[&str], path: &str| {
        let url = servers.url(path);
        servers.run(
            "curl",
            &[&["--disable", "--silent", "--show-error", "--fail", "--max-time", "20"], flags, &[&url]]
                .concat(),
        )
    };
    assert_eq!(curl(&[], "/small"), b"small");
    servers.has_counted("tcp-client", 1);
    assert_eq!(curl(&[], "/small"), b"small");
    servers.has_counted("udp", 1);
    assert_eq!(curl(&[], "/large"), large());
    servers.has_counted("tcp-opened", 1);
    assert_eq!(curl(&["--range", "7-11"], "/large"), [7, 8, 9, 10, 11]);
    let head = String::from_utf8(curl(&["--head"], "/large")).unwrap().to_ascii_lowercase();
    assert!(head.starts_with("http/1.1 200") && head.contains("content-length: 300000\r\n"), "{head}");
    servers.has_counted("udp", 3);
}

#[test]
fn wget_uses_dhttp_transparently_through_the_gateway() {
    if !is_installed("wget") {
        return;
    }
    let servers = TestServers::new("wget");
    let wget = |path: &str| {
        let url = servers.url(path);
        servers.run(
            "wget",
            &["--no-config", "--no-hsts", "--tries=1", "--timeout=20", "--quiet", "-O", "-", &url],
        )
    };
    assert_eq!(wget("/small"), b"small");
    servers.has_counted("tcp-client", 1);
    assert_eq!((wget("/small"), wget("/large")), (b"small".to_vec(), large()));
    servers.has_counted("udp", 1);
    servers.has_counted("tcp-opened", 1);
}

#[test]
fn apt_reads_a_repository_through_it() {
    if !is_installed("apt-get") {
        return;
    }
    let servers = TestServers::new("apt");
    let package = "Package: nothing\nVersion: 1\nArchitecture: all\nMaintainer: nobody <nobody@localhost>\nDescription: nothing\n\
                   Filename: ./nothing.deb\nSize: 1\nSHA256: 0\n";
    fs::create_dir_all(servers.directory.join("www/repository")).unwrap();
    fs::write(servers.directory.join("www/repository/Packages"), package).unwrap();
    let path = |name: &str| servers.directory.join(name).display().to_string();
    fs::write(path("sources.list"), format!("deb [trusted=yes] {} repository/\n", servers.url("/"))).unwrap();
    for directory in ["state/lists/partial", "cache/archives/partial"] {
        fs::create_dir_all(path(directory)).unwrap();
    }
    let options = [
        format!("Dir::Etc::sourcelist={}", path("sources.list")),
        "Dir::Etc::sourceparts=/dev/null".to_owned(),
        format!("Dir::State={}", path("state")),
        "Dir::State::status=/dev/null".to_owned(),
        format!("Dir::Cache={}", path("cache")),
        format!("Acquire::http::Proxy={}", servers.proxy()),
        "Acquire::Languages=none".to_owned(),
        "Acquire::GzipIndexes=false".to_owned(),
        "APT::Sandbox::User=root".to_owned(),
    ];
    let mut arguments: Vec<&str> = options.iter().flat_map(|option| ["-o", option]).collect();
    arguments.push("update");
    servers.run("apt-get", &arguments);
    servers.run("apt-get", &arguments);
    let lists = fs::read_dir(path("state/lists")).unwrap();
    let names: Vec<_> = lists.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let list = names.iter().find(|name| name.ends_with("_Packages")).unwrap_or_else(|| panic!("{names:?}"));
    assert!(
        fs::read_to_string(Path::new(&path("state/lists")).join(list))
            .unwrap()
            .starts_with("Package: nothing")
    );
    servers.has_counted("udp", 1);
}
