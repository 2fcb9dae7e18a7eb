//! Replays the fuzzer's corpus of packets through the fuzz target's check, without a fuzzer.

extern crate roundtrip_wire as wire;

#[path = "../../../fuzz/checks/packet.rs"]
mod packet;
#[path = "../../../fuzz/checks/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn stored_packets_pass_the_check() {
    replay("packet", packet::check);
}
