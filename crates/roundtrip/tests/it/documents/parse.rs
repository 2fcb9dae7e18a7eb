//! Every command line of the documentation parses; `main.rs` runs those that need nothing else.

mod commands;

use std::ffi::OsString;

use clap::error::ErrorKind;

use commands::DocumentedCommand;

#[test]
fn every_documented_command_line_parses() {
    let commands = commands::all();
    assert!(commands.len() > 100, "only {} commands were found", commands.len());
    let complaints: Vec<String> = commands.iter().filter_map(complaint).collect();
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

/// The error of a command line. `VERB` stands for any verb; prose may name a verb or a flag without the arguments that
/// are required.
fn complaint(documented: &DocumentedCommand) -> Option<String> {
    let DocumentedCommand { location, words, is_whole } = documented;
    let typed = words.iter().map(|word| if word == "VERB" { "predict" } else { word });
    let error = super::command().try_get_matches_from(typed.map(OsString::from)).err()?;
    let is_accepted = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => true,
        ErrorKind::MissingRequiredArgument => !is_whole,
        ErrorKind::UnknownArgument => words[1..] == ["--version", "--verbose"],
        _ => false,
    };
    (!is_accepted)
        .then(|| format!("{location}: {}: {}", words.join(" "), super::usage_error::sentence(&error)))
}

#[test]
fn an_unknown_flag_is_reported_with_its_place() {
    let words = ["roundtrip", "predict", "--netwrok", "modem"].map(str::to_owned).to_vec();
    let documented = DocumentedCommand { location: "a.md:1".to_owned(), words, is_whole: true };
    assert!(complaint(&documented).is_some_and(|text| text.contains("a.md:1") && text.contains("--netwrok")));
}
