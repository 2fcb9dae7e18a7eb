//! Waterfall: a row for each object, bars in time, and a line from what each one waited for.

use super::palette;
use super::scale::{multiples, round_step};
use super::svg::{Anchor, Font, Heading, Stroke, Svg};
use crate::output::number;
use crate::report::html::escaped;

/// A row.
#[derive(Clone, Debug)]
pub struct Row {
    /// Name, on the left; long ones are cut.
    pub name: String,
    /// Tooltip of the row.
    pub tooltip: String,
    /// Bars, from the left.
    pub bars: Vec<Bar>,
    /// Row that it waited for, and the time at which that let it go on.
    pub after: Option<(usize, f64)>,
    /// Whether it is on the critical path.
    pub is_critical: bool,
}

/// A span of time.
#[derive(Clone, Copy, Debug)]
pub struct Bar {
    /// Its beginning.
    pub from: f64,
    /// Its end.
    pub to: f64,
    /// `#rrggbb`.
    pub colour: &'static str,
}

/// A waterfall.
#[derive(Debug)]
pub struct Waterfall<'a> {
    /// Title.
    pub title: &'a str,
    /// Lines below it.
    pub lines: &'a [&'a str],
    /// Title of the time axis, with its unit.
    pub axis: &'a str,
    /// Colours with their meanings.
    pub key: &'a [(&'static str, &'a str)],
    /// Rows, from the top.
    pub rows: &'a [Row],
    /// Provenance, below.
    pub source: &'a str,
}

const WIDTH: f64 = 980.0;
const SIDE: f64 = 24.0;
/// Left edge of the time axis.
const LEFT: f64 = 330.0;
const RIGHT: f64 = 940.0;
/// Height of a row.
const PITCH: f64 = 16.0;
const BAR: f64 = 10.0;
/// Minimum width of a bar that can be seen.
const MIN_BAR: f64 = 2.0;
/// Characters of a name that fit.
const NAME_CHARS: usize = 42;

impl Waterfall<'_> {
    /// The picture.
    pub fn picture(&self) -> String {
        let Self { title, lines, axis, key, rows, source } = self;
        let key_at = 52.0 + 17.0 * lines.len() as f64;
        let top = key_at + 44.0;
        let bottom = top + PITCH * rows.len() as f64;
        let height = bottom + 64.0;
        let mut svg = Svg::new(WIDTH, height);
        svg.heading(SIDE, Heading::SMALL, title, lines);
        draw_key(&mut svg, key, key_at);
        let end = rows.iter().flat_map(|row| &row.bars).map(|bar| bar.to).fold(0.0, f64::max);
        let end = if end > 0.0 { end } else { 1.0 };
        let x = |time: f64| LEFT + (RIGHT - LEFT) * time / end;
        let small = Font::new(11.0, palette::GREY, Anchor::Middle);
        for tick in multiples(0.0, end, round_step(end, 8.0)) {
            svg.line(&[(x(tick), top - 4.0), (x(tick), bottom)], Stroke::solid(palette::FAINT, 1.0));
            svg.text((x(tick), top - 10.0), &number::significant(tick), small);
            svg.text((x(tick), bottom + 16.0), &number::significant(tick), small);
        }
        svg.text(((LEFT + RIGHT) / 2.0, bottom + 34.0), axis, small);
        let middle = |row: usize| top + PITCH * (row as f64 + 0.5);
        // The critical path's lines are above the others.
        for is_critical in [false, true] {
            let stroke = match is_critical {
                true => Stroke::solid(palette::ACCENT, 1.5),
                false => Stroke::solid(palette::FAINT, 1.0),
            };
            for (index, row) in rows.iter().enumerate().filter(|(_, row)| row.is_critical == is_critical) {
                let Some((on, at)) = row.after else { continue };
                let begins = row.bars.first().map_or(at, |bar| bar.from);
                svg.line(&[(x(at), middle(on)), (x(at), middle(index)), (x(begins), middle(index))], stroke);
            }
        }
        for (index, row) in rows.iter().enumerate() {
            svg.with_tooltip(&row.tooltip, |svg| draw_row(svg, row, middle(index), x));
        }
        svg.text((SIDE, height - 12.0), source, Font::new(11.0, palette::GREY, Anchor::Start));
        svg.finish(title, axis)
    }
}

/// A percentage of the width.
fn percent(time: f64, end: f64) -> String {
    format!("{:.3}%", time / end * 100.0)
}

