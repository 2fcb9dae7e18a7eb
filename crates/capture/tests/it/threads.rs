//! Large captures on several threads: the number of threads must not show in the result.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;

use report::filter::Filter;
use report::json;
use report::verdict::Verdict;
use wire::packet::{Flags, TcpBuilder};

/// A pcap file of `packets` packets. Many pairs of client and server repeat a request and a late response, and each
/// connection closes after some. Every eleventh SYN goes to an unreachable host.
fn capture(packets: u32) -> Vec<u8> {
    let mut file = Vec::new();
    let mut word = |words: [u32; 4], bytes: &[u8]| {
        words.iter().for_each(|word| file.extend(word.to_be_bytes()));
        file.extend(bytes);
    };
    word([0xa1b2_3c4d, 0x0002_0004, 0, 0], &[0, 0, 0xff, 0xff, 0, 0, 0, 101]);
    let mut packet = Vec::new();
    for number in 0..packets {
        let (pair, step) = (number % 613, number / 613);
        let (connection, step) = (step / 9, step % 9);
        let [_, _, high, low] = pair.to_be_bytes();
        let port = 20_000 + u16::try_from(connection).unwrap();
        let (client, server) = (([10, 0, high, low], port).into(), ([192, 168, high, low / 3], 80).into());
        let is_dead = pair % 11 == 0;
        let ack = Flags::ACK;
        let (from_client, flags, seq, acknowledged, length) = match step {
            _ if is_dead => (true, Flags::SYN, 7, 0, 0),
            0 => (true, Flags::SYN, 7, 0, 0),
            1 => (false, Flags::SYN | ack, 9, 8, 0),
            2 => (true, ack, 8, 10, 300),
            3 => (false, ack, 10, 308, 900),
            4 => (true, ack, 308, 910, 20),
            5 => (false, ack, 910, 328, 1_400),
            6 => (true, ack, 328, 2_310, 0),
            7 if pair % 5 == 0 => (false, Flags::RST | ack, 2_310, 328, 0),
            7 => (true, Flags::FIN | ack, 328, 2_310, 0),
            _ => (false, Flags::FIN | ack, 2_310, 329, 0),
        };
        let (source, destination) = if from_client { (client, server) } else { (server, client) };
        packet.clear();
        TcpBuilder { source, destination, seq, ack: acknowledged, flags, window: 60_000, options: &[] }
            .write(&vec![b'x'; length], &mut packet)
            .unwrap();
        let length = u32::try_from(packet.len()).unwrap();
        // One time of a year later is implausible.
        let seconds = if number == 5_000 { 32_000_000 } else { number / 2_000 };
        word([seconds, number % 2_000 * 500_000, length, length], &packet);
    }
    file
}

fn diagnosed(file: &Path, threads: usize) -> (String, Vec<String>) {
    let capture = roundtrip_capture::read_with_threads(file, &Filter::default(), false, threads).unwrap();
    let warnings = [capture.warnings.clone(), capture.damage.iter().cloned().collect()].concat();
    let verdict = Verdict { cases: Vec::new(), captures: 1, unjudged: None };
    (json::text(&[capture], &verdict), warnings)
}

#[test]
fn result_does_not_depend_on_the_number_of_threads() {
    let directory = std::env::temp_dir();
    let path = directory.join(format!("roundtrip-threads-{}.pcap", std::process::id()));
    let mut bytes = capture(40_000);
    // Damage at the end.
    bytes.truncate(bytes.len() - 3);
    assert!(bytes.len() > 6 << 20, "{} bytes are a small capture", bytes.len());
    std::fs::File::create(&path).unwrap().write_all(&bytes).unwrap();
    let (one, warnings) = diagnosed(&path, 1);
    let causes: BTreeSet<&str> =
        one.lines().filter_map(|line| line.split_once("\"cause\": ")).map(|(_, cause)| cause).collect();
    assert!(causes.len() >= 3 && one.contains("syn-unanswered"), "{causes:?}");
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    for threads in [2, 4] {
        assert!(diagnosed(&path, threads) == (one.clone(), warnings.clone()), "{threads} threads");
    }
    std::fs::remove_file(&path).unwrap();
}
