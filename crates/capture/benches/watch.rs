//! Cost and recall of a watch: 1,000 sockets, 100 samples a second, and connections with recurring holds of 10 ms.
//!
//! A server writes header and body separately with Nagle's algorithm; its client acknowledges the header after 10 ms
//! with a message of its own. Other connections occasionally exchange a byte, or are idle. The CPU time is that of the
//! sampling thread alone. Prints the share of a CPU and the share of faulty connections found. Also prints the estimated
//! time of their holds as a share of the true one.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use diagnose::Cause;
use linux::clock::Clock;
use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};
use roundtrip_capture::watch::{Scope, Watch};

/// Number of connections; both sockets of each are on this host.
const CONNECTIONS: usize = 500;
const FAULTY: usize = 40;
const INTERVAL: wire::Duration = wire::Duration::from_millis(10);
const HOLD: Duration = Duration::from_millis(10);
const BETWEEN_HOLDS: Duration = Duration::from_millis(50);
const SPAN: wire::Duration = wire::Duration::from_secs(10);

fn main() {
    for (name, is_busy) in [("all connections exchange a byte each 200 ms", true), ("all others idle", false)]
    {
        run(name, is_busy);
    }
}

fn run(name: &str, is_busy: bool) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let server = listener.local_addr().expect("it is bound");
    let stop = Arc::new(AtomicBool::new(false));
    let held = Arc::new(AtomicU64::new(0));
    let mut quiet: Vec<(TcpStream, TcpStream)> = Vec::new();
    for number in 0..CONNECTIONS {
        let (client, server_end) = connection(&listener, server);
        if number < FAULTY {
            let (stop, held) = (Arc::clone(&stop), Arc::clone(&held));
            thread::spawn(move || fault(client, server_end, &stop, &held));
        } else {
            quiet.push((client, server_end));
        }
    }
    let background = {
        let stop = Arc::clone(&stop);
        thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                if is_busy {
                    quiet.iter_mut().for_each(exchange);
                }
                pause(Duration::from_millis(200));
            }
        })
    };
    pause(Duration::from_millis(1_500));
    let before = held.load(Ordering::Relaxed);
    let mut watch = Watch::begin(Scope::Port(server.port())).expect("the kernel has socket statistics");
    let (clock, cpu) = (Clock::start(), cpu_time());
    let (mut samples, mut due) = (0, clock.now());
    while clock.now().since(wire::Time::ZERO) < SPAN {
        watch.sample().expect("the kernel has socket statistics");
        samples += 1;
        // As in a session: a late sample delays the next ones only if it is later than an interval.
        due = (due + INTERVAL).max(clock.now());
        pause(Duration::from_nanos(due.since(clock.now()).as_nanos()));
    }
    let share = (cpu_time() - cpu) as f64 / clock.now().since(wire::Time::ZERO).as_nanos() as f64;
    let true_time = held.load(Ordering::Relaxed) - before;
    let rows = watch.rows();
    let holds = rows.iter().filter(|row| matches!(row.cause, Cause::Nagle | Cause::NagleDelayedAck));
    let (found, lost) =
        holds.fold((0, 0), |(found, lost), row| (found + row.connections, lost + row.lost.as_nanos()));
    println!("{name}: {} sockets, {samples} samples", watch.open());
    println!("  {:.1}% of a CPU", share * 100.0);
    println!(
        "  {found} of {FAULTY} connections with holds found; held time {:.2} of the true one",
        lost as f64 / true_time as f64
    );
    stop.store(true, Ordering::Relaxed);
    background.join().expect("it does not panic");
}

fn connection(listener: &TcpListener, server: SocketAddr) -> (TcpStream, TcpStream) {
    let client = TcpStream::connect(server).expect("it listens");
    let (server_end, _) = listener.accept().expect("a client is there");
    client.set_nodelay(true).expect("a socket has the option");
    (client, server_end)
}

/// Produces consecutive holds of 10 ms; their time is added to `held`.
fn fault(mut client: TcpStream, mut server_end: TcpStream, stop: &AtomicBool, held: &AtomicU64) {
    let clock = Clock::start();
    let mut piece = [0; 700];
    while !stop.load(Ordering::Relaxed) {
        let began = clock.now();
        // The second write waits for the acknowledgement of the first, which the client's byte carries.
        let written = server_end.write_all(&[1; 100]).and_then(|()| server_end.write_all(&[2; 600]));
        pause(HOLD);
        let done = written
            .and_then(|()| client.read_exact(&mut piece[..100]))
            .and_then(|()| client.write_all(&[3]))
            .and_then(|()| client.read_exact(&mut piece[..600]));
        if done.is_err() {
            return;
        }
        held.fetch_add(clock.now().since(began).as_nanos(), Ordering::Relaxed);
        if server_end.read_exact(&mut piece[..1]).is_err() {
            return;
        }
        pause(BETWEEN_HOLDS);
    }
}

fn exchange((client, server_end): &mut (TcpStream, TcpStream)) {
    let done = client.write_all(&[1]).and_then(|()| server_end.read_exact(&mut [0]));
    done.and_then(|()| server_end.write_all(&[1]))
        .and_then(|()| client.read_exact(&mut [0]))
        .expect("both are open");
}

#[expect(clippy::disallowed_methods, reason = "threads of a benchmark")]
fn pause(span: Duration) {
    thread::sleep(span);
}

/// Returns the CPU time of this thread, in nanoseconds.
fn cpu_time() -> i64 {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("the kernel has this clock").num_nanoseconds()
}
