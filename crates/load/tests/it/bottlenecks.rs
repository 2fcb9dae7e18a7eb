//! Bottlenecks of servers that have a known one each, in a closed loop and in an open schedule.
//!
//! A sample of `studies/bottlenecks`, without other programs. A busy host may hide a bottleneck, so each has several attempts.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration as Elapsed;

use load::attribution::{Attribution, attribute};
use load::evidence::{CpuShare, Evidence, HostCounters, ServerUsage, Shape, SocketSamples, Stage};
use load::job::{Turns, loop_pages, timed_pages};
use load::progress::Stop;
use load::record::{Channel, FailureReason, Record};
use load::requests::{Request, Statuses};
use load::traffic::RequestList;
use load::{Config, Protocol, ramp};
use wire::{Duration, Seed};
use workload::schedule::{Arrivals, Leg, Times};

use crate::servers::site::{config, target};

/// A thread for each connection, of which `limit` are served; `respond` writes each response.
fn serve(
    limit: usize,
    respond: impl Fn(&mut TcpStream) -> std::io::Result<()> + Send + Sync + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let respond = Arc::new(respond);
    // It ends with the program.
    thread::spawn(move || {
        let mut served = Vec::new();
        for stream in listener.incoming().flatten() {
            served.retain(|thread: &thread::JoinHandle<()>| !thread.is_finished());
            if served.len() >= limit {
                // Open until the client closes it.
                thread::spawn(move || drain(stream));
                continue;
            }
            let respond = Arc::clone(&respond);
            served.push(thread::spawn(move || {
                let mut stream = stream;
                while read_request(&mut stream) && respond(&mut stream).is_ok() {}
            }));
        }
    });
    address
}

fn drain(mut stream: TcpStream) {
    let mut buffer = [0; 1_024];
    while stream.read(&mut buffer).is_ok_and(|length| length > 0) {}
}

fn read_request(stream: &mut TcpStream) -> bool {
    let mut request = Vec::new();
    let mut buffer = [0; 1_024];
    while !request.ends_with(b"\r\n\r\n") {
        match stream.read(&mut buffer) {
            Ok(length) if length > 0 => request.extend_from_slice(&buffer[..length]),
            Ok(_) | Err(_) => return false,
        }
    }
    true
}

/// Waits as a server does for another service.
fn pause(milliseconds: u64) {
    let (_sender, receiver) = channel::<()>();
    let _ = receiver.recv_timeout(Elapsed::from_millis(milliseconds));
}

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";

fn send(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(&[HEAD, b"hello"].concat())
}

/// Requests of five users, or at this rate, for a second and a half.
fn load(address: SocketAddr, rate: Option<f64>) -> Attribution {
    let lasts = Duration::from_millis(1_500);
    let times = |rate: f64| {
        let leg = [Leg { duration: lasts, from: rate, to: rate }];
        timed_pages(1, Times::new(&leg, Arrivals::Constant, Seed::new(1).stream("load-arrivals", 0)))
    };
    let list = RequestList {
        requests: [Request::new("GET", "/").unwrap()].into(),
        statuses: Statuses::default(),
        pages: rate.map_or_else(|| loop_pages(1), times),
        turns: if rate.is_some() { Turns::Once } else { Turns::Loop(5) },
        lasts,
        seed: 1,
        words: String::new(),
        notes: Vec::new(),
        is_judged: true,
    };
    let config = Config { users: 5, timeout: Duration::from_secs(2), ..config(Protocol::KeepAlive) };
    let (target, stop) = (target(address, None), Stop::default());
    let stages = ramp::climb(&list, &target, &config, &stop, Duration::from_millis(300)).unwrap();
    let mut record = load::run::run_until(list.job(), &target, &config, &stop, &mut |_| ()).unwrap();
    record.evidence.ramp = stages;
    attribute(&record, "http://localhost/")
}

