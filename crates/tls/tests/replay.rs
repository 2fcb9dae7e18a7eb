//! Replays the fuzzer's corpus through the check that the fuzz target runs, without a fuzzer; each input is also truncated and
//! bit-flipped.

extern crate roundtrip_tls as tls;

#[path = "../../../fuzz/checks/replay.rs"]
mod replay;
#[path = "../../../fuzz/checks/tls_records.rs"]
mod tls_records;

#[test]
fn every_stored_input_holds_whole_cut_and_damaged() {
    replay::replay("tls_records", |bytes| {
        tls_records::check(bytes);
        for index in (0..bytes.len()).step_by(5) {
            tls_records::check(&bytes[..index]);
            let mut damaged = bytes.to_vec();
            damaged[index] ^= 1 << (index % 8);
            tls_records::check(&damaged);
        }
    });
}
