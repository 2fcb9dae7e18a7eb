//! Replays the fuzzer's corpus of plans through the fuzz target's check, without a fuzzer.

extern crate roundtrip_workload as workload;

#[path = "../../../fuzz/checks/plan.rs"]
mod plan;
#[path = "../../../fuzz/checks/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn stored_plans_pass_the_check() {
    replay("plan", plan::check);
}
