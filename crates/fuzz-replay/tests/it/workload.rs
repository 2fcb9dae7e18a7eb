//! Replays the fuzzer's corpus of plans through the fuzz target's check, without a fuzzer.

#[path = "../../../../fuzz/checks/plan.rs"]
mod plan;

use roundtrip_fuzz_replay::replay;

#[test]
fn stored_plans_pass_the_check() {
    replay("plan", plan::check);
}
