//! A client of a hostile server, over loopback: whatever the server does, the caller soon gets the outcome, in a sentence.
//!
//! Not attacks by third parties: those are in `attacks` and, with spoofed addresses, in the tests of `roundtrip`. The client's
//! timeouts are shortened for the tests.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};

use dhttp::client::{KnownServers, Via};
use dhttp::{Client, ClientConfig};
use dhttp_proto::client::Resend;
use wire::Duration;

const SHORT: Duration = Duration::from_millis(300);

fn client() -> Client {
    let mut config = ClientConfig { timeout: SHORT, ..ClientConfig::internet() };
    config.dhttp.stall = SHORT;
    config.dhttp.resend =
        Resend::Adaptive { first: SHORT, min: SHORT, max: SHORT, times: 1, queue: 0, queued: SHORT };
    Client::start(config, KnownServers::default(), None).unwrap()
}

/// Outcome of a request.
type Outcome = Result<(Via, u16, usize), String>;

/// Returns the outcome of one request to such a server, where nothing listens on TCP. On receiving the request the server runs
/// `act` with its socket, the client's UDP address, the address on which the client listens, and the id.
fn requested(act: impl FnOnce(&UdpSocket, SocketAddr, SocketAddr, &[u8]) + Send + 'static) -> Outcome {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    outcome(socket, act)
}

/// Does the same where the server refers the client to plain HTTP, and runs `act` on the connection that it accepts.
fn after_referral(act: impl FnOnce(&mut TcpStream) + Send + 'static) -> Outcome {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let socket = UdpSocket::bind(listener.local_addr().unwrap()).unwrap();
    outcome(socket, move |socket, client, _, id| {
        socket.send_to(id, client).unwrap();
        let mut stream = listener.accept().unwrap().0;
        let _ = stream.read(&mut [0; 4_096]);
        act(&mut stream);
    })
}

fn outcome(
    socket: UdpSocket,
    act: impl FnOnce(&UdpSocket, SocketAddr, SocketAddr, &[u8]) + Send + 'static,
) -> Outcome {
    let url = format!("dhttp://{}/", socket.local_addr().unwrap()).parse().unwrap();
    let (done, over) = std::sync::mpsc::channel::<()>();
    let server = std::thread::spawn(move || {
        let mut buffer = [0; 2_048];
        let (_, client) = socket.recv_from(&mut buffer).unwrap();
        let port = u16::from_be_bytes([buffer[8], buffer[9]]);
        act(&socket, client, SocketAddr::new(client.ip(), port), &buffer[..8]);
        // Its port stays bound until the client has finished, so ICMP reports nothing.
        let _ = over.recv();
    });
    let client = client();
    let outcome = client.get(&url).unwrap().whole().map(|(via, head, body)| (via, head.status, body.len()));
    drop((client, done));
    server.join().unwrap();
    outcome
}

/// Connects to the client and sends the id and the text; then closes, or sends nothing more.
fn connect_and_send(listens: SocketAddr, id: &[u8], text: &[u8], closes: bool) {
    let mut stream = TcpStream::connect(listens).unwrap();
    let _ = stream.write_all(&[id, text].concat());
    if !closes {
        // Until the client closes.
        let _ = stream.read(&mut [0]);
    }
}

/// Checks that the client, after an invalid response on a server's connection, fell back to plain HTTP and was refused.
fn check_fallback_after_invalid_response(outcome: Outcome) {
    let reason = outcome.unwrap_err();
    assert!(reason.starts_with("cannot connect to 127.0.0.1:"), "{reason}");
}

#[test]
fn heads_without_end_are_cut_off() {
    for text in [b"A: b\r\n".repeat(50_000), b"\r\nHTTP/1.1 100 Continue\r\n".repeat(10_000)] {
        let text = [&b"HTTP/1.1 100 Continue\r\n"[..], &text].concat();
        check_fallback_after_invalid_response(requested(move |_, _, listens, id| {
            connect_and_send(listens, id, &text, false)
        }));
    }
}

#[test]
fn a_slow_header_section_has_its_timeout_and_no_more() {
    check_fallback_after_invalid_response(requested(|_, _, listens, id| {
        let mut stream = TcpStream::connect(listens).unwrap();
        let _ = stream.write_all(&[id, b"HTTP/1.1 200 OK\r\n"].concat());
        trickle(&mut stream);
    }));
}

/// Sends header fields one by one until the client closes.
fn trickle(stream: &mut TcpStream) {
    stream.set_read_timeout(Some(std::time::Duration::from_millis(20))).unwrap();
    for _ in 0..1_000 {
        if stream.write_all(b"A: b\r\n").is_err() || matches!(stream.read(&mut [0]), Ok(0)) {
            return;
        }
    }
    panic!("the client has no timeout here");
}

