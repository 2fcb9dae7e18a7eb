//! Programs that are killed while others depend on them.
//!
//! No time is judged; everything must end.

use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration as Wait;

use http1::message::Method;
use test_fixture::KilledOnDrop;

use super::faulty_network::{CLIENT, PerformedRequests, SHORT, client, counting_server, send_requests};
use test_fixture::has_laboratory;

use super::host::Host;
use super::network::{Network, NetworkFaults};
use super::{PORT, SERVER, address};

/// A directory with a file of each size, by the names that [`send_requests`] requests; removed when dropped.
pub(crate) struct TestDirectory(pub(crate) test_fixture::TestDirectory);

impl TestDirectory {
    pub(crate) fn of(name: &str, sizes: &[usize]) -> Self {
        let directory = test_fixture::TestDirectory::new(name);
        for size in sizes {
            std::fs::create_dir_all(directory.join(size.to_string())).unwrap();
            for number in 0..20 {
                let path = format!("/{size}/{number}");
                std::fs::write(directory.join(&path[1..]), super::faulty_network::expected(&path)).unwrap();
            }
        }
        Self(directory)
    }
}

/// Starts `roundtrip serve` with a limit of file descriptors.
pub(crate) fn serve(host: &Host, directory: &TestDirectory, descriptors: u32) -> KilledOnDrop {
    let program = env!("CARGO_BIN_EXE_roundtrip");
    let listen = host.socket(PORT);
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!(
        "ulimit -n {descriptors}; exec '{program}' serve --threads 1 --listen {listen} '{}'",
        directory.0.display()
    ));
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = host.run(move || command.spawn()).unwrap();
    let mut line = String::new();
    let mut reported = std::io::BufReader::new(child.stderr.take().unwrap());
    std::io::BufRead::read_line(&mut reported, &mut line).unwrap();
    assert!(line.contains("serving"), "{line}");
    KilledOnDrop(child)
}

/// Requests for every file of the directory.
pub(crate) fn every_file(sizes: &[usize]) -> Vec<(Method, String)> {
    sizes
        .iter()
        .flat_map(|size| (0..20).map(move |number| (Method::Get, format!("/{size}/{number}"))))
        .collect()
}

/// Pauses briefly.
fn pause() {
    let (_keep, never) = mpsc::channel::<()>();
    let _ = never.recv_timeout(Wait::from_millis(50));
}

#[test]
fn killed_or_disconnected_clients_leave_no_state() {
    if !has_laboratory() {
        return;
    }
    let [client_host, server_host] = [Host::new("client", CLIENT), Host::new("server", SERVER)];
    let done = PerformedRequests::default();
    let server = counting_server(&server_host, &done, Some(SHORT));
    let is_open = |number: usize| {
        let line = format!("roundtrip_dhttp_connections_open{{side=\"server\"}} {number}\n");
        server.metrics().contains(&line)
    };
    for is_cut_off in [false, true] {
        let network = Network::between(&client_host, &server_host, NetworkFaults::FAULTLESS);
        // The first response brings the token without which the server does not connect.
        let urls = ["10", "60000000"].map(|size| format!("dhttp://{}/{size}/1", address(SERVER, PORT)));
        let mut command = Command::new(env!("CARGO_BIN_EXE_roundtrip"));
        command.arg("get").args(&urls).env("XDG_CACHE_HOME", std::env::temp_dir().join("roundtrip-killed"));
        // Its output is not read, so that it blocks within a transfer until it is killed.
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let client = KilledOnDrop(client_host.run(move || command.spawn()).unwrap());
        while !is_open(1) {
            pause();
        }
        // A client that is cut off cannot even close: then the server's timeout closes the connection.
        let network = (!is_cut_off).then_some(network);
        drop(client);
        while !is_open(0) {
            pause();
        }
        drop(network);
    }
    let network = Network::between(&client_host, &server_host, NetworkFaults::FAULTLESS);
    let outcomes = send_requests(&client(&client_host), &[(Method::Get, "/3000/1".to_owned())]);
    assert!(outcomes.iter().all(|(_, outcome)| outcome.is_ok()), "{outcomes:?}");
    drop(network);
}

#[test]
fn clients_recover_after_a_server_restart_under_load() {
    if !has_laboratory() {
        return;
    }
    let sizes = [10, 3_000, 60_000];
    let directory = TestDirectory::of("killed", &sizes);
    let [client_host, server_host] = [Host::new("client", CLIENT), Host::new("server", SERVER)];
    let network =
        Network::between(&client_host, &server_host, NetworkFaults { loss: 2, ..NetworkFaults::FAULTLESS });
    let client = client(&client_host);
    let mut server = serve(&server_host, &directory, 1_000);
    // Each round kills it a little later during the load; each request must be resolved.
    for round in 0..4 {
        let outcomes = std::thread::scope(|scope| {
            let requests = scope.spawn(|| send_requests(&client, &every_file(&sizes)));
            (0..round).for_each(|_| pause());
            drop(server);
            requests.join().unwrap()
        });
        server = serve(&server_host, &directory, 1_000);
        assert!(
            outcomes
                .iter()
                .all(|(_, outcome)| outcome.as_ref().err().is_none_or(|reason| !reason.is_empty()))
        );
    }
    let outcomes = send_requests(&client, &every_file(&[10, 3_000]));
    let failed: Vec<_> = outcomes.iter().filter(|(_, outcome)| outcome.is_err()).collect();
    assert!(failed.len() <= 2, "after the restart: {failed:?}");
    drop((server, network));
}
