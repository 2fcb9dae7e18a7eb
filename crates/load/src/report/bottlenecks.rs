//! The bottleneck of each second, as a strip of colours for each run, rendered for a page.
//!
//! The bottleneck of a second is in [`crate::second`]. The time axis is that of the charts above it, so that seconds line up.

use render::plot::axes::Axes;
use render::plot::svg::{Anchor, Svg};
use render::report::lines::{Axis, LEFT, Layout, NAME, label};

use super::named_run::{NamedRun, shown};
use crate::second::{Bottleneck, limit};

/// Height of a strip, and distance from one to the next.
const HEIGHT: f64 = 18.0;
const APART: f64 = 26.0;
/// Top of the first strip, below the title and the key.
const TOP: f64 = 54.0;

/// The strips, over this time axis, in both layouts.
pub(super) fn strips(runs: &[NamedRun], bottom: &Axis<'_>) -> String {
    Layout::ALL.map(|layout| drawn(runs, bottom, layout)).concat()
}

fn drawn(runs: &[NamedRun], bottom: &Axis<'_>, layout: Layout) -> String {
    const TITLE: &str = "Bottleneck";
    // On a narrow page the key has two columns, and names are above their strips.
    let (key_columns, key_pitch, first, above) = match layout {
        Layout::Wide => (4, 130.0, TOP, 0.0),
        Layout::Narrow => (2, 140.0, TOP + 20.0, 20.0),
    };
    let end = first + (APART + above) * runs.len() as f64;
    let axes = Axes { bottom: end, ..bottom.axes(layout, runs.iter().map(|run| run.name.as_str())) };
    let mut svg = Svg::in_page(layout.width(), end + 48.0);
    svg.text((0.0, 14.0), TITLE, NAME);
    for (limit, number) in Bottleneck::ALL.into_iter().zip(0_u32..) {
        let (column, row) = (f64::from(number % key_columns), f64::from(number / key_columns));
        let (x, y) = (LEFT + key_pitch * column, 26.0 + 20.0 * row);
        svg.rectangle((x, y), (14.0, 14.0), colour(limit));
        svg.text((x + 20.0, y + 12.0), limit.name(), axes.theme.font(Anchor::Start));
    }
    for (run, number) in runs.iter().zip(0_u32..) {
        let top = first + above + (APART + above) * f64::from(number);
        for Stretch { limit, from, to } in stretches(run) {
            let (begins, ends) = (axes.x(from), axes.x(to));
            svg.with_tooltip(&format!("{}, {from} to {to} s", limit.name()), |svg| {
                svg.rectangle((begins, top), (ends - begins, HEIGHT), colour(limit));
            });
        }
        let name_at = match layout {
            Layout::Wide => (axes.right + 8.0, top + 14.0),
            Layout::Narrow => (axes.left, top - 5.0),
        };
        svg.text(name_at, &label(&run.name), NAME);
    }
    axes.foot(&mut svg, bottom.ticks(layout), bottom.title);
    svg.element(TITLE, layout.class())
}

/// Colour in the style sheet.
const fn colour(limit: Bottleneck) -> &'static str {
    match limit {
        Bottleneck::Nothing => "var(--line)",
        Bottleneck::Server => "var(--setup)",
        Bottleneck::Network => "var(--simulated)",
        Bottleneck::Generator => "var(--otherwise)",
    }
}

/// Consecutive seconds with the same bottleneck.
#[derive(Debug, PartialEq)]
struct Stretch {
    limit: Bottleneck,
    from: f64,
    to: f64,
}

fn stretches(run: &NamedRun) -> Vec<Stretch> {
    let mut stretches: Vec<Stretch> = Vec::new();
    for (second, from) in shown(&run.log.record).iter().zip(0_u32..) {
        let (limit, from) = (limit(second), f64::from(from));
        match stretches.last_mut() {
            Some(last) if last.limit == limit => last.to = from + 1.0,
            Some(_) | None => stretches.push(Stretch { limit, from, to: from + 1.0 }),
        }
    }
    stretches
}
