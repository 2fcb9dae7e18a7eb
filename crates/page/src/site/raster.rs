//! Rasters of words and symbols with smooth edges: palette indices from background (0) to ink.
//!
//! Letters are those of a font of 5 by 7 cells, oblique and enlarged to any height.

/// A picture as palette indices below [`SHADES`], from the top left.
pub(super) struct Raster {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) pixels: Vec<u8>,
}

/// A sign that fonts have as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Symbol {
    Bullet,
    Arrow,
}

impl Symbol {
    /// Alternative text of the symbol, without entities.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Bullet => "*",
            Self::Arrow => "->",
        }
    }
}

/// Number of colours: background, ink, and the shades between.
pub(super) const SHADES: usize = 16;
/// Samples of a pixel in each direction.
const SAMPLES: usize = 4;

impl Raster {
    /// One colour.
    pub(super) fn blank(width: usize, height: usize) -> Self {
        Self { width, height, pixels: vec![0; width * height] }
    }

    /// A symbol in a square of this side, in pixels.
    pub(super) fn symbol(symbol: Symbol, side: usize) -> Self {
        let end = side * SAMPLES;
        Self::sampled(side, side, |x, y| {
            // Twice the distance from the centre.
            let (across, down) = ((2 * x + 1).abs_diff(end), (2 * y + 1).abs_diff(end));
            match symbol {
                Symbol::Bullet => 9 * (across * across + down * down) <= 4 * end * end,
                Symbol::Arrow => {
                    let (is_shaft, head) = (6 * down <= end, (2 * x).saturating_sub(end));
                    let is_head = 2 * x >= end && down + head <= end;
                    (is_shaft && 2 * x < end) || is_head
                }
            }
        })
    }

    /// Words of letters this high, in quarters of a pixel (at least 7), with some space around them.
    pub(super) fn words(words: &str, unit: usize) -> Self {
        let cells = 6 * words.len() + 8;
        let (width, lines) = (cells * unit / 7 / SAMPLES, (unit + unit / 2) / SAMPLES);
        Self::sampled(width, lines, |x, y| {
            let Some(y) = y.checked_sub(unit / 4) else { return false };
            // A fifth of a cell for each row: oblique.
            let (row, slant) = (7 * y / unit, (unit - unit.min(y)) / 5);
            let Some(x) = x.checked_sub(slant) else { return false };
            let column = 7 * x / unit;
            let letter = words.as_bytes().get(column / 6).copied().unwrap_or(b' ');
            let rows = letter.checked_sub(b'a').and_then(|letter| LETTERS.get(usize::from(letter)));
            let cells = rows.and_then(|rows| rows.get(row)).copied().unwrap_or(0);
            cells << (column % 6) & 0x10 != 0
        })
    }

    /// The share of a pixel's samples that are ink selects its shade.
    fn sampled(width: usize, height: usize, is_ink: impl Fn(usize, usize) -> bool) -> Self {
        let shade = |x: usize, y: usize| {
            let samples = (0..SAMPLES).flat_map(|down| (0..SAMPLES).map(move |across| (across, down)));
            let ink =
                samples.filter(|(across, down)| is_ink(SAMPLES * x + across, SAMPLES * y + down)).count();
            u8::try_from(ink * (SHADES - 1) / (SAMPLES * SAMPLES)).unwrap_or(0)
        };
        let pixels = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
        Self { width, height, pixels: pixels.map(|(x, y)| shade(x, y)).collect() }
    }
}

/// Seven rows of five cells for each letter, the leftmost the highest bit.
const LETTERS: [[u8; 7]; 26] = [
    [0x0e, 0x11, 0x11, 0x1f, 0x11, 0x11, 0x11],
    [0x1e, 0x11, 0x11, 0x1e, 0x11, 0x11, 0x1e],
    [0x0e, 0x11, 0x10, 0x10, 0x10, 0x11, 0x0e],
    [0x1e, 0x11, 0x11, 0x11, 0x11, 0x11, 0x1e],
    [0x1f, 0x10, 0x10, 0x1e, 0x10, 0x10, 0x1f],
    [0x1f, 0x10, 0x10, 0x1e, 0x10, 0x10, 0x10],
    [0x0e, 0x11, 0x10, 0x17, 0x11, 0x11, 0x0f],
    [0x11, 0x11, 0x11, 0x1f, 0x11, 0x11, 0x11],
    [0x0e, 0x04, 0x04, 0x04, 0x04, 0x04, 0x0e],
    [0x07, 0x02, 0x02, 0x02, 0x02, 0x12, 0x0c],
    [0x11, 0x12, 0x14, 0x18, 0x14, 0x12, 0x11],
    [0x10, 0x10, 0x10, 0x10, 0x10, 0x10, 0x1f],
    [0x11, 0x1b, 0x15, 0x15, 0x11, 0x11, 0x11],
    [0x11, 0x19, 0x15, 0x13, 0x11, 0x11, 0x11],
    [0x0e, 0x11, 0x11, 0x11, 0x11, 0x11, 0x0e],
    [0x1e, 0x11, 0x11, 0x1e, 0x10, 0x10, 0x10],
    [0x0e, 0x11, 0x11, 0x11, 0x15, 0x12, 0x0d],
    [0x1e, 0x11, 0x11, 0x1e, 0x14, 0x12, 0x11],
    [0x0f, 0x10, 0x10, 0x0e, 0x01, 0x01, 0x1e],
    [0x1f, 0x04, 0x04, 0x04, 0x04, 0x04, 0x04],
    [0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x0e],
    [0x11, 0x11, 0x11, 0x11, 0x11, 0x0a, 0x04],
    [0x11, 0x11, 0x11, 0x15, 0x15, 0x1b, 0x11],
    [0x11, 0x11, 0x0a, 0x04, 0x0a, 0x11, 0x11],
    [0x11, 0x11, 0x0a, 0x04, 0x04, 0x04, 0x04],
    [0x1f, 0x01, 0x02, 0x04, 0x08, 0x10, 0x1f],
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_words_is_mostly_background() {
        for quarters in [32, 81, 144] {
            let Raster { width, height, pixels } = Raster::words("solutions", quarters);
            assert_eq!(pixels.len(), width * height);
            let background = pixels.iter().filter(|shade| **shade == 0).count();
            assert!(
                2 * background > pixels.len() && background < pixels.len(),
                "{background} of {}",
                pixels.len()
            );
            assert!(pixels.iter().all(|shade| usize::from(*shade) < SHADES));
        }
    }

    #[test]
    fn an_arrow_points_to_the_right() {
        let Raster { width, height, pixels } = Raster::symbol(Symbol::Arrow, 16);
        let column = |x: usize| (0..height).filter(|y| pixels[y * width + x] > 0).count();
        assert!(column(width / 2) > column(0) && column(width / 2) > column(width - 1));
    }
}
