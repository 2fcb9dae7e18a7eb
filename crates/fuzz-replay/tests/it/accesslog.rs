//! Replays the fuzzers' corpora of access logs through the same checks as the fuzz targets, without a fuzzer. Not a
//! substitute for fuzzing: that finds the inputs, this retains them.

#[path = "../../../../fuzz/checks/access_log.rs"]
mod access_log;

use roundtrip_fuzz_replay::replay;

#[test]
fn every_stored_access_log_holds() {
    replay("access_log_clf", access_log::check_clf);
    replay("access_log_template", access_log::check_template);
    replay("access_log_w3c", access_log::check_w3c);
    replay("access_log_json", access_log::check_json);
    replay("access_log_alb", access_log::check_alb);
}
