//! Two hosts with Ethernet cards, two routers, and the emulated link between these.
//!
//! `client` c0 - c1 `router` TUN = link = TUN `router` s1 - s0 `server`. c0 and s0 are ends of veth pairs: as
//! `ethtool -K` configures them, they leave segmentation to the card (TSO, GSO) and merge segments (GRO), or not. A
//! TUN device always gets segmented packets.

use linux::card::Offload;
use linux::netlink::{Metrics, Subnet};
use testbed::emulator::{Options, Running};
use testbed::{Interface, Namespace, Topology};
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

/// Converts an error to text.
pub(crate) fn reported(error: impl std::fmt::Display) -> String {
    error.to_string()
}

impl Hosts {
    pub(crate) fn build(case: &Case) -> Result<Self, String> {
        Self::connect(case).map_err(reported)
    }

    fn connect(case: &Case) -> Result<Self, testbed::Error> {
        let Tuning { congestion, initial_window, offload, sack, restarts_after_idle } = &case.tuning;
        let on_or_off = |is_on: bool| if is_on { "1" } else { "0" };
        let tuned = |topology: Topology| {
            topology
                .setting("net.ipv4.tcp_sack", on_or_off(*sack))
                .setting("net.ipv4.tcp_slow_start_after_idle", on_or_off(*restarts_after_idle))
                .setting("net.ipv4.tcp_no_metrics_save", "1")
        };
        let router = |topology: Topology, name| {
            let topology = topology.router(name).setting("net.ipv4.conf.all.rp_filter", "0");
            topology.setting("net.ipv4.conf.default.rp_filter", "0")
        };
        let card = |end: Interface| {
            let offloads = [Offload::CutSegments, Offload::CutSegmentsLate, Offload::MergeSegments];
            offloads.into_iter().fold(end, |end, which| end.offload(which, *offload))
        };
        let [left, right] = ["10.1.0.0/24".parse::<Subnet>()?, "10.2.0.0/24".parse()?];
        let quick = (case.behaviour.acks == Acks::Quick).then_some(true);
        let of_client = Metrics { quick_acks: quick, ..Metrics::default() };
        let of_server = Metrics {
            initial_window: Some(*initial_window),
            congestion: Some(congestion),
            ..Metrics::default()
        };
        let at = |host, device: &str, text: &str| {
            Ok::<_, testbed::Error>(Interface::of(host, device).address(text.parse::<Subnet>()?))
        };
        let [up, down] = case.links();
        let options =
            Options { seed: Seed::new(case.seed), capture: Some(Bytes::new(8 << 20)), ..Options::default() };
        let hosts = tuned(tuned(Topology::new().host("client")).host("server"));
        let ([client, server, near, far], [link]) =
            router(router(hosts, "client's router"), "server's router")
                .cable([
                    card(at("client", "c0", "10.1.0.1/24")?).reaches(right).metrics(of_client),
                    at("client's router", "c1", "10.1.0.254/24")?,
                ])
                .emulated(
                    [
                        Interface::of("client's router", "wire0").reaches(right),
                        Interface::of("server's router", "wire0").reaches(left),
                    ],
                    [&up, &down],
                    &options,
                )
                .cable([
                    at("server's router", "s1", "10.2.0.254/24")?,
                    card(at("server", "s0", "10.2.0.1/24")?).reaches(left).metrics(of_server),
                ])
                .build()?
                .split()?;
        Ok(Self { client, server, link, _routers: [near, far] })
    }
}
