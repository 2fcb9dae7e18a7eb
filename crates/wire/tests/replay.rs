//! Replays the fuzzer's corpus of packets through the fuzz target's own check, without a fuzzer. Not a substitute for
//! fuzzing: that finds the inputs, this checks that they stay fixed.

extern crate roundtrip_wire as wire;

#[path = "../../../fuzz/checks/packet.rs"]
mod packet;
#[path = "../../../fuzz/checks/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn every_stored_packet_holds() {
    replay("packet", packet::check);
}
