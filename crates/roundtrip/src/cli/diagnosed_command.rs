//! Error and suggestion for `roundtrip diagnose` with a command or an address where a capture belongs.

use std::env;
use std::ffi::OsString;
use std::path::Path;

use quantity::names::Quoted;

/// The error for a refused command line of `diagnose` that holds a command; `None` if it holds none.
pub fn refusal(arguments: &[OsString]) -> Option<String> {
    let [_, verb, words @ ..] = arguments else { return None };
    if verb != "diagnose" {
        return None;
    }
    let position = |flag: &str| words.iter().position(|word| word == flag);
    match (position("--run"), position("--")) {
        (Some(_), Some(_)) => None,
        (None, Some(index)) if ends_with_file(&words[..index]) => Some(format!(
            "a capture and a command exclude each other; write `roundtrip diagnose {}`, or `roundtrip diagnose --run -- {}`",
            typed(&words[index - 1..index]),
            typed(&words[index + 1..])
        )),
        (None, Some(index)) | (Some(index), None) => sentence(&words[..index], &words[index + 1..]),
        (None, None) => misplaced_command_error(words),
    }
}

/// The error for inputs that begin with no file, but with an address or an installed program.
pub fn misplaced_command_error(words: &[OsString]) -> Option<String> {
    let first = words.first()?.to_str()?;
    let is_command = !Path::new(first).exists() && (is_address(first) || is_installed(first));
    if is_command { sentence(&[], words) } else { None }
}

fn sentence(flags: &[OsString], command: &[OsString]) -> Option<String> {
    let first = command.first()?.to_string_lossy();
    if first.starts_with('-') {
        return None;
    }
    let (kind, program) = if is_address(&first) { ("an address", Some("curl")) } else { ("a command", None) };
    let words: Vec<OsString> = [flags.to_vec(), vec!["--run".into(), "--".into()]].concat();
    let program = program.into_iter().map(OsString::from).collect();
    let words = [words, program, command.to_vec()].concat();
    Some(format!("{}: {kind}, not a capture; write `roundtrip diagnose {}`", Quoted(&first), typed(&words)))
}

/// Whether the last word is a capture, not the value of a flag.
fn ends_with_file(words: &[OsString]) -> bool {
    match words {
        [.., flag, _] if flag.to_string_lossy().starts_with("--") => false,
        [.., last] => last == "-" || Path::new(last).is_file(),
        [] => false,
    }
}

fn typed(words: &[OsString]) -> String {
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

fn is_address(word: &str) -> bool {
    word.starts_with("http://") || word.starts_with("https://")
}

fn is_installed(program: &str) -> bool {
    let directories = env::var_os("PATH").unwrap_or_default();
    !program.contains('/')
        && env::split_paths(&directories).any(|directory| directory.join(program).is_file())
}

/// Quotes a word for a POSIX shell.
fn quoted(word: &OsString) -> String {
    let word = word.to_string_lossy().replace(char::is_control, "?");
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "%+,-./:=@_".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        word
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
