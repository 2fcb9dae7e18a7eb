//! The examples each `--help` and each manual page begins with.
//!
//! Data, so that a test can parse every one of them: help that has gone stale does not pass.

/// A command line and what it gives.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// As typed in a shell.
    pub command: &'static str,
    /// What comes of it, in a few words.
    pub gives: &'static str,
}

const fn example(command: &'static str, gives: &'static str) -> Example {
    Example { command, gives }
}

/// The examples of one verb, or of the program where there is no verb.
pub fn of(verb: Option<&str>) -> &'static [Example] {
    match verb {
        None => &PROGRAM,
        Some("list") => &LIST,
        Some("completions") => &COMPLETIONS,
        Some("man") => &MAN,
        Some(_) => &[],
    }
}

/// The examples of a verb as the text above its usage; `None` if it has none.
pub fn text(verb: Option<&str>) -> Option<String> {
    let examples = of(verb);
    if examples.is_empty() {
        return None;
    }
    let width = examples.iter().map(|example| example.command.len()).max().unwrap_or(0).min(LONG);
    let lines = examples.iter().map(|example| line(example, width));
    Some(format!("Examples:\n{}", lines.collect::<String>().trim_end()))
}

/// Beyond this many columns the words go on a line of their own.
const LONG: usize = 54;

fn line(example: &Example, width: usize) -> String {
    let Example { command, gives } = example;
    if command.len() > width {
        format!("  {command}\n      {gives}\n")
    } else {
        format!("  {command:width$}  {gives}\n")
    }
}

const PROGRAM: [Example; 1] = [example("roundtrip list networks", "the names it knows")];

const LIST: [Example; 2] = [
    example("roundtrip list", "everything that has a name, with its source"),
    example("roundtrip list networks --format json", "one kind, for a program to read"),
];

const COMPLETIONS: [Example; 2] = [
    example("roundtrip completions bash > ~/.local/share/bash-completion/completions/roundtrip", "for bash"),
    example("roundtrip completions fish > ~/.config/fish/completions/roundtrip.fish", "for fish"),
];

const MAN: [Example; 2] = [
    example("roundtrip man | man -l -", "the program's manual page"),
    example("roundtrip man predict > roundtrip-predict.1", "that of one verb"),
];
