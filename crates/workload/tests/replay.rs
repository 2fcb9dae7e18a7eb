//! Replays the fuzzers' corpus of plans through the same check as the fuzz target, without a fuzzer. Not a
//! substitute for fuzzing: that finds the inputs, this retains them.

extern crate roundtrip_workload as workload;

#[path = "../../../fuzz/checks/plan.rs"]
mod plan;
#[path = "../../../fuzz/checks/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn every_stored_plan_holds() {
    replay("plan", plan::check);
}