impl Waterfall<'_> {
    /// The same as HTML, for a page with `render`'s style: names above the bars where the screen is narrow.
    pub fn html(&self) -> String {
        let Self { title, lines, axis, key, rows, source } = self;
        let end = rows.iter().flat_map(|row| &row.bars).map(|bar| bar.to).fold(0.0, f64::max);
        let end = if end > 0.0 { end } else { 1.0 };
        let lines: String = lines.iter().map(|line| format!("<p>{}</p>\n", escaped(line))).collect();
        let key: String = key
            .iter()
            .map(|(colour, words)| {
                let mark = format!("<svg aria-hidden=\"true\"><rect fill=\"{colour}\"/></svg>");
                format!("<li class=\"mark\">{mark}{}</li>", escaped(words))
            })
            .collect();
        let tick = |tick: f64| {
            let anchor = if tick > 0.0 { "middle" } else { "start" };
            let (x, words) = (percent(tick, end), number::significant(tick));
            format!("<text x=\"{x}\" y=\"14\" text-anchor=\"{anchor}\" fill=\"currentColor\">{words}</text>")
        };
        let ticks: String = multiples(0.0, end, round_step(end, 5.0)).into_iter().map(tick).collect();
        let rows: String = rows.iter().map(|row| html_row(row, end)).collect();
        format!(
            "<div class=\"waterfall\">\n<h3>{}</h3>\n{lines}<ul class=\"legend\">{key}</ul>\n\
             <div class=\"ticks\" title=\"{}\"><svg aria-hidden=\"true\">{ticks}</svg></div>\n{rows}<p>{}; {}</p>\n</div>\n",
            escaped(title),
            escaped(axis),
            escaped(axis),
            escaped(source),
        )
    }
}

fn html_row(row: &Row, end: f64) -> String {
    let bars: String = row
        .bars
        .iter()
        .map(|Bar { from, to, colour }| {
            let (left, width) = (percent(*from, end), percent(to - from, end));
            // The stroke shows the shortest bars, too.
            format!("<rect x=\"{left}\" width=\"{width}\" fill=\"{colour}\" stroke=\"{colour}\"/>")
        })
        .collect();
    let class = if row.is_critical { "row critical" } else { "row" };
    format!(
        "<div class=\"{class}\" title=\"{}\"><span class=\"name\">{}</span><span class=\"bars\">\
         <svg aria-hidden=\"true\">{bars}</svg></span></div>\n",
        escaped(&row.tooltip),
        escaped(&row.name),
    )
}

fn draw_key(svg: &mut Svg, key: &[(&'static str, &str)], y: f64) {
    let mut x = SIDE;
    for (colour, words) in key {
        svg.rectangle((x, y - 9.0), (12.0, 10.0), colour);
        svg.text((x + 17.0, y), words, Font::new(12.0, palette::INK, Anchor::Start));
        x += 34.0 + 6.6 * words.chars().count() as f64;
    }
}

fn draw_row(svg: &mut Svg, row: &Row, y: f64, x: impl Fn(f64) -> f64) {
    let name: String = match row.name.char_indices().nth(NAME_CHARS) {
        Some((cut, _)) => format!("{}...", &row.name[..cut]),
        None => row.name.clone(),
    };
    let font = Font { bold: row.is_critical, ..Font::new(11.0, palette::INK, Anchor::Start) };
    svg.text((SIDE, y + 4.0), &name, font);
    for Bar { from, to, colour } in &row.bars {
        let width = (x(*to) - x(*from)).max(MIN_BAR);
        svg.rectangle((x(*from), y - BAR / 2.0), (width, BAR), colour);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_html_has_its_name_and_its_share_of_the_width() {
        let bars = vec![
            Bar { from: 0.0, to: 50.0, colour: palette::GREY },
            Bar { from: 50.0, to: 200.0, colour: palette::BLUE },
        ];
        let (name, tooltip) = ("<script>".to_owned(), "a \"tip\"".to_owned());
        let rows = [Row { name, tooltip, bars, after: None, is_critical: true }];
        let (title, lines, axis, source) = ("page & network", &[][..], "ms", "test");
        let html = Waterfall { title, lines, axis, key: &[], rows: &rows, source }.html();
        for part in
            ["page &amp; network", "&lt;script&gt;", "row critical", "x=\"25.000%\" width=\"75.000%\""]
        {
            assert!(html.contains(part), "{part}: {html}");
        }
        assert!(!html.contains("<script>") && !html.contains("\"tip\""));
    }

    #[test]
    fn every_row_has_its_name_its_bars_and_its_line() {
        let row = |name: &str, from, after| Row {
            name: name.to_owned(),
            tooltip: String::new(),
            bars: vec![Bar { from, to: from + 10.0, colour: palette::BLUE }],
            after,
            is_critical: true,
        };
        let rows = [row("document", 0.0, None), row("<script>", 15.0, Some((0, 10.0)))];
        let picture = Waterfall {
            title: "page",
            lines: &["a line"],
            axis: "ms",
            key: &[(palette::BLUE, "wait")],
            rows: &rows,
            source: "test",
        }
        .picture();
        assert!(picture.contains("document") && picture.contains("&lt;script&gt;"));
        assert_eq!(picture.matches(palette::ACCENT).count(), 1);
        assert_eq!(picture.matches(palette::BLUE).count(), 3);
    }
}
