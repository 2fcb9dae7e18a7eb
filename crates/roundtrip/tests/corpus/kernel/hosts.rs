//! Two hosts with Ethernet cards, two routers, and the emulated link between these.
//!
//! `client` c0 - c1 `router` TUN = link = TUN `router` s1 - s0 `server`: c0 and s0 are ends of veth pairs, which leave
//! segmentation to the card (TSO, GSO) and merge segments (GRO), or not, as `ethtool -K` configures them. A TUN device
//! always gets segmented packets. Configured by ip(8) and ethtool(8), in namespaces without a name.

use std::process::Command;

use testbed::emulator::{Options, Running};
use testbed::tun::Tun;
use testbed::{Emulator, Namespace};
use wire::{Bytes, Seed};

use super::cases::{Acks, Case, Tuning};

pub(crate) const SERVER: &str = "10.2.0.1:80";

/// The client's host, the server's, and the path between them.
pub(crate) struct Hosts {
    pub(crate) client: Namespace,
    pub(crate) server: Namespace,
    pub(crate) link: Running,
    _routers: [Namespace; 2],
}

/// One side of the link: its host, its router, and the router's end of the link.
struct HostAndRouter {
    host: Namespace,
    router: Namespace,
    tun: Tun,
}

/// Converts an error to text.
pub(crate) fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}

impl Hosts {
    pub(crate) fn build(case: &Case) -> Result<Self, String> {
        let Tuning { congestion, initial_window, offload, sack, restarts_after_idle } = &case.tuning;
        let quick = if case.play.acks == Acks::Quick { "quickack 1" } else { "" };
        let sysctls = [
            ("tcp_sack", *sack),
            ("tcp_slow_start_after_idle", *restarts_after_idle),
            ("tcp_no_metrics_save", true),
        ];
        let sysctls =
            sysctls.map(|(name, is_on)| format!("echo {} > /proc/sys/net/ipv4/{name}\n", u8::from(is_on)));
        let sysctls = sysctls.concat();
        let side = |letter, number, metrics: &str| side(letter, number, metrics, &sysctls, *offload);
        let client = side('c', 1, quick)?;
        let server = side('s', 2, &format!("initcwnd {initial_window} congctl {congestion}"))?;
        let [up, down] = case.links();
        let options =
            Options { seed: Seed::new(case.seed), capture: Some(Bytes::new(8 << 20)), ..Options::default() };
        let link = Emulator::start(client.tun, server.tun, &up, &down, &options).map_err(told)?;
        let routers = [client.router, server.router];
        Ok(Self { client: client.host, server: server.host, link, _routers: routers })
    }
}

fn side(
    letter: char,
    number: u8,
    metrics: &str,
    sysctls: &str,
    offload: bool,
) -> Result<HostAndRouter, String> {
    const NO_IPV6: &str =
        "for scope in all default; do echo 1 > /proc/sys/net/ipv6/conf/$scope/disable_ipv6; done\n";
    let [host, router] = [Namespace::new("host").map_err(told)?, Namespace::new("router").map_err(told)?];
    let beyond = 3 - number;
    let thread = router.start(nix::unistd::gettid).wait().map_err(told)?;
    shell(&router, NO_IPV6.to_owned())?;
    let on_or_off = if offload { "on" } else { "off" };
    let cards = |card: String| {
        format!("ethtool -K {card} tso {on_or_off} gso {on_or_off} gro {on_or_off} > /dev/null\n")
    };
    shell(
        &host,
        format!(
            "{NO_IPV6}{sysctls}\
             ip link add {letter}0 type veth peer name {letter}1 netns {thread}\n\
             ip address add 10.{number}.0.1/24 dev {letter}0\n\
             {}\
             ip link set {letter}0 up\n",
            cards(format!("{letter}0"))
        ),
    )?;
    let tun = router.run(|| Tun::open("wire0")).map_err(told)?;
    shell(
        &router,
        format!(
            "echo 1 > /proc/sys/net/ipv4/ip_forward\n\
             for scope in all default; do echo 0 > /proc/sys/net/ipv4/conf/$scope/rp_filter; done\n\
             ip address add 10.{number}.0.254/24 dev {letter}1\n\
             ip link set {letter}1 up\n\
             ip link set wire0 up mtu 1500 txqueuelen 100000\n\
             ip route add 10.{beyond}.0.0/24 dev wire0\n"
        ),
    )?;
    shell(&host, format!("ip route add 10.{beyond}.0.0/24 via 10.{number}.0.254 {metrics}\n"))?;
    Ok(HostAndRouter { host, router, tun })
}

/// Runs a script in a namespace: child processes inherit that of their thread.
fn shell(namespace: &Namespace, script: String) -> Result<(), String> {
    let pending = namespace.start(move || {
        let output =
            Command::new("sh").args(["-ec", &script]).env("PATH", skip::path()).output().map_err(told)?;
        if output.status.success() {
            return Ok(());
        }
        Err(format!("{} in {script}", String::from_utf8_lossy(&output.stderr).trim()))
    });
    pending.wait().map_err(told)?
}

/// A missing program, if any, besides the laboratory's.
pub(crate) fn missing() -> Option<&'static str> {
    ["ip", "ethtool"].into_iter().find(|program| !skip::has(program))
}
