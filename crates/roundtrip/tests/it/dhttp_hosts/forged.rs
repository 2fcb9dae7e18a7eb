//! Forged responses: an off-path attacker sends packets with the server's address, against `roundtrip get`.
//!
//! The attacker here knows more than a real one: the client's ports, and that a request is pending; only the id is unknown.

use std::process::{Child, Command, Stdio};

use wire::packet::Flags;

use test_fixture::has_laboratory;

use super::host::{Host, SentPacket};
use super::{MAX_WAIT_MS, PORT, SERVER, SOON, address, serve};
use test_fixture::KilledOnDrop;

const CLIENT: [u8; 4] = [23, 0, 0, 7];

/// `roundtrip get`, and its first request.
fn start_get(host: &Host, paths: &[&str]) -> (Child, SentPacket) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_roundtrip"));
    command.args(["get", "-v", "--no-race"]);
    command.args(paths.iter().map(|path| format!("dhttp://{}{path}", address(SERVER, PORT))));
    command.env("XDG_CACHE_HOME", std::env::temp_dir().join("roundtrip-forged"));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = host.run(move || command.spawn()).unwrap();
    let sent = host.next(MAX_WAIT_MS).expect("a request");
    (child, sent)
}

fn forged(id: u64) -> Vec<u8> {
    let mut bytes = id.to_be_bytes().to_vec();
    bytes.extend(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged");
    bytes
}

#[test]
fn off_path_forgeries_are_ignored() {
    if !has_laboratory() {
        return;
    }
    let [client, far] = [Host::new("client", CLIENT), Host::new("far", SERVER)];
    let server = serve(&far);
    let (child, first) = start_get(&client, &["/10", "/5000"]);
    // The first response brings the token without which the server does not connect.
    far.deliver(&first.0);
    client.deliver(&far.next(MAX_WAIT_MS).expect("a response").0);
    let requested = client.next(MAX_WAIT_MS).expect("the second request");
    let port = requested.packet().sockets().unwrap().0.port();
    let listens = u16::from_be_bytes(requested.datagram().unwrap()[8..10].try_into().unwrap());
    for id in 0..20_000 {
        client.deliver_datagram(address(SERVER, PORT), port, &forged(id));
    }
    // The attacker may connect from its own address, and from the server's only if it sees the client's replies.
    let own = address([66, 0, 0, 1], 50_000);
    client.deliver_segment((own, listens), (1_000, 0), Flags::SYN, b"");
    client.deliver_segment((address(SERVER, 50_001), listens), (1_000, 0), Flags::SYN, b"");
    client.deliver_segment((address(SERVER, PORT), listens), (5, 5), Flags::RST, b"");
    for response in client.until_silent(SOON) {
        let packet = response.packet();
        let Some(segment) = packet.tcp().filter(|segment| segment.flags.contains(Flags::SYN)) else {
            continue;
        };
        let next = (1_001, segment.seq.wrapping_add(1));
        if response.to() == own {
            client.deliver_segment((own, listens), next, Flags::ACK | Flags::PSH, &forged(3));
        }
        let blind = (1_001, segment.seq.wrapping_add(77));
        client.deliver_segment(
            (address(SERVER, 50_001), listens),
            blind,
            Flags::ACK | Flags::PSH,
            &forged(4),
        );
    }
    // Finally the request reaches the server, and the real response the client.
    far.deliver(&requested.0);
    exchange_packets(&client, &far);
    let output = child.wait_with_output().unwrap();
    let reported = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 5_010), "{reported}");
    assert!(!String::from_utf8_lossy(&output.stdout).contains("forged"));
    assert!(reported.contains("no matching request"), "{reported}");
    drop(server);
}

#[test]
fn clients_send_no_replies() {
    if !has_laboratory() {
        return;
    }
    let client = Host::new("quiet", CLIENT);
    let (child, requested) = start_get(&client, &["/10"]);
    let port = requested.packet().sockets().unwrap().0.port();
    let id = requested.datagram().unwrap()[..8].to_vec();
    let mut wrong = id;
    wrong.extend(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nlies");
    for datagram in [&b""[..], b"x", &forged(1), requested.datagram().unwrap(), &wrong] {
        client.deliver_datagram(address(SERVER, PORT), port, datagram);
        client.deliver_datagram(address([66, 0, 0, 1], 53), port, datagram);
    }
    // It may retry, also past a supposed cache; it sends nothing else.
    let head =
        |datagram: &[u8]| String::from_utf8_lossy(&datagram[11..]).replace("DHTTP-Past: caches\r\n", "");
    for printed in client.until_silent(SOON) {
        let again =
            printed.datagram().is_some_and(|datagram| head(datagram) == head(requested.datagram().unwrap()));
        assert!(
            again && printed.to() == address(SERVER, PORT),
            "{} bytes to {}",
            printed.bytes(),
            printed.to()
        );
    }
    drop(KilledOnDrop(child));
}

/// Carries packets both ways until neither end has more.
fn exchange_packets(left: &Host, right: &Host) {
    loop {
        let (from_left, from_right) = (left.until_silent(SOON), right.until_silent(SOON));
        from_left
            .iter()
            .filter(|sent| sent.to().ip() == right.socket(0).ip())
            .for_each(|sent| right.deliver(&sent.0));
        from_right.iter().for_each(|sent| left.deliver(&sent.0));
        if from_left.is_empty() && from_right.is_empty() {
            return;
        }
    }
}
