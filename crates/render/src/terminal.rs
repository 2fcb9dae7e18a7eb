//! Capabilities of the terminal: width and colour; and text that it shows as it is.
//!
//! A few escape sequences, and none where `NO_COLOR` is set (<https://no-color.org>).

use std::borrow::Cow;

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

    /// Styles each line by itself.
    fn paint(self, code: &str, text: &str) -> String {
        let line = |line: &str| match self.colour && !line.is_empty() {
            true => format!("\x1b[{code}m{line}\x1b[0m"),
            false => line.to_owned(),
        };
        text.split('\n').map(line).collect::<Vec<_>>().join("\n")
    }
}

/// Sequences of [`Terminal`]: bold, dim, its colours, and the end of each.
const STYLES: [&str; 6] = ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[33m", "\x1b[35m"];

/// Returns the text with `?` for each character that a terminal obeys, except line ends and tabs, and styles if they are used.
pub fn printable(text: &str, has_styles: bool) -> Cow<'_, str> {
    let is_refused = |letter: char| commands_terminal(letter) && !matches!(letter, '\n' | '\t' | '\r');
    if !text.contains(is_refused) {
        return Cow::Borrowed(text);
    }
    let (mut shown, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(letter) = rest.chars().next() {
        let style = STYLES.into_iter().find(|style| has_styles && rest.starts_with(style));
        let length = style.map_or(letter.len_utf8(), str::len);
        match style {
            Some(style) => shown += style,
            None => shown.push(if is_refused(letter) { '?' } else { letter }),
        }
        rest = rest.get(length..).unwrap_or_default();
    }
    Cow::Owned(shown)
}

/// Whether a terminal obeys a character instead of showing it: a control character (C0, C1, DEL), or one that changes the
/// direction of what follows (Unicode's explicit formatting characters, UAX 9).
fn commands_terminal(letter: char) -> bool {
    letter.is_control() || matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_shown_as_a_question_mark() {
        let hostile = "esc\x1b[31m\x1b]0;P\x07 \u{9b}31m \u{202e}gpj\x7f\r\n\tend";
        assert_eq!(printable(hostile, false), "esc?[31m?]0;P? ?31m ?gpj?\r\n\tend");
        assert_eq!(printable("plain \u{e9}\n", false), "plain \u{e9}\n");
    }

    #[test]
    fn own_styles_pass_where_they_are_used() {
        assert_eq!(printable("\x1b[1mbold\x1b[0m \x1b[2J", true), "\x1b[1mbold\x1b[0m ?[2J");
        assert_eq!(printable("\x1b[1mbold\x1b[0m", false), "?[1mbold?[0m");
    }
}
