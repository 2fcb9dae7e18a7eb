//! Published and ours side by side, in the paper's own layout; claims of a text as a list. Papers and own studies are
//! tallied apart.
//!
//! For people; JSON and CSV have a row for each cell. If the terminal is wide enough a cell is `published ours`;
//! otherwise each row has a second line for ours.

use std::collections::BTreeMap;

use render::output::grid::wrap;
use render::terminal::Terminal;

use super::catalogue::Computation;
use super::published::Claim;
use super::published::Column;
use super::verdict::Verdict;
use super::{JudgedCell, Report, ReproducedTable};

/// Every table with its notes and a summary line; then one line for all.
pub fn render(report: &Report, terminal: Terminal) -> String {
    let tables: Vec<String> = report.tables.iter().map(|table| section(table, terminal)).collect();
    let sums: String = tallies(report).into_iter().map(|line| line + "\n").collect();
    let several = if report.tables.len() > 1 { terminal.bold(&sums) } else { String::new() };
    tables.join("\n") + if several.is_empty() { "" } else { "\n" } + &several
}

/// A line for the cells of the papers, and one for those of our own studies, as far as there are any.
pub(crate) fn tallies(report: &Report) -> Vec<String> {
    let (studies, papers): (Vec<&ReproducedTable>, Vec<&ReproducedTable>) =
        report.tables.iter().partition(|table| matches!(table.entry.ours, Computation::Study(_)));
    let line = |(name, tables): (&str, Vec<&ReproducedTable>)| {
        let all: Vec<&JudgedCell> = tables.iter().flat_map(|table| &table.judgements).collect();
        (!all.is_empty()).then(|| format!("{name}: {} cells: {}", all.len(), tally(&all)))
    };
    [("the papers", papers), ("own studies", studies)].into_iter().filter_map(line).collect()
}

fn section(reproduced: &ReproducedTable, terminal: Terminal) -> String {
    let table = &reproduced.table;
    let mut text = terminal.bold(&format!("{}  {}", reproduced.entry.key, table.title));
    text.push('\n');
    let width = terminal.prose_width();
    text += &wrap("  Source: ", &table.source, width);
    text += &wrap("  Scenario: ", &table.scenario, width);
    text += &wrap("  Agreement: ", &table.agreement, width);
    if !table.claims.is_empty() {
        text.push('\n');
        text += &claims(reproduced, width);
        let all: Vec<&JudgedCell> = reproduced.judgements.iter().collect();
        text += &terminal.bold(&format!("  {}: {}", reproduced.entry.key, tally(&all)));
        text.push('\n');
        return text;
    }
    let pairs = Layout::of(reproduced, Form::Pairs);
    if terminal.width.is_none_or(|width| pairs.width() <= width) {
        text += &wrap("  In each cell: ", reproduced.sides(), width);
        text.push('\n');
        text += &pairs.text(terminal);
    } else {
        text.push('\n');
        text += &Layout::of(reproduced, Form::Stacked).text(terminal);
    }
    text.push('\n');
    text += &notes(reproduced, width);
    if let Some(says) = &reproduced.says {
        text += &wrap("  What it says: ", says, width);
    }
    let all: Vec<&JudgedCell> = reproduced.judgements.iter().collect();
    text += &terminal.bold(&format!("  {}: {}", reproduced.entry.key, tally(&all)));
    text.push('\n');
    text
}

impl ReproducedTable {
    /// Contents of a cell, in words.
    pub(crate) const fn sides(&self) -> &'static str {
        match self.entry.ours {
            Computation::Cells(_) | Computation::Claims => "what is published, then ours",
            Computation::Study(_) => "the two sides, in that order",
        }
    }
}

