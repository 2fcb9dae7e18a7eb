//! `roundtrip nat` over IPv6: firewalls, translation, and the relay.
//!
//! Tests that are independent of addresses are in `main` and `attacks`.

use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use super::lab::{Lab, OTHER6, SERVER6, available, inside};

/// A router that only filters, with rules for the mark.
const FIREWALL: &str = "table ip6 filter {
  chain forward { type filter hook forward priority filter; policy drop
    ct state established,related accept
    iifname \"lan\" accept
    meta mark 0x7471 accept
  }
}";

/// A router that translates IPv6 addresses (not by RFC 6296, which keeps ports), and filters.
const TRANSLATION: &str = "table ip6 nat {
  chain post { type nat hook postrouting priority srcnat; oifname \"wan\" masquerade
  }
}
table ip6 filter {
  chain forward { type filter hook forward priority filter; policy drop
    ct state established,related accept
    iifname \"lan\" accept
    ct status dnat accept
  }
}";

#[test]
fn an_ipv6_firewall_admits_the_response_and_nothing_else() {
    if !available() {
        return;
    }
    let networks = ["--firewall", "--ipv6", "--caches", "2600:db8:1::3/128,192.0.2.0/24"];
    for (rules, flags) in [
        (Some(FIREWALL), &["--firewall", "--ipv6"][..]),
        (None, &["--firewall", "--ipv6", "--closed"]),
        (Some(FIREWALL), &["--firewall", "--ipv6", "--by-id", "--any-cache"]),
        (Some(FIREWALL), &networks),
    ] {
        let lab = Lab::dual_stack();
        if let Some(rules) = rules {
            lab.rules(rules);
        }
        let _server = lab.serve_at(SERVER6, &[]);
        let before = lab.router_state();
        let nat = lab.nat(flags);
        assert_eq!(lab.channels_at(SERVER6), ("udp".to_owned(), "tcp-opened".to_owned()), "{flags:?}");
        let refused = inside(&lab.world, || {
            let to = "[2600:db8:2::2]:5000".parse().unwrap();
            TcpStream::connect_timeout(&to, Duration::from_millis(200))
        });
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::TimedOut, "{flags:?}");
        assert!(nat.stop().0);
        assert_eq!(lab.router_state(), before);
    }
}

#[test]
fn helpers_for_both_families_work_side_by_side() {
    if !available() {
        return;
    }
    let lab = Lab::dual_stack();
    lab.rules(&super::translation("port-restricted"));
    lab.rules(TRANSLATION);
    // Without neighbour discovery IPv6 does not work.
    super::lab::sh(&lab.router, "nft insert rule inet filter input meta l4proto ipv6-icmp accept");
    let _servers = (lab.serve(&[]), lab.serve_at(SERVER6, &[]));
    let (four, six) = (lab.nat(&[]), lab.nat(&["--ipv6"]));
    assert!(six.first.contains("appear at 2600:db8:1::1"), "{}", six.first);
    for server in [super::lab::SERVER, SERVER6] {
        assert_eq!(lab.channels_at(server), ("udp".to_owned(), "tcp-opened".to_owned()), "{server}");
    }
    assert!(six.stop().0);
    assert!(lab.router_state().contains("table ip roundtrip_nat"));
    assert_eq!(lab.channels(), ("udp".to_owned(), "tcp-opened".to_owned()));
    // Without its own helper a large response takes the fallback of every program.
    assert_eq!(lab.channels_at(SERVER6), ("udp".to_owned(), "tcp-client".to_owned()));
    assert!(four.stop().0);
}

#[test]
fn a_closed_port_is_reported_immediately_over_ipv6_too() {
    if !available() {
        return;
    }
    let lab = Lab::dual_stack();
    lab.rules(TRANSLATION);
    // A server with HTTP only: nothing listens at its UDP port.
    let listener = inside(&lab.world, || TcpListener::bind("[2600:db8:1::2]:80").unwrap());
    super::respond_plainly(listener);
    let _nat = lab.nat(&["--ipv6"]);
    let got = lab.get_at(SERVER6, "small", &[]);
    assert_eq!((&*got.body, &*got.channel), (&b"plain"[..], "tcp-client"));
    assert!(got.printed.contains("UDP port unreachable"), "{}", got.printed);
}

#[test]
fn a_relay_serves_ipv6_networks() {
    if !available() {
        return;
    }
    let lab = Lab::dual_stack();
    lab.rules(FIREWALL);
    let _server = lab.serve_at(SERVER6, &[]);
    let relay = lab.relay_at(OTHER6, "2600:db8:2::/64", &["--force"]);
    assert!(lab.get_via_relay_at(OTHER6, SERVER6, "/_dhttp_/small").ends_with(b"\r\n\r\nsmall"));
    assert!(lab.get_via_relay_at(OTHER6, SERVER6, "/_dhttp_/large").ends_with(&[7; 100_000]));
    assert!(relay.stop().0);
    let log = std::fs::read_to_string(lab.directory.join("relay.log")).unwrap();
    let channels: Vec<_> = log.lines().filter_map(|line| line.split(' ').next_back()).collect();
    assert_eq!(channels, ["udp", "tcp-opened"], "{log}");
    let _other = lab.relay_at(OTHER6, "2600:db8:3::/64", &["--force"]);
    assert!(lab.get_via_relay_at(OTHER6, SERVER6, "/small").is_empty());
}
