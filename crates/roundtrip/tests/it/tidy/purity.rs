//! The pure crates touch no operating system. Clippy bans clocks (clippy.toml) and the wasm job proves the build;
//! this test names the line. Unit tests may read files, because they are not shipped.

use super::tree;

const PURE: [&str; 25] = [
    "wire",
    "quantity",
    "unpack",
    "tcp",
    "accesslog",
    "workload",
    "http1",
    "tls",
    "http2",
    "http3",
    "quic",
    "qlog",
    "dhttp-proto",
    "page",
    "fetch",
    "scenario",
    "packets",
    "trace",
    "model",
    "simulate",
    "dissect",
    "diagnose",
    "render",
    "lab",
    "report",
];
/// Compiled for other targets only: the type of time of a library that reads no clock.
const NATIVE: &str = "crates/http3/src/quic/clock.rs";
const FORBIDDEN: [&str; 6] = ["std::net", "std::fs", "std::process", "std::thread", "std::env", "std::time"];

#[test]
fn pure_crates_name_no_part_of_the_operating_system() {
    let mut complaints = Vec::new();
    for file in PURE.iter().flat_map(|name| tree::files(&format!("crates/{name}/src"), &[".rs"])) {
        if file == NATIVE {
            continue;
        }
        let text = tree::text(&file);
        let shipped = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (number, line) in shipped.lines().enumerate() {
            complaints.extend(
                FORBIDDEN
                    .iter()
                    .filter(|module| line.contains(*module) && !line.trim_start().starts_with("//"))
                    .map(|module| format!("{file}:{}: {module}", number + 1)),
            );
        }
    }
    tree::expect_none("Pure crates know no socket, file, process, thread or clock:", &complaints);
}

#[test]
fn the_wasm_job_builds_every_pure_crate() {
    let script = tree::text("ci.sh");
    let line = script.lines().find(|line| line.starts_with("PURE=")).expect("ci.sh names the pure crates");
    assert_eq!(line, format!("PURE=\"{}\"", PURE.join(" ")));
}