/// Each claim with its number and ours, then its words.
fn claims(reproduced: &ReproducedTable, width: usize) -> String {
    let one = |(claim, judged): (&Claim, &JudgedCell)| {
        let JudgedCell { cell, judgement } = judged;
        let digits = cell.column.digits;
        let ours = judgement.ours.map_or_else(|| "-".to_owned(), |ours| digits.print(ours));
        let worse = if judgement.worsened() { " (worse than on record)" } else { "" };
        let direction = cell.column.name.replace('-', " ");
        let head = format!(
            "  {} {}{worse}, {} ({}): {direction} {} {}, ours {ours}",
            mark(judgement.verdict),
            judgement.verdict.name(),
            claim.claim,
            claim.setting,
            cell.text,
            claim.unit,
        );
        let note = judgement.note.as_deref().unwrap_or_default();
        wrap("", &head, width) + &wrap("      ", note, width)
    };
    reproduced.table.claims.iter().zip(&reproduced.judgements).map(one).collect()
}

/// `180 exact`, or `8 exact, 2 explained, 16 not-testable-here`.
pub(crate) fn tally(all: &[&JudgedCell]) -> String {
    let count = |verdict| all.iter().filter(|judged| judged.judgement.verdict == verdict).count();
    let counts = Verdict::ALL.map(|verdict| (count(verdict), verdict.name()));
    let some = counts.into_iter().filter(|(count, _)| *count > 0);
    some.map(|(count, name)| format!("{count} {name}")).collect::<Vec<_>>().join(", ")
}

/// The mark after our number; none for an exact one.
pub(crate) const fn mark(verdict: Verdict) -> char {
    match verdict {
        Verdict::Exact | Verdict::NotTestableHere => ' ',
        Verdict::WithinTolerance => '~',
        Verdict::Holds => '+',
        Verdict::Fitted => '=',
        Verdict::Explained => '*',
        Verdict::Differs => '!',
    }
}

/// Each note once, after the verdict and its cells.
fn notes(reproduced: &ReproducedTable, width: usize) -> String {
    let line = |(verdict, remark): (Verdict, String)| {
        wrap(&format!("  {} {}, ", mark(verdict), verdict.name()), &remark, width)
    };
    remarks(reproduced).into_iter().map(line).collect()
}

/// Each note once, with its cells; their verdict.
pub(crate) fn remarks(reproduced: &ReproducedTable) -> Vec<(Verdict, String)> {
    let mut cells: BTreeMap<(Verdict, &str), Vec<String>> = BTreeMap::new();
    for JudgedCell { cell, judgement } in &reproduced.judgements {
        let note = judgement.note.as_deref().unwrap_or_default();
        let worse = judgement.worsened().then(|| format!(" (on record: {})", judgement.expected.name()));
        if !note.is_empty() || judgement.verdict > Verdict::Exact {
            let name = cell.name() + &worse.unwrap_or_default();
            cells.entry((judgement.verdict, note)).or_default().push(name);
        }
    }
    let remark = |((verdict, note), cells): ((Verdict, &str), Vec<String>)| {
        let which = if cells.len() > FEW { format!("{} cells", cells.len()) } else { cells.join(", ") };
        (verdict, if note.is_empty() { which } else { format!("{which}: {note}") })
    };
    cells.into_iter().map(remark).collect()
}

/// Maximum number of cells that a note lists; more are counted.
const FEW: usize = 4;

/// Layout of both numbers of a cell.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `1.13 1.13`
    Pairs,
    /// One below the other.
    Stacked,
}

/// Text in columns: heading lines, then lines of cells.
struct Layout {
    labels: usize,
    headings: Vec<Vec<String>>,
    lines: Vec<Vec<String>>,
    widths: Vec<usize>,
}

