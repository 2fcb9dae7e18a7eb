//! Pictures of an exact size in bytes, as large as fits, padded with a comment.
//!
//! They show what the note describes (`papers/w3c#content`): words, bullets, arrows, spacers, and drawings of bands and
//! noise. The noise and the moving part of an animation are fitted to the note's sizes of PNG and MNG.

use std::collections::BTreeMap;
use std::sync::Mutex;

use wire::{Random, Seed};

use super::gif::{self, Gif, Lzw};
use super::raster::{Raster, SHADES, Symbol};

/// A picture and its file.
pub(super) struct Picture {
    pub(super) width: u16,
    pub(super) height: u16,
    pub(super) gif: Vec<u8>,
}

/// Contents of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scene {
    /// Bands with noise, in this number of frames; in an animation a part of each frame changes.
    Drawing(usize),
    /// A photograph: light that changes slowly, and grain.
    Photograph,
    /// A rectangle of one colour: a spacer or a rule.
    Blank,
    /// A sign of a font: a bullet or an arrow.
    Symbol(Symbol),
    /// Words in one line.
    Words(&'static str),
}

/// Generates picture `number`: `bytes` of GIF, at least 70.
pub(super) fn draw(bytes: u64, scene: Scene, seed: Seed, number: u64) -> Picture {
    let limit = usize::try_from(bytes).unwrap_or(usize::MAX);
    match scene {
        Scene::Drawing(frames) => drawing(limit, Texture::Bands, frames, seed, number),
        Scene::Photograph => drawing(limit, Texture::Grain, 1, seed, number),
        Scene::Blank => {
            let mut random = seed.stream("picture palette", number);
            let side = |random: &mut Random| usize::try_from(2 + random.up_to(18)).unwrap_or(2);
            let (width, height) = (side(&mut random), side(&mut random));
            let palette = palette(limit, &mut random);
            let rasters = [Raster::blank(width, height)].into_iter();
            FittedRaster::of(limit, palette.len(), rasters).picture(&palette)
        }
        Scene::Symbol(symbol) => {
            let shades = shades(&mut seed.stream("picture palette", number));
            fitted(limit, symbol.name(), &shades, (5..=MAX_SYMBOL).map(|side| Raster::symbol(symbol, side)))
        }
        Scene::Words(words) => {
            let shades = shades(&mut seed.stream("picture palette", number));
            fitted(limit, words, &shades, (20..=MAX_LETTERS).map(|height| Raster::words(words, height)))
        }
    }
}

/// Maximum side of a symbol, in pixels.
const MAX_SYMBOL: usize = 32;
/// Maximum height of letters, in quarters of a pixel.
const MAX_LETTERS: usize = 144;

/// A picture of the largest of these rasters that fits; a comment fills the remaining bytes.
fn fitted(
    bytes: usize,
    name: &'static str,
    palette: &[[u8; 3]],
    rasters: impl Iterator<Item = Raster>,
) -> Picture {
    // Pixels do not depend on the seed; colours do.
    static CACHE: Mutex<BTreeMap<(usize, &str), FittedRaster>> = Mutex::new(BTreeMap::new());
    let cache = CACHE.lock().ok().and_then(|cache| cache.get(&(bytes, name)).cloned());
    let fitted = cache.unwrap_or_else(|| {
        let fitted = FittedRaster::of(bytes, palette.len(), rasters);
        if let Ok(mut cache) = CACHE.lock() {
            cache.insert((bytes, name), fitted.clone());
        }
        fitted
    });
    fitted.picture(palette)
}

/// A compressed raster, and the bytes available for a comment.
#[derive(Clone)]
struct FittedRaster {
    width: u16,
    height: u16,
    frame: Vec<u8>,
    padding: usize,
}

impl FittedRaster {
    /// The last of these rasters before the first whose file has more than `bytes`.
    fn of(bytes: usize, colours: usize, rasters: impl Iterator<Item = Raster>) -> Self {
        let mut best = Self { width: 1, height: 1, frame: Vec::new(), padding: 0 };
        for Raster { width, height, pixels } in rasters {
            let mut lzw = Lzw::new(gif::pixel_bits(colours));
            pixels.iter().for_each(|pixel| lzw.push(*pixel));
            let frame = lzw.finish();
            let length = gif::length(colours, [frame.len()].into_iter());
            let Some(padding) = bytes.checked_sub(length) else { break };
            if gif::can_pad(padding) {
                let side = |length| u16::try_from(length).unwrap_or(u16::MAX);
                best = Self { width: side(width), height: side(height), frame, padding };
            }
        }
        best
    }

    /// The raster in these colours.
    fn picture(self, palette: &[[u8; 3]]) -> Picture {
        let Self { width, height, frame, padding } = self;
        let gif = Gif { width, height, palette, frames: &[frame] }.encode(padding);
        Picture { width, height, gif }
    }
}

/// Background, ink, and the shades between them, which smooth edges.
fn shades(random: &mut Random) -> Vec<[u8; 3]> {
    let colours = [random.next_u64(), random.next_u64()].map(u64::to_le_bytes);
    let shade = |part: usize, channel: usize| {
        let [ground, ink] = colours.map(|colour| usize::from(colour[channel]));
        u8::try_from((ground * (SHADES - 1 - part) + ink * part) / (SHADES - 1)).unwrap_or(0)
    };
    (0..SHADES).map(|part| [0, 1, 2].map(|channel| shade(part, channel))).collect()
}

