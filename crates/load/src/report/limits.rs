//! The bottleneck of each second, as a strip of colours for each run, drawn for a page.
//!
//! Not the attribution: that is [`crate::audit`]. The time axis is that of the charts above it, so that seconds line up.

use render::plot::scale::Scale;
use render::report::html::escaped;
use render::report::lines::{self, Axis, LEFT, WIDTH};

use super::page::{Named, shown};
use crate::audit::{Limit, limit};

/// Height of a strip, and distance from one to the next.
const HEIGHT: f64 = 18.0;
const APART: f64 = 26.0;
/// Top of the first strip, below the title and the key.
const TOP: f64 = 54.0;

/// The strips, over this time axis.
pub(super) fn strips(runs: &[Named], bottom: &Axis<'_>) -> String {
    const TITLE: &str = "Bottleneck";
    let names = runs.iter().map(|run| run.name.as_str());
    let right = lines::right(names);
    let along = Scale::linear(bottom.range.0, bottom.range.1.max(bottom.range.0 + 1e-9));
    let x = |value: f64| LEFT + along.place(value) * (right - LEFT);
    let end = TOP + APART * runs.len() as f64;
    let mut svg = format!(
        "<div class=\"scroll\">\n<svg class=\"lines\" viewBox=\"0 0 {WIDTH} {:.0}\" width=\"100%\" role=\"img\" aria-label=\"{TITLE}\">\n\
         <text class=\"name\" x=\"0\" y=\"14\">{TITLE}</text>\n{}",
        end + 48.0,
        key()
    );
    for (run, number) in runs.iter().zip(0_u32..) {
        let top = TOP + APART * f64::from(number);
        for Stretch { limit, from, to } in stretches(run) {
            let (begins, ends) = (x(from), x(to));
            svg += &format!(
                "<rect style=\"fill:var({})\" x=\"{begins:.1}\" y=\"{top:.0}\" width=\"{:.1}\" height=\"{HEIGHT}\">\
                 <title>{}, {from} to {to} s</title></rect>\n",
                colour(limit),
                ends - begins,
                limit.name()
            );
        }
        svg += &format!(
            "<text class=\"name\" x=\"{:.1}\" y=\"{:.1}\">{}</text>\n",
            right + 8.0,
            top + 14.0,
            lines::label(&run.name)
        );
    }
    for (value, text) in &bottom.ticks {
        let place = x(*value);
        svg += &format!(
            "<line style=\"stroke:var(--faint)\" x1=\"{place:.1}\" x2=\"{place:.1}\" y1=\"{end:.0}\" y2=\"{:.0}\"/>\n\
             <text class=\"engine\" x=\"{place:.1}\" y=\"{:.0}\" text-anchor=\"middle\">{}</text>\n",
            end + 5.0,
            end + 20.0,
            escaped(text)
        );
    }
    svg += &format!(
        "<text class=\"engine\" x=\"{:.1}\" y=\"{:.0}\" text-anchor=\"middle\">{}</text>\n",
        (LEFT + right) / 2.0,
        end + 42.0,
        escaped(bottom.title)
    );
    svg + "</svg>\n</div>\n"
}

/// Legend of the colours.
fn key() -> String {
    let mut svg = String::new();
    for (limit, number) in Limit::ALL.into_iter().zip(0_u32..) {
        let place = LEFT + 130.0 * f64::from(number);
        svg += &format!(
            "<rect style=\"fill:var({})\" x=\"{place}\" y=\"26\" width=\"14\" height=\"14\"/>\n\
             <text class=\"engine\" x=\"{}\" y=\"38\">{}</text>\n",
            colour(limit),
            place + 20.0,
            limit.name()
        );
    }
    svg
}

/// Colour in the style sheet.
const fn colour(limit: Limit) -> &'static str {
    match limit {
        Limit::Nothing => "--line",
        Limit::Server => "--setup",
        Limit::Network => "--simulated",
        Limit::Generator => "--otherwise",
    }
}

/// Consecutive seconds with the same bottleneck.
#[derive(Debug, PartialEq)]
struct Stretch {
    limit: Limit,
    from: f64,
    to: f64,
}

fn stretches(run: &Named) -> Vec<Stretch> {
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
