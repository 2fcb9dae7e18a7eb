//! Every error sentence about a scenario, next to its cause: `sentences.txt`, which is meant to be read.
//!
//! After an intended change: `ROUNDTRIP_BLESS=1 cargo test -p roundtrip-scenario --test it sentences`, and read the
//! difference.

use std::fmt::Write;
use std::path::Path;

use scenario::spec::Key;
use scenario::{Defaults, Spec};

/// Key and value, as flags.
const FLAGS: &[(&str, &str)] = &[
    ("network", "fast-internt"),
    ("network", "zebra"),
    ("network", ""),
    ("page", "smal-cluster"),
    ("page", "visit.har"),
    ("page", "./site"),
    ("page", "https://www.example.com/"),
    ("page", "6651+"),
    ("page", "6651++3883"),
    ("page", "0"),
    ("page", "2tib"),
    ("page", "5120b/"),
    ("page", "1.5"),
    ("protocol", "http1"),
    ("protocol", "http4"),
    ("tls", "1.1"),
    ("stack", "bsd"),
    ("engine", "kernel"),
    ("visit", "second"),
    ("requests", "independant"),
    ("connection", "hot"),
    ("acks", "heartbeat"),
    ("request-size", "0"),
    ("request-size", "1mib"),
    ("request-size", "many"),
    ("parallel", "0"),
    ("parallel", "65536"),
    ("parallel", "-1"),
    ("parallel", "2.5"),
    ("processing", "3.7"),
    ("processing", "-3.7ms"),
    ("processing", "2h"),
    ("runs", "0"),
    ("runs", "1e3"),
    ("runs", "100001"),
    ("seed", "5..1"),
    ("seed", "-1"),
    ("seed", "18446744073709551616"),
    ("rtt", "89"),
    ("rtt", "89 parsecs"),
    ("rtt", "1.2.3ms"),
    ("rtt", "99999999999999999999999999s"),
    ("rtt", "\u{7}\u{1b}[31m"),
    (
        "rtt",
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    ),
    ("rtt", "10ms..200ms"),
    ("rtt", "0ms..1s*3"),
    ("rate", "0"),
    ("rate", "0.5bit"),
    ("rate", "2tbit"),
    ("rate", "20"),
    ("rate", "28800"),
    ("rate", "20Mb/s"),
    ("rate", "10mbits"),
    ("rate", "-5mbit"),
    ("rate-up", "fast"),
    ("delay-up", "ms"),
    ("mss", "0"),
    ("mss", "65496"),
    ("mss", "large"),
    ("mtu", "40"),
    ("mtu", "65536"),
    ("queue", "20p+20p"),
    ("queue", "-1p"),
    ("queue", "lots"),
    ("loss", "0.1"),
    ("loss", "101%"),
    ("loss", "-1%"),
    ("loss", "burst:1%"),
    ("loss", "packets:0"),
    ("loss-up", "packets:a"),
    ("jitter", "5"),
    ("jitter", "5ms/maybe"),
    ("reordering", "1%"),
    ("reordering", "1%/0ms"),
    ("duplication", "half"),
    ("client-pages", "0"),
    ("client-pages", "many"),
    ("client-stack", "linux-2"),
    ("client-defect", "slow"),
    ("server-changed", "10"),
    ("initial-window", "70000"),
    ("idle", "pacing"),
    ("idle-after", "0s"),
    ("rto-min", "1h"),
];

/// Flags that are valid separately and invalid together.
const TOGETHER: &[&[(&str, &str)]] = &[
    &[("rtt", "89ms")],
    &[("rate", "10mbit"), ("mss", "512")],
    &[("mtu", "100")],
    &[("network", "modem"), ("mtu", "100")],
    &[("network", "modem"), ("rtt", "1ms"), ("delay-up", "2ms")],
];

/// Files with an error each.
const FILES: &[&str] = &[
    "rtt 89ms",
    "network = \"modem",
    "network = \"modem\"\nnetwork = \"isdn\"",
    "netwrok = \"modem\"",
    "[network]\nlike = \"modem\"\nrtt_ms = 5",
    "network = true",
    "rtt = 1979-05-27",
    "mss = [[512]]",
    "rate = 20",
    "rate = [\"20Mbit\", 20]",
    "rtt = { ms = 89 }",
    "rtt = 89",
    "runs = -1",
    "runs = 1.5",
    "runs = 0x1_0000_0000_0000_0000_0000_0000_0000_0000_0000",
    "page = [[\"small-page\"]]",
    "network = [\"modem\",\n  \"isdm\"]",
    "[network]\nrtt = \"89ms\"",
    "[network]\nname = \"modem\"\nrtt = \"1s\"\nrate = \"1kbit\"\nmss = 512",
    "[[network]]\nlike = \"modem\"\nrtt = \"1s\"\n[[network]]\nlike = \"modem\"\nrtt = \"1s\"",
    "[network]\nlike = \"modem\"\nname = \"a+b\"",
    "[network]\nlike = \"modem\"\nname = \"\"",
    "[network]\nlike = \"modem\"\nmtu = 100",
    "stack = { idle = \"paced\" }",
    "stack = { like = \"linux\", idel = \"paced\" }",
    "stack = { like = \"linuks\" }",
    "stack = { like = \"linux\", initial-window = true }",
    "[page]\nname = \"mine\"",
    "[page]\nname = \"mine\"\nsizes = \"small-page\"",
    "[page]\nname = \"small-page\"\nsizes = \"1\"",
    "[page]\nname = \"mine\"\nsizes = 0",
    "[page]\nobjects = 3",
    "# ééé\n  engine = 3",
    "a = [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
];

#[test]
fn every_sentence_is_as_agreed() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sentences.txt");
    let actual = sentences();
    if std::env::var_os("ROUNDTRIP_BLESS").is_some() {
        std::fs::write(&path, &actual).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    for (line, (actual, expected)) in actual.lines().zip(expected.lines()).enumerate() {
        assert_eq!(actual, expected, "line {} of sentences.txt", line + 1);
    }
    assert_eq!(actual.lines().count(), expected.lines().count(), "lines of sentences.txt");
}

fn sentences() -> String {
    let mut text = String::new();
    for (key, value) in FLAGS {
        let error = spec_of(&[(key, value)]).expect_err(value);
        writeln!(text, "--{key} {}\n    --{key}: {error}", value.escape_debug()).unwrap();
    }
    for pieces in TOGETHER {
        let spec = spec_of(pieces).unwrap();
        let flags: Vec<_> = pieces.iter().map(|(key, value)| format!("--{key} {value}")).collect();
        let error = spec.plan(&Defaults::predict()).expect_err(&flags.join(" "));
        writeln!(text, "{}\n    {error}", flags.join(" ")).unwrap();
    }
    for file in FILES {
        let error = Spec::from_toml(file, "my.toml").expect_err(file);
        let excerpt: String = file.chars().take(100).collect();
        writeln!(text, "{}\n    {error}", excerpt.replace('\n', " | ")).unwrap();
    }
    let large = " ".repeat((1 << 20) + 1);
    writeln!(text, "a file of more than 1 MiB\n    {}", Spec::from_toml(&large, "my.toml").unwrap_err())
        .unwrap();
    text
}

fn spec_of(pieces: &[(&str, &str)]) -> Result<Spec, quantity::ValueError> {
    let mut spec = Spec::default();
    for (key, value) in pieces {
        spec.add(Key::named(key).unwrap(), value)?;
    }
    Ok(spec)
}
