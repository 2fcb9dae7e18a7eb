//! The files that `roundtrip simulate` writes: the same bytes for the same command, captures that other programs read,
//! plots equal to the last reviewed ones.
//!
//! Printed output is in `transcripts.rs`. After an intended change to the plot, look at it, then store it with
//! `ROUNDTRIP_BLESS=1 cargo test -p roundtrip --test it simulate`.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use wire::packet::{Packet, Transport};

/// Temporary directory, removed when dropped.
struct TestDirectory(test_fixture::TestDirectory);

impl TestDirectory {
    fn new(name: &str) -> Self {
        let name = format!("simulate-{name}");
        Self(test_fixture::TestDirectory::below(env!("CARGO_TARGET_TMPDIR"), &name))
    }

    fn simulate(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_roundtrip"));
        command.arg("simulate").args(arguments).current_dir(&self.0).output().unwrap()
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.0.join(name)).unwrap()
    }
}

/// A short page on a path that loses packets, so that every element of a plot occurs.
const LOSSY: [&str; 10] = [
    "--page",
    "9000+4000+900",
    "--network",
    "adsl",
    "--loss",
    "8%",
    "--protocol",
    "http10-keepalive",
    "--stack",
    "linux",
];

#[test]
fn the_same_command_twice_gives_the_same_bytes() {
    let directory = TestDirectory::new("twice");
    let mut before: Option<Vec<Vec<u8>>> = None;
    for _ in 0..2 {
        let files = ["--pcap", "run.pcapng", "--plot", "run.svg", "--format", "json", "--seed", "5"];
        let output = directory.simulate(&[LOSSY.as_slice(), &files].concat());
        assert!(output.status.success());
        let plot = directory.simulate(&[LOSSY.as_slice(), &["--plot", "run.xpl"]].concat());
        assert!(plot.status.success());
        let files = ["run.pcapng", "run.svg", "run.xpl"].map(|name| directory.read(name));
        let now = [vec![output.stdout], files.to_vec()].concat();
        assert!(before.replace(now.clone()).is_none_or(|before| before == now));
    }
    let other = directory.simulate(&[LOSSY.as_slice(), &["--format", "json", "--seed", "6"]].concat());
    assert_ne!(Some(other.stdout), before.map(|before| before[0].clone()), "the seed changes nothing");
}

#[test]
fn a_plot_equals_the_last_reviewed_one() {
    let directory = TestDirectory::new("golden");
    assert!(directory.simulate(&[LOSSY.as_slice(), &["--plot", "run.svg"]].concat()).status.success());
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/time_sequence.svg");
    let now = String::from_utf8(directory.read("run.svg")).unwrap();
    if std::env::var_os("ROUNDTRIP_BLESS").is_some() {
        fs::write(&golden, &now).unwrap();
    }
    let before = fs::read_to_string(&golden).unwrap();
    let first = before.lines().zip(now.lines()).find(|(before, now)| before != now);
    assert_eq!(first, None, "{} differs from the plot", golden.display());
    assert_eq!(before.len(), now.len());
}

#[test]
fn a_probe_has_every_change_of_both_ends_in_order_of_time() {
    let directory = TestDirectory::new("probe");
    let arguments = ["--protocol", "http10-keepalive", "--page", "20000", "--probe", "run.csv"];
    assert!(directory.simulate(&arguments).status.success());
    let text = String::from_utf8(directory.read("run.csv")).unwrap();
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    let column = |name: &str| lines[0].iter().position(|heading| *heading == name).unwrap();
    let (at, end, state) = (column("at_ms"), column("end"), column("state"));
    let times: Vec<f64> = lines[1..].iter().map(|line| line[at].parse().unwrap()).collect();
    assert!(times.is_sorted());
    for side in ["client", "server"] {
        let states: Vec<&str> =
            lines[1..].iter().filter(|line| line[end] == side).map(|line| line[state]).collect();
        assert!(states.contains(&"established"), "{side} is never established");
    }
}

#[test]
fn a_capture_has_every_packet_at_both_ends_with_right_checksums() {
    let directory = TestDirectory::new("capture");
    let scenario = ["--protocol", "http10,http10-keepalive", "--stack", "linux", "--pcap", "run.pcapng"];
    assert!(directory.simulate(&[&scenario[..], &["--pcap-at", "both"]].concat()).status.success());
    let capture = directory.read("run.pcapng");
    let blocks = blocks(&capture);
    let sections = blocks.iter().filter(|(kind, _)| *kind == 0x0a0d_0d0a).count();
    assert_eq!(sections, 2, "one section for each protocol");
    let mut seen = [0; 2];
    for (_, body) in blocks.iter().filter(|(kind, _)| *kind == 6) {
        let word = |at: usize| u32::from_le_bytes(body[at..at + 4].try_into().unwrap()) as usize;
        seen[word(0)] += 1;
        check(&body[20..20 + word(12)]);
    }
    assert!(seen[0] == seen[1] && seen[0] > 50, "{seen:?}");
    tcpdump(&directory.0.join("run.pcapng"), seen[0] + seen[1]);
    // By default one end is captured, where nothing appears twice.
    assert!(directory.simulate(&scenario).status.success());
    let capture = directory.read("run.pcapng");
    let one = self::blocks(&capture).iter().filter(|(kind, _)| *kind == 6).count();
    assert_eq!(one, seen[0]);
}

/// The blocks of a capture: kind and body.
fn blocks(mut capture: &[u8]) -> Vec<(u32, &[u8])> {
    let word = |bytes: &[u8]| u32::from_le_bytes(bytes[..4].try_into().unwrap());
    let mut blocks = Vec::new();
    while !capture.is_empty() {
        let length = word(&capture[4..]) as usize;
        blocks.push((word(capture), &capture[8..length - 4]));
        capture = &capture[length..];
    }
    blocks
}

