//! The bottleneck of each second, as a strip of colours for each run, rendered for a page.
//!
//! The bottleneck of a second is in [`crate::second`]. The time axis is that of the charts above it, so that seconds line up.

use render::plot::axes::Axes;
use render::plot::svg::{Anchor, Svg};
use render::report::lines::{Axis, LEFT, NAME, WIDTH, label};

use super::named_run::{NamedRun, shown};
use crate::second::{Bottleneck, limit};

/// Height of a strip, and distance from one to the next.
const HEIGHT: f64 = 18.0;
const APART: f64 = 26.0;
/// Top of the first strip, below the title and the key.
const TOP: f64 = 54.0;

/// The strips, over this time axis.
pub(super) fn strips(runs: &[NamedRun], bottom: &Axis<'_>) -> String {
    const TITLE: &str = "Bottleneck";
    let end = TOP + APART * runs.len() as f64;
    let axes = Axes { bottom: end, ..bottom.axes(runs.iter().map(|run| run.name.as_str())) };
    let mut svg = Svg::in_page(WIDTH, end + 48.0);
    svg.text((0.0, 14.0), TITLE, NAME);
    for (limit, number) in Bottleneck::ALL.into_iter().zip(0_u32..) {
        let x = LEFT + 130.0 * f64::from(number);
        svg.rectangle((x, 26.0), (14.0, 14.0), colour(limit));
        svg.text((x + 20.0, 38.0), limit.name(), axes.theme.font(Anchor::Start));
    }
    for (run, number) in runs.iter().zip(0_u32..) {
        let top = TOP + APART * f64::from(number);
        for Stretch { limit, from, to } in stretches(run) {
            let (begins, ends) = (axes.x(from), axes.x(to));
            svg.with_tooltip(&format!("{}, {from} to {to} s", limit.name()), |svg| {
                svg.rectangle((begins, top), (ends - begins, HEIGHT), colour(limit));
            });
        }
        svg.text((axes.right + 8.0, top + 14.0), &label(&run.name), NAME);
    }
    axes.foot(&mut svg, bottom.ticks.iter().cloned(), bottom.title);
    svg.element(TITLE)
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
