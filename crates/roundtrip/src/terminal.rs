//! Capabilities of the terminal: width and colour.
//!
//! Not a terminal library: a few escape sequences, and none where they are not wanted (<https://no-color.org>).

use std::io::IsTerminal;
use std::os::fd::AsFd;

/// Capabilities of one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// Columns: `COLUMNS` where it is set, else the terminal's; `None` for a file or a pipe, where tables keep all their
    /// columns.
    pub width: Option<usize>,
    /// Whether to use bold, dim and colour.
    pub colour: bool,
}

/// Columns of a terminal that does not report its own, and of prose in a file.
const USUAL_WIDTH: usize = 80;
/// Maximum columns of prose: longer lines are hard to read.
const MAX_PROSE_WIDTH: usize = 100;
/// Minimum columns of prose: shorter lines are harder to read than ones that the terminal breaks.
const MIN_PROSE_WIDTH: usize = 20;

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
    /// Capabilities of standard output.
    pub fn of_stdout() -> Self {
        Self::of(&std::io::stdout())
    }

    /// Capabilities of standard error, and its number of lines, if it can show text that changes in place.
    pub fn to_draw_on() -> Option<(Self, usize)> {
        let stream = std::io::stderr();
        let can_move = std::env::var_os("TERM").is_some_and(|term| term != "dumb");
        let (_, height) = terminal_size::terminal_size_of(&stream).filter(|_| can_move)?;
        Some((Self::of(&stream), usize::from(height.0)))
    }

    fn of(stream: &(impl IsTerminal + AsFd)) -> Self {
        let is_terminal = stream.is_terminal();
        let own = || terminal_size::terminal_size_of(stream).map(|(width, _)| usize::from(width.0));
        let own = is_terminal.then(|| own().filter(|width| *width > 0).unwrap_or(USUAL_WIDTH));
        Self { width: columns_variable().or(own), colour: is_terminal && wants_colour() }
    }

    /// Columns for prose.
    pub fn prose_width(self) -> usize {
        self.width.unwrap_or(USUAL_WIDTH).clamp(MIN_PROSE_WIDTH, MAX_PROSE_WIDTH)
    }

    /// `text` as a heading.
    pub fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    /// `text` dimmed.
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

/// `COLUMNS`, as a user sets it to have a width of their own, also in a pipe.
fn columns_variable() -> Option<usize> {
    std::env::var("COLUMNS").ok()?.parse().ok().filter(|width| *width > 0)
}

fn wants_colour() -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    !set("NO_COLOR") && !dumb
}
