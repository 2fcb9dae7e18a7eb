//! Packet scripts: one behaviour per file, a timeline of inputs of an endpoint and the segments it must send.
//!
//! The language, line by line (`#` begins a comment; the first line of each file names the behaviour):
//!
//! ```text
//! profiles sunos-4.1.3 bsd-4.4    the stacks with this behaviour; `all` for every one
//! server                          or `client`: which end is under test; a handshake comes first, and takes 100 ms
//! mss 1460                        of both ends; 1460 by default
//! set nagle off                   overrides a setting of the stack: nagle, acks, idle, recovery, initial-window,
//!                                 ssthresh, send-buffer, timestamps, sack
//! reads late                      the application reads only when notified; otherwise immediately
//!
//! +20ms write 4109                20 ms after the line before, the application writes
//! +0ms  > 1:1461 ack 101          now the endpoint must send this; `P`, `F`, `S`, `R` before the numbers
//! +5ms  < 101:101 ack 1461        the peer sends; `win 4096`, `sack 10:20` may follow
//! +200ms quiet                    until then, nothing was sent
//! ```
//!
//! Other lines: `read`, `shutdown`, `close`, `abort`, `notified readable` (and the other events). Sequence numbers count
//! from 1 on either side, and an unexpected segment fails the script.

mod endpoint;
mod script;

use std::path::Path;

use scenario::Stack;

#[test]
fn every_script_holds_for_every_profile_that_it_names() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/packet_scripts");
    let mut files: Vec<_> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut failures = Vec::new();
    for file in &files {
        let text = std::fs::read_to_string(file).unwrap();
        let name = file.file_name().unwrap().to_string_lossy();
        let script = script::parse(&text).unwrap_or_else(|error| panic!("{name}:{error}"));
        let stacks: Vec<Stack> = match script.profiles.as_slice() {
            [all] if all == "all" => Stack::ALL.to_vec(),
            names => names.iter().map(|name| Stack::named(name).unwrap()).collect(),
        };
        for stack in stacks {
            if let Err(error) = endpoint::run(&script, &stack) {
                failures.push(format!("{name}:{error} (as {})", stack.name));
            }
        }
    }
    assert!(files.len() >= 20, "{} scripts", files.len());
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}
