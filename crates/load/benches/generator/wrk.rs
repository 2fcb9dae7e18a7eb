//! wrk's results with the same servers. Not wrk2's, which is not in Debian.

use std::fs;
use std::net::SocketAddr;
use std::process::Command;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

use super::{SECONDS, USERS};

/// Thousands of responses per second of wrk's CPU time; `None` if wrk is not installed.
pub(crate) fn responses_per_cpu(server: SocketAddr) -> Option<f64> {
    let before = time_of_children();
    let text = wrk(server, SECONDS, USERS, None)?;
    let (responses, _) = text.split_once(" requests in ").expect("wrk says how many");
    let responses: f64 =
        responses.split_whitespace().last().and_then(|word| word.parse().ok()).expect("a number");
    Some(responses / (time_of_children() - before) / 1e3)
}

/// Shares of its requests that took longer than each of these times, and the maximum, in seconds; `None` if wrk is not
/// installed.
pub(crate) fn shares(
    server: SocketAddr,
    seconds: u64,
    connections: u32,
    longer: [f64; 3],
) -> Option<([f64; 3], f64)> {
    let micros = longer.map(|longer| format!("{:.0}", longer * 1e6)).join(",");
    // It prints percentiles, not shares: a search finds each share.
    let script = format!(
        "done = function(_, latency, _) for _, longer in ipairs({{{micros}}}) do local low, high = 0, 100 \
         for _ = 1, 20 do local middle = (low + high) / 2 \
         if latency:percentile(middle) > longer then high = middle else low = middle end end \
         print('TOLD', (100 - high) / 100) end print('TOLD', latency.max / 1000000) end\n"
    );
    let text = wrk(server, seconds, connections, Some(&script))?;
    let mut reported = text.lines().filter_map(|line| line.strip_prefix("TOLD")?.trim().parse().ok());
    let mut next = || reported.next().expect("wrk runs its script");
    Some(([next(), next(), next()], next()))
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
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("the kernel always reports children's times");
    (usage.user_time() + usage.system_time()).num_microseconds() as f64 / 1e6
}
