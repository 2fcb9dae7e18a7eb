//! HTTP programs through a gateway over faulty networks: each gets its complete response, or an error.
//!
//! Durations are not judged; everything must end.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc;
use std::thread;

use dhttp::ClientConfig;
use dhttp::client::KnownServers;
use dhttp_proto::client::Resend;
use dhttp_proxy::{Gateway, GatewayConfig};
use wire::Duration;

use super::faulty_network::{CLIENT, PerformedRequests, SHORT, counting_server, expected};
use test_fixture::has_laboratory;

use super::host::Host;
use super::network::{Network, NetworkFaults};
use super::{PORT, SERVER, address};

/// Far longer than any timeout.
const LONG: std::time::Duration = std::time::Duration::from_secs(600);

/// Timeouts of all programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeoutSetting {
    /// For a test: 8 seconds for each side of the gateway, 4 for the client and the server.
    Short,
    /// The defaults.
    Default,
}

/// Outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestOutcome {
    Whole,
    /// 502 or 504.
    Refused,
    /// The connection was closed before the end of the response.
    Truncated,
}

pub(crate) fn gateway(host: &Host, timeout: TimeoutSetting) -> Gateway {
    host.run(move || {
        let mut config = GatewayConfig::new(ClientConfig::internet());
        if timeout == TimeoutSetting::Short {
            let stall = Duration::from_secs(4);
            config.timeout = std::time::Duration::from_secs(8);
            config.client.timeout = stall;
            config.client.dhttp.stall = stall;
            let (first, least) = (Duration::from_millis(300), Duration::from_millis(100));
            config.client.dhttp.resend =
                Resend::Adaptive { first, min: least, max: stall, times: 3, queue: 0, queued: stall };
        }
        let mut known = KnownServers::default();
        known.apply_alt_svc(&address(SERVER, PORT).to_string(), format!("dhttp=\":{PORT}\"").as_bytes());
        Gateway::start("127.0.0.1:0".parse().unwrap(), config, known, None, None).unwrap()
    })
}

/// Sends a request on a connection of its own, in the calling thread's network; fails if the response is another request's.
pub(crate) fn send_request(gateway: SocketAddr, path: &str) -> RequestOutcome {
    let server = address(SERVER, PORT);
    let mut stream = TcpStream::connect(gateway).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    write!(stream, "GET http://{server}{path} HTTP/1.0\r\nHost: {server}\r\n\r\n").unwrap();
    let mut all = Vec::new();
    let read = stream.read_to_end(&mut all);
    assert!(
        read.as_ref().err().is_none_or(|reason| reason.kind() != std::io::ErrorKind::WouldBlock),
        "{path} hangs"
    );
    let Some(end) = all.windows(4).position(|four| four == b"\r\n\r\n") else {
        return RequestOutcome::Truncated;
    };
    let head = String::from_utf8_lossy(&all[..end]).into_owned();
    let (body, expected) = (&all[end + 4..], expected(path));
    if !head.starts_with("HTTP/1.1 200 ") {
        assert!(head.starts_with("HTTP/1.1 502 ") || head.starts_with("HTTP/1.1 504 "), "{path}: {head}");
        return RequestOutcome::Refused;
    }
    assert!(expected.starts_with(body), "{path}: another request's response");
    let is_whole = read.is_ok() && body.len() == expected.len();
    // A response without Content-Length never ends in a way that looks complete.
    assert!(is_whole || read.is_err() || head.contains("Content-Length: "), "{path} looks whole: {head}");
    if is_whole { RequestOutcome::Whole } else { RequestOutcome::Truncated }
}

/// Sends `count` requests, eight concurrently; returns the numbers of complete, refused and truncated responses.
fn run_requests(faults: NetworkFaults, count: usize, timeout: TimeoutSetting) -> [usize; 3] {
    let [client_host, server_host] = [Host::new("client", CLIENT), Host::new("server", SERVER)];
    let network = Network::between(&client_host, &server_host, faults);
    let short = (timeout == TimeoutSetting::Short).then_some(SHORT);
    let server = counting_server(&server_host, &PerformedRequests::default(), short);
    let gateway = gateway(&client_host, timeout);
    let at = gateway.address();
    let outcomes = client_host.run(move || {
        let (sender, results) = mpsc::channel();
        for worker in 0..8 {
            let sender = sender.clone();
            thread::spawn(move || {
                for number in (worker..count).step_by(8) {
                    let size = [10, 700, 1_100, 3_000, 20_000, 60_000][number % 6];
                    // If the receiver is gone the test has failed already.
                    let _ = sender.send(send_request(at, &format!("/{size}/{number}")));
                }
            });
        }
        drop(sender);
        results.iter().collect::<Vec<_>>()
    });
    assert_eq!(outcomes.len(), count, "the others failed");
    drop((gateway, server, network));
    [RequestOutcome::Whole, RequestOutcome::Refused, RequestOutcome::Truncated]
        .map(|outcome| outcomes.iter().filter(|one| **one == outcome).count())
}

#[test]
fn through_a_gateway_every_response_is_complete_without_loss_and_complete_or_an_error_with_a_third_lost() {
    if has_laboratory() {
        assert_eq!(run_requests(NetworkFaults::FAULTLESS, 24, TimeoutSetting::Short), [24, 0, 0]);
        let [whole, ..] =
            run_requests(NetworkFaults { loss: 30, ..NetworkFaults::FAULTLESS }, 24, TimeoutSetting::Short);
        assert!(whole > 0, "no response arrived");
    }
}

/// Takes some minutes; the figures are in studies/proxies.
#[test]
#[ignore = "long evidence: cargo test -p roundtrip --test it -- --ignored --nocapture through_a_gateway"]
fn through_a_gateway_no_response_has_wrong_bytes_whatever_is_lost() {
    if has_laboratory() {
        println!("| loss | whole | refused | truncated |\n| --- | --- | --- | --- |");
        for loss in [1, 10, 30] {
            let sums = (1..=4).map(|seed| {
                run_requests(
                    NetworkFaults { seed, loss, ..NetworkFaults::FAULTLESS },
                    240,
                    TimeoutSetting::Default,
                )
            });
            let [whole, refused, broken] =
                sums.fold([0; 3], |sum, one| std::array::from_fn(|which| sum[which] + one[which]));
            println!("| {loss}% | {whole} | {refused} | {broken} |");
        }
    }
}
