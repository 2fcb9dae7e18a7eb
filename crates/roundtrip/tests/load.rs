//! `load` and its plans, by the command line. Not the laws: `scenario` tests those.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use scenario::surge::text;

fn roundtrip(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_roundtrip")).args(arguments).current_dir(folder).output().unwrap()
}

#[test]
fn a_plan_is_written_and_the_files_it_asks_for() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("load-plan");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let plan =
        ["load", "plan", "--files", "50", "--cap", "100000", "--users", "5", "--seed", "3", "-o", "plan.txt"];
    let said = roundtrip(&folder, &plan);
    assert!(said.status.success(), "{said:?}");
    assert!(String::from_utf8_lossy(&said.stdout).contains("The plan is in plan.txt."));
    let text = fs::read_to_string(folder.join("plan.txt")).unwrap();
    assert!(roundtrip(&folder, &plan).status.success());
    assert!(text == fs::read_to_string(folder.join("plan.txt")).unwrap(), "the same seed gives another plan");
    let plan = text::read(&text).unwrap();
    let said = roundtrip(&folder, &["site", "surge", "www", "--plan", "plan.txt"]);
    assert!(said.status.success(), "{said:?}");
    for (file, size) in plan.files.iter().enumerate() {
        assert_eq!(fs::metadata(folder.join(format!("www/{file}.bin"))).unwrap().len(), *size);
    }
}

#[test]
fn what_is_no_plan_is_refused_with_its_line() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("load-refused");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("cut.txt"), "roundtrip-plan 1\nset surge-1998\n").unwrap();
    for (arguments, says) in [
        (
            &["site", "surge", "www", "--plan", "cut.txt"][..],
            "cut.txt: line 3 of the plan is not `seed` with its value",
        ),
        (&["site", "microscape", "www", "--plan", "cut.txt"], "--plan is for the site surge"),
        (&["load", "plan", "--rate", "1..x"], "`1..x` is not a rate"),
        (&["load", "plan", "--users", "0"], "--users: `0` is not a number"),
        (&["load", "plan", "--users", "4000000000"], "the plan would have about"),
    ] {
        let refused = roundtrip(&folder, arguments);
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(2) && said.contains(says), "{arguments:?}: {said}");
    }
    assert!(!folder.join("www").exists(), "something was left behind");
}
