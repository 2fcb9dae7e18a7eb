//! Figures 2, 4 and 5 of `papers/heidemann-model` as pictures, and the contours of any page.
//!
//! The paper's text states no axes. Ours include every network of its Table II: bandwidth logarithmic, round trip
//! linear. Overheads depend only on the product of both, so the grid is logarithmic in both. Contours are then as
//! smooth as the formula.

use model::{Assumptions, predict};
use render::plot::contour_map::{Axis, ContourMap, Level, Mark};
use render::plot::field::Field;
use render::plot::palette;
use render::plot::scale::{Scale, multiples};
use render::plot::surface::{Edge, Flag, Surface};
use render::plot::svg::{Anchor, Point, Stroke};
use scenario::{Network, Page, Protocol, Scenario};
use wire::{Duration, Rate};

use super::heidemann::{basic, gain, network, overhead, page, point};

/// The surface: overhead of HTTP over TCP for the small cluster.
pub fn figure_2() -> String {
    let (x, y) = (Scale::logarithmic(0.02, 100.0), Scale::linear(0.0, 500.0));
    let page = small_cluster();
    let even = |count: u32| (0..=count).map(move |index| f64::from(index) / f64::from(count));
    // The values change most at short round trips, so the grid is finer there.
    let (across, along) = (even(48).collect(), even(36).map(|step| step * step).collect());
    let field = Field::sample(across, along, |u, v| {
        tcp_overhead(x.value(u), y.value(v).max(MIN_RTT_MS), &page, &Assumptions::paper())
    });
    Surface {
        title: "Overhead of HTTP over TCP",
        subtitle: [
            "Elapsed time over the least possible (S_TCP / S_min); small cluster: 6651 + 3883 + 1866 bytes",
            "Segments of 512 bytes; every segment acknowledged, k = 1",
        ],
        x: Edge { title: "bandwidth (Mb/s)", scale: x, ticks: x.ticks(1.0) },
        y: Edge { title: "round-trip time (ms)", scale: y, ticks: y.ticks(100.0) },
        z: Edge { title: "overhead", scale: Scale::linear(1.0, 9.0), ticks: vec![1.0, 3.0, 5.0, 7.0, 9.0] },
        field: &field,
        marks: network_marks(["modem", "isdn", "fast-internet", "adsl", "direcpc"])
            .zip([22.0, 18.0, 46.0, 22.0, 22.0])
            .map(|((name, at), pole)| Flag { name, at, pole })
            .collect(),
        source: "After Heidemann, Obraczka, Touch 1997, Fig. 2. Mb = 2^20 bits.",
    }
    .draw()
}

/// The same from above, by section VI's acknowledgement policy.
pub fn figure_4() -> String {
    let page = small_cluster();
    let field = sample_logarithmic(|rate, rtt| tcp_overhead(rate, rtt, &page, &Assumptions::default()));
    let thick = Stroke::solid(palette::INK, 1.5);
    let thin = Stroke { colour: palette::INK, width: 0.9, dashes: "6 4" };
    map(
        &field,
        "Overhead of HTTP over TCP",
        [
            "Elapsed time over the least possible (S_TCP / S_min); small cluster: 6651 + 3883 + 1866 bytes",
            SECTION_VI,
        ],
        levels(&field, 0.5, |step| if step.is_multiple_of(2) { (thick, true) } else { (thin, true) }),
        vec![(thick, "whole multiples of the minimum"), (thin, "halves between")],
        "After Heidemann, Obraczka, Touch 1997, Fig. 4. Mb = 2^20 bits.",
    )
}

/// Gain from connection caching.
pub fn figure_5() -> String {
    let field = sample_logarithmic(|rate, rtt| gain(network_at(rate, rtt)).unwrap_or(1.0));
    let thin = Stroke { colour: palette::INK, width: 1.5, dashes: "12 5" };
    let tenth = Stroke { colour: palette::INK, width: 0.9, dashes: "3 3" };
    map(
        &field,
        "What connection caching gains over HTTP over TCP",
        [
            "Elapsed time over that with caching, first miss (S_TCP / S_first-miss); small cluster: 6651 + 3883 + 1866 bytes",
            SECTION_VI,
        ],
        levels(&field, 0.1, |step| if step.is_multiple_of(5) { (thin, true) } else { (tenth, true) }),
        vec![(thin, "halves"), (tenth, "tenths; the ratio stays below 2, that of 10 : 5 round trips")],
        "After Heidemann, Obraczka, Touch 1997, Fig. 5. Mb = 2^20 bits.",
    )
}

