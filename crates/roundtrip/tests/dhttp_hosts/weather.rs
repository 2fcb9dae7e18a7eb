//! Requests over bad networks, on the kernel: every request is resolved, no response is mixed up, and no unsafe request
//! is performed twice.
//!
//! Thousands of seeds in virtual time are in `crates/simulate/tests/faults`; these are few, on real sockets. No time is
//! judged; everything must end.

use std::collections::BTreeMap;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};

use dhttp::client::KnownServers;
use dhttp::{Client, ClientConfig, Request, Response, Server, ServerConfig, Url};
use dhttp_proto::client::Resend;
use http1::message::{Fields, Method};
use wire::Duration;

use super::host::{Host, allowed};
use super::network::{Network, NetworkFaults};
use super::{PORT, SERVER};

pub(crate) const CLIENT: [u8; 4] = [23, 0, 0, 7];

/// Number of times each request was performed, by method and path.
pub(crate) type PerformedRequests = Arc<Mutex<BTreeMap<String, u32>>>;

/// A server that responds with the length and the contents in the path, counts the requests it performs, and has the
/// given timeouts or the defaults.
pub(crate) fn counting(
    host: &Host,
    done: &PerformedRequests,
    timeout: Option<Duration>,
) -> Server<impl Fn(&Request<'_>) -> Response + Clone + Send + 'static> {
    let (address, done) = (host.socket(PORT), Arc::clone(done));
    host.does(move || {
        let handler = move |request: &Request<'_>| {
            let what = format!("{} {}", request.method, request.target);
            *done.lock().unwrap().entry(what).or_default() += 1;
            Response::whole(200, "text/plain", expected(request.target))
        };
        let mut config = ServerConfig { threads: 1, ..ServerConfig::internet() };
        if let Some(timeout) = timeout {
            config.stall = timeout;
            config.dhttp.timeout.stall = timeout;
            config.http.timeout.idle = timeout;
            config.http.timeout.request = timeout;
        }
        Server::start(address, config, handler, None).unwrap()
    })
}

pub(crate) const SHORT: Duration = Duration::from_secs(4);

/// Body of the response to `/LENGTH/NUMBER`.
pub(crate) fn expected(path: &str) -> Vec<u8> {
    let mut parts = path.split('/').skip(1).map(|part| part.parse().unwrap_or(0));
    let (length, number): (usize, usize) = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    (0..length).map(|at| u8::try_from((at / 7 + number) % 251).unwrap()).collect()
}

/// A client with short timeouts.
pub(crate) fn client(host: &Host) -> Client {
    host.does(|| {
        let mut config = ClientConfig { timeout: SHORT, ..ClientConfig::internet() };
        config.dhttp.stall = SHORT;
        let first = Duration::from_millis(300);
        config.dhttp.resend = Resend::Adaptive {
            first,
            min: Duration::from_millis(100),
            max: SHORT,
            times: 3,
            queue: 0,
            queued: SHORT,
        };
        Client::start(config, KnownServers::default(), None).unwrap()
    })
}

/// Outcome of a request: `Ok` if it has its response.
pub(crate) type RequestOutcome = (String, Result<(), String>);

/// Sends all of these concurrently and waits for their outcomes; fails if one has none, or a wrong response.
pub(crate) fn ask(client: &Client, requests: &[(Method, String)]) -> Vec<RequestOutcome> {
    let (tell, reported) = mpsc::channel();
    for (method, path) in requests {
        let url: Url = format!("dhttp://{}{path}", super::address(SERVER, PORT)).parse().unwrap();
        let exchange = client.request(method.clone(), &url, &Fields::new()).unwrap();
        let (tell, path, name) = (tell.clone(), path.clone(), format!("{} {path}", method.name()));
        std::thread::spawn(move || {
            let outcome = exchange.whole().and_then(|(_, head, body)| match head.status {
                200 => {
                    assert!(body == expected(&path), "{path}: another's answer");
                    Ok(())
                }
                status => Err(format!("status {status}")),
            });
            // If the receiver is gone the test has failed already.
            let _ = tell.send((name, outcome));
        });
    }
    drop(tell);
    let fates: Vec<RequestOutcome> = requests
        .iter()
        .map_while(|_| reported.recv_timeout(std::time::Duration::from_secs(120)).ok())
        .collect();
    assert_eq!(fates.len(), requests.len(), "of the others nobody was told what became");
    fates
}

