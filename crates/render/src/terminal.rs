//! Capabilities of the terminal: width and colour.
//!
//! A few escape sequences, and none where `NO_COLOR` is set (<https://no-color.org>).

/// Capabilities of one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// Columns: `COLUMNS` where it is set, else the terminal's; `None` for a file or a pipe, where tables retain all their
    /// columns.
    pub width: Option<usize>,
    /// Whether to use bold, dim and colour.
    pub colour: bool,
}

/// Columns of a terminal that does not report its width, and of prose in a file.
pub const USUAL_WIDTH: usize = 80;
/// Longer lines of prose are hard to read.
const MAX_PROSE_WIDTH: usize = 100;
/// Narrower lines of prose are harder to read than lines that the terminal wraps.
const MIN_PROSE_WIDTH: usize = 20;

/// Colours that are distinguishable on light and on dark backgrounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// A fault here.
    Red,
    /// A delay elsewhere.
    Yellow,
    /// A loss.
    Magenta,
}

impl Terminal {
    /// Columns for prose.
    pub fn prose_width(self) -> usize {
        self.width.unwrap_or(USUAL_WIDTH).clamp(MIN_PROSE_WIDTH, MAX_PROSE_WIDTH)
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
