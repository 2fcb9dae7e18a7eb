//! Namespaces, links and routes on the real kernel: created, read back, and removed afterwards.

extern crate roundtrip_measure as measure;

mod rights;

use std::fs;
use std::net::Ipv4Addr;

use measure::netlink::{Link, Metrics, Netlink, Route};
use measure::profile::{End, Profile};
use measure::{Error, Namespace};
use scenario::Stack;
use wire::Bytes;

/// Devices and named namespaces of the calling thread, as listed by `ip -o link` and `ip netns`.
fn devices() -> String {
    fs::read_to_string("/proc/thread-self/net/dev").unwrap()
}

#[test]
fn a_namespace_sees_only_its_own_loopback_and_leaves_the_callers_network_alone() {
    if !rights::granted() {
        return;
    }
    let before = devices();
    let namespace = Namespace::new("client").unwrap();
    let inside = namespace.run(|| Ok(devices())).unwrap();
    assert_eq!(inside.lines().skip(2).count(), 1, "{inside}");
    assert!(inside.contains("lo:"));
    drop(namespace);
    // Names only: the counters of the caller's devices change.
    let names =
        |text: &str| text.lines().map(|line| line.split(':').next().unwrap().to_owned()).collect::<Vec<_>>();
    assert_eq!(names(&devices()), names(&before));
}

#[test]
fn links_and_routes_are_read_back_as_set() {
    if !rights::granted() {
        return;
    }
    let namespace = Namespace::new("server").unwrap();
    let done = namespace.run(|| {
        let mut netlink = Netlink::open()?;
        netlink.bring_up("lo", Link { mtu: 552, tx_queue_length: 500, gso_max_segments: 1 })?;
        netlink.add_address("lo", Ipv4Addr::new(10, 0, 0, 1))?;
        let metrics = Metrics {
            window: Some(16_384),
            advertised_mss: Some(512),
            initial_window: Some(2),
            rto_min_ms: Some(1_000),
            quick_acks: Some(true),
            congestion: Some("reno"),
        };
        let destination = Ipv4Addr::new(10, 0, 0, 2);
        let source = Ipv4Addr::new(10, 0, 0, 1);
        netlink.set_route("lo", &Route { destination, source, metrics: metrics.clone() })?;
        // Set again with other values: replaced, not added.
        netlink.set_route(
            "lo",
            &Route { destination, source, metrics: Metrics { initial_window: None, ..metrics } },
        )?;
        assert_eq!(netlink.dropped("lo")?, 0);
        Ok(())
    });
    done.unwrap();
}

#[test]
fn kernel_refusals_are_named() {
    if !rights::granted() {
        return;
    }
    let namespace = Namespace::new("server").unwrap();
    let refused = namespace
        .run(|| {
            Netlink::open()?.bring_up("tun7", Link { mtu: 552, tx_queue_length: 500, gso_max_segments: 1 })
        })
        .unwrap_err();
    assert!(matches!(&refused, Error::Kernel { doing, .. } if doing.contains("tun7")), "{refused}");
}

#[test]
fn panicking_job_is_an_error_for_the_waiting_caller() {
    if !rights::granted() {
        return;
    }
    let namespace = Namespace::new("client").unwrap();
    let died = namespace.start(|| panic!("on purpose")).wait();
    assert!(matches!(died, Err(Error::Died { thread: "client" })));
    assert!(matches!(namespace.run(|| Ok(())), Err(Error::Died { thread: "client" })));
}

#[test]
fn the_stacks_for_a_kernel_can_be_pinned_and_are_read_back() {
    if !rights::granted() {
        return;
    }
    for stack in ["period", "linux"].map(|name| Stack::named(name).unwrap()) {
        let profile = Profile::of(&stack, Bytes::new(512), End::Client).unwrap();
        let namespace = Namespace::new("server").unwrap();
        let settings = namespace.run(move || profile.pin()).unwrap();
        let sack = settings.iter().find(|setting| setting.name == "net.ipv4.tcp_sack").unwrap();
        assert_eq!(sack.value, if stack.sack { "1" } else { "0" });
    }
    // The caller's own kernel settings are unchanged.
    assert_ne!(fs::read_to_string("/proc/sys/net/ipv4/tcp_no_metrics_save").unwrap().trim(), "1");
}