fn check(packet: &[u8]) {
    let read = Packet::read(packet).unwrap();
    assert!(matches!(read.transport, Transport::Tcp(_)), "{read:?}");
    assert_eq!(sum(&packet[..20]), 0xffff);
    let length = u16::try_from(packet.len() - 20).unwrap().to_be_bytes();
    assert_eq!(sum(&[&packet[12..20], &[0, 6], &length, &packet[20..]].concat()), 0xffff);
}

/// Ones' complement sum of 16-bit words: 0xffff over what has a right checksum (RFC 1071).
fn sum(bytes: &[u8]) -> u32 {
    let words =
        bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low)));
    let sum: u32 = words.sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    (sum & 0xffff) + (sum >> 16)
}

/// Checks the capture with tcpdump, where that is installed.
fn tcpdump(path: &Path, packets: usize) {
    if !skip::has("tcpdump") {
        return;
    }
    let output =
        Command::new("tcpdump").args(["-nvv", "-r"]).arg(path).env("PATH", skip::path()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.matches(" (correct), ").count(), packets);
    assert_eq!(text.matches("(incorrect").count(), 0);
}

#[test]
fn an_impossible_plot_is_refused_in_a_sentence() {
    let directory = TestDirectory::new("refused");
    for (arguments, printed) in [
        (["--plot", "run.xpl", "--protocol", "http10,http11"], "xplot shows one run; name one network"),
        (["--plot", "run.svg", "--page", "all"], ""),
        (["--plot", "run.svg", "--network", "all"], ""),
        (["--plot", "no/such.svg", "--runs", "1"], "no such file or directory"),
        (
            ["--plot", "run.pdf", "--runs", "1"],
            "--plot run.pdf: not a format of plots; give FILE.svg, FILE.png",
        ),
    ] {
        let output = directory.simulate(&arguments);
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains(printed), "{text}");
        assert_eq!(output.status.success(), printed.is_empty(), "{text}");
    }
    let output = directory.simulate(&["--plot", "run.svg", "--network", "all", "--page", "all"]);
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.starts_with("roundtrip: --plot run.svg: more than 20 runs are too many"), "{text}");
}

#[test]
fn the_extension_selects_the_plot_format() {
    let directory = TestDirectory::new("formats");
    for (name, magic) in [("run.svg", "<svg"), ("RUN.PNG", "\u{89}PNG"), ("run.xpl", "timeval")] {
        if magic.ends_with("PNG") && cfg!(not(feature = "png")) {
            skip::report_skip("a plot as PNG, for want of the feature png");
            continue;
        }
        let plot = ["--plot", name, "--protocol", "http11", "--runs", "1"];
        assert!(directory.simulate(&plot).status.success(), "{name}");
        let file: String = fs::read(directory.0.join(name)).unwrap().into_iter().map(char::from).collect();
        assert!(file.trim_start().starts_with(magic), "{name}: {:?}", file.get(..20));
    }
}

#[test]
fn a_run_written_as_har_is_read_back_as_the_same_page() {
    let directory = TestDirectory::new("har");
    let simulate = |page: &str, written: &[&str]| {
        let same = ["--network", "fast-internet", "--protocol", "http11", "--runs", "1", "--page", page];
        let output = directory.simulate(&[&same, written].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output
    };
    simulate("6651+3883+1866", &["--har", "run.har"]);
    let read = simulate("run.har", &["--format", "json"]);
    let by_sizes = simulate("6651+3883+1866", &["--format", "json"]);
    let row = |output: &[u8]| {
        let rows: serde_json::Value = serde_json::from_slice(output).unwrap();
        let elapsed = rows[0]["elapsed_ms"].as_f64().unwrap();
        (elapsed, ["payload_bytes", "packets_down"].map(|field| rows[0][field].clone()))
    };
    let ((again, page), (first, same_page)) = (row(&read.stdout), row(&by_sizes.stdout));
    assert_eq!(page, same_page);
    // A recording does not tell the server's time from the time that the request and the first segment take to send.
    assert!((first..first * 1.05).contains(&again), "{again} ms, and first {first} ms");
}

#[test]
fn waterfall_is_one_run_as_svg_or_all_of_them_as_html() {
    let directory = TestDirectory::new("waterfall");
    let page = ["--page", "9000+4000+900", "--network", "dsl", "--runs", "1"];
    let simulate = |protocols: &str, file: &str| {
        let flags = [&page[..], &["--protocol", protocols, "--waterfall", file]].concat();
        let output = directory.simulate(&flags);
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(simulate("http11-parallel", "one.svg").0, Some(0));
    let svg = String::from_utf8(directory.read("one.svg")).unwrap();
    // The last object opens a connection of its own.
    assert!(svg.contains("critical path 1 -&gt; 3: request"), "{svg}");
    assert_eq!(simulate("http10,http11-parallel", "both.html").0, Some(0));
    let html = String::from_utf8(directory.read("both.html")).unwrap();
    assert_eq!(html.matches("<div class=\"waterfall\">").count(), 2);
    for (protocols, file, part) in [
        ("http10,http11", "both.svg", "SVG shows one run; give FILE.html"),
        ("http11", "one.png", "give FILE.svg or FILE.html"),
        ("dhttp", "none.svg", "no run has a waterfall"),
    ] {
        let (status, reported) = simulate(protocols, file);
        assert!(status == Some(2) && reported.contains(part), "{status:?} {reported}");
    }
}
