//! HTTP programs through a gateway on their host, over bad networks: each gets its complete response, or an error.
//!
//! Durations are not judged; everything must end.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc;
use std::thread;

use dhttp::ClientConfig;
use dhttp::client::Known;
use dhttp_proto::client::Resend;
use dhttp_proxy::{Gateway, GatewayConfig};
use wire::Duration;

use super::host::{Host, allowed};
use super::network::{Network, Weather};
use super::weather::{CLIENT, Done, SHORT, counting, expected};
use super::{PORT, SERVER, address};

/// Far longer than any timeout.
const LONG: std::time::Duration = std::time::Duration::from_secs(600);

/// Timeouts of all programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// For a test: 8 seconds for each side of the gateway, 4 for the client and the server.
    Short,
    /// The defaults.
    Usual,
}

/// Outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Whole,
    /// 502 or 504.
    Refused,
    /// The connection was closed before the end of the response.
    BrokenOff,
}

pub(crate) fn gateway(host: &Host, patience: Patience) -> Gateway {
    host.does(move || {
        let mut config = GatewayConfig::new(ClientConfig::internet());
        if patience == Patience::Short {
            let stall = Duration::from_secs(4);
            config.patience = std::time::Duration::from_secs(8);
            config.client.patience = stall;
            config.client.dhttp.stall = stall;
            let (first, least) = (Duration::from_millis(300), Duration::from_millis(100));
            config.client.dhttp.resend =
                Resend::Adaptive { first, least, most: stall, times: 3, queue: 0, queued: stall };
        }
        let mut known = Known::default();
        known.hear(&address(SERVER, PORT).to_string(), format!("dhttp=\":{PORT}\"").as_bytes());
        Gateway::start("127.0.0.1:0".parse().unwrap(), config, known, None, None).unwrap()
    })
}

/// Sends a request on a connection of its own, in the calling thread's network; fails if the response is another request's.
pub(crate) fn ask(gateway: SocketAddr, path: &str) -> Fate {
    let server = address(SERVER, PORT);
    let mut stream = TcpStream::connect(gateway).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    write!(stream, "GET http://{server}{path} HTTP/1.0\r\nHost: {server}\r\n\r\n").unwrap();
    let mut all = Vec::new();
    let read = stream.read_to_end(&mut all);
    assert!(
        read.as_ref().err().is_none_or(|why| why.kind() != std::io::ErrorKind::WouldBlock),
        "{path} hangs"
    );
    let Some(end) = all.windows(4).position(|four| four == b"\r\n\r\n") else { return Fate::BrokenOff };
    let head = String::from_utf8_lossy(&all[..end]).into_owned();
    let (body, expected) = (&all[end + 4..], expected(path));
    if !head.starts_with("HTTP/1.1 200 ") {
        assert!(head.starts_with("HTTP/1.1 502 ") || head.starts_with("HTTP/1.1 504 "), "{path}: {head}");
        return Fate::Refused;
    }
    assert!(expected.starts_with(body), "{path}: another's answer");
    let is_whole = read.is_ok() && body.len() == expected.len();
    // A response without Content-Length never ends in a way that looks complete.
    assert!(is_whole || read.is_err() || head.contains("Content-Length: "), "{path} looks whole: {head}");
    if is_whole { Fate::Whole } else { Fate::BrokenOff }
}

/// Sends `count` requests, eight at a time: how many responses are complete, refused, truncated.
fn through(weather: Weather, count: usize, patience: Patience) -> [usize; 3] {
    let [here, there] = [Host::new("client", CLIENT), Host::new("server", SERVER)];
    let network = Network::between(&here, &there, weather);
    let short = (patience == Patience::Short).then_some(SHORT);
    let server = counting(&there, &Done::default(), short);
    let gateway = gateway(&here, patience);
    let at = gateway.address();
    let fates = here.does(move || {
        let (tell, told) = mpsc::channel();
        for worker in 0..8 {
            let tell = tell.clone();
            thread::spawn(move || {
                for number in (worker..count).step_by(8) {
                    let size = [10, 700, 1_100, 3_000, 20_000, 60_000][number % 6];
                    // If the receiver is gone the test has failed already.
                    let _ = tell.send(ask(at, &format!("/{size}/{number}")));
                }
            });
        }
        drop(tell);
        told.iter().collect::<Vec<_>>()
    });
    assert_eq!(fates.len(), count, "the others failed");
    drop((gateway, server, network));
    [Fate::Whole, Fate::Refused, Fate::BrokenOff].map(|fate| fates.iter().filter(|one| **one == fate).count())
}

#[test]
fn through_a_gateway_every_response_is_complete_without_loss_and_complete_or_an_error_with_a_third_lost() {
    if allowed() {
        assert_eq!(through(Weather::FINE, 24, Patience::Short), [24, 0, 0]);
        let [whole, ..] = through(Weather { loss: 30, ..Weather::FINE }, 24, Patience::Short);
        assert!(whole > 0, "not one came");
    }
}

/// Takes some minutes; the figures are in studies/proxies.
#[test]
#[ignore = "long evidence: cargo test -p roundtrip --test dhttp_hosts -- --ignored --nocapture through_a_gateway"]
fn through_a_gateway_no_response_has_wrong_bytes_whatever_is_lost() {
    if allowed() {
        println!("| loss | whole | refused | broken off |\n| --- | --- | --- | --- |");
        for loss in [1, 10, 30] {
            let sums =
                (1..=4).map(|seed| through(Weather { seed, loss, ..Weather::FINE }, 240, Patience::Usual));
            let [whole, refused, broken] =
                sums.fold([0; 3], |sum, one| std::array::from_fn(|which| sum[which] + one[which]));
            println!("| {loss}% | {whole} | {refused} | {broken} |");
        }
    }
}
