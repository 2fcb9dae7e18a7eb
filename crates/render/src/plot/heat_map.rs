//! Values of a table as colours: panels side by side, named rows and columns, the number in each cell.

use super::palette;
use super::svg::{Anchor, Font, Heading, Svg};

/// Panels that share rows and columns.
pub struct HeatMap<'a> {
    /// Title.
    pub title: &'a str,
    /// Scenario and provenance, in a line or two.
    pub subtitle: [&'a str; 2],
    /// Title of the rows, and their names.
    pub rows: (&'a str, Vec<String>),
    /// Title of the columns, and their names.
    pub columns: (&'a str, Vec<String>),
    /// Panels, from left to right, then below.
    pub panels: Vec<Panel<'a>>,
    /// Source of the values.
    pub source: &'a str,
}

/// One table. Its darkest cell is its largest.
pub struct Panel<'a> {
    /// Quantity, with its unit.
    pub title: &'a str,
    /// Values, row by row.
    pub values: Vec<Vec<f64>>,
    /// Digits after the point.
    pub decimals: usize,
}

const LEFT: f64 = 92.0;
const TOP: f64 = 92.0;
const CELL: (f64, f64) = (62.0, 30.0);
const GAP: (f64, f64) = (96.0, 84.0);
const PER_LINE: usize = 2;

impl HeatMap<'_> {
    /// The picture.
    pub fn draw(&self) -> String {
        let (rows, columns) = (self.rows.1.len() as f64, self.columns.1.len() as f64);
        let (width, height) = (columns * CELL.0, rows * CELL.1);
        let lines = self.panels.len().div_ceil(PER_LINE) as f64;
        let across = self.panels.len().min(PER_LINE) as f64;
        let size = (
            LEFT + across * width + (across - 1.0).max(0.0) * GAP.0 + 28.0,
            TOP + lines * height + lines * GAP.1,
        );
        let mut svg = Svg::new(size.0, size.1);
        svg.heading(24.0, Heading::SMALL, self.title, &self.subtitle);
        for (position, panel) in self.panels.iter().enumerate() {
            let x = LEFT + (position % PER_LINE) as f64 * (width + GAP.0);
            let y = TOP + (position / PER_LINE) as f64 * (height + GAP.1) + 14.0;
            self.panel(&mut svg, panel, (x, y));
        }
        svg.text((24.0, size.1 - 14.0), self.source, Font::new(11.0, palette::GREY, Anchor::Start));
        let panels: Vec<&str> = self.panels.iter().map(|panel| panel.title).collect();
        svg.finish(self.title, &format!("{} by {}: {}", self.rows.0, self.columns.0, panels.join("; ")))
    }

    fn panel(&self, svg: &mut Svg, panel: &Panel<'_>, (x, y): (f64, f64)) {
        let bold = Font { bold: true, ..Font::new(12.5, palette::INK, Anchor::Start) };
        svg.text((x, y - 10.0), panel.title, bold);
        let values_of_panel = || panel.values.iter().flatten().copied();
        let (lowest, highest) =
            (values_of_panel().fold(f64::INFINITY, f64::min), values_of_panel().fold(0.0, f64::max));
        for (row, (values, name)) in panel.values.iter().zip(&self.rows.1).enumerate() {
            let top = y + row as f64 * CELL.1;
            let baseline = top + CELL.1 / 2.0 + 4.0;
            svg.text((x - 8.0, baseline), name, Font::new(11.5, palette::INK, Anchor::End));
            for (column, value) in values.iter().enumerate() {
                let left = x + column as f64 * CELL.0;
                // Logarithmic: a factor of two has the same difference in colour everywhere.
                let position = (value / lowest).ln() / (highest / lowest).ln().max(1e-9);
                svg.rectangle(
                    (left, top),
                    (CELL.0 - 1.0, CELL.1 - 1.0),
                    &palette::sequential(position, 0.35),
                );
                let text = format!("{value:.*}", panel.decimals);
                let colour = if position > 0.6 { "#ffffff" } else { palette::INK };
                svg.text((left + CELL.0 / 2.0, baseline), &text, Font::new(12.0, colour, Anchor::Middle));
            }
        }
        let bottom = y + panel.values.len() as f64 * CELL.1;
        for (column, name) in self.columns.1.iter().enumerate() {
            let at = (x + (column as f64 + 0.5) * CELL.0, bottom + 16.0);
            svg.text(at, name, Font::new(11.5, palette::INK, Anchor::Middle));
        }
        let middle = x + self.columns.1.len() as f64 * CELL.0 / 2.0;
        svg.text((middle, bottom + 34.0), self.columns.0, Font::new(12.0, palette::GREY, Anchor::Middle));
        let side = Font { turned: -90.0, ..Font::new(12.0, palette::GREY, Anchor::Middle) };
        svg.text((x - 58.0, f64::midpoint(y, bottom)), self.rows.0, side);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_has_its_number_and_the_largest_is_the_darkest() {
        let map = HeatMap {
            title: "t",
            subtitle: ["", ""],
            rows: ("r", vec!["1".to_owned(), "2".to_owned()]),
            columns: ("c", vec!["a".to_owned(), "b".to_owned()]),
            panels: vec![Panel { title: "p", values: vec![vec![1.0, 2.0], vec![3.0, 4.0]], decimals: 1 }],
            source: "s",
        };
        let svg = map.draw();
        assert!(["1.0", "2.0", "3.0", "4.0"].iter().all(|text| svg.contains(&format!(">{text}<"))));
        assert!(
            svg.contains(&palette::sequential(1.0, 0.35)) && svg.contains(&palette::sequential(0.0, 0.35))
        );
    }
}
