//! What the reader's side can show: width and colour.
//!
//! Not a terminal library: three escape sequences, and none where they are not wanted (<https://no-color.org>).

use std::io::IsTerminal;

/// What can be shown on one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// Columns, where somebody sits before them; a file is as wide as it needs to be.
    pub width: Option<usize>,
    /// Whether to use bold, dim and colour.
    pub colour: bool,
}

impl Terminal {
    /// What standard output can show.
    pub fn of_stdout() -> Self {
        if !std::io::stdout().is_terminal() {
            return Self { width: None, colour: false };
        }
        let width = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
        Self { width, colour: wants_colour() }
    }

    /// `text` as a heading.
    pub fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    /// `text` as an aside.
    pub fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colour && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

fn wants_colour() -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    !set("NO_COLOR") && !dumb
}
