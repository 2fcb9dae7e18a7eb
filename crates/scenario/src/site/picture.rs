//! Pictures of an exact size in bytes: as many rows as fit, and a comment for the rest.
//!
//! They show bands with noise, so that they compress about as well as a drawing.

use wire::{Random, Seed};

use super::gif::{self, Gif, Lzw};

/// A picture and its file.
pub(super) struct Picture {
    pub(super) width: u16,
    pub(super) height: u16,
    pub(super) gif: Vec<u8>,
}

/// Generates picture `number`: `bytes` of GIF, at least 70, with this number of frames.
pub(super) fn draw(bytes: u64, frames: usize, seed: Seed, number: u64) -> Picture {
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    let palette = palette(bytes, &mut seed.stream("picture palette", number));
    let width = width(bytes / frames);
    let bits = gif::pixel_bits(palette.len());
    let row = |frame: usize, y: usize| {
        let index = number << 32 | (frame as u64) << 16 | y as u64;
        row(usize::from(width), frame + y, palette.len(), seed.stream("picture row", index))
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

/// One row: runs of one colour, and a pixel in eight of a random colour.
fn row(width: usize, y: usize, colours: usize, mut random: Random) -> impl Iterator<Item = u8> {
    let mut drawn = std::iter::repeat_with(move || random.next_u64().to_le_bytes()).flatten();
    (0..width).map(move |x| {
        let (chance, any) = (drawn.next().unwrap_or(0), drawn.next().unwrap_or(0));
        let band = (x + 2 * y) / 12;
        let colour = if chance < 32 { usize::from(any) } else { band } % colours;
        u8::try_from(colour).unwrap_or(0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_from_70_bytes_is_met() {
        for bytes in (70..400).chain([999, 5_000, 20_000]) {
            let Picture { width, height, gif } = draw(bytes, 1, Seed::default(), bytes);
            assert_eq!(gif.len() as u64, bytes);
            assert!(width > 1 && height > 0, "{bytes}: {width} by {height}");
        }
        assert_eq!(draw(12_494, 6, Seed::default(), 1).gif.len(), 12_494);
    }
}