impl Layout {
    fn of(reproduced: &ReproducedTable, form: Form) -> Self {
        let table = &reproduced.table;
        let rows = rows(reproduced);
        let columns = table.columns.len();
        let lines: Vec<Vec<String>> = match form {
            Form::Pairs => {
                let subs: Vec<[usize; 2]> = (0..columns).map(|column| sub_widths(&rows, column)).collect();
                rows.iter().map(|row| row.side_by_side(&subs)).collect()
            }
            Form::Stacked => rows.iter().flat_map(Row::one_below_the_other).collect(),
        };
        let labels = table.labels.len();
        let widest = |column: usize| {
            lines.iter().filter_map(|line| line.get(column)).map(|text| length(text)).max().unwrap_or(0)
        };
        let cell_widths: Vec<usize> = (labels..labels + columns).map(widest).collect();
        let headings = headings(&table.labels, &table.columns, &cell_widths);
        let heading = |column: usize| {
            headings.iter().filter_map(|line| line.get(column)).map(|text| length(text)).max().unwrap_or(0)
        };
        let all = lines.first().map_or(labels + columns, Vec::len);
        let widths = (0..all).map(|column| widest(column).max(heading(column))).collect();
        Self { labels, headings, lines, widths }
    }

    fn width(&self) -> usize {
        self.widths.iter().map(|width| width + GAP.len()).sum()
    }

    /// The table; if it is wider than the terminal, in blocks of columns, each with the labels.
    fn text(&self, terminal: Terminal) -> String {
        let block = |columns: Vec<usize>| {
            let headings = self.headings.iter().map(|line| terminal.dim(&self.line(line, &columns)) + "\n");
            let lines = self.lines.iter().map(|line| self.line(line, &columns) + "\n");
            headings.chain(lines).collect::<String>()
        };
        self.blocks(terminal).into_iter().map(block).collect::<Vec<_>>().join("\n")
    }

    /// The columns of each block: all labels, as many cells as fit, and the name of the line.
    fn blocks(&self, terminal: Terminal) -> Vec<Vec<usize>> {
        let cells = self.headings.first().map_or(self.widths.len(), Vec::len);
        let (labels, sides) = (0..self.labels, cells..self.widths.len());
        let width_of = |column: usize| self.widths[column] + GAP.len();
        let fixed: usize = labels.clone().chain(sides.clone()).map(width_of).sum();
        let buffer = terminal.width.unwrap_or(usize::MAX).saturating_sub(fixed);
        let mut blocks: Vec<Vec<usize>> = Vec::new();
        let mut left = 0;
        for column in self.labels..cells {
            let width = width_of(column);
            match blocks.last_mut() {
                Some(block) if width <= left => block.push(column),
                Some(_) | None => {
                    blocks.push(vec![column]);
                    left = buffer;
                }
            }
            left = left.saturating_sub(width);
        }
        blocks.into_iter().map(|block| labels.clone().chain(block).chain(sides.clone()).collect()).collect()
    }

    fn line(&self, cells: &[String], columns: &[usize]) -> String {
        let mut line = String::new();
        for &column in columns {
            let (Some(cell), Some(width)) = (cells.get(column), self.widths.get(column)) else { continue };
            line += GAP;
            line += &if column < self.labels { format!("{cell:<width$}") } else { format!("{cell:>width$}") };
        }
        line.truncate(line.trim_end().len());
        line
    }
}

const GAP: &str = "  ";

/// A row of the paper: its labels, and for each column the published number and ours, or nothing.
struct Row {
    labels: Vec<String>,
    cells: Vec<[String; 2]>,
}

/// The rows, a first label only where it changes, as papers print them.
fn rows<'a>(reproduced: &'a ReproducedTable) -> Vec<Row> {
    let table = &reproduced.table;
    let mut judged = reproduced.judgements.iter();
    let mut above: Option<&String> = None;
    let row = |row: &'a Vec<String>| {
        let (labels, texts) = row.split_at(table.labels.len());
        let mut shown = labels.to_vec();
        if let Some(first) = shown.first_mut()
            && labels.len() > 1
            && above == labels.first()
        {
            first.clear();
        }
        above = labels.first();
        let cells = texts.iter().map(|text| match text.is_empty() {
            true => Default::default(),
            false => judged.next().map(both).unwrap_or_default(),
        });
        Row { labels: shown, cells: cells.collect() }
    };
    table.rows.iter().map(row).collect()
}

