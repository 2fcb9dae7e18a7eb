//! Exhausted descriptors, ports or buffers: nothing hangs, and every failure is reported.
//!
//! Not memory: [`super::flood`] tests that spoofed clients leave no state.

use std::net::TcpStream;
use std::process::{Command, Stdio};

use http1::message::Method;

use super::deaths::{TestDirectory, everything, serve};
use super::host::{Host, allowed};
use super::network::{Network, NetworkFaults};
use super::weather::{
    CLIENT, PerformedRequests, RequestOutcome, SHORT, ask, check_none_repeated, client, counting, mixed,
};
use super::{PORT, SERVER, address};

fn hosts() -> [Host; 2] {
    [Host::new("client", CLIENT), Host::new("server", SERVER)]
}

fn failed(fates: &[RequestOutcome]) -> Vec<&RequestOutcome> {
    fates.iter().filter(|(_, outcome)| outcome.is_err()).collect()
}

/// Sets the host's range of local ports.
fn with_ports(host: &Host, range: &'static str) {
    host.does(move || std::fs::write("/proc/sys/net/ipv4/ip_local_port_range", range)).unwrap();
}

#[test]
fn a_server_without_descriptors_reports_it_and_recovers() {
    if !allowed() {
        return;
    }
    let [here, there] = hosts();
    let network = Network::between(&here, &there, NetworkFaults::FINE);
    let directory = TestDirectory::of("descriptors", &[10, 20_000]);
    let server = serve(&there, &directory, 64);
    let client = client(&here);
    let idlers: Vec<_> = here.does(|| (0..100).map(|_| TcpStream::connect(address(SERVER, PORT))).collect());
    // A file needs a descriptor to be opened, and a connection one: without them the client gets 503, or plain HTTP's error.
    let fates = ask(&client, &everything(&[10, 20_000]));
    for (what, outcome) in failed(&fates) {
        let why = outcome.as_ref().unwrap_err();
        assert!(why == "status 503" || why.contains(&address(SERVER, PORT).to_string()), "{what}: {why}");
    }
    assert!(!failed(&fates).is_empty(), "there was no shortage");
    drop(idlers);
    // Descriptors of idle clients are free again, as soon as the server has seen the close.
    let again = || ask(&client, &everything(&[20_000]));
    let still = (0..20).map(|_| again()).find(|fates| failed(fates).is_empty());
    assert!(still.is_some(), "the idlers are gone, and still: {:?}", failed(&again()));
    drop((server, network));
}

#[test]
fn a_client_without_descriptors_reports_an_error() {
    if !allowed() {
        return;
    }
    let [here, there] = hosts();
    let network = Network::between(&here, &there, NetworkFaults::FINE);
    let done = PerformedRequests::default();
    let server = counting(&there, &done, Some(SHORT));
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
        let output = here.does(move || command.output()).unwrap();
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
    if !allowed() {
        return;
    }
    let [here, there] = hosts();
    with_ports(&there, "50000 50001");
    let network = Network::between(&here, &there, NetworkFaults::FINE);
    let done = PerformedRequests::default();
    let server = counting(&there, &done, Some(SHORT));
    let fates = ask(&client(&here), &mixed(60, 0));
    assert!(failed(&fates).is_empty(), "{:?}", failed(&fates));
    check_none_repeated(&done);
    drop((server, network));
}

#[test]
fn a_client_without_ports_reports_an_error() {
    if !allowed() {
        return;
    }
    let [here, there] = hosts();
    with_ports(&here, "50000 50003");
    let network = Network::between(&here, &there, NetworkFaults::FINE);
    let done = PerformedRequests::default();
    let server = counting(&there, &done, Some(SHORT));
    let client = client(&here);
    // DHTTP needs only the connections it has, once it has validated its address; an unsafe request takes one each.
    assert!(failed(&ask(&client, &mixed(1, 0))).is_empty());
    let gets: Vec<_> = mixed(60, 0).into_iter().filter(|(method, _)| *method == Method::Get).collect();
    assert!(failed(&ask(&client, &gets)).is_empty());
    let posts: Vec<_> =
        (0..30).map(|number| (Method::Other("POST".to_owned()), format!("/60000/{number}"))).collect();
    let fates = ask(&client, &posts);
    for (what, outcome) in failed(&fates) {
        assert!(
            outcome.as_ref().is_err_and(|why| why.starts_with("cannot connect to")),
            "{what}: {outcome:?}"
        );
    }
    check_none_repeated(&done);
    drop((server, network));
}

#[test]
fn requests_beyond_socket_capacity_are_resent() {
    if !allowed() {
        return;
    }
    let [here, there] = hosts();
    let network = Network::between(&here, &there, NetworkFaults::FINE);
    let done = PerformedRequests::default();
    let server = counting(&there, &done, Some(SHORT));
    let requests: Vec<_> =
        (0..500).map(|number| (Method::Get, format!("/{}/{number}", 10 + number))).collect();
    let fates = ask(&client(&here), &requests);
    assert!(failed(&fates).is_empty(), "{:?}", failed(&fates).first());
    drop((server, network));
}
