//! Rasters of words and symbols with smooth edges: palette indices from background (0) to ink.
//!
//! Letters are those of a font of 5 by 7 cells, oblique and enlarged to any height.

use std::ops::Range;

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
        let is_ink = |x: usize, y: usize| {
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
        };
        let mut samples = Samples::new(side, side);
        for y in 0..end {
            (0..end).filter(|x| is_ink(*x, y)).for_each(|x| samples.ink(x..x + 1, y));
        }
        samples.raster()
    }

    /// Words of letters this high, in quarters of a pixel (at least 7), with some space around them.
    pub(super) fn words(words: &str, unit: usize) -> Self {
        let cells = 6 * words.len() + 8;
        let mut samples = Samples::new(cells * unit / 7 / SAMPLES, (unit + unit / 2) / SAMPLES);
        for down in 0..unit {
            // A fifth of a cell for each row: oblique.
            let (row, slant) = (7 * down / unit, (unit - down) / 5);
            for (position, letter) in words.bytes().enumerate() {
                let letter = letter.checked_sub(b'a').and_then(|letter| LETTERS.get(usize::from(letter)));
                let Some(letter) = letter else { continue };
                for column in (0..5).filter(|column| letter[row] << column & 0x10 != 0) {
                    let cell = 6 * position + column;
                    let [start, end] = [cell, cell + 1].map(|cell| slant + (cell * unit).div_ceil(7));
                    samples.ink(start..end, unit / 4 + down);
                }
            }
        }
        samples.raster()
    }
}

/// Number of each pixel's samples that are ink.
struct Samples {
    width: usize,
    height: usize,
    ink: Vec<usize>,
}

impl Samples {
    fn new(width: usize, height: usize) -> Self {
        Self { width, height, ink: vec![0; width * height] }
    }

    /// Inks these samples of row `y`; those outside are left out.
    fn ink(&mut self, across: Range<usize>, y: usize) {
        let line = y / SAMPLES;
        if line < self.height {
            let pixels = &mut self.ink[line * self.width..][..self.width];
            for x in across.start..across.end.min(SAMPLES * self.width) {
                pixels[x / SAMPLES] += 1;
            }
        }
    }

    /// The share of a pixel's samples that are ink selects its shade.
    fn raster(self) -> Raster {
        let shades: [u8; SAMPLES * SAMPLES + 1] =
            std::array::from_fn(|ink| u8::try_from(ink * (SHADES - 1) / (SAMPLES * SAMPLES)).unwrap_or(0));
        let pixels = self.ink.iter().map(|ink| shades[*ink]).collect();
        Raster { width: self.width, height: self.height, pixels }
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