/// Requests for responses of all sizes, numbered from `from`; every fifth is unsafe.
pub(crate) fn mixed(count: usize, from: usize) -> Vec<(Method, String)> {
    (from..from + count)
        .map(|number| {
            let size = [10, 700, 1_100, 3_000, 20_000, 60_000][number % 6];
            let method = if number % 5 == 4 { Method::Other("POST".to_owned()) } else { Method::Get };
            (method, format!("/{size}/{number}"))
        })
        .collect()
}

/// Checks that no unsafe request was performed twice.
pub(crate) fn check_none_repeated(done: &PerformedRequests) {
    let done = done.lock().unwrap();
    let twice: Vec<_> = done.iter().filter(|(what, times)| what.starts_with("POST") && **times > 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
}

/// Number of requests with a response, and number of requests.
fn through(weather: NetworkFaults, count: usize) -> (usize, usize) {
    let [here, there] = [Host::new("client", CLIENT), Host::new("server", SERVER)];
    let network = Network::between(&here, &there, weather);
    let done = PerformedRequests::default();
    let server = counting(&there, &done, Some(SHORT));
    let client = client(&here);
    let fates = ask(&client, &mixed(count, 0));
    check_none_repeated(&done);
    let came: Vec<_> = fates.iter().filter(|(_, outcome)| outcome.is_ok()).collect();
    for (what, outcome) in &fates {
        // A client with a response was served; one without got the reason.
        let was_done = done.lock().unwrap().contains_key(what);
        assert!(outcome.as_ref().map_or_else(|why| !why.is_empty(), |()| was_done), "{what}: {outcome:?}");
    }
    let outcome = (came.len(), fates.len());
    drop((client, server, network));
    outcome
}

#[test]
fn without_faults_every_request_gets_its_response() {
    if allowed() {
        assert_eq!(through(NetworkFaults::FINE, 60), (60, 60));
    }
}

#[test]
fn duplicates_and_reordering_change_nothing() {
    if allowed() {
        let weather = NetworkFaults { copies: 30, falls_behind: 30, ..NetworkFaults::FINE };
        assert_eq!(through(weather, 60), (60, 60));
    }
}

#[test]
fn lost_or_corrupt_datagrams_are_resent_or_reported() {
    if allowed() {
        let (came, requested) = through(
            NetworkFaults { loss: 10, flips: 5, copies: 10, falls_behind: 10, ..NetworkFaults::FINE },
            60,
        );
        assert!(came > requested / 2, "{came} of {requested}");
    }
}

/// Takes some minutes; the figures are in studies/proxies.
#[test]
#[ignore = "long evidence: cargo test -p roundtrip --test dhttp_hosts -- --ignored --nocapture every_kind"]
fn with_every_kind_of_fault_every_request_is_resolved() {
    if !allowed() {
        return;
    }
    for loss in [0, 1, 3, 10, 20, 30] {
        for (copies, falls_behind, flips) in [(0, 0, 0), (20, 20, 0), (0, 0, 10), (20, 20, 10)] {
            let sums = (1..=4).map(|seed| {
                through(NetworkFaults { seed, loss, copies, falls_behind, flips, ..NetworkFaults::FINE }, 120)
            });
            let (came, requested) = sums.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            println!("| {loss} | {copies} | {falls_behind} | {flips} | {came} of {requested} |");
        }
    }
}
