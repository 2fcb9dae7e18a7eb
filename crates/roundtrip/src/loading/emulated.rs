//! Load over an emulated link: users on one host, Roundtrip's server with the plan's files on another.
//!
//! The network between them is one of the catalogue. TCP is the kernel's, with this host's settings; the link is that of
//! `measure`. Servers of the user cannot be loaded this way: they run outside this network.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, mpsc};

use dhttp::{Files, Server as Engine, ServerConfig};
use load::progress::{Progress, Stop};
use load::{Config, Protocol, Record, Target};
use reproduce::server_benchmark::Error;
use reproduce::server_benchmark::benchmark_run::Site;
use scenario::Network;
use testbed::emulator::{Options, Running};
use testbed::{Interface, Namespace, Topology};
use workload::plan::Plan;

use crate::failure::Failure;
use crate::file;

const USERS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

/// Two hosts, the link and the server; dropping removes them.
pub struct Emulated {
    users: Namespace,
    link: Running,
    // Drop order: a server stops before its host is removed.
    _engine: Engine<Files>,
    _server: Namespace,
    site: Arc<Site>,
}

/// Returns the network of this name, if the emulated server supports this protocol.
///
/// # Errors
/// An unknown network; or an unsupported protocol, with the remedy.
pub fn network(name: &str, protocol: Protocol) -> Result<Network, Failure> {
    match protocol {
        Protocol::Http2 | Protocol::Http3 => Err(Failure::Value(
            "--network: the emulated server speaks HTTP/1 and DHTTP; choose --protocol http11, or dhttp"
                .to_owned(),
        )),
        Protocol::Http10 | Protocol::KeepAlive | Protocol::Pipelined | Protocol::Dhttp => {
            Network::named(name).map_err(|unknown| Failure::Value(format!("--network: {unknown}")))
        }
    }
}

/// Returns the emulated server as a target.
pub fn target() -> Target {
    Target { address: address(), host: "server".to_owned(), directory: "/".to_owned(), security: None }
}

impl Emulated {
    /// Builds this network between users and a server of this plan's files. Needs root.
    ///
    /// # Errors
    /// A missing program, or the system's error.
    pub fn new(network: &Network, plan: Plan) -> Result<Self, Failure> {
        testbed::available()?;
        let bytes = plan.files.iter().sum();
        file::check_space(
            &std::env::temp_dir(),
            bytes,
            "the plan's files",
            "plan fewer files, or a lower --cap",
        )?;
        let site = Arc::new(Site::of(plan)?);
        let scenario::network::Links { up, down } = network.links();
        // Busy-waiting for a minute exhausts the thread's CPU share, which delays later packets.
        let options = Options { spin: wire::Duration::ZERO, ..Options::default() };
        let mtu = u32::try_from(network.mtu().get()).unwrap_or(u32::MAX);
        let fast_open = "net.ipv4.tcp_fastopen";
        let ([users, server], [link]) = Topology::new()
            .host("users' host")
            .setting(fast_open, "3")
            .host("server's host")
            .setting(fast_open, "3")
            .emulated(
                [
                    Interface::of("users' host", "way").address(USERS).mtu(mtu),
                    Interface::of("server's host", "way").address(SERVER).mtu(mtu),
                ],
                [&up, &down],
                &options,
            )
            .build()?
            .split()?;
        let served_site = Arc::clone(&site);
        let engine = server.run(move || {
            let files =
                Files::below(served_site.directory()).map_err(Error::system("read the plan's files"))?;
            Engine::start(address(), ServerConfig::internet().reaching_anywhere(), files, None)
                .map_err(Error::system("start the server"))
        })?;
        Ok(Self { users, link, _engine: engine, _server: server, site })
    }

    /// Runs the plan, and returns it with the results; `watch` is called every second. Reports on standard error if the
    /// link did not sustain its rate or delay.
    ///
    /// # Errors
    /// When the link or a host has failed; errors of the users are in the inner result.
    pub fn run(
        self,
        config: Config,
        stop: Stop,
        watch: &mut dyn FnMut(&Progress),
    ) -> Result<(Result<Record, load::run::Error>, Plan), Failure> {
        let (site, (sender, updates)) = (Arc::clone(&self.site), mpsc::channel());
        let running = self.users.start(move || {
            load::run::run_until(&site.plan, &target(), &config, &stop, &mut |progress| {
                // The receiver is gone only if the program is about to end.
                let _ = sender.send(progress.clone());
            })
        });
        for progress in updates {
            watch(&progress);
        }
        let record = running.wait()?;
        if let Some(void) = self.link.stop()?.void() {
            crate::terminal::warn(&format!(
                "the emulated link missed its settings, so these times are void: {void}"
            ));
        }
        Ok((record, self.site.plan.clone()))
    }
}

fn address() -> SocketAddr {
    SocketAddr::from((SERVER, 80))
}
