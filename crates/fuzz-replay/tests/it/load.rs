//! Replays the fuzzers' corpus through the check of the fuzz target, without a fuzzer, and with changed bytes. Not a
//! substitute for fuzzing: that finds the inputs, this tests them again.

#[path = "../../../../fuzz/checks/load_log.rs"]
mod load_log;
#[path = "../../../../fuzz/checks/load_requests.rs"]
mod load_requests;

use roundtrip_fuzz_replay::corpus;

#[test]
fn every_stored_log_passes_the_check() {
    let stored = corpus("load_log");
    stored.iter().for_each(|bytes| load_log::check(bytes));
    assert!(stored.len() >= 12, "there are only {}", stored.len());
}

#[test]
fn a_log_with_any_byte_changed_or_truncated_anywhere_passes_the_check() {
    let stored = corpus("load_log");
    let shortest = stored.iter().filter(|bytes| load::log::read(&String::from_utf8_lossy(bytes)).is_ok());
    let whole = shortest.min_by_key(|bytes| bytes.len()).expect("one of them is whole");
    for index in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[index] ^= 1 << (index % 7);
        load_log::check(&bytes);
        load_log::check(&whole[..index]);
    }
}

#[test]
fn every_file_of_requests_with_any_byte_changed_or_truncated_anywhere_passes_the_check() {
    let stored = corpus("load_requests");
    assert!(stored.len() >= 20, "there are only {}", stored.len());
    for whole in stored {
        load_requests::check(&whole);
        for index in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[index] ^= 1 << (index % 7);
            load_requests::check(&bytes);
            load_requests::check(&whole[..index]);
        }
    }
}
