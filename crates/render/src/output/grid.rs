//! Aligned columns of text, in a terminal of any width.
//!
//! Cells are any text. A column without any known value is omitted. In a terminal that is too narrow, columns of higher
//! rank are hidden first; then the widest names are shortened.

use std::borrow::Cow;

use crate::terminal::Terminal;

/// A column: its heading and its alignment.
#[derive(Clone, Debug)]
pub struct Column {
    /// Two lines, the lower one often the unit.
    pub heading: [Cow<'static, str>; 2],
    /// Alignment: names on the left, numbers on the right.
    pub side: Side,
    /// Columns of the highest rank are hidden first in a narrow terminal; those of rank 0 never are.
    pub rank: u8,
}

/// Alignment of a cell's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// For names.
    Left,
    /// For numbers.
    Right,
}

impl Column {
    /// A column of names.
    pub const fn name([upper, lower]: [&'static str; 2]) -> Self {
        Self { heading: [Cow::Borrowed(upper), Cow::Borrowed(lower)], side: Side::Left, rank: 0 }
    }

    /// A column of words that may be empty in every row; it is then omitted.
    pub const fn text([upper, lower]: [&'static str; 2], rank: u8) -> Self {
        Self { heading: [Cow::Borrowed(upper), Cow::Borrowed(lower)], side: Side::Left, rank }
    }

    /// A column of numbers.
    pub const fn number([upper, lower]: [&'static str; 2], rank: u8) -> Self {
        Self { heading: [Cow::Borrowed(upper), Cow::Borrowed(lower)], side: Side::Right, rank }
    }

    /// The two lines of the heading as one; a hyphenated word is joined.
    pub fn title(&self) -> String {
        let [upper, lower] = &self.heading;
        match upper.strip_suffix('-') {
            Some(prefix) => format!("{prefix}{lower}"),
            None => format!("{upper} {lower}").trim().replace("/ ", "/"),
        }
    }

    /// A column of numbers whose heading depends on the results.
    pub fn of(heading: [String; 2], rank: u8) -> Self {
        Self { heading: heading.map(Cow::Owned), side: Side::Right, rank }
    }
}

/// Rows of cells; an empty cell is an unknown value.
#[derive(Clone, Debug)]
pub struct Grid {
    /// The columns, from the left.
    pub columns: Vec<Column>,
    /// Each as long as `columns`.
    pub rows: Vec<Vec<String>>,
}

impl Grid {
    /// The text, each line indented by two blanks and ended.
    pub fn render(&self, terminal: Terminal) -> String {
        let shown = self.shown(terminal.width);
        let mut text = String::new();
        for index in [0, 1] {
            let heading = shown.iter().map(|&(column, _)| self.columns[column].heading[index].as_ref());
            let line = self.line(&shown, heading);
            if !line.trim().is_empty() {
                text += &terminal.dim(&line);
                text.push('\n');
            }
        }
        for row in &self.rows {
            let cells: Vec<Cow<'_, str>> =
                shown.iter().map(|&(column, width)| shortened(self.cell(row, column), width)).collect();
            text += &self.line(&shown, cells.iter().map(AsRef::as_ref));
            text.push('\n');
        }
        text
    }

    /// Indices of the columns with a known value.
    pub fn present(&self) -> impl Iterator<Item = usize> {
        (0..self.columns.len()).filter(|&column| {
            self.columns[column].rank == 0 || self.rows.iter().any(|row| !row[column].is_empty())
        })
    }

    /// Text of a cell: a dash for an unknown number.
    pub fn cell<'a>(&self, row: &'a [String], column: usize) -> &'a str {
        match self.columns[column].side {
            Side::Right if row[column].is_empty() => "-",
            Side::Left | Side::Right => &row[column],
        }
    }

    /// The headings of the columns that do not fit the terminal.
    pub fn hidden(&self, terminal: Terminal) -> Vec<String> {
        let shown = self.shown(terminal.width);
        let is_hidden = |column: &usize| shown.iter().all(|(other, _)| other != column);
        self.present().filter(is_hidden).map(|column| self.columns[column].title()).collect()
    }

    /// The columns to show, with their widths.
    fn shown(&self, width: Option<usize>) -> Vec<(usize, usize)> {
        let mut shown: Vec<(usize, usize)> =
            self.present().map(|column| (column, self.width_of(column))).collect();
        let Some(width) = width else { return shown };
        while total(&shown) > width {
            let hideable = shown.iter().enumerate().max_by_key(|(_, (column, _))| self.columns[*column].rank);
            match hideable {
                Some((index, &(column, _))) if self.columns[column].rank > 0 => shown.remove(index),
                Some(_) | None => break,
            };
        }
        let excess = total(&shown).saturating_sub(width);
        let names = shown.iter_mut().filter(|(column, _)| self.columns[*column].side == Side::Left);
        if let Some((_, widest)) = names.max_by_key(|(_, width)| *width) {
            *widest = (*widest - excess.min(*widest)).max(MIN_NAME_WIDTH.min(*widest));
        }
        shown
    }

    fn width_of(&self, column: usize) -> usize {
        let cells = self.rows.iter().map(|row| self.cell(row, column));
        let texts = self.columns[column].heading.iter().map(AsRef::as_ref).chain(cells);
        texts.map(columns_of).max().unwrap_or_default()
    }

    fn line<'a>(&self, shown: &[(usize, usize)], cells: impl Iterator<Item = &'a str>) -> String {
        let mut line = String::new();
        for (&(column, width), cell) in shown.iter().zip(cells) {
            let gap = " ".repeat(width.saturating_sub(columns_of(cell)));
            line += "  ";
            match self.columns[column].side {
                Side::Left => line.extend([cell, &gap]),
                Side::Right => line.extend([&gap, cell]),
            }
        }
        line.truncate(line.trim_end().len());
        line
    }
}

