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
    let words = flags.iter().map(quoted).chain(["--run".to_owned(), "--".to_owned()]);
    let words: Vec<String> =
        words.chain(program.map(str::to_owned)).chain(command.iter().map(quoted)).collect();
    Some(format!("{}: {kind}, not a capture; write `roundtrip diagnose {}`", Quoted(&first), words.join(" ")))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(typed: &str) -> Option<String> {
        let arguments: Vec<OsString> = typed.split(' ').map(OsString::from).collect();
        super::refusal(&arguments)
    }

    #[test]
    fn a_command_gets_the_command_line_that_runs_it() {
        let expected = |first: &str, kind, command_line: &str| {
            Some(format!(
                "`{first}`: {kind}, not a capture; write `roundtrip diagnose --run -- {command_line}`"
            ))
        };
        for typed in ["-- sh -c true", "--run sh -c true", "sh -c true"] {
            let typed = format!("roundtrip diagnose {typed}");
            assert_eq!(refusal(&typed), expected("sh", "a command", "sh -c true"), "{typed}");
        }
        assert_eq!(
            refusal("roundtrip diagnose -- curl -s http://h/?a=1&b=2"),
            expected("curl", "a command", "curl -s 'http://h/?a=1&b=2'")
        );
        assert_eq!(
            refusal("roundtrip diagnose http://h/"),
            expected("http://h/", "an address", "curl http://h/")
        );
        assert_eq!(
            refusal("roundtrip diagnose --svg plots -- curl h"),
            Some(
                "`curl`: a command, not a capture; write `roundtrip diagnose --svg plots --run -- curl h`"
                    .to_owned()
            )
        );
    }

    #[test]
    fn other_mistakes_keep_their_own_errors() {
        for typed in [
            "roundtrip",
            "roundtrip predict -- sh",
            "roundtrip diagnose",
            "roundtrip diagnose --run",
            "roundtrip diagnose --run --bogus sh",
            "roundtrip diagnose --run --bogus -- sh",
            "roundtrip diagnose --bogus",
            "roundtrip diagnose no-such-capture.pcapng --bogus",
        ] {
            assert_eq!(refusal(typed), None, "{typed}");
        }
    }
}