impl Row {
    fn side_by_side(&self, subs: &[[usize; 2]]) -> Vec<String> {
        let cells = self.cells.iter().zip(subs).map(|([published, ours], [left, right])| {
            if ours.is_empty() { String::new() } else { format!("{published:>left$} {ours:>right$}") }
        });
        self.labels.iter().cloned().chain(cells).collect()
    }

    fn one_below_the_other(&self) -> [Vec<String>; 2] {
        // The mark's column stays free above ours.
        let published = self.cells.iter().map(|[published, ours]| match ours.is_empty() {
            true => String::new(),
            false => format!("{published} "),
        });
        let ours = self.cells.iter().map(|[_, ours]| ours.clone());
        let blank = self.labels.iter().map(|_| String::new());
        [
            self.labels.iter().cloned().chain(published).chain(["paper".to_owned()]).collect(),
            blank.chain(ours).chain(["ours".to_owned()]).collect(),
        ]
    }
}

/// Published, and ours with its mark.
fn both(judged: &JudgedCell) -> [String; 2] {
    let JudgedCell { cell, judgement } = judged;
    let ours = judgement.ours.map_or_else(|| "-".to_owned(), |ours| cell.column.digits.print(ours));
    [cell.text.clone(), format!("{ours}{}", mark(judgement.verdict))]
}

/// Width of the published numbers in a column, and of ours.
fn sub_widths(rows: &[Row], column: usize) -> [usize; 2] {
    [0, 1].map(|side| {
        let texts = rows.iter().filter_map(|row| row.cells.get(column)).map(|cell| length(&cell[side]));
        texts.max().unwrap_or(0)
    })
}

/// Column names wrapped at hyphens and points, the last line level with the labels' names.
fn headings(labels: &[String], columns: &[Column], widths: &[usize]) -> Vec<Vec<String>> {
    let stacks: Vec<Vec<String>> =
        columns.iter().zip(widths).map(|(column, width)| broken(column, *width)).collect();
    let height = stacks.iter().map(Vec::len).max().unwrap_or(1);
    (0..height)
        .map(|line| {
            let last = line + 1 == height;
            let names = labels.iter().map(|label| if last { label.clone() } else { String::new() });
            let parts = stacks.iter().map(|stack| {
                (line + stack.len())
                    .checked_sub(height)
                    .and_then(|part| stack.get(part))
                    .cloned()
                    .unwrap_or_default()
            });
            names.chain(parts).collect()
        })
        .collect()
}

/// A column's name and unit in lines of at most `width`, or of one part of the name.
fn broken(column: &Column, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in column.name.split_inclusive(['-', '.']) {
        match lines.last_mut() {
            Some(line) if length(line) + length(part) <= width => line.push_str(part),
            Some(_) | None => lines.push(part.to_owned()),
        }
    }
    if column.unit != "ratio" {
        lines.push(column.unit.clone());
    }
    lines
}

/// Terminal columns of a text; its letters have one each.
fn length(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, run};

    fn rendered(key: &str, width: Option<usize>) -> String {
        let report = run(Options { keys: vec![key.to_owned()], ..Options::default() }).unwrap();
        render(&report, Terminal { width, colour: false })
    }

    #[test]
    fn a_table_has_published_and_ours_in_each_cell_and_a_summary_line() {
        let text = rendered("heidemann-model/table-6", None);
        assert!(text.contains("  direcpc        tcp      3.74 3.74"), "{text}");
        assert!(text.ends_with("heidemann-model/table-6: 180 exact\n"), "{text}");
    }

    #[test]
    fn a_narrow_terminal_stacks_published_and_ours() {
        let text = rendered("heidemann-model/table-6", Some(80));
        assert!(text.lines().any(|line| line.ends_with("paper")), "{text}");
        assert!(text.lines().all(|line| length(line) <= 100), "{text}");
    }

    #[test]
    fn differing_cells_have_a_mark_and_a_note() {
        let text = rendered("heidemann-model/table-7", None);
        assert!(text.contains("12.8 14.3!") && text.contains("! differs, http10/ethernet/basic:"), "{text}");
    }
}
