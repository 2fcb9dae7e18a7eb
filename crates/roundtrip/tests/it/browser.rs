//! Chromium loads Microscape over the laboratory's links: directly, and through the gateway (`papers/dhttp#section-iv-a`).
//!
//! Makes a table for studies/proxies; run it on an idle host with a browser installed:
//!
//! ```text
//! cargo test --release -p roundtrip --test it -- --ignored --nocapture
//! ```
//!
//! It takes ten minutes, most of them over the modem. With `ROUNDTRIP_BROWSER_CAPTURES=DIR` it
//! writes the packets of each page there, for `roundtrip diagnose`.

use crate::hosts;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration as Real;

use dhttp::client::KnownServers;
use dhttp::{ClientConfig, Files, Server, ServerConfig};
use dhttp_proto::message::is_resend;
use dhttp_proxy::{Gateway, GatewayConfig};
use hosts::{Hosts, SERVER};
use scenario::Network;
use testbed::emulator::{Capture, Observation, Options, PacketDirection};
use wire::packet::{Flags, Packet, Transport};
use wire::{Bytes, Duration};

/// Path of the browser's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestPath {
    Directly,
    /// Through a gateway that knows no server yet.
    Gateway,
    /// Through one that knows from its cache that this server speaks DHTTP.
    ReturningGateway,
}

const ROWS: [(RequestPath, &str); 3] = [
    (RequestPath::Directly, "HTTP/1.1, without a proxy"),
    (RequestPath::Gateway, "the gateway, for the first time"),
    (RequestPath::ReturningGateway, "the gateway, which knows the server"),
];

/// Name, network and number of runs of each link.
const LINKS: [(&str, &str, usize); 3] =
    [("n-ethernet", "LAN", 5), ("n-fast-internet", "WAN", 5), ("n-modem", "modem", 3)];

/// Cost of one page.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Page {
    seconds: f64,
    packets: f64,
    connections: f64,
    datagrams: f64,
    /// Resent request datagrams.
    resends: f64,
}

#[test]
#[ignore = "a table of ten minutes; needs Chromium"]
fn chromium_loads_microscape_over_three_links_with_and_without_the_gateway() {
    if !test_fixture::has_laboratory() {
        return;
    }
    let www = TestDirectory::new("www");
    let program = env!("CARGO_BIN_EXE_roundtrip");
    let output = Command::new(program).args(["site", "microscape"]).arg(www.0.join("www")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    println!(
        "| link | Chromium's requests by | page | packets | connections | datagrams of DHTTP | requests resent |\n| --- | --- | --- | --- | --- | --- | --- |"
    );
    for (network, link, runs) in LINKS {
        let network = Network::named(network).unwrap();
        // Interleaved, so that other load on the host affects all rows alike.
        let mut pages = ROWS.map(|_| Vec::new());
        for run in 0..runs {
            for (pages, (path, _)) in pages.iter_mut().zip(ROWS) {
                pages.push(load(&network, path, &www.0.join("www"), run));
            }
        }
        for (pages, (_, row)) in pages.into_iter().zip(ROWS) {
            let median = |of: fn(&Page) -> f64| {
                let mut all: Vec<f64> = pages.iter().map(of).collect();
                all.sort_by(f64::total_cmp);
                all[all.len() / 2]
            };
            println!(
                "| {link} | {row} | {:.3} s | {} | {} | {} | {} |",
                median(|page| page.seconds),
                median(|page| page.packets),
                median(|page| page.connections),
                median(|page| page.datagrams),
                median(|page| page.resends)
            );
        }
    }
}

fn load(network: &Network, path: RequestPath, www: &Path, run: usize) -> Page {
    let links = network.links();
    let options = Options { capture: Some(Bytes::new(64 << 20)), ..Options::default() };
    let mtu = u32::try_from(network.mtu().get()).unwrap();
    let hosts = Hosts::new(&links.up, &links.down, mtu, &options);
    let www = www.to_owned();
    let server = hosts
        .server
        .start(move || {
            let config = ServerConfig { threads: 1, ..ServerConfig::internet().reaching_anywhere() };
            Server::start((SERVER, 80).into(), config, Files::below(&www).unwrap(), None).unwrap()
        })
        .wait()
        .unwrap();
    let gateway = (path != RequestPath::Directly).then(|| {
        hosts
            .client
            .start(move || {
                let mut known = KnownServers::default();
                if path == RequestPath::ReturningGateway {
                    known.apply_alt_svc(&SERVER.to_string(), b"dhttp=\":80\"");
                }
                let config = GatewayConfig::new(ClientConfig::internet());
                Gateway::start("127.0.0.1:0".parse().unwrap(), config, known, None, None).unwrap()
            })
            .wait()
            .unwrap()
    });
    let proxy = gateway.as_ref().map(|gateway| gateway.address().to_string());
    hosts.client.start(move || load_in_browser(proxy)).wait().unwrap();
    // The last packets are in flight.
    thread::park_timeout(Real::from_millis(500));
    drop((gateway, server));
    let capture = hosts.link.stop().unwrap().capture.unwrap();
    assert_eq!(capture.missed(), 0, "the capture is complete");
    if let Some(directory) = std::env::var_os("ROUNDTRIP_BROWSER_CAPTURES") {
        let name = format!("{}-{path:?}-{run}.pcapng", network.name);
        capture.save(&Path::new(&directory).join(name), "Chromium loads Microscape").unwrap();
    }
    measure_page(&capture)
}

/// Lets Chromium load the page and exit; its output shows that the page was complete.
fn load_in_browser(proxy: Option<String>) {
    let profile = TestDirectory::new("profile");
    let mut command = Command::new("chromium");
    command.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--disable-default-apps",
        "--disable-extensions",
        "--disable-dev-shm-usage",
        "--dump-dom",
    ]);
    command.arg(format!("--user-data-dir={}", profile.0.display()));
    match proxy {
        Some(proxy) => command.arg(format!("--proxy-server=http://{proxy}")),
        None => command.arg("--no-proxy-server"),
    };
    command.arg(format!("http://{SERVER}/")).stdin(Stdio::null()).stderr(Stdio::null());
    let output = command.output().unwrap();
    assert!(
        output.status.success() && output.stdout.len() > 20_000,
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
}

