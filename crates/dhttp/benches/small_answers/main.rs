//! How many small answers a second of processor time is worth: this server beside nginx, hyper, libcoap and a server that
//! reflects datagrams and does nothing else, over the loopback interface, in turns, in one run.
//!
//! `cargo bench -p dhttp --bench small_answers [-- --rounds N] [WORD...]`: only the lines that have one of these words in
//! them. Each server is one thread on processor 0, and what loads it runs on the others. Processor time is what the
//! kernel booked on the server, so that a server that is not fully loaded can be compared with one that is; what the
//! kernel does on its behalf while it delivers to another process is booked on that one, for all alike. Not what a
//! network would do, and not a comparison of machines: only ratios within a run say anything.
//!
//! `wrk`, `nginx` (nginx-light) and `coap-server-notls` (libcoap3-bin) are Debian's; what is not there is left out, and said.

mod datagrams;
mod latency;
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
        line("libcoap, many clients", Kind::Coap, Load::Datagrams(D::Coap)),
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
const TARGETS: [(usize, f64, usize); 13] = [
    (2, 1.2, 0),
    (2, 0.9, 1),
    (5, 0.9, 4),
    (5, 1.0, 3),
    (8, 1.0, 6),
    (11, 2.5, 0),
    (11, 2.0, 10),
    (11, 0.9, 9),
    (12, 6.0, 6),
    (14, 8.0, 0),
    (14, 1.2, 4),
    (16, 0.95, 15),
    (18, 1.0, 17),
];

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
    let mut rates: [Vec<f64>; LINES.len()] = Default::default();
    for _ in 0..rounds {
        for (line, rates) in LINES.iter().zip(&mut rates).filter(|(line, _)| is_wanted(line.name)) {
            rates.extend(measure(line, &servers));
        }
    }
    println!("{:>42} | answers a second of the server's processor time: median, least, most", "");
    for (line, rates) in LINES.iter().zip(&mut rates).filter(|(_, rates)| !rates.is_empty()) {
        let (median, least, most) = spread(rates);
        println!("{:>42} | {median:9.0} {least:9.0} {most:9.0}", line.name);
    }
    let median =
        |index: usize| rates.get(index).filter(|rates| !rates.is_empty()).map(|all| all[all.len() / 2]);
    for (ours, wanted, theirs) in TARGETS {
        if let (Some(first), Some(second)) = (median(ours), median(theirs)) {
            let (ours, theirs) = (LINES[ours].name, LINES[theirs].name);
            println!("{:6.2} (wanted {wanted}): {ours} / {theirs}", first / second);
        }
    }
    if is_wanted("latency") {
        latency::compare(&servers, rounds);
    }
    ExitCode::SUCCESS
}

/// Answers a second of processor time; `None` if a program is not there.
fn measure(line: &Line, servers: &Running) -> Option<f64> {
    let server = servers.get(line.kind)?;
    let before = processor::time(server.process);
    let answers = match line.load {
        Load::Wrk(load) => wrk::run(load, server.address)?,
        Load::Datagrams(load) => datagrams::run(load, server.address),
        Load::Opened(load) => opened::run(load, server.address),
    };
    let spent = processor::time(server.process) - before;
    Some(answers as f64 / spent.as_secs_f64())
}

fn spread(rates: &mut [f64]) -> (f64, f64, f64) {
    rates.sort_by(f64::total_cmp);
    (rates[rates.len() / 2], rates[0], rates[rates.len() - 1])
}

/// How long each line is loaded in a round.
const LOADED: Duration = Duration::from_secs(1);

#[expect(clippy::disallowed_methods, reason = "a benchmark is a driver, and this is its one place")]
fn now() -> Instant {
    Instant::now()
}
