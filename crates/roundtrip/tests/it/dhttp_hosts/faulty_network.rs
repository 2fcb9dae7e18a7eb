//! Requests over faulty networks, on the kernel: every request is resolved, no response is mixed up, and no unsafe request
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

use test_fixture::has_laboratory;

use super::host::Host;
use super::network::{Network, NetworkFaults};
use super::{PORT, SERVER};

pub(crate) const CLIENT: [u8; 4] = [23, 0, 0, 7];

/// Number of times each request was performed, by method and path.
pub(crate) type PerformedRequests = Arc<Mutex<BTreeMap<String, u32>>>;

/// Starts a server that responds with the length and contents in the path, and counts the requests that it performs.
/// `timeout` replaces the default timeouts.
pub(crate) fn counting_server(
    host: &Host,
    performed: &PerformedRequests,
    timeout: Option<Duration>,
) -> Server<impl Fn(&Request<'_>) -> Response + Clone + Send + 'static> {
    let (address, performed) = (host.socket(PORT), Arc::clone(performed));
    host.run(move || {
        let handler = move |request: &Request<'_>| {
            let request_line = format!("{} {}", request.method, request.target);
            *performed.lock().unwrap().entry(request_line).or_default() += 1;
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
    (0..length).map(|index| u8::try_from((index / 7 + number) % 251).unwrap()).collect()
}

/// Starts a client with short timeouts.
pub(crate) fn client(host: &Host) -> Client {
    host.run(|| {
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

/// Sends requests concurrently and returns their outcomes; fails if one has none, or a wrong response.
pub(crate) fn send_requests(client: &Client, requests: &[(Method, String)]) -> Vec<RequestOutcome> {
    let (sender, results) = mpsc::channel();
    for (method, path) in requests {
        let url: Url = format!("dhttp://{}{path}", super::address(SERVER, PORT)).parse().unwrap();
        let exchange = client.request(method.clone(), &url, &Fields::new()).unwrap();
        let (sender, path, name) = (sender.clone(), path.clone(), format!("{} {path}", method.name()));
        std::thread::spawn(move || {
            let outcome = exchange.whole().and_then(|(_, head, body)| match head.status {
                200 => {
                    assert!(body == expected(&path), "{path}: another request's response");
                    Ok(())
                }
                status => Err(format!("status {status}")),
            });
            // If the receiver is gone the test has failed already.
            let _ = sender.send((name, outcome));
        });
    }
    drop(sender);
    let outcomes: Vec<RequestOutcome> = requests
        .iter()
        .map_while(|_| results.recv_timeout(std::time::Duration::from_secs(120)).ok())
        .collect();
    assert_eq!(outcomes.len(), requests.len(), "the other requests have no outcome");
    outcomes
}

/// Requests for responses of all sizes, numbered from `from`; every fifth is unsafe.
pub(crate) fn mixed_requests(count: usize, from: usize) -> Vec<(Method, String)> {
    (from..from + count)
        .map(|number| {
            let size = [10, 700, 1_100, 3_000, 20_000, 60_000][number % 6];
            let method = if number % 5 == 4 { Method::Other("POST".to_owned()) } else { Method::Get };
            (method, format!("/{size}/{number}"))
        })
        .collect()
}

/// Checks that no unsafe request was performed twice.
pub(crate) fn check_no_unsafe_repetition(performed: &PerformedRequests) {
    let performed = performed.lock().unwrap();
    let twice: Vec<_> = performed
        .iter()
        .filter(|(request_line, times)| request_line.starts_with("POST") && **times > 1)
        .collect();
    assert!(twice.is_empty(), "{twice:?}");
}

/// Number of requests with a response, and number of requests.
fn run_requests(faults: NetworkFaults, count: usize) -> (usize, usize) {
    let [client_host, server_host] = [Host::new("client", CLIENT), Host::new("server", SERVER)];
    let network = Network::between(&client_host, &server_host, faults);
    let performed = PerformedRequests::default();
    let server = counting_server(&server_host, &performed, Some(SHORT));
    let client = client(&client_host);
    let outcomes = send_requests(&client, &mixed_requests(count, 0));
    check_no_unsafe_repetition(&performed);
    let completed: Vec<_> = outcomes.iter().filter(|(_, outcome)| outcome.is_ok()).collect();
    for (request_line, outcome) in &outcomes {
        // A client with a response was served; one without got the reason.
        let was_done = performed.lock().unwrap().contains_key(request_line);
        assert!(
            outcome.as_ref().map_or_else(|reason| !reason.is_empty(), |()| was_done),
            "{request_line}: {outcome:?}"
        );
    }
    let outcome = (completed.len(), outcomes.len());
    drop((client, server, network));
    outcome
}

#[test]
fn without_faults_every_request_gets_its_response() {
    if has_laboratory() {
        assert_eq!(run_requests(NetworkFaults::FAULTLESS, 60), (60, 60));
    }
}

#[test]
fn duplicates_and_reordering_change_nothing() {
    if has_laboratory() {
        let faults = NetworkFaults { duplication: 30, reordering: 30, ..NetworkFaults::FAULTLESS };
        assert_eq!(run_requests(faults, 60), (60, 60));
    }
}

#[test]
fn lost_or_corrupt_datagrams_are_resent_or_reported() {
    if has_laboratory() {
        let (completed, requested) = run_requests(
            NetworkFaults {
                loss: 10,
                bit_errors: 5,
                duplication: 10,
                reordering: 10,
                ..NetworkFaults::FAULTLESS
            },
            60,
        );
        assert!(completed > requested / 2, "{completed} of {requested}");
    }
}

/// Takes some minutes; the figures are in studies/proxies.
#[test]
#[ignore = "long evidence: cargo test -p roundtrip --test it -- --ignored --nocapture every_kind"]
fn with_every_kind_of_fault_every_request_is_resolved() {
    if !has_laboratory() {
        return;
    }
    for loss in [0, 1, 3, 10, 20, 30] {
        for (duplication, reordering, bit_errors) in [(0, 0, 0), (20, 20, 0), (0, 0, 10), (20, 20, 10)] {
            let sums = (1..=4).map(|seed| {
                run_requests(
                    NetworkFaults {
                        seed,
                        loss,
                        duplication,
                        reordering,
                        bit_errors,
                        ..NetworkFaults::FAULTLESS
                    },
                    120,
                )
            });
            let (completed, requested) = sums.fold((0, 0), |sum, count| (sum.0 + count.0, sum.1 + count.1));
            println!("| {loss} | {duplication} | {reordering} | {bit_errors} | {completed} of {requested} |");
        }
    }
}