/// Checks that a run of this server has this bottleneck in one of several attempts.
fn expect(address: SocketAddr, rate: Option<f64>, name: &str) {
    const ATTEMPTS: usize = 6;
    let mut found = Vec::new();
    for _ in 0..ATTEMPTS {
        let attribution = load(address, rate);
        if attribution.kind.name() == name {
            return;
        }
        found.push(attribution);
    }
    panic!("never {name}: {found:?}");
}

#[test]
fn a_sleep_before_each_response_is_a_fixed_wait_until_connections_are_all_in_use() {
    let address = serve(usize::MAX, |stream| {
        pause(40);
        send(stream)
    });
    expect(address, None, "fixed-wait");
    expect(address, Some(20.0), "fixed-wait");
    expect(address, Some(400.0), "connections");
}

#[test]
fn a_body_that_waits_for_an_acknowledgement_is_told_from_a_slow_server() {
    let address = serve(usize::MAX, |stream| {
        stream.write_all(HEAD)?;
        stream.write_all(b"hello")
    });
    expect(address, None, "delayed-ack");
    // Linux delays no acknowledgement for a client that pauses between response and request.
    expect(address, Some(400.0), "delayed-ack");
}

#[test]
fn a_server_that_responds_to_one_request_at_a_time_is_saturated_without_its_cpu() {
    let pool = Mutex::new(());
    let address = serve(usize::MAX, move |stream| {
        let guard = pool.lock();
        pause(10);
        drop(guard);
        send(stream)
    });
    expect(address, None, "server-wait");
    expect(address, Some(300.0), "server-wait");
}

#[test]
fn connections_that_are_never_served_are_a_limit_of_the_server() {
    let address = serve(2, |stream| {
        pause(2);
        send(stream)
    });
    expect(address, None, "server-connections");
    expect(address, Some(200.0), "server-connections");
}

/// A run in which three of four requests timed out, at a server with one thread that is always ready and has a fifth of a CPU.
fn starved() -> Record {
    let mut record = Record { elapsed: Duration::from_secs(1), ..Record::default() };
    record.channels.insert(Channel::TcpClient, 50);
    record.failure_counts.insert(FailureReason::Timeout, 150);
    record.experienced.record_n(40_000_000, 10).unwrap();
    record.experienced.record_n(900_000_000, 40).unwrap();
    let share = CpuShare { used: 0.2, waited: 0.8 };
    let server =
        ServerUsage { processes: 1, all: share, busiest: share, cpus: 2.0, ..ServerUsage::default() };
    record.evidence = Evidence {
        shape: Shape { is_open: false, users: 100, max_in_flight: 100 },
        ramp: vec![Stage { users: 1, responses: 20, rate: 50.0, median_ms: 20.0 }],
        sockets: SocketSamples { lists: 5, backlog: 1_024, max_accept_queue: 77, ..SocketSamples::default() },
        host: HostCounters { cpus: 2.0, busy: 2.0, ..HostCounters::default() },
        server: Some(server),
        ..Evidence::default()
    };
    record
}

#[test]
fn overflows_count_if_this_servers_queue_may_have_been_full() {
    let named = |max_accept_queue| {
        let mut record = starved();
        record.evidence.host.listen_overflows = 7;
        record.evidence.sockets.max_accept_queue = max_accept_queue;
        attribute(&record, "http://localhost/").kind.name()
    };
    assert_eq!(named(600), "accept-queue");
    assert_eq!(named(77), "server-cpu", "another server's queue overflowed");
}

#[test]
fn a_thread_that_is_always_ready_has_a_full_cpu_whatever_others_leave_to_it() {
    assert_eq!(attribute(&starved(), "http://localhost/").kind.name(), "server-cpu");
    let mut record = starved();
    let moments = CpuShare { used: 0.05, waited: 0.9 };
    record.evidence.server.as_mut().unwrap().all = moments;
    record.evidence.server.as_mut().unwrap().busiest = moments;
    assert_eq!(attribute(&record, "http://localhost/").kind.name(), "server-wait");
}
