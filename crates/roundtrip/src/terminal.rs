//! Detects the width and colour of the terminal, for `render`.

use std::io::IsTerminal;
use std::os::fd::AsFd;

use render::output::grid::wrap;
use render::terminal::{Terminal, USUAL_WIDTH, printable};

/// Writes a warning to standard error, wrapped between words.
pub fn warn(sentence: &str) {
    eprint!("{}", wrap("roundtrip: ", &printable(sentence, false), of_stderr().prose_width()));
}

/// Capabilities of standard output.
pub fn of_stdout() -> Terminal {
    of(&std::io::stdout())
}

/// Capabilities of standard error.
pub fn of_stderr() -> Terminal {
    of(&std::io::stderr())
}

/// Capabilities of standard error, and its number of lines, if it can show text that changes in place.
pub fn interactive_stderr() -> Option<(Terminal, usize)> {
    let stream = std::io::stderr();
    let can_move = std::env::var_os("TERM").is_some_and(|term| term != "dumb");
    let (_, height) = terminal_size::terminal_size_of(&stream).filter(|_| can_move)?;
    Some((of(&stream), usize::from(height.0)))
}

fn of(stream: &(impl IsTerminal + AsFd)) -> Terminal {
    let is_terminal = stream.is_terminal();
    let detected = || terminal_size::terminal_size_of(stream).map(|(width, _)| usize::from(width.0));
    let width = is_terminal.then(|| detected().filter(|width| *width > 0).unwrap_or(USUAL_WIDTH));
    Terminal { width: columns_variable().or(width), colour: is_terminal && wants_colour() }
}

/// Width in `COLUMNS`, which also applies to a pipe.
fn columns_variable() -> Option<usize> {
    std::env::var("COLUMNS").ok()?.parse().ok().filter(|width| *width > 0)
}

fn wants_colour() -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    !set("NO_COLOR") && !dumb
}
