//! Replay of the fuzzers' corpora through the fuzz targets' own checks, without a fuzzer. It does not
//! replace fuzzing: fuzzing finds the inputs, this replays them.

#[path = "../../../../fuzz/checks/scenario_flags.rs"]
mod scenario_flags;
#[path = "../../../../fuzz/checks/scenario_toml.rs"]
mod scenario_toml;

use roundtrip_fuzz_replay::replay;

#[test]
fn every_stored_file_holds() {
    replay("scenario_toml", scenario_toml::check);
}

#[test]
fn every_stored_list_of_flags_holds() {
    replay("scenario_flags", scenario_flags::check);
}
