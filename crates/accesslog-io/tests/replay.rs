//! Replays the fuzzer's corpus of tables through the same check as the fuzz target, and mutations of it. Not a
//! substitute for fuzzing: that finds the inputs, this retains them.
//!
//! A program of its own, because it limits the peak memory of its process.

extern crate roundtrip_accesslog_io as accesslog_io;

use std::fs;
use std::path::{Path, PathBuf};

#[path = "../../../fuzz/checks/table.rs"]
mod table;

fn corpus() -> Vec<(PathBuf, Vec<u8>)> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/table");
    let files = fs::read_dir(&corpus).unwrap_or_else(|error| panic!("{}: {error}", corpus.display()));
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    files.into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

#[test]
fn every_stored_table_holds() {
    let files = corpus();
    for (path, bytes) in &files {
        println!("{}", path.display());
        table::check(bytes);
    }
    assert!(files.len() >= 12, "the corpus holds only {} inputs", files.len());
}

/// `ROUNDTRIP_MUTATIONS` overrides the number of mutations that CI uses.
#[test]
fn mutated_tables_hold() {
    let count =
        std::env::var("ROUNDTRIP_MUTATIONS").ok().and_then(|count| count.parse().ok()).unwrap_or(5_000);
    let files = corpus();
    let mut random = Random(1);
    for number in 0..count {
        let mut bytes = files[random.below(files.len())].1.clone();
        if bytes.is_empty() {
            continue;
        }
        for _ in 0..=random.below(6) {
            mutate(&mut bytes, &mut random);
        }
        if number % 100_000 == 0 {
            println!("{number} mutations");
        }
        table::check(&bytes);
    }
    // A few kilobytes that declare gigabytes are refused.
    let peak = peak_kib();
    println!("at most {peak} KiB of memory");
    assert!(peak < 512 << 10, "{peak} KiB of memory");
}

fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().trim_end_matches(" kB").parse().unwrap()
}

fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    // The decisive bytes are at the ends: the magic number and lengths.
    let reach = if random.below(2) == 0 { bytes.len() } else { bytes.len().min(256) };
    let at = if random.below(2) == 0 { random.below(reach) } else { bytes.len() - 1 - random.below(reach) };
    match random.below(6) {
        0 => bytes[at] = u8::try_from(random.below(256)).unwrap(),
        1 => bytes[at] ^= 1 << random.below(8),
        2 => bytes[at] = [0, 1, 0x7f, 0x80, 0xfe, 0xff][random.below(6)],
        3 => {
            // A length: four or eight bytes of an edge.
            let edge: u64 = [0, 1, 1 << 31, (1 << 31) - 1, 1 << 40, u64::MAX][random.below(6)];
            for (byte, new) in bytes[at..].iter_mut().zip(edge.to_le_bytes()).take(4 << random.below(2)) {
                *byte = new;
            }
        }
        4 if bytes.len() > 16 => {
            let length = 1 + random.below(16);
            let end = (at + length).min(bytes.len());
            if random.below(2) == 0 {
                bytes.drain(at..end);
            } else {
                let part = bytes[at..end].to_vec();
                bytes.splice(at..at, part);
            }
        }
        _ => bytes.truncate(bytes.len() - random.below(bytes.len().min(64))),
    }
    if bytes.is_empty() {
        bytes.push(0);
    }
}

/// Linear congruential generator (Knuth's MMIX).
struct Random(u64);

impl Random {
    fn below(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % below.max(1)
    }
}