/// Overhead of a scenario's page, by its protocol and stack, over every bandwidth and round trip.
///
/// # Errors
/// The reason why the model cannot predict the scenario.
pub fn contours(scenario: &Scenario, assumptions: &Assumptions) -> Result<String, String> {
    predict(scenario, assumptions).map_err(|refusal| refusal.to_string())?;
    let mss = scenario.network.mss;
    let field = sample_logarithmic(|rate, rtt| {
        let Network { rtt, rate, .. } = network_at(rate, rtt);
        let network = Network::new("map".to_owned(), rtt, rate, mss);
        let scenario = Scenario { network, ..scenario.clone() };
        overhead(&scenario, assumptions).ok().flatten().unwrap_or(1.0)
    });
    let (lowest, highest) = field.range();
    let step =
        STEPS.into_iter().find(|step| (highest - lowest) / step <= MAX_LEVELS).unwrap_or(GREATEST_STEP);
    let (thick, thin) =
        (Stroke::solid(palette::INK, 1.5), Stroke { colour: palette::INK, width: 0.9, dashes: "6 4" });
    let (page, protocol) = (&scenario.page, scenario.protocol.name());
    let objects = page.objects.len();
    let title = format!("Overhead of {protocol}");
    let page_line = format!(
        "Elapsed time over the least possible; {}: {objects} object{}, {} bytes",
        page.name,
        if objects == 1 { "" } else { "s" },
        page.size().get()
    );
    let stack_line = format!("Segments of {} bytes; stack {}", mss.get(), scenario.stack.name);
    let key = (format!("multiples of {}", 2.0 * step), format!("of {step}"));
    let levels = levels(&field, step, |number| (if number.is_multiple_of(2) { thick } else { thin }, true));
    Ok(map(
        &field,
        &title,
        [&page_line, &stack_line],
        levels,
        vec![(thick, &key.0), (thin, &key.1)],
        "The formulas of Heidemann, Obraczka, Touch 1997. Mb = 2^20 bits.",
    ))
}

/// Steps between contours, of which the first is chosen that draws few enough.
const STEPS: [f64; 8] = [0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
const GREATEST_STEP: f64 = 100.0;
/// Maximum number of contours.
const MAX_LEVELS: f64 = 20.0;

fn map<'a>(
    field: &'a Field,
    title: &'a str,
    subtitle: [&'a str; 2],
    levels: Vec<Level<'a>>,
    key: Vec<(Stroke<'a>, &'a str)>,
    source: &'a str,
) -> String {
    let (x, y) = (Scale::logarithmic(MIN_RATE_MBIT, MAX_RATE_MBIT), Scale::linear(0.0, MAX_RTT_MS));
    let marks = network_marks(Network::ten().into_iter().filter_map(|network| network.like));
    ContourMap {
        title,
        subtitle,
        x: Axis { title: "bandwidth (Mb/s)", scale: x, ticks: x.ticks(1.0) },
        y: Axis { title: "round-trip time (ms)", scale: y, ticks: y.ticks(100.0) },
        field,
        value: "ratio",
        levels,
        marks: marks.map(|(name, at)| mark(name, at)).collect(),
        key,
        guide: ((0.04, 60.0), (60.0, 420.0)),
        source,
    }
    .draw()
}

/// Assumptions of the paper's section VI.
const SECTION_VI: &str =
    "Segments of 512 bytes; no delayed acknowledgements (the lower bound of Table V), k = 2";

/// Ranges of the maps, in Mb/s and ms.
const MIN_RATE_MBIT: f64 = 0.015;
const MAX_RATE_MBIT: f64 = 200.0;
const MIN_RTT_MS: f64 = 0.2;
const MAX_RTT_MS: f64 = 560.0;
/// Grid points for each factor of ten.
const PER_DECADE: u32 = 24;

/// Every multiple of `step` within the field's values. `style` maps the number of steps to a line style and whether the
/// line has a number.
fn levels<'a>(field: &Field, step: f64, style: impl Fn(u32) -> (Stroke<'a>, bool)) -> Vec<Level<'a>> {
    let (lowest, highest) = field.range();
    let values = multiples(lowest.max(1.0), highest, step).into_iter();
    values
        .filter(|value| *value > lowest)
        .map(|value| {
            // A ratio of at most a few units, in tenths.
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let (stroke, numbered) = style((value / step).round() as u32);
            Level { value, stroke, label: numbered.then(|| format!("{value:.1}")) }
        })
        .collect()
}

/// Samples over bandwidth (Mb/s) and round trip (ms), spaced by the same ratio in both.
fn sample_logarithmic(mut value: impl FnMut(f64, f64) -> f64) -> Field {
    let exponents = |from: f64, to: f64| -> Vec<f64> {
        let step = 1.0 / f64::from(PER_DECADE);
        multiples(from.log10() - step, to.log10() + step, step)
    };
    Field::sample(exponents(MIN_RATE_MBIT, MAX_RATE_MBIT), exponents(MIN_RTT_MS, MAX_RTT_MS), |rate, rtt| {
        value(10_f64.powf(rate), 10_f64.powf(rtt))
    })
}

