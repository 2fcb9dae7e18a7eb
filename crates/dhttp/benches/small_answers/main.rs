//! How many small answers a second of processor time is worth: this server beside nginx, hyper, libcoap and a server that
//! reflects datagrams and does nothing else, over the loopback interface, in turns, in one run.
//!
//! `cargo bench -p dhttp --bench small_answers [-- --rounds N] [WORD...]`: only the lines that have one of these words in
//! them; behind the lines there are `latency`, `mutated` and `memory`. Each server is one thread on processor 0, and what loads it runs on the others. Processor time is what the
//! kernel booked on the server, so that a server that is not fully loaded can be compared with one that is. Over loopback
//! whoever sends is booked what the kernel does at the other end, too: of a connection that is whoever opens it. That is
//! why both ends' time together is told, which whoever loads has a share in. Not what a
//! network would do, and not a comparison of machines: only ratios within a run say anything.
//!
//! `wrk`, `nginx` (nginx-light) and `coap-server-notls` (libcoap3-bin) are Debian's; what is not there is left out, and said.

mod datagrams;
mod latency;
mod memory;
mod mutated;
mod opened;
mod processor;
mod server;
mod wrk;

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use server::{Kind, Running};

/// One line of the table.
struct Line {
    name: &'static str,
    kind: Kind,
    load: Load,
}

#[derive(Clone, Copy)]
enum Load {
    Wrk(wrk::Load),
    Datagrams(datagrams::Load),
    Opened(opened::Load),
}

const LINES: [Line; 19] = {
    use datagrams::Load as D;
    use wrk::Load as W;
    const fn line(name: &'static str, kind: Kind, load: Load) -> Line {
        Line { name, kind, load }
    }
    [
        line("nginx, kept alive", Kind::Nginx, Load::Wrk(W::KeptAlive)),
        line("hyper, kept alive", Kind::Hyper, Load::Wrk(W::KeptAlive)),
        line("ours, kept alive", Kind::Ours, Load::Wrk(W::KeptAlive)),
        line("nginx, pipelined", Kind::Nginx, Load::Wrk(W::Pipelined)),
        line("hyper, pipelined", Kind::Hyper, Load::Wrk(W::Pipelined)),
        line("ours, pipelined", Kind::Ours, Load::Wrk(W::Pipelined)),
        line("nginx, a connection each", Kind::Nginx, Load::Wrk(W::Each)),
        line("hyper, a connection each", Kind::Hyper, Load::Wrk(W::Each)),
        line("ours, a connection each", Kind::Ours, Load::Wrk(W::Each)),
        line("reflector, many clients", Kind::Reflector, Load::Datagrams(D::Known)),
        line("libcoap, two clients", Kind::Coap, Load::Datagrams(D::Coap)),
        line("ours, DHTTP, many clients", Kind::Ours, Load::Datagrams(D::Known)),
        line("ours, DHTTP, first requests", Kind::Ours, Load::Datagrams(D::New)),
        line("reflector, one client", Kind::Reflector, Load::Datagrams(D::One)),
        line("ours, DHTTP, one client", Kind::Ours, Load::Datagrams(D::One)),
        line("nginx, 16 KB, kept alive", Kind::Nginx, Load::Wrk(W::LargeKeptAlive)),
        line("ours, DHTTP, 16 KB, connection reused", Kind::Ours, Load::Opened(opened::Load::Reused)),
        line("nginx, 16 KB, a connection each", Kind::Nginx, Load::Wrk(W::LargeEach)),
        line("ours, DHTTP, 16 KB, new connection", Kind::Ours, Load::Opened(opened::Load::New)),
    ]
};

/// Which line is to be how many times as fast as which.
const TARGETS: [(&str, f64, &str); 13] = [
    ("ours, kept alive", 1.2, "nginx, kept alive"),
    ("ours, kept alive", 0.9, "hyper, kept alive"),
    ("ours, pipelined", 0.9, "hyper, pipelined"),
    ("ours, pipelined", 1.0, "nginx, pipelined"),
    ("ours, a connection each", 1.0, "nginx, a connection each"),
    ("ours, DHTTP, many clients", 2.5, "nginx, kept alive"),
    ("ours, DHTTP, many clients", 2.0, "libcoap, two clients"),
    ("ours, DHTTP, many clients", 0.9, "reflector, many clients"),
    ("ours, DHTTP, first requests", 6.0, "nginx, a connection each"),
    ("ours, DHTTP, one client", 8.0, "nginx, kept alive"),
    ("ours, DHTTP, one client", 1.2, "hyper, pipelined"),
    ("ours, DHTTP, 16 KB, connection reused", 0.95, "nginx, 16 KB, kept alive"),
    ("ours, DHTTP, 16 KB, new connection", 1.0, "nginx, 16 KB, a connection each"),
];