fn total(shown: &[(usize, usize)]) -> usize {
    shown.iter().map(|(_, width)| width + 2).sum()
}

/// A sentence on columns that do not fit the terminal, by their titles; empty if all do. `format` has them.
pub fn hidden(titles: &[String], format: &str, terminal: Terminal) -> String {
    let titles: Vec<&str> = titles.iter().map(String::as_str).filter(|title| !title.is_empty()).collect();
    let (Some(columns), false) = (terminal.width, titles.is_empty()) else { return String::new() };
    let titles = titles.join(", ");
    let sentence =
        format!("Hidden at {columns} columns: {titles}. A wider terminal or --format {format} has them.");
    format!("\n{}", terminal.dim(&wrap("", &sentence, terminal.prose_width())))
}

/// Minimum length of a shortened name.
const MIN_NAME_WIDTH: usize = 8;

/// A name that is too long loses its middle: `images/pro…/a.gif`.
fn shortened(text: &str, width: usize) -> Cow<'_, str> {
    let length = columns_of(text);
    if length <= width || width < MIN_NAME_WIDTH {
        return Cow::Borrowed(text);
    }
    let tail = width / 2;
    let start: String = text.chars().take(width - tail - 1).collect();
    let end: String = text.chars().skip(length - tail).collect();
    Cow::Owned(format!("{start}…{end}"))
}

/// Terminal columns of a text; names and numbers here have one for each character.
fn columns_of(text: &str) -> usize {
    text.chars().count()
}

/// `text` wrapped at spaces into lines of at most `width` columns, the first after `lead`, the others indented as far.
pub fn wrap(lead: &str, text: &str, width: usize) -> String {
    let indent = columns_of(lead);
    let mut out = lead.to_owned();
    let mut used = indent;
    for (index, word) in text.split_whitespace().enumerate() {
        let length = columns_of(word);
        if index > 0 && used + 1 + length > width {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent));
            used = indent;
        } else if index > 0 {
            out.push(' ');
            used += 1;
        }
        out += word;
        used += length;
    }
    out.push('\n');
    out
}

/// The same for each line of `text`, with the indentation that it has; items of lists, which begin with a hyphen, hang.
pub fn wrap_lines(text: &str, width: usize) -> String {
    let line = |line: &str| {
        let words = line.trim_start().trim_start_matches("- ");
        wrap(&line[..line.len() - words.len()], words, width)
    };
    text.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Terminal = Terminal { width: None, colour: false };

    fn grid() -> Grid {
        let columns = vec![
            Column::name(["protocol", ""]),
            Column::number(["elapsed", "ms"], 0),
            Column::number(["packets", "up"], 2),
            Column::number(["unknown", ""], 1),
        ];
        let rows = [["http10", "1,730", "12", ""], ["http10-keepalive", "1,070", "", ""]];
        Grid { columns, rows: rows.map(|row| row.map(str::to_owned).to_vec()).to_vec() }
    }

    #[test]
    fn numbers_are_right_aligned_and_columns_without_values_are_left_out() {
        let expected = "  protocol          elapsed  packets
                         ms       up
  http10              1,730       12
  http10-keepalive    1,070        -
";
        assert_eq!(grid().render(PLAIN), expected);
    }

    #[test]
    fn a_narrow_terminal_hides_columns_by_rank_but_never_rank_0() {
        let narrow = grid().render(Terminal { width: Some(30), colour: false });
        assert!(!narrow.contains("packets") && narrow.contains("elapsed"), "{narrow}");
        assert_eq!(grid().hidden(Terminal { width: Some(30), colour: false }), ["packets up"]);
        assert_eq!(grid().hidden(PLAIN), [""; 0]);
        let none = grid().render(Terminal { width: Some(1), colour: false });
        assert!(none.contains("htt…live    1,070"), "{none}");
    }

    #[test]
    fn long_sentences_are_wrapped_at_spaces_with_a_hanging_indent() {
        assert_eq!(wrap("[1] ", "one two three", 11), "[1] one two\n    three\n");
        assert_eq!(wrap_lines("one two three\n\n - one two", 7), "one two\nthree\n\n - one\n   two\n");
    }
}
