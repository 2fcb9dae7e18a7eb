//! What wrk makes of the same servers. Not wrk2, which Debian does not have: its correction is made here by hand.

use std::fs;
use std::net::SocketAddr;
use std::process::Command;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

use super::{SECONDS, USERS};

/// Thousand answers for a second of wrk's processor time; `None` if there is no wrk.
pub(crate) fn per_processor(server: SocketAddr) -> Option<f64> {
    let before = time_of_children();
    let text = wrk(server, SECONDS, USERS, None)?;
    let (answers, _) = text.split_once(" requests in ").expect("wrk says how many");
    let answers: f64 =
        answers.split_whitespace().last().and_then(|word| word.parse().ok()).expect("a number");
    Some(answers / (time_of_children() - before) / 1e3)
}

/// The latencies it has seen, in seconds, and how often each; `None` if there is no wrk.
pub(crate) fn latencies(server: SocketAddr, seconds: u64, connections: u32) -> Option<Vec<(f64, u64)>> {
    let each = "done = function(_, latency, _) for i = 1, #latency do local value, count = latency(i) \
                print('LATENCY', value, count) end end\n";
    let text = wrk(server, seconds, connections, Some(each))?;
    let line = |line: &str| {
        let mut words = line.strip_prefix("LATENCY")?.split_whitespace();
        let micros: f64 = words.next()?.parse().ok()?;
        Some((micros / 1e6, words.next()?.split('.').next()?.parse().ok()?))
    };
    Some(text.lines().filter_map(line).collect())
}

fn wrk(server: SocketAddr, seconds: u64, connections: u32, script: Option<&str>) -> Option<String> {
    let mut command = Command::new("wrk");
    command.args(["-t", "1", "-c", &connections.to_string(), "-d", &format!("{seconds}s")]);
    let path = std::env::temp_dir().join(format!("load-generator-{}.lua", std::process::id()));
    if let Some(script) = script {
        fs::write(&path, script).ok()?;
        command.arg("-s").arg(&path);
    }
    let output = command.arg(format!("http://{server}/0.bin")).output();
    let _ = fs::remove_file(&path);
    match output {
        Ok(output) => Some(String::from_utf8_lossy(&output.stdout).into_owned()),
        Err(error) => {
            eprintln!("left out: wrk, {error}; Debian has it in wrk");
            None
        }
    }
}

fn time_of_children() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("children's times are always told");
    (usage.user_time() + usage.system_time()).num_microseconds() as f64 / 1e6
}