/// Answers for a second of processor time.
#[derive(Clone, Copy)]
struct Rate {
    server: f64,
    /// Of the server's and of what loads it.
    both: f64,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if let [server::ROLE, role, port, folder] = arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        server::run(role, port.parse().expect("this program wrote it"), Path::new(folder));
        return ExitCode::SUCCESS;
    }
    let (rounds, words) = match &arguments[..] {
        [flag, rounds, words @ ..] if flag == "--rounds" => (rounds.parse().unwrap_or(5), words),
        words => (5, words),
    };
    let folder = server::Folder::new();
    let servers = Running::start(&folder);
    let is_wanted = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word.as_str()));
    let mut rates: [Vec<Rate>; LINES.len()] = Default::default();
    for _ in 0..rounds {
        for (line, rates) in LINES.iter().zip(&mut rates).filter(|(line, _)| is_wanted(line.name)) {
            rates.extend(measure(line, &servers));
        }
    }
    print(&rates);
    if is_wanted("latency") {
        latency::compare(&servers, rounds);
    }
    if is_wanted("mutated") {
        mutated::compare(&servers);
    }
    drop(servers);
    if is_wanted("memory") {
        memory::compare(&folder);
    }
    ExitCode::SUCCESS
}

/// `None` if a program is not there.
fn measure(line: &Line, servers: &Running) -> Option<Rate> {
    let server = servers.get(line.kind)?;
    let (server_before, loader_before) = (processor::time(server.process), processor::time_of_loaders());
    let answers = match line.load {
        Load::Wrk(load) => wrk::run(load, server.address)?,
        Load::Datagrams(load) => datagrams::run(load, server.address),
        Load::Opened(load) => opened::run(load, server.address),
    };
    let spent = processor::time(server.process) - server_before;
    let both = spent + (processor::time_of_loaders() - loader_before);
    Some(Rate { server: answers as f64 / spent.as_secs_f64(), both: answers as f64 / both.as_secs_f64() })
}

fn print(rates: &[Vec<Rate>]) {
    println!("{:>42} | answers for a second of the server's processor time: median (least, most)", "");
    println!("{:>42} | and of both ends' together: median", "");
    for (line, rates) in LINES.iter().zip(rates).filter(|(_, rates)| !rates.is_empty()) {
        let (median, least, most) = spread(rates.iter().map(|rate| rate.server).collect());
        let (both, ..) = spread(rates.iter().map(|rate| rate.both).collect());
        println!("{:>42} | {median:9.0} ({least:9.0}, {most:9.0}) | {both:9.0}", line.name);
    }
    let of = |name: &str| LINES.iter().zip(rates).find(|(line, _)| line.name == name).map(|(_, rates)| rates);
    println!("ratios of each round, their median; in brackets the same of both ends' time");
    for (ours, wanted, theirs) in TARGETS {
        let (Some(first), Some(second)) = (of(ours), of(theirs)) else { continue };
        let pairs = || first.iter().zip(second);
        if pairs().next().is_some() {
            let (server, ..) = spread(pairs().map(|(one, other)| one.server / other.server).collect());
            let (both, ..) = spread(pairs().map(|(one, other)| one.both / other.both).collect());
            println!("{server:6.2} (wanted {wanted}) [{both:.2}] {ours} / {theirs}");
        }
    }
}

/// Median, least, most.
fn spread(mut all: Vec<f64>) -> (f64, f64, f64) {
    all.sort_by(f64::total_cmp);
    (all[all.len() / 2], all[0], all[all.len() - 1])
}

/// How long each line is loaded in a round.
const LOADED: Duration = Duration::from_secs(1);

#[expect(clippy::disallowed_methods, reason = "a benchmark is a driver, and this is its one place")]
fn now() -> Instant {
    Instant::now()
}
