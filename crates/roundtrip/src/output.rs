//! Writes results to standard output, and reports its errors, such as a closed pipe.
//!
//! Names of files, URLs and header fields come from elsewhere: no character of them reaches a terminal as a command.

use std::borrow::Cow;
use std::io::Write;

use quantity::names::commands_terminal;

use crate::failure::Failure;

/// Writes results to standard output.
pub fn to_stdout(text: &str) -> Result<(), Failure> {
    redraw("", text)
}

/// The same, after a sequence that erases what was written before.
pub fn redraw(erases: &str, text: &str) -> Result<(), Failure> {
    let text = erases.to_owned() + &printable(text, crate::terminal::of_stdout().colour);
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(Failure::Stdout)
}

/// Codes of `render::terminal`: bold, dim, its colours, and the end of each.
const STYLES: [&str; 6] = ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[33m", "\x1b[35m"];

/// The text with `?` for each character that a terminal obeys, except line ends and tabs, and styles if they are used.
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
