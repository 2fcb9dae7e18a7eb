//! The place in a document at which a request's element stands, and the part of the document that ends there.
//!
//! A browser's preload scanner requests what an element names as soon as the element has arrived (the HTML standard, "speculative
//! HTML parsing"). On a fast network that moment does not show, because the whole document has arrived before; but browsers
//! record the line, and some the column.

use super::raw::{Call, Scalar};

/// Line and column of an element, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) line: u32,
    column: u32,
}

/// Maximum number of lines of a document that are distinguished.
const MAX_LINES: usize = 100_000;

impl Place {
    /// Whether a script whose tag begins at `script` ends here: where the parser stands while it runs.
    pub(super) fn is_end_of(self, script: Self) -> bool {
        const END_TAG: usize = "</script>".len();
        let length = self.column.checked_sub(script.column).and_then(|length| usize::try_from(length).ok());
        self.line == script.line && length == Some(END_TAG)
    }

    /// The place of a byte of a text whose lines start there.
    pub(super) fn at(byte: usize, lines: &[u32]) -> Option<Self> {
        let byte = u32::try_from(byte).ok()?;
        let line = lines.partition_point(|start| *start <= byte).checked_sub(1)?;
        Some(Self { line: u32::try_from(line).ok()?, column: byte - lines[line] })
    }

    /// The place in Chromium's initiator, if an element is the cause.
    pub(super) fn of_call(call: &Call) -> Option<Self> {
        let number = |number: Option<f64>| number.filter(|number| (0.0..1e9).contains(number));
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked before")]
        let place =
            |line: f64| Self { line: line as u32, column: number(call.column.0).unwrap_or(0.0) as u32 };
        number(call.line.0).filter(|_| call.kind.as_deref() == Some("parser")).map(place)
    }

    /// The place as chrome-har and WebPageTest write it: lines count from 1.
    pub(super) fn of_members(
        line: Option<&Scalar>,
        column: Option<&Scalar>,
        kind: Option<&str>,
    ) -> Option<Self> {
        let number = |member: Option<&Scalar>| member?.0.parse::<u32>().ok();
        let line = number(line)?.checked_sub(1)?;
        let place = Self { line, column: number(column).unwrap_or(0) };
        (kind.unwrap_or("parser") == "parser").then_some(place)
    }

    /// The part of a document before the place, from 0 to 1: by the starts of its lines, if its text is recorded; otherwise lines
    /// count as even, and the `last` of all places as the end. `size` is that of the text.
    pub(super) fn part(self, lines: &[u32], last: u32, size: u64) -> Option<f64> {
        let column = f64::from(self.column);
        let size = (size > 0).then_some(size as f64)?;
        let part = match lines.get(usize::try_from(self.line).ok()?) {
            Some(start) => (f64::from(*start) + column) / size,
            None if last == 0 => column / size,
            None => f64::from(self.line) / f64::from(last),
        };
        Some(part.clamp(0.0, 1.0))
    }
}

/// Starts of the lines of a text.
pub(super) fn line_starts(text: &[u8]) -> Vec<u32> {
    let ends = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    std::iter::once(0).chain(ends).take(MAX_LINES).filter_map(|at| u32::try_from(at).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_part_of_the_text_or_else_of_the_lines() {
        let lines = line_starts(b"<html>\n<head>\n<link>");
        assert_eq!(lines, [0, 7, 14]);
        let at = |line, column| Place { line, column };
        assert_eq!(at(1, 3).part(&lines, 1, 20), Some(0.5));
        assert_eq!(at(0, 30).part(&lines, 1, 20), Some(1.0), "no more than all");
        assert_eq!(at(25, 8).part(&[], 100, 4_000), Some(0.25));
        assert_eq!(at(0, 1_000).part(&[], 0, 4_000), Some(0.25), "a document of one line");
        assert_eq!(at(0, 1_000).part(&[], 0, 0), None);
    }

    #[test]
    fn only_elements_have_a_place() {
        let call = |json| Place::of_call(&serde_json::from_str(json).unwrap());
        let place = Some(Place { line: 4, column: 7 });
        assert_eq!(call(r#"{"type":"parser","url":"u","lineNumber":4,"columnNumber":7}"#), place);
        assert_eq!(call(r#"{"type":"script","url":"u","lineNumber":4}"#), None);
        assert_eq!(call(r#"{"type":"parser","url":"u","lineNumber":-4}"#), None);
        let member = |text: &str| Some(Scalar(text.to_owned()));
        let of = |line: &str, kind| Place::of_members(member(line).as_ref(), member("7").as_ref(), kind);
        assert_eq!([of("5", None), of("5", Some("parser"))], [place; 2]);
        assert_eq!([of("5", Some("script")), of("0", None), of("x", None)], [None; 3]);
    }
}
