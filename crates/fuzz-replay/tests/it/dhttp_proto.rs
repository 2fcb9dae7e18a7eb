//! Replays the fuzzers' corpora through the checks of the fuzz targets, without a fuzzer, and then inputs that
//! proptest makes from pieces of them. Not a substitute for fuzzing: that finds the inputs, this replays them.

use proptest::prelude::*;

#[path = "../../../../fuzz/checks/dhttp_client.rs"]
mod dhttp_client;
#[path = "../../../../fuzz/checks/dhttp_server.rs"]
mod dhttp_server;

use roundtrip_fuzz_replay::{corpus, pieces};

#[test]
fn every_stored_input_holds_for_the_dhttp_client() {
    for input in corpus("dhttp_client") {
        dhttp_client::check(&input);
    }
}

#[test]
fn every_stored_input_holds_for_the_dhttp_server() {
    for input in corpus("dhttp_server") {
        dhttp_server::check(&input);
    }
}

proptest! {
    #[test]
    fn pieces_of_stored_inputs_hold_for_the_dhttp_client(input in pieces("dhttp_client")) {
        dhttp_client::check(&input);
    }

    #[test]
    fn pieces_of_stored_inputs_hold_for_the_dhttp_server(input in pieces("dhttp_server")) {
        dhttp_server::check(&input);
    }
}
