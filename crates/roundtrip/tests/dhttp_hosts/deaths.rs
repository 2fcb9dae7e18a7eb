//! Programs that are killed while others depend on them.
//!
//! Not a graceful stop, which is tested elsewhere. No time is judged; everything must end.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration as Wait;

use http1::message::Method;

use super::host::{Host, allowed};
use super::network::{Network, NetworkFaults};
use super::weather::{CLIENT, PerformedRequests, SHORT, ask, client, counting};
use super::{PORT, SERVER, address};

/// A directory with a file of each size, by the names that [`ask`] knows; removed when dropped.
pub(crate) struct TestDirectory(pub(crate) PathBuf);

impl TestDirectory {
    pub(crate) fn of(name: &str, sizes: &[usize]) -> Self {
        let directory = std::env::temp_dir().join(format!("roundtrip-{name}-{}", std::process::id()));
        for size in sizes {
            std::fs::create_dir_all(directory.join(size.to_string())).unwrap();
            for number in 0..20 {
                let path = format!("/{size}/{number}");
                std::fs::write(directory.join(&path[1..]), super::weather::expected(&path)).unwrap();
            }
        }
        Self(directory)
    }
}

impl Drop for TestDirectory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
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
    let mut child = host.does(move || command.spawn()).unwrap();
    let mut line = String::new();
    let mut reported = std::io::BufReader::new(child.stderr.take().unwrap());
    std::io::BufRead::read_line(&mut reported, &mut line).unwrap();
    assert!(line.contains("serving"), "{line}");
    KilledOnDrop(child)
}

/// A program that is killed when it is dropped, so that it does not outlive a test that fails.
pub(crate) struct KilledOnDrop(pub(crate) Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Requests for every file of the directory.
pub(crate) fn everything(sizes: &[usize]) -> Vec<(Method, String)> {
    sizes
        .iter()
        .flat_map(|size| (0..20).map(move |number| (Method::Get, format!("/{size}/{number}"))))
        .collect()
}

/// A short pause.
fn pause() {
    let (_keep, never) = mpsc::channel::<()>();
    let _ = never.recv_timeout(Wait::from_millis(50));
}

#[test]
fn killed_or_disconnected_clients_leave_no_state() {
    if !allowed() {
        return;
    }
    let [here, there] = [Host::new("client", CLIENT), Host::new("server", SERVER)];
    let done = PerformedRequests::default();
    let server = counting(&there, &done, Some(SHORT));
    let is_open = |number: usize| {
        let line = format!("roundtrip_dhttp_connections_open{{side=\"server\"}} {number}\n");
        server.metrics().contains(&line)
    };
    for is_cut_off in [false, true] {
        let network = Network::between(&here, &there, NetworkFaults::FINE);
        // The first response brings the token without which the server does not connect.
        let urls = ["10", "60000000"].map(|size| format!("dhttp://{}/{size}/1", address(SERVER, PORT)));
        let mut command = Command::new(env!("CARGO_BIN_EXE_roundtrip"));
        command.arg("get").args(&urls).env("XDG_CACHE_HOME", std::env::temp_dir().join("roundtrip-killed"));
        // Its output is not read, so that it blocks within a transfer until it is killed.
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let client = KilledOnDrop(here.does(move || command.spawn()).unwrap());
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
    let network = Network::between(&here, &there, NetworkFaults::FINE);
    let fates = ask(&client(&here), &[(Method::Get, "/3000/1".to_owned())]);
    assert!(fates.iter().all(|(_, outcome)| outcome.is_ok()), "{fates:?}");
    drop(network);
}

#[test]
fn clients_recover_after_a_server_restart_under_load() {
    if !allowed() {
        return;
    }
    let sizes = [10, 3_000, 60_000];
    let directory = TestDirectory::of("killed", &sizes);
    let [here, there] = [Host::new("client", CLIENT), Host::new("server", SERVER)];
    let network = Network::between(&here, &there, NetworkFaults { loss: 2, ..NetworkFaults::FINE });
    let client = client(&here);
    let mut server = serve(&there, &directory, 1_000);
    // Each round kills it a little later during the load; each request must be resolved.
    for round in 0..4 {
        let fates = std::thread::scope(|scope| {
            let asking = scope.spawn(|| ask(&client, &everything(&sizes)));
            (0..round).for_each(|_| pause());
            drop(server);
            asking.join().unwrap()
        });
        server = serve(&there, &directory, 1_000);
        assert!(fates.iter().all(|(_, outcome)| outcome.as_ref().err().is_none_or(|why| !why.is_empty())));
    }
    let fates = ask(&client, &everything(&[10, 3_000]));
    let failed: Vec<_> = fates.iter().filter(|(_, outcome)| outcome.is_err()).collect();
    assert!(failed.len() <= 2, "it is there again: {failed:?}");
    drop((server, network));
}
