//! Loads servers of HTTP with wrk. Not their processor time.

use std::fs;
use std::net::SocketAddr;
use std::process::Command;

use super::LOADED;

#[derive(Clone, Copy)]
pub(crate) enum Load {
    KeptAlive,
    Pipelined,
    Each,
    LargeKeptAlive,
    LargeEach,
}

/// Requests that wrk sends ahead.
const AHEAD: usize = 16;

/// How many answers there were; `None` if there is no wrk.
pub(crate) fn run(load: Load, server: SocketAddr) -> Option<u64> {
    let page = match load {
        Load::KeptAlive | Load::Pipelined | Load::Each => "small.txt",
        Load::LargeKeptAlive | Load::LargeEach => "large.txt",
    };
    let mut command = Command::new("wrk");
    command.args(["-t", "2", "-c", "128", "-d", &format!("{}s", LOADED.as_secs())]);
    let script = std::env::temp_dir().join(format!("small-answers-{}.lua", std::process::id()));
    match load {
        Load::KeptAlive | Load::LargeKeptAlive => {}
        Load::Each | Load::LargeEach => {
            command.args(["-H", "Connection: close"]);
        }
        Load::Pipelined => {
            let text = format!(
                "init = function(args) local all = {{}} for i = 1, {AHEAD} do all[i] = wrk.format() end \
                 ahead = table.concat(all) end\nrequest = function() return ahead end\n"
            );
            fs::write(&script, text).ok()?;
            command.arg("-s").arg(&script);
        }
    }
    let output = match command.arg(format!("http://{server}/{page}")).output() {
        Ok(output) => output,
        Err(error) => {
            eprintln!("left out: wrk, {error}; Debian has it in wrk");
            return None;
        }
    };
    let _ = fs::remove_file(&script);
    let text = String::from_utf8_lossy(&output.stdout);
    let (before, _) = text.split_once(" requests in ").expect("wrk says how many");
    before.split_whitespace().last()?.parse().ok()
}
