//! The systemd units and the files they name: the program accepts what `docs/operation.md` shows.
//!
//! systemd itself checks the units where it is installed.

use std::path::{Path, PathBuf};
use std::process::Command;

const PROGRAM: &str = env!("CARGO_BIN_EXE_roundtrip");

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The file that the documentation shows under this name.
fn documented_file(verb: &str) -> String {
    let document = std::fs::read_to_string(root().join("docs/operation.md")).unwrap();
    let begin = format!("```toml\n# /etc/roundtrip/{verb}.toml\n");
    let text = document.split(&begin).nth(1).unwrap_or_else(|| panic!("no file for {verb}"));
    text.split("```").next().unwrap().to_owned()
}

/// The text with missing paths and devices replaced by those of this host.
fn adapted_to_host(text: &str) -> String {
    ["/srv/www", "lan0", "wan0", "192.0.2.1:80"]
        .iter()
        .zip(["/tmp", "lo", "lo", "127.0.0.1:8099"])
        .fold(text.to_owned(), |text, (documented, local)| text.replace(documented, local))
        .lines()
        .filter(|line| !line.starts_with("access-log"))
        .map(|line| format!("{line}\n"))
        .collect()
}

#[test]
fn each_unit_runs_a_verb_with_a_file_that_it_accepts() {
    let directory = std::env::temp_dir().join(format!("roundtrip-units-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    for name in ["serve", "gateway", "cache", "intercept", "nat"] {
        let verb = if name == "intercept" { "cache" } else { name };
        let unit = root().join(format!("packaging/systemd/roundtrip-{name}.service"));
        let unit = std::fs::read_to_string(unit).unwrap();
        let file = format!("/etc/roundtrip/{name}.toml");
        assert!(unit.contains(&format!("ExecStart=/usr/bin/roundtrip {verb} --config {file}\n")), "{verb}");
        for limit in ["LimitNOFILE=65536\n", "MemoryMax=", "NoNewPrivileges=yes\n", "CapabilityBoundingSet="]
        {
            assert!(unit.contains(limit), "{name}: {limit}");
        }
        let config = directory.join(format!("{name}.toml"));
        std::fs::write(&config, adapted_to_host(&documented_file(name))).unwrap();
        // The kernel must judge what `nat` would install; the file is parsed before.
        let last = if verb == "nat" { "--print-rules" } else { "--check" };
        let output = Command::new(PROGRAM).args([verb, "--config"]).arg(&config).arg(last).output().unwrap();
        assert!(output.status.success(), "{verb}: {}", String::from_utf8_lossy(&output.stderr));
        // systemd requires the program of a unit to exist.
        let copy = directory.join(format!("roundtrip-{name}.service"));
        std::fs::write(&copy, unit.replace("/usr/bin/roundtrip", PROGRAM)).unwrap();
        if skip::has("systemd-analyze") {
            let output =
                Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&copy).output().unwrap();
            let printed = String::from_utf8_lossy(&output.stderr).into_owned();
            let about_it: Vec<&str> = printed.lines().filter(|line| line.contains("roundtrip-")).collect();
            assert!(about_it.is_empty(), "{name}: {about_it:?}");
        }
    }
    std::fs::remove_dir_all(directory).unwrap();
}
