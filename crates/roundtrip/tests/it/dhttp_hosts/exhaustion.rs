//! Exhausted descriptors, ports or buffers: nothing hangs, and every failure is reported.
//!
//! [`super::flood`] tests memory.

use std::net::TcpStream;
use std::process::{Command, Stdio};

use http1::message::Method;

use super::faulty_network::{
    CLIENT, PerformedRequests, RequestOutcome, SHORT, check_no_unsafe_repetition, client, counting_server,
    mixed_requests, send_requests,
};
use test_fixture::has_laboratory;

use super::host::Host;
use super::killed_programs::{TestDirectory, every_file, serve};
use super::network::{Network, NetworkFaults};
use super::{PORT, SERVER, address};

fn hosts() -> [Host; 2] {
    [Host::new("client", CLIENT), Host::new("server", SERVER)]
}

fn failed(outcomes: &[RequestOutcome]) -> Vec<&RequestOutcome> {
    outcomes.iter().filter(|(_, outcome)| outcome.is_err()).collect()
}

/// Sets the host's range of local ports.
fn with_ports(host: &Host, range: &'static str) {
    host.run(move || std::fs::write("/proc/sys/net/ipv4/ip_local_port_range", range)).unwrap();
}

#[test]
fn a_server_without_descriptors_reports_it_and_recovers() {
    if !has_laboratory() {
        return;
    }
    let [client_host, server_host] = hosts();
    let network = Network::between(&client_host, &server_host, NetworkFaults::FAULTLESS);
    let directory = TestDirectory::of("descriptors", &[10, 20_000]);
    let server = serve(&server_host, &directory, 64);
    let client = client(&client_host);
    let idlers: Vec<_> =
        client_host.run(|| (0..100).map(|_| TcpStream::connect(address(SERVER, PORT))).collect());
    // A file needs a descriptor to be opened, and a connection one: without them the client gets 503, or plain HTTP's error.
    let outcomes = send_requests(&client, &every_file(&[10, 20_000]));
    for (request_line, outcome) in failed(&outcomes) {
        let reason = outcome.as_ref().unwrap_err();
        assert!(
            reason == "status 503" || reason.contains(&address(SERVER, PORT).to_string()),
            "{request_line}: {reason}"
        );
    }
    assert!(!failed(&outcomes).is_empty(), "there was no shortage");
    drop(idlers);
    // Descriptors of idle clients are free again, as soon as the server has seen the close.
    let fetch_again = || send_requests(&client, &every_file(&[20_000]));
    let recovered = (0..20).map(|_| fetch_again()).find(|outcomes| failed(outcomes).is_empty());
    assert!(recovered.is_some(), "after the idle clients closed: {:?}", failed(&fetch_again()));
    drop((server, network));
}

#[test]
fn a_client_without_descriptors_reports_an_error() {
    if !has_laboratory() {
        return;
    }
    let [client_host, server_host] = hosts();
    let network = Network::between(&client_host, &server_host, NetworkFaults::FAULTLESS);
    let done = PerformedRequests::default();
    let server = counting_server(&server_host, &done, Some(SHORT));
    let mut seen = [false; 2];
    for descriptors in 4..16 {
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!(
            "ulimit -n {descriptors}; exec '{}' get -v dhttp://{}/20000/1",
            env!("CARGO_BIN_EXE_roundtrip"),
            address(SERVER, PORT)
        ));
        command
            .env("XDG_CACHE_HOME", std::env::temp_dir().join("roundtrip-descriptors"))
            .stdin(Stdio::null());
        let output = client_host.run(move || command.output()).unwrap();
        let reported = String::from_utf8_lossy(&output.stderr).into_owned();
        match output.status.code() {
            Some(0) => assert_eq!(output.stdout.len(), 20_000, "{reported}"),
            // The dynamic loader needs some for itself, and has its own error.
            Some(code) => {
                assert!(
                    code == 127 || reported.contains("Too many open files"),
                    "{descriptors}: {code}, {reported}"
                )
            }
            None => panic!("{descriptors}: {reported}"),
        }
        seen[usize::from(output.status.success())] = true;
    }
    assert_eq!(seen, [true, true], "enough at the end, too few at the beginning");
    drop((server, network));
}

#[test]
fn a_server_without_ports_refers_clients_to_plain_http() {
    if !has_laboratory() {
        return;
    }
    let [client_host, server_host] = hosts();
    with_ports(&server_host, "50000 50001");
    let network = Network::between(&client_host, &server_host, NetworkFaults::FAULTLESS);
    let done = PerformedRequests::default();
    let server = counting_server(&server_host, &done, Some(SHORT));
    let outcomes = send_requests(&client(&client_host), &mixed_requests(60, 0));
    assert!(failed(&outcomes).is_empty(), "{:?}", failed(&outcomes));
    check_no_unsafe_repetition(&done);
    drop((server, network));
}

#[test]
fn a_client_without_ports_reports_an_error() {
    if !has_laboratory() {
        return;
    }
    let [client_host, server_host] = hosts();
    with_ports(&client_host, "50000 50003");
    let network = Network::between(&client_host, &server_host, NetworkFaults::FAULTLESS);
    let done = PerformedRequests::default();
    let server = counting_server(&server_host, &done, Some(SHORT));
    let client = client(&client_host);
    // DHTTP needs only the connections it has, once it has validated its address; an unsafe request takes one each.
    assert!(failed(&send_requests(&client, &mixed_requests(1, 0))).is_empty());
    let gets: Vec<_> =
        mixed_requests(60, 0).into_iter().filter(|(method, _)| *method == Method::Get).collect();
    assert!(failed(&send_requests(&client, &gets)).is_empty());
    let posts: Vec<_> =
        (0..30).map(|number| (Method::Other("POST".to_owned()), format!("/60000/{number}"))).collect();
    let outcomes = send_requests(&client, &posts);
    for (request_line, outcome) in failed(&outcomes) {
        assert!(
            outcome.as_ref().is_err_and(|reason| reason.starts_with("cannot connect to")),
            "{request_line}: {outcome:?}"
        );
    }
    check_no_unsafe_repetition(&done);
    drop((server, network));
}

#[test]
fn requests_beyond_socket_capacity_are_resent() {
    if !has_laboratory() {
        return;
    }
    let [client_host, server_host] = hosts();
    let network = Network::between(&client_host, &server_host, NetworkFaults::FAULTLESS);
    let done = PerformedRequests::default();
    let server = counting_server(&server_host, &done, Some(SHORT));
    let requests: Vec<_> =
        (0..500).map(|number| (Method::Get, format!("/{}/{number}", 10 + number))).collect();
    let outcomes = send_requests(&client(&client_host), &requests);
    assert!(failed(&outcomes).is_empty(), "{:?}", failed(&outcomes).first());
    drop((server, network));
}
