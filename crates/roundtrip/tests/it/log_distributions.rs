//! `load plan` with the distributions of a log, and as a replay of a log: real logs where available, and a synthetic one. Not
//! the estimates themselves: `workload` tests those.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use wire::Time;
use workload::plan::{PageStart, Plan};
use workload::set::PlanDistributions;
use workload::text;

fn roundtrip(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_roundtrip")).args(arguments).current_dir(directory).output().unwrap()
}

fn directory(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    directory
}

fn plan(directory: &Path, arguments: &[&str]) -> Plan {
    let printed = roundtrip(directory, &[&["load", "plan", "-o", "plan.txt"], arguments].concat());
    assert!(printed.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&printed.stderr));
    text::read(&fs::read_to_string(directory.join("plan.txt")).unwrap()).unwrap()
}

/// The log of a plan at a server without queueing, in nginx's format as JSON.
fn log(plan: &Plan) -> String {
    let mut clocks =
        vec![Time::ZERO; 1 + plan.pages.iter().map(|page| page.user as usize).max().unwrap_or(0)];
    let mut lines = Vec::new();
    for page in &plan.pages {
        let clock = &mut clocks[page.user as usize];
        *clock = match page.start {
            PageStart::After(after) => *clock + after,
            PageStart::At(at) => at,
        };
        for object in &page.objects {
            *clock += object.after;
            let (status, size) = if object.is_conditional { (304, 0) } else { (200, plan.size(object.file)) };
            let seconds = 1_700_000_000.0 + clock.since(Time::ZERO).as_secs_f64();
            lines.push((
                *clock,
                format!(
                    r#"{{"remote_addr":"10.0.0.{}","msec":"{seconds:.3}","request_uri":"/{}","status":{status},"body_bytes_sent":{size}}}"#,
                    page.user, object.file
                ),
            ));
        }
    }
    lines.sort_by_key(|(time, _)| *time);
    lines.into_iter().map(|(_, line)| line + "\n").collect()
}

#[test]
fn a_plan_follows_the_distributions_of_its_log() {
    let directory = directory("laws-of-a-log");
    let first =
        plan(&directory, &["--users", "150", "--for", "300s", "--files", "500", "--conditional", "10%"]);
    fs::write(directory.join("access.log"), log(&first)).unwrap();
    let of_log = ["--laws-of", "access.log", "--users", "20", "--for", "30s"];
    let second = plan(&directory, &of_log);
    let PlanDistributions::Site(set) = &second.spec.set else { panic!("{:?}", second.spec.set) };
    assert!((set.popularity - 1.0).abs() < 0.1, "{}", set.popularity);
    assert!((second.spec.conditional.get() - 0.1).abs() < 0.01);
    assert_eq!(second.spec.files, 500);
    assert_eq!(plan(&directory, &of_log), second, "the same log and seed give another plan");
    let flags = ["--laws-of", "access.log", "--files", "99", "--conditional", "0%", "--for", "1s"];
    assert_eq!(
        (plan(&directory, &flags).files.len(), plan(&directory, &flags).spec.conditional.get()),
        (99, 0.0)
    );

    let printed = roundtrip(&directory, &[&["load", "plan", "--format", "json"], &of_log[..]].concat());
    let rows: Vec<Value> = serde_json::from_slice(&printed.stdout).unwrap();
    let of = |of: &str| rows.iter().filter(|row| row["of"] == of).count();
    // A log of five minutes has no sessions, and reports that.
    assert_eq!((of("log"), of("plan")), (7, 7), "{rows:?}");
    assert!(rows.iter().filter(|row| row["of"] == "log").all(|row| row["distance"].as_f64() < Some(0.2)));
    assert!(
        String::from_utf8_lossy(&printed.stderr)
            .contains("the log has 0 sessions that both begin and end in it")
    );

    let replayed = plan(&directory, &["--replay", "access.log"]);
    assert_eq!(replayed.requests(), first.requests());
    let mut sizes: Vec<u64> = replayed.files.clone();
    let mut requested: Vec<u32> =
        first.pages.iter().flat_map(|page| page.objects.iter().map(|object| object.file)).collect();
    requested.sort_unstable();
    requested.dedup();
    assert_eq!(sizes.len(), requested.len(), "each path is a file");
    sizes.retain(|size| !first.files.contains(size));
    assert!(sizes.iter().all(|size| *size == 0), "of the size it had, or never sent: {sizes:?}");
}

#[test]
fn too_short_logs_and_conflicting_flags_are_refused() {
    let directory = directory("laws-of-little");
    let line = r#"192.0.2.1 - - [25/Oct/2015:04:11:25 +0100] "GET / HTTP/1.1" 200 24323 "-" "curl""#;
    fs::write(directory.join("access.log"), format!("{line}\n").repeat(10)).unwrap();
    for (arguments, sentence) in [
        (
            &["--laws-of", "access.log"][..],
            "--laws-of: the log has 10 complete or unchanged responses, and distributions need at least 1000; give a longer log",
        ),
        (&["--laws-of", "access.log", "--laws", "surge-1998"], "exclude each other"),
        (&["--laws-of", "access.log", "--replay", "access.log"], "exclude each other"),
        (&["--laws-of", "nothing.log"], "nothing.log"),
    ] {
        let printed = roundtrip(&directory, &[&["load", "plan"], arguments].concat());
        let stderr = String::from_utf8_lossy(&printed.stderr).into_owned();
        assert_eq!(printed.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.contains(sentence), "{arguments:?}: {stderr}");
    }
}

#[test]
fn distributions_fit_real_logs() {
    let Some(logs) = std::env::var_os("ROUNDTRIP_LOGS").map(PathBuf::from) else {
        skip::report_skip("ROUNDTRIP_LOGS names no directory of real logs");
        return;
    };
    let directory = directory("laws-of-real-logs");
    for (name, users, files, pages, exponent) in [
        // Counted independently, by another program.
        ("nasa_19950801.clf", "2,352 users", 1_739, 19_953, 1.0748),
        ("elastic_apache_combined.log", "1,654 users", 1_387, 7_542, 1.036),
    ] {
        let log = logs.join(name).display().to_string();
        let printed = roundtrip(&directory, &["load", "plan", "--laws-of", &log, "--for", "5s"]);
        let heading =
            String::from_utf8_lossy(&printed.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(heading.contains(users), "{name}: {heading}");
        let printed =
            roundtrip(&directory, &["load", "plan", "--laws-of", &log, "--format", "json", "--for", "5s"]);
        let rows: Vec<Value> = serde_json::from_slice(&printed.stdout).unwrap();
        let of_log: Vec<&Value> = rows.iter().filter(|row| row["of"] == "log").collect();
        assert_eq!(of_log.len(), 7, "whole seconds hide one: {of_log:?}");
        assert!(of_log.iter().all(|row| row["distance"].as_f64() < Some(0.16)), "{of_log:?}");
        let row = |what: &str| of_log.iter().find(|row| row["what"] == what).unwrap();
        assert_eq!(row("objects of a page")["values"], pages, "{name}");
        let plan_of_log = plan(&directory, &["--laws-of", &log, "--for", "5s"]);
        assert_eq!(plan_of_log.spec.files, files, "{name}");
        assert!((plan_of_log.spec.set.set().popularity - exponent).abs() < 1e-3, "{name}");
    }
    let log = logs.join("hackers-access.log").display().to_string();
    let printed = roundtrip(&directory, &["load", "plan", "--laws-of", &log]);
    assert!(String::from_utf8_lossy(&printed.stderr).contains("the log has 37 files with different sizes"));
}