fn tcp_overhead(rate_mb: f64, rtt_ms: f64, page: &Page, assumptions: &Assumptions) -> f64 {
    let scenario = basic(network_at(rate_mb, rtt_ms), page.clone(), Protocol::Http10);
    // The model predicts every page as small as this, and its time is above zero.
    overhead(&scenario, assumptions).ok().flatten().unwrap_or(1.0)
}

/// A point of the map.
fn network_at(rate_mb: f64, rtt_ms: f64) -> Network {
    let rtt = Duration::from_secs_f64(rtt_ms / 1e3).expect("a map's round trips are short and positive");
    // Between 15 kb/s and 200 Mb/s.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let millibits = (rate_mb * MEGABIT * 1e3) as u64;
    point(rtt, Rate::from_millibits_per_second(millibits).expect("a map's rates are above zero"))
}

/// 2^20, the paper's Mb.
const MEGABIT: f64 = 1_048_576.0;

fn small_cluster() -> Page {
    page("small-cluster").expect("a page of the catalogue")
}

/// Networks of the catalogue with their position on a map.
fn network_marks(
    names: impl IntoIterator<Item = &'static str>,
) -> impl Iterator<Item = (&'static str, Point)> {
    names.into_iter().map(|name| {
        let network = network(name).expect("a network of the catalogue");
        (name, (network.rate.bits_per_second_f64() / MEGABIT, network.rtt.as_millis_f64()))
    })
}

/// A name is to the right of its point, unless that is over the edge or over another.
fn mark(name: &'static str, at: Point) -> Mark<'static> {
    let (offset, anchor) = match name {
        // These are on the axis: their names are above it.
        "ethernet" => ((8.0, -6.0), Anchor::Start),
        "fast-ethernet" => ((-8.0, -6.0), Anchor::End),
        _ => ((9.0, 4.5), Anchor::Start),
    };
    Mark { name, at, offset, anchor }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_is_one_picture_and_the_same_each_time() {
        for draw in [figure_2, figure_4, figure_5] {
            let svg = draw();
            assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
            assert!(!svg.contains("NaN") && !svg.contains("inf"));
            assert_eq!(svg, draw());
        }
    }

    /// Where one more stall begins, the overhead jumps: the level is crossed between two grid points.
    #[test]
    fn the_overhead_crosses_each_contours_number_on_the_contour() {
        let page = small_cluster();
        let overhead = |rate: f64, rtt: f64| {
            tcp_overhead(10_f64.powf(rate), 10_f64.powf(rtt), &page, &Assumptions::default())
        };
        let field = sample_logarithmic(|rate, rtt| overhead(rate.log10(), rtt.log10()));
        let step = 1.0 / f64::from(PER_DECADE);
        for level in [2.0, 5.5, 9.0] {
            let contours = field.contours(level);
            assert_eq!(contours.len(), 1, "{level}");
            for (rate, rtt) in &contours[0].points {
                assert!(overhead(rate - step, rtt - step) < level, "{level} at {rate} {rtt}");
                assert!(overhead(rate + step, rtt + step) > level, "{level} at {rate} {rtt}");
            }
        }
    }

    #[test]
    fn contours_of_any_page_are_drawn_by_its_own_protocol() {
        let scenario = |page: &str, protocol| {
            let stack = scenario::Stack::named("linux").unwrap();
            Scenario::new(network("adsl").unwrap(), Page::named(page).unwrap(), protocol, stack)
        };
        let draw = |page, protocol| contours(&scenario(page, protocol), &Assumptions::default()).unwrap();
        let picture = draw("large-cluster", Protocol::Http10);
        assert!(picture.contains("Overhead of http10") && picture.contains("large-cluster: 11 objects"));
        assert!(picture.contains("Segments of 512 bytes; stack linux"));
        assert!(!picture.contains("NaN") && !picture.contains("inf"));
        assert_ne!(picture, draw("large-cluster", Protocol::Http11));
        // No protocol is above the minimum by less than nothing, and the minimum has no contour.
        assert!(draw("small-page", Protocol::Minimum).ends_with("</svg>\n"));
        let several = Scenario {
            client: scenario::Client { parallel: 4, ..scenario::Client::default() },
            ..scenario("small-page", Protocol::Http11)
        };
        assert!(
            contours(&several, &Assumptions::default()).unwrap_err().contains("4 concurrent connections")
        );
    }
}
