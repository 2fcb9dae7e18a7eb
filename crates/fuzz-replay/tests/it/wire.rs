//! Replays the fuzzer's corpus of packets through the fuzz target's check, without a fuzzer.

#[path = "../../../../fuzz/checks/packet.rs"]
mod packet;

use roundtrip_fuzz_replay::replay;

#[test]
fn stored_packets_pass_the_check() {
    replay("packet", packet::check);
}
