//! Replay of the fuzzers' corpora through the fuzz targets' own checks, without a fuzzer. It does not
//! replace fuzzing: fuzzing finds the inputs, this replays them.

#[path = "../../../../fuzz/checks/network_trace.rs"]
mod network_trace;
#[path = "../../../../fuzz/checks/scenario_flags.rs"]
mod scenario_flags;
#[path = "../../../../fuzz/checks/scenario_toml.rs"]
mod scenario_toml;

use proptest::prelude::*;
use roundtrip_fuzz_replay::{pieces, replay, replay_damaged};

#[test]
fn every_stored_file_holds() {
    replay("scenario_toml", scenario_toml::check);
}

#[test]
fn every_stored_list_of_flags_holds() {
    replay("scenario_flags", scenario_flags::check);
}

#[test]
fn every_stored_network_trace_holds_and_so_does_a_damaged_one() {
    replay_damaged("network_trace", 3, network_trace::check);
}

proptest! {
    #[test]
    fn pieces_of_stored_network_traces_hold(input in pieces("network_trace")) {
        network_trace::check(&input);
    }
}