#[test]
fn silent_connection_is_closed_and_its_request_retried_elsewhere() {
    check_fallback_after_invalid_response(requested(|_, _, listens, _| {
        let mut stream = TcpStream::connect(listens).unwrap();
        assert!(matches!(stream.read(&mut [0]), Ok(0) | Err(_)), "the client closes it");
    }));
}

#[test]
fn a_body_shorter_than_its_length_is_reported_as_a_timeout_or_an_early_end() {
    let half = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf";
    let silent = requested(|_, _, listens, id| connect_and_send(listens, id, half, false)).unwrap_err();
    assert!(silent.ends_with("the server stalled in the middle of the response; retry"), "{silent}");
    let ended = requested(|_, _, listens, id| connect_and_send(listens, id, half, true)).unwrap_err();
    assert!(ended.ends_with("connection ended in the middle of the response; retry"), "{ended}");
}

#[test]
fn bytes_after_the_length_of_a_body_are_no_response() {
    let long = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfour, and unsolicited bytes";
    let outcome = requested(|_, _, listens, id| connect_and_send(listens, id, long, false));
    assert_eq!(outcome, Ok((Via::TcpOpened, 200, 4)));
}

#[test]
fn impossible_lengths_are_ignored() {
    for fields in [
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length: 99999999999999999999\r\n",
        "Content-Length: -1\r\n",
        // Neither a length nor chunked: the body would end with a connection that carries other responses, too.
        "",
    ] {
        let text = format!("HTTP/1.1 200 OK\r\n{fields}\r\nhello");
        check_fallback_after_invalid_response(requested(move |_, _, listens, id| {
            connect_and_send(listens, id, text.as_bytes(), false)
        }));
    }
    let chunks = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n";
    let reason = requested(|_, _, listens, id| connect_and_send(listens, id, chunks, false)).unwrap_err();
    assert!(reason.contains("chunk"), "{reason}");
}

#[test]
fn forged_datagrams_and_ids_do_not_block_the_true_response() {
    let outcome = requested(|socket, client, _, id| {
        for number in 0..20_000_u64 {
            let wrong = [&number.to_be_bytes()[..], b"HTTP/1.1 200 OK\r\n\r\nforged"].concat();
            let _ = socket.send_to(&wrong, client);
        }
        for response in
            ["Content-Length: 9", "Transfer-Encoding: chunked", "Content-Length: 4\r\nContent-Length: 5"]
        {
            let text = format!("HTTP/1.1 200 OK\r\n{response}\r\n\r\nlies");
            socket.send_to(&[id, text.as_bytes()].concat(), client).unwrap();
        }
        // The flood may have filled the client's socket buffer: the true response follows the resend.
        socket.recv_from(&mut [0; 2_048]).unwrap();
        socket.send_to(&[id, b"HTTP/1.1 200 OK\r\n\r\ntrue"].concat(), client).unwrap();
    });
    assert_eq!(outcome, Ok((Via::Udp, 200, 4)));
}

#[test]
fn every_end_of_a_plain_http_exchange_has_its_sentence() {
    let reason = |outcome: Outcome| outcome.unwrap_err();
    let silent = |stream: &mut TcpStream| drop(stream.read(&mut [0]));
    let reported = reason(after_referral(silent));
    assert!(reported.ends_with("the server has sent nothing for 300ms"), "{reported}");
    let reported = reason(after_referral(|_| {}));
    assert!(reported.ends_with("the server closed the connection without a response"), "{reported}");
    let reported = reason(after_referral(|stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n");
        trickle(stream);
    }));
    assert!(reported.ends_with("the server's response has not begun within 300ms"), "{reported}");
    let texts: [(&[u8], &str); 4] = [
        (&b"HTTP/1.1 100 Continue\r\n\r\n".repeat(10_000), "interim responses"),
        (&[&b"HTTP/1.1 200 OK\r\n"[..], &b"A: b\r\n".repeat(50_000)].concat(), "head"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", "Content-Length"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", "sent nothing"),
    ];
    for (text, word) in texts {
        let text = text.to_vec();
        let reported = reason(after_referral(move |stream| {
            let _ = stream.write_all(&text);
            let _ = stream.read(&mut [0]);
        }));
        assert!(reported.starts_with("127.0.0.1:") && reported.contains(word), "{reported}");
    }
}

#[test]
fn icmp_port_unreachable_falls_back_to_plain_http_immediately() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("dhttp://{}/", listener.local_addr().unwrap()).parse().unwrap();
    let server = std::thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        let _ = stream.read(&mut [0; 4_096]);
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").unwrap();
    });
    let (via, _, body) = client().get(&url).unwrap().whole().unwrap();
    assert_eq!((via, &*body), (Via::TcpClient, &b"ok"[..]));
    server.join().unwrap();
}
