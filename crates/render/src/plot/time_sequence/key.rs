//! The symbols of a plot, and their legend.

use crate::plot::palette;
use crate::plot::svg::{Anchor, Font, Point, Stroke, Svg};

/// Shading of a stall, and of one that is no fault.
pub(super) const STALL: &str = "#fbe3d3";
pub(super) const NOTE: &str = "#e6e9ee";

/// Line of the congestion window.
pub(super) const CONGESTION: Stroke<'static> =
    Stroke { colour: palette::PURPLE, width: 1.0, dashes: "1.5 2.5" };

/// A segment: a vertical bar with a cap at both ends, except where a zoom would stretch the caps.
pub(super) fn bar(svg: &mut Svg, x: f64, (low, high): (f64, f64), colour: &str) {
    // The caps of many small segments on top of each other would be a block.
    let has_hat = low - high >= 4.0 && !svg.is_interactive();
    let stroke = Stroke::solid(colour, if has_hat { 1.5 } else { 3.0 });
    svg.line(&[(x, low), (x, high.min(low - 1.2))], stroke);
    if has_hat {
        svg.line(&[(x - 2.5, low), (x + 2.5, low)], stroke);
        svg.line(&[(x - 2.5, high), (x + 2.5, high)], stroke);
    }
}

/// A lost segment.
pub(super) fn cross(svg: &mut Svg, (x, y): Point, colour: &str) {
    let stroke = Stroke::solid(colour, 1.8);
    svg.line(&[(x - 4.0, y - 4.0), (x + 4.0, y + 4.0)], stroke);
    svg.line(&[(x - 4.0, y + 4.0), (x + 4.0, y - 4.0)], stroke);
}

/// A request, just below the bytes before it: a triangle, or a tick where a zoom would stretch it.
pub(super) fn request(svg: &mut Svg, (x, y): Point) {
    if svg.is_interactive() {
        svg.line(&[(x, y + 2.5), (x, y + 10.5)], REQUEST);
        return;
    }
    let corners = [(x, y + 2.5), (x - 4.5, y + 10.5), (x + 4.5, y + 10.5)];
    svg.polygon(&corners, palette::PURPLE, Stroke::solid("#ffffff", 0.8));
}

/// Tick of a request.
pub(super) const REQUEST: Stroke<'static> = Stroke::solid(palette::PURPLE, 2.0);

/// Legend of the symbols that occur.
#[derive(Default)]
pub(super) struct Key {
    shown: [bool; Meaning::ALL.len()],
}

/// Meaning of a symbol.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    Segment,
    Retransmission,
    Lost,
    Acknowledged,
    Allowed,
    AllowedAbove,
    Congestion,
    Request,
    Syn,
    Fin,
    Reset,
    Stall,
    Note,
}

impl Meaning {
    const ALL: [Self; 13] = [
        Self::Segment,
        Self::Retransmission,
        Self::Lost,
        Self::Acknowledged,
        Self::Allowed,
        Self::AllowedAbove,
        Self::Congestion,
        Self::Request,
        Self::Syn,
        Self::Fin,
        Self::Reset,
        Self::Stall,
        Self::Note,
    ];

    const fn words(self) -> &'static str {
        match self {
            Self::Segment => "segment",
            Self::Retransmission => "retransmitted",
            Self::Lost => "lost",
            Self::Acknowledged => "acknowledged",
            Self::Allowed => "window",
            Self::AllowedAbove => "(window above)",
            Self::Congestion => "cwnd",
            Self::Request => "request",
            Self::Syn => "SYN",
            Self::Fin => "FIN",
            Self::Reset => "reset",
            Self::Stall => "stall",
            Self::Note => "no fault",
        }
    }
}

impl Key {
    /// Adds a symbol to the legend.
    pub(super) fn shows(&mut self, meaning: Meaning) {
        self.shown[meaning as usize] = true;
    }

    /// All symbols that occur, in a row from this position.
    pub(super) fn draw(&self, svg: &mut Svg, (mut x, y): Point) {
        for meaning in Meaning::ALL.into_iter().filter(|meaning| self.shown[*meaning as usize]) {
            let words = meaning.words();
            let sign = Self::sign(svg, meaning, (x, y));
            svg.text((x + sign, y + 4.0), words, Font::new(12.5, palette::INK, Anchor::Start));
            x += sign + words.chars().count() as f64 * 6.6 + 20.0;
        }
    }

    /// Draws a symbol, and returns the width that it took.
    fn sign(svg: &mut Svg, meaning: Meaning, (x, y): Point) -> f64 {
        let letter = |svg: &mut Svg, letter| {
            let font = Font::new(12.0, palette::PURPLE, Anchor::Start);
            svg.text((x, y + 4.0), letter, Font { bold: true, ..font });
            14.0
        };
        match meaning {
            Meaning::Segment => bar(svg, x + 4.0, (y + 7.0, y - 7.0), palette::BLUE),
            Meaning::Retransmission => bar(svg, x + 4.0, (y + 7.0, y - 7.0), palette::ACCENT),
            Meaning::Lost => cross(svg, (x + 4.0, y), palette::ACCENT),
            Meaning::Request => request(svg, (x + 5.0, y - 6.0)),
            Meaning::Acknowledged => {
                svg.line(&[(x, y), (x + 22.0, y)], Stroke::solid(palette::GREEN, 2.0));
                return 28.0;
            }
            Meaning::Allowed => {
                let stroke = Stroke { colour: palette::ORANGE, width: 1.6, dashes: "5 3" };
                svg.line(&[(x, y), (x + 22.0, y)], stroke);
                return 28.0;
            }
            Meaning::Congestion => {
                svg.line(&[(x, y), (x + 22.0, y)], CONGESTION);
                return 28.0;
            }
            Meaning::AllowedAbove => return 0.0,
            Meaning::Syn => return letter(svg, "S"),
            Meaning::Fin => return letter(svg, "F"),
            Meaning::Reset => return letter(svg, "X"),
            Meaning::Stall | Meaning::Note => {
                let shade = if meaning == Meaning::Stall { STALL } else { NOTE };
                svg.rectangle((x, y - 7.0), (16.0, 14.0), shade);
                return 22.0;
            }
        }
        14.0
    }
}