/// Measures a page at the client, from the first packet that requests it to the last byte received. Packets that set up
/// the link (IPv6's neighbour discovery) are not counted.
fn measure_page(capture: &Capture) -> Page {
    let (mut start, mut end, mut packets, mut datagrams) = (None, Duration::ZERO, 0.0, 0.0);
    let mut resends = 0.0;
    let mut connections = BTreeSet::new();
    for (at, direction, observation, bytes) in capture.iter() {
        let at = at.since(wire::Time::ZERO);
        let payload = match Packet::read(bytes).map(|packet| packet.transport) {
            Ok(Transport::Tcp(segment)) => {
                if segment.flags.contains(Flags::SYN) && !segment.flags.contains(Flags::ACK) {
                    connections.insert((
                        direction == PacketDirection::Up,
                        segment.source_port,
                        segment.destination_port,
                    ));
                }
                segment.payload_length
            }
            Ok(Transport::Udp(datagram)) => {
                if observation != Observation::Delivered {
                    datagrams += 1.0;
                    resends += if direction == PacketDirection::Up && is_resend(datagram.payload) {
                        1.0
                    } else {
                        0.0
                    };
                }
                datagram.payload_length
            }
            Ok(Transport::Fragment | Transport::Other { .. }) | Err(_) => continue,
        };
        if observation != Observation::Delivered {
            packets += 1.0;
        }
        match (direction, observation) {
            (PacketDirection::Up, Observation::Sent) => drop(start.get_or_insert(at)),
            (PacketDirection::Down, Observation::Delivered) if payload > Bytes::ZERO => end = at,
            (PacketDirection::Up | PacketDirection::Down, _) => {}
        }
    }
    let seconds = (end - start.unwrap()).as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "a page has few connections")]
    let connections = connections.len() as f64;
    Page { seconds, packets, connections, datagrams, resends }
}

/// Removed when dropped.
struct TestDirectory(test_fixture::TestDirectory);

impl TestDirectory {
    fn new(name: &str) -> Self {
        Self(test_fixture::TestDirectory::new(&format!("browser-{name}")))
    }
}
