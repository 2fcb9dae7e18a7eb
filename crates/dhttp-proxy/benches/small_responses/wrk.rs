//! Load by HTTP with wrk. Its CPU time is not measured here.

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

/// Number of requests that wrk pipelines.
const AHEAD: usize = 16;

/// Returns the number of responses; `None` if wrk is not installed.
pub(crate) fn run(load: Load, server: SocketAddr) -> Option<u64> {
    let page = match load {
        Load::KeptAlive | Load::Pipelined | Load::Each => "small.txt",
        Load::LargeKeptAlive | Load::LargeEach => "large.txt",
    };
    let url = format!("http://{server}/{page}");
    match load {
        Load::KeptAlive | Load::LargeKeptAlive => count(&url, &[], None),
        Load::Each | Load::LargeEach => count(&url, &["-H", "Connection: close"], None),
        Load::Pipelined => {
            let script = format!(
                "init = function(args) local all = {{}} for i = 1, {AHEAD} do all[i] = wrk.format() end \
                 ahead = table.concat(all) end\nrequest = function() return ahead end\n"
            );
            count(&url, &[], Some(&script))
        }
    }
}

/// The same through a gateway, with absolute URLs.
pub(crate) fn through(gateway: SocketAddr, url: &str) -> Option<u64> {
    let script = format!(
        "init = function(args) whole = wrk.format(\"GET\", \"{url}\") end\nrequest = function() return whole end\n"
    );
    count(&format!("http://{gateway}/"), &[], Some(&script))
}

fn count(url: &str, flags: &[&str], script: Option<&str>) -> Option<u64> {
    let mut command = Command::new("wrk");
    command.args(["-t", "2", "-c", "128", "-d", &format!("{}s", LOADED.as_secs())]).args(flags);
    let path = std::env::temp_dir().join(format!("small-responses-{}.lua", std::process::id()));
    if let Some(script) = script {
        fs::write(&path, script).ok()?;
        command.arg("-s").arg(&path);
    }
    let output = match command.arg(url).output() {
        Ok(output) => output,
        Err(error) => {
            eprintln!("left out: wrk, {error}; Debian has it in wrk");
            return None;
        }
    };
    let _ = fs::remove_file(&path);
    let text = String::from_utf8_lossy(&output.stdout);
    // Refusals do not count as responses, however fast.
    assert!(!text.contains("Non-2xx"), "{text}");
    let (before, _) = text.split_once(" requests in ").expect("a number of requests");
    before.split_whitespace().last()?.parse().ok()
}
