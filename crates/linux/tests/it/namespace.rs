//! Namespaces, links and routes on the real kernel: created, read back, and removed afterwards.

use std::fs;
use std::net::Ipv4Addr;

use linux::netlink::{Link, Metrics, Netlink, Route};
use linux::{Error, Namespace};

/// Whether this process may create networks. With `ROUNDTRIP_REQUIRE_KERNEL=1` (as in CI), it must.
fn is_permitted() -> bool {
    let Err(missing) = linux::available() else { return true };
    skip::refused(&missing.to_string());
    false
}

/// Devices and named namespaces of the calling thread, as listed by `ip -o link` and `ip netns`.
fn devices() -> String {
    fs::read_to_string("/proc/thread-self/net/dev").unwrap()
}

#[test]
fn a_namespace_sees_only_its_own_loopback_and_leaves_the_callers_network_alone() {
    if !is_permitted() {
        return;
    }
    let before = devices();
    let namespace = Namespace::new("client").unwrap();
    let own_devices = namespace.start(devices).wait().unwrap();
    assert_eq!(own_devices.lines().skip(2).count(), 1, "{own_devices}");
    assert!(own_devices.contains("lo:"));
    drop(namespace);
    // Names only: the counters of the caller's devices change.
    let names =
        |text: &str| text.lines().map(|line| line.split(':').next().unwrap().to_owned()).collect::<Vec<_>>();
    assert_eq!(names(&devices()), names(&before));
}

#[test]
fn links_and_routes_are_read_back_as_set() {
    if !is_permitted() {
        return;
    }
    let namespace = Namespace::new("server").unwrap();
    let result = namespace.run(|| {
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
        netlink.set_route("lo", &Route { metrics: metrics.clone(), ..Route::new(destination, source) })?;
        // Set again with other values: replaced, not added.
        netlink.set_route(
            "lo",
            &Route {
                metrics: Metrics { initial_window: None, ..metrics },
                ..Route::new(destination, source)
            },
        )?;
        assert_eq!(netlink.dropped("lo")?, 0);
        Ok::<_, Error>(())
    });
    result.unwrap();
}

#[test]
fn kernel_refusals_are_named() {
    if !is_permitted() {
        return;
    }
    let namespace = Namespace::new("server").unwrap();
    let error = namespace
        .run(|| {
            Netlink::open()?.bring_up("tun7", Link { mtu: 552, tx_queue_length: 500, gso_max_segments: 1 })
        })
        .unwrap_err();
    assert!(matches!(&error, Error::Kernel { doing, .. } if doing.contains("tun7")), "{error}");
}

#[test]
fn panicking_job_is_an_error_for_the_waiting_caller() {
    if !is_permitted() {
        return;
    }
    let namespace = Namespace::new("client").unwrap();
    let result = namespace.start(|| panic!("on purpose")).wait();
    assert!(matches!(result, Err(Error::Died { thread: "client" })));
    assert!(matches!(namespace.start(|| ()).wait(), Err(Error::Died { thread: "client" })));
}
