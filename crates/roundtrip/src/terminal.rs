//! What the reader's side can show: width and colour.
//!
//! Not a terminal library: a few escape sequences, and none where they are not wanted (<https://no-color.org>).

use std::io::IsTerminal;
use std::os::fd::AsFd;

/// What can be shown on one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// Columns, where somebody sits before them; a file is as wide as it needs to be.
    pub width: Option<usize>,
    /// Whether to use bold, dim and colour.
    pub colour: bool,
}

/// Colours that can be told apart on light and on dark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// Something is wrong here.
    Red,
    /// Something is slow elsewhere.
    Yellow,
    /// Something was lost.
    Magenta,
}

impl Terminal {
    /// What standard output can show.
    pub fn of_stdout() -> Self {
        Self::of(&std::io::stdout())
    }

    /// What standard error can show, and how many lines of it, if something can be drawn on it that changes.
    pub fn to_draw_on() -> Option<(Self, usize)> {
        let stream = std::io::stderr();
        let can_move = std::env::var_os("TERM").is_some_and(|term| term != "dumb");
        let (_, height) = terminal_size::terminal_size_of(&stream).filter(|_| can_move)?;
        Some((Self::of(&stream), usize::from(height.0)))
    }

    fn of(stream: &(impl IsTerminal + AsFd)) -> Self {
        if !stream.is_terminal() {
            return Self { width: None, colour: false };
        }
        let width = terminal_size::terminal_size_of(stream).map(|(width, _)| usize::from(width.0));
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

    /// `text` in a colour.
    pub fn coloured(self, colour: Colour, text: &str) -> String {
        let code = match colour {
            Colour::Red => "31",
            Colour::Yellow => "33",
            Colour::Magenta => "35",
        };
        self.paint(code, text)
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
