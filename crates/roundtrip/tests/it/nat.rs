//! `roundtrip nat` on a router with this kernel: traffic that it admits, leaves unchanged, and blocks.
//!
//! `dhttp_proto::translator` tests the decisions.

mod attacks;
mod crowd;
mod faults;
mod ipv6;
mod lab;
mod operation;
mod outside;

use lab::{Lab, available};

/// A typical translation on a router, with a filter that admits only responses.
fn translation(kind: &str) -> String {
    let (masquerade_flags, other_chains) = match kind {
        // Full cone: any host that sends to the mapped port reaches the client.
        "full-cone" => (
            "persistent",
            "chain in { type nat hook prerouting priority dstnat; iifname \"wan\" udp dport 1024-60999 dnat to 10.0.0.2; }",
        ),
        // Address-restricted: hosts that the client has sent to, from any port.
        "address-restricted" => (
            "persistent",
            "set asked { type ipv4_addr; flags dynamic,timeout; timeout 60s; }
             chain out { type filter hook forward priority 0; oifname \"wan\" update @asked { ip daddr }; }
             chain in { type nat hook prerouting priority dstnat; iifname \"wan\" udp dport 1024-60999 ip saddr @asked dnat to 10.0.0.2; }",
        ),
        // Port-restricted: only from the address and port that the client has sent to; Linux's default.
        "port-restricted" => ("", ""),
        // Symmetric: another mapped port for every server.
        "symmetric" => ("fully-random", ""),
        kind => panic!("{kind}"),
    };
    format!(
        "table ip nat {{
           chain post {{ type nat hook postrouting priority srcnat; oifname \"wan\" masquerade {masquerade_flags}
           }}
           {other_chains}
         }}
         table inet filter {{
           chain forward {{ type filter hook forward priority filter; policy drop
             ct state established,related accept
             iifname \"lan\" accept
             ct status dnat accept
           }}
           chain input {{ type filter hook input priority filter; policy drop
             ct state established,related accept
             iifname {{ \"lo\", \"lan\" }} accept
             meta l4proto tcp reject with tcp reset
           }}
         }}"
    )
}

#[test]
fn paper_section_iv_d_with_the_helper_both_channels_pass_every_kind_of_translation() {
    if !available() {
        return;
    }
    for kind in ["full-cone", "address-restricted", "port-restricted", "symmetric"] {
        let lab = Lab::new();
        lab.rules(&translation(kind));
        let _server = lab.serve(&[]);
        let _nat = lab.nat(&[]);
        assert_eq!(lab.channels(), ("udp".to_owned(), "tcp-opened".to_owned()), "{kind}");
    }
}

#[test]
fn without_the_helper_small_responses_pass_and_large_ones_fall_back_immediately() {
    if !available() {
        return;
    }
    for kind in ["full-cone", "address-restricted", "port-restricted", "symmetric"] {
        let lab = Lab::new();
        lab.rules(&translation(kind));
        let _server = lab.serve(&[]);
        assert_eq!(lab.channels(), ("udp".to_owned(), "tcp-client".to_owned()), "{kind}");
        let printed = lab.get("large", &[]).printed;
        assert!(
            printed.contains("the server requests plain HTTP") && !printed.contains("request resent"),
            "{printed}"
        );
    }
}

#[test]
fn through_a_relay_outside_every_kind_of_translation_has_dhttp_beyond_it() {
    if !available() {
        return;
    }
    for kind in ["full-cone", "address-restricted", "port-restricted", "symmetric"] {
        let lab = Lab::new();
        lab.rules(&translation(kind));
        let _server = lab.serve(&[]);
        let relay = lab.relay("192.0.2.0/24,11.0.100.1");
        assert!(lab.get_via_relay("/_dhttp_/small").ends_with(b"\r\n\r\nsmall"), "{kind}");
        assert!(lab.get_via_relay("/_dhttp_/large").ends_with(&[7; 100_000]), "{kind}");
        assert!(relay.stop().0);
        let log = std::fs::read_to_string(lab.directory.join("relay.log")).unwrap();
        let channels: Vec<_> = log.lines().filter_map(|line| line.split(' ').next_back()).collect();
        assert_eq!(channels, ["udp", "tcp-opened"], "{kind}: {log}");
    }
}

#[test]
fn a_relay_serves_only_allowed_clients() {
    if !available() {
        return;
    }
    let lab = Lab::new();
    lab.rules(&translation("port-restricted"));
    let _relay = lab.relay("192.0.2.0/24");
    assert!(lab.get_via_relay("/small").is_empty());
}

#[test]
fn a_reload_revokes_clients_of_a_relay_and_an_invalid_list_opens_nothing() {
    if !available() {
        return;
    }
    let lab = Lab::new();
    let _server = lab.serve(&[]);
    lab.rules(&translation("port-restricted"));
    let file = lab.directory.join("relay.toml");
    let write = |text: &str| std::fs::write(&file, text).unwrap();
    write("listen = \"11.0.100.3:3128\"\nallow = [\"11.0.100.1\"]\n");
    let mut relay =
        lab::RunningProgram::start(&lab.world, &["gateway", "--force", "--config", file.to_str().unwrap()]);
    assert!(lab.get_via_relay("/small").ends_with(b"small"));
    for (text, expected) in [
        ("listen = \"11.0.100.3:3128\"\nallow = [\"192.0.2.0/24\"]\n", "reloaded the configuration"),
        // The new address would be judged as a loopback one, and the gateway would keep listening for other hosts.
        ("listen = \"127.0.0.1:3128\"\n", "requires a restart"),
        ("listen = \"11.0.100.3:3128\"\n", "--allow"),
    ] {
        write(text);
        relay.signal("HUP");
        let printed = relay.next_line();
        assert!(printed.contains(expected), "{printed}");
        assert!(lab.get_via_relay("/small").is_empty(), "{text}");
    }
}

#[test]
fn a_relay_does_not_reach_its_own_host_or_private_addresses() {
    if !available() {
        return;
    }
    let lab = Lab::new();
    let console = lab::inside(&lab.world, || {
        let console = std::net::TcpListener::bind("0.0.0.0:8080").unwrap();
        console.set_nonblocking(true).unwrap();
        (console, std::net::UdpSocket::bind("0.0.0.0:8080").unwrap())
    });
    console.1.set_nonblocking(true).unwrap();
    let relay = lab.relay_at(lab::OTHER, "11.0.100.1,10.0.0.0/24", &[]);
    lab::sh(&lab.world, "ip route add 10.0.0.0/24 via 11.0.100.1");
    let own = lab::OTHER;
    for host in [
        "127.0.0.1",
        "0.0.0.0",
        "10.0.0.2",
        "169.254.169.254",
        "100.64.0.9",
        "198.18.0.9",
        "192.0.0.9",
        "localhost",
        "[::ffff:127.0.0.1]",
        "[::1]",
        "[fec0::9]",
        "[64:ff9b:1::9]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        own,
    ] {
        let at = format!("{host}:8080");
        for (request, status) in [
            (format!("GET http://{at}/ HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n"), "403"),
            // To the permitted port, and to another one.
            (format!("CONNECT {host}:443 HTTP/1.1\r\nHost: {at}\r\n\r\n"), "403"),
            (format!("CONNECT {host}:25 HTTP/1.1\r\nHost: {at}\r\n\r\n"), "403"),
            (format!("GET http://{at}/_dhttp_/ HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n"), "502"),
        ] {
            let response = String::from_utf8(lab.send_to_relay(request.clone())).unwrap();
            assert!(response.starts_with(&format!("HTTP/1.1 {status}")), "{request}{response}");
        }
    }
    let tried = lab.get_via_relay_at(lab::OTHER, &format!("{}:8080", lab::ROUTER), "/");
    assert!(tried.starts_with(b"HTTP/1.1 502"), "an address of the Internet is tried: {tried:?}");
    assert!(console.0.accept().is_err() && console.1.recv(&mut [0; 100]).is_err());
    let refused =
        String::from_utf8(lab.send_to_relay("CONNECT 11.0.100.2:25 HTTP/1.1\r\nHost: h\r\n\r\n".into()))
            .unwrap();
    assert!(refused.starts_with("HTTP/1.1 403") && refused.contains("--connect-ports"), "{refused}");
    assert!(relay.stop().0);
}

#[test]
fn a_connection_that_begins_with_the_id_is_admitted() {
    if !available() {
        return;
    }
    let lab = Lab::new();
    lab.rules(&translation("port-restricted"));
    let _server = lab.serve(&[]);
    let _nat = lab.nat(&["--by-id"]);
    assert_eq!(lab.channels(), ("udp".to_owned(), "tcp-opened".to_owned()));
}

/// A router that only filters, with rules for the mark.
const FIREWALL: &str = "table inet filter {
  chain forward { type filter hook forward priority filter; policy drop
    ct state established,related accept
    iifname \"lan\" accept
    meta mark 0x7471 accept
  }
}";

#[test]
fn paper_section_iv_c_a_firewall_admits_the_response_and_nothing_else() {
    if !available() {
        return;
    }
    for (rules, flags) in [
        (Some(FIREWALL), &["--firewall"][..]),
        (None, &["--firewall", "--closed"]),
        (Some(FIREWALL), &["--firewall", "--by-id", "--any-cache"]),
    ] {
        let lab = Lab::new();
        lab::sh(&lab.world, "ip route add 10.0.0.0/24 via 11.0.100.1");
        if let Some(rules) = rules {
            lab.rules(rules);
        }
        let _server = lab.serve(&[]);
        let _nat = lab.nat(flags);
        assert_eq!(lab.channels(), ("udp".to_owned(), "tcp-opened".to_owned()), "{flags:?}");
        let refused = lab::inside(&lab.world, || {
            let timeout = std::time::Duration::from_millis(200);
            std::net::TcpStream::connect_timeout(&"10.0.0.2:5000".parse().unwrap(), timeout)
        });
        assert_eq!(refused.unwrap_err().kind(), std::io::ErrorKind::TimedOut, "{flags:?}");
    }
}

/// A server with HTTP only.
fn respond_plainly(listener: std::net::TcpListener) {
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            use std::io::{Read, Write};
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4_096]);
            let _ =
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nplain");
        }
    });
}

#[test]
fn a_closed_port_is_reported_immediately_behind_the_helper_too() {
    if !available() {
        return;
    }
    let lab = Lab::new();
    lab.rules(&translation("port-restricted"));
    // A server with HTTP only: nothing listens at its UDP port.
    respond_plainly(lab::inside(&lab.world, || std::net::TcpListener::bind("11.0.100.2:80").unwrap()));
    let _nat = lab.nat(&[]);
    let got = lab.get("small", &[]);
    assert_eq!((&*got.body, &*got.channel), (&b"plain"[..], "tcp-client"));
    assert!(got.printed.contains("UDP port unreachable"), "{}", got.printed);
}