/// Texture of a picture of unlimited height.
#[derive(Clone, Copy)]
enum Texture {
    Bands,
    Grain,
}

fn drawing(bytes: usize, texture: Texture, frames: usize, seed: Seed, number: u64) -> Picture {
    let palette = match texture {
        Texture::Bands => palette(bytes, &mut seed.stream("picture palette", number)),
        Texture::Grain => (0..=255).map(|light| [light; 3]).collect(),
    };
    let width = width(bytes / frames);
    let bits = gif::pixel_bits(palette.len());
    let row = |frame: usize, y: usize| {
        let row = |frame: usize| {
            let index = number << 32 | (frame as u64) << 16 | y as u64;
            let random = seed.stream("picture row", index);
            row(texture, usize::from(width), frame + y, palette.len(), random)
        };
        // The left part changes from frame to frame; the right part does not.
        let moving = usize::from(width) * ANIMATED_WIDTH / 256;
        row(frame).take(moving).chain(row(0).skip(moving))
    };

    let mut ends: Vec<Lzw> = (0..frames).map(|_| Lzw::new(bits)).collect();
    let mut height = 0;
    for y in 0..usize::from(u16::MAX) {
        for (frame, lzw) in ends.iter_mut().enumerate() {
            row(frame, y).for_each(|pixel| lzw.push(pixel));
        }
        let length = gif::length(palette.len(), ends.iter().map(Lzw::length));
        if length > bytes {
            break;
        }
        if gif::can_pad(bytes - length) {
            height = y + 1;
        }
    }

    let compress = |frame| {
        let mut lzw = Lzw::new(bits);
        (0..height).flat_map(|y| row(frame, y)).for_each(|pixel| lzw.push(pixel));
        lzw.finish()
    };
    let frames: Vec<Vec<u8>> = (0..frames).map(compress).collect();
    let padding = bytes.saturating_sub(gif::length(palette.len(), frames.iter().map(Vec::len)));
    let height = u16::try_from(height).unwrap_or(u16::MAX);
    let gif = Gif { width, height, palette: &palette, frames: &frames }.encode(padding);
    Picture { width, height, gif }
}

/// A palette with a number of colours for a file of this size.
fn palette(bytes: usize, random: &mut Random) -> Vec<[u8; 3]> {
    let colours = match bytes {
        0..300 => 4,
        300..1_500 => 16,
        1_500..6_000 => 32,
        6_000.. => 128,
    };
    (0..colours)
        .map(|_| random.next_u64().to_le_bytes())
        .map(|[red, green, blue, ..]| [red, green, blue])
        .collect()
}

/// Width: half as wide again as high, if a byte holds about three pixels.
fn width(bytes: usize) -> u16 {
    u16::try_from((bytes * 3 * 3 / 2).isqrt()).unwrap_or(u16::MAX).max(2)
}

/// Share of a drawing's pixels with a random colour, of 256: fitted to the note's 92,096 bytes of PNG.
const NOISE: u8 = 76;
/// Share of an animation's width that changes in each frame, of 256: fitted to the note's 16,329 bytes of MNG.
const ANIMATED_WIDTH: usize = 152;

/// Strength of a photograph's grain, of 256: fitted to the same bytes of PNG.
const GRAIN: usize = 3;

/// One row. Bands: runs of one colour, and noise. Grain: light that changes slowly, and a little noise everywhere.
fn row(
    texture: Texture,
    width: usize,
    y: usize,
    colours: usize,
    mut random: Random,
) -> impl Iterator<Item = u8> {
    let mut sampled = std::iter::repeat_with(move || random.next_u64().to_le_bytes()).flatten();
    (0..width).map(move |x| {
        let (selector, value) = (sampled.next().unwrap_or(0), sampled.next().unwrap_or(0));
        let colour = match texture {
            Texture::Bands if selector < NOISE => usize::from(value),
            Texture::Bands => (x + 2 * y) / 12,
            Texture::Grain => {
                let grain = (usize::from(selector) + usize::from(value)) * GRAIN / 256;
                (3 * x + 2 * y) * colours / (6 * width) + (x / 17 + y / 13) * 7 % 5 * colours / 30 + grain
            }
        };
        u8::try_from(colour % colours).unwrap_or(0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_from_70_bytes_is_met() {
        for bytes in (70..400).chain([999, 5_000, 20_000]) {
            let Picture { width, height, gif } = draw(bytes, Scene::Drawing(1), Seed::default(), bytes);
            assert_eq!(gif.len() as u64, bytes);
            assert!(width > 1 && height > 0, "{bytes}: {width} by {height}");
        }
        assert_eq!(draw(12_494, Scene::Drawing(6), Seed::default(), 1).gif.len(), 12_494);
        assert_eq!(draw(700, Scene::Words("downloads"), Seed::default(), 1).gif.len(), 700);
        assert_eq!(draw(200, Scene::Symbol(Symbol::Arrow), Seed::default(), 1).gif.len(), 200);
        assert_eq!(draw(70, Scene::Blank, Seed::default(), 1).gif.len(), 70);
    }
}
