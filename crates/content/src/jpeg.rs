//! JPEG at a quality (ITU-T T.81): baseline, chroma at half the resolution, and Huffman tables optimised for the picture.
//!
//! Neither progressive nor perceptually optimised. Transparent pictures and animations have no JPEG.

mod huffman;

use crate::picture::Picture;
use huffman::{Bits, HuffmanSymbol, Table};

/// The picture as a JPEG at a quality of 1 to 100, on the scale of the Independent JPEG Group's library.
pub fn encode(picture: &Picture, quality: u8) -> Option<Vec<u8>> {
    let [still] = &picture.frames[..] else { return None };
    let size = [u16::try_from(picture.height).ok()?, u16::try_from(picture.width).ok()?];
    if picture.is_transparent() {
        return None;
    }
    let steps = [&LUMINANCE, &CHROMINANCE].map(|table| scaled(table, quality));
    let coded = coefficients(&still.pixels, size.map(usize::from), &steps);
    let tables = Tables::of(&coded);
    let mut out = vec![0xff, 0xd8];
    segment(&mut out, 0xe0, b"JFIF\0\x01\x01\0\0\x01\0\x01\0\0");
    for (number, steps) in (0_u8..).zip(&steps) {
        segment(&mut out, 0xdb, &[&[number][..], &zigzag(steps)].concat());
    }
    let [height, width] = size.map(u16::to_be_bytes);
    // Three components: luminance for each pixel, both chroma components for every second pixel each way, with the
    // second table.
    let components = [3, 1, 0x22, 0, 2, 0x11, 1, 3, 0x11, 1];
    segment(&mut out, 0xc0, &[&[8][..], &height, &width, &components].concat());
    for (class, table) in [0x00, 0x10, 0x01, 0x11].into_iter().zip(tables.all()) {
        segment(&mut out, 0xc4, &[&[class][..], &table.written()].concat());
    }
    segment(&mut out, 0xda, &[3, 1, 0x00, 2, 0x11, 3, 0x11, 0, 63, 0]);
    let mut bits = Bits::new(out);
    for Block { is_colour, dc, ac } in &coded {
        let [of_dc, of_ac] = tables.of_block(*is_colour);
        of_dc.write(*dc, &mut bits);
        ac.iter().for_each(|symbol| of_ac.write(*symbol, &mut bits));
    }
    let mut out = bits.end();
    out.extend([0xff, 0xd9]);
    Some(out)
}

fn segment(out: &mut Vec<u8>, marker: u8, data: &[u8]) {
    let length = u16::try_from(data.len() + 2).expect("no segment here has 64 KiB");
    out.extend([0xff, marker]);
    out.extend(length.to_be_bytes());
    out.extend(data);
}

/// 8 by 8 coefficients as symbols to encode.
struct Block {
    is_colour: bool,
    dc: HuffmanSymbol,
    ac: Vec<HuffmanSymbol>,
}

/// Huffman tables for luminance and for chroma, of the DC and of the AC coefficients.
struct Tables([[Table; 2]; 2]);

impl Tables {
    fn of(blocks: &[Block]) -> Self {
        let table = |is_colour: bool, of: fn(&Block) -> &[HuffmanSymbol]| {
            let blocks = blocks.iter().filter(|block| block.is_colour == is_colour);
            Table::of(blocks.flat_map(of).map(|coded| coded.symbol))
        };
        let first: fn(&Block) -> &[HuffmanSymbol] = |block| std::slice::from_ref(&block.dc);
        let others: fn(&Block) -> &[HuffmanSymbol] = |block| &block.ac;
        Self([false, true].map(|is_colour| [table(is_colour, first), table(is_colour, others)]))
    }

    fn all(&self) -> impl Iterator<Item = &Table> {
        self.0.iter().flatten()
    }

    fn of_block(&self, is_colour: bool) -> &[Table; 2] {
        &self.0[usize::from(is_colour)]
    }
}

/// Every block of the picture: for each 16 by 16 pixels four of luminance and one of each chroma component.
fn coefficients(pixels: &[[u8; 4]], [height, width]: [usize; 2], steps: &[[u8; 64]; 2]) -> Vec<Block> {
    // Pixels beyond the edges repeat those at the edges.
    let colour = |x: usize, y: usize| {
        let [red, green, blue, _] = pixels[y.min(height - 1) * width + x.min(width - 1)].map(f32::from);
        // T.871, section 7: samples centred on zero.
        [
            0.299 * red + 0.587 * green + 0.114 * blue - 128.0,
            -0.168_736 * red - 0.331_264 * green + 0.5 * blue,
            0.5 * red - 0.418_688 * green - 0.081_312 * blue,
        ]
    };
    let cosines = cosines();
    let (mut blocks, mut before) = (Vec::new(), [0; 3]);
    for top in (0..height).step_by(16) {
        for left in (0..width).step_by(16) {
            let mut push = |component: usize, samples: [f32; 64]| {
                let is_colour = component > 0;
                let levels = transformed(&samples, &steps[usize::from(is_colour)], &cosines);
                let (dc, ac) = symbols(&levels, before[component]);
                before[component] = levels[0];
                blocks.push(Block { is_colour, dc, ac });
            };
            for (x, y) in [(0, 0), (8, 0), (0, 8), (8, 8)] {
                push(0, std::array::from_fn(|place| colour(left + x + place % 8, top + y + place / 8)[0]));
            }
            for component in [1, 2] {
                let mean = |place: usize| {
                    let (x, y) = (left + 2 * (place % 8), top + 2 * (place / 8));
                    let four = [(x, y), (x + 1, y), (x, y + 1), (x + 1, y + 1)];
                    four.map(|(x, y)| colour(x, y)[component]).iter().sum::<f32>() / 4.0
                };
                push(component, std::array::from_fn(mean));
            }
        }
    }
    blocks
}

/// Cosines of each frequency at each of eight positions (T.81, section A.3.3).
fn cosines() -> [[f32; 8]; 8] {
    std::array::from_fn(|frequency| {
        let scale = if frequency == 0 { 0.125_f32.sqrt() } else { 0.5 };
        std::array::from_fn(|place| {
            let angle = (2 * place + 1) as f32 * frequency as f32 * std::f32::consts::PI / 16.0;
            scale * angle.cos()
        })
    })
}

/// The discrete cosine transform, quantised, row by row.
fn transformed(samples: &[f32; 64], steps: &[u8; 64], cosines: &[[f32; 8]; 8]) -> [i32; 64] {
    let rows: [f32; 64] = std::array::from_fn(|place| {
        let (y, frequency) = (place / 8, place % 8);
        (0..8).map(|x| samples[8 * y + x] * cosines[frequency][x]).sum()
    });
    std::array::from_fn(|place| {
        let (frequency, x) = (place / 8, place % 8);
        let level: f32 = (0..8).map(|y| rows[8 * y + x] * cosines[frequency][y]).sum();
        #[expect(clippy::cast_possible_truncation, reason = "eight times a sample is the most there is")]
        let level = (level / f32::from(steps[place])).round() as i32;
        // The range of a baseline file.
        level.clamp(-1_023, 1_023)
    })
}

/// The DC coefficient as the difference from the previous block's, and the AC coefficients as runs of zeros (T.81,
/// section F.1.2).
fn symbols(levels: &[i32; 64], before: i32) -> (HuffmanSymbol, Vec<HuffmanSymbol>) {
    const SIXTEEN_ZEROS: u8 = 0xf0;
    const END: u8 = 0;
    let (mut others, mut zeros) = (Vec::new(), 0);
    for level in &zigzag(levels)[1..] {
        if *level == 0 {
            zeros += 1;
            continue;
        }
        others.extend((0..zeros / 16).map(|_| HuffmanSymbol::bare(SIXTEEN_ZEROS)));
        others.push(HuffmanSymbol::number(zeros % 16, *level));
        zeros = 0;
    }
    if zeros > 0 {
        others.push(HuffmanSymbol::bare(END));
    }
    (HuffmanSymbol::number(0, levels[0] - before), others)
}

/// A block from its lowest to its highest frequencies, in zigzag order (T.81, figure A.6).
fn zigzag<T: Copy>(block: &[T; 64]) -> [T; 64] {
    let mut places: [usize; 64] = std::array::from_fn(|place| place);
    places.sort_by_key(|place| {
        let (x, y) = (place % 8, place / 8);
        (x + y, if (x + y) % 2 == 0 { x } else { y })
    });
    places.map(|place| block[place])
}

/// A quantisation table scaled to a quality.
fn scaled(table: &[u8; 64], quality: u8) -> [u8; 64] {
    let quality = u32::from(quality.clamp(1, 100));
    let percent = if quality < 50 { 5_000 / quality } else { 200 - 2 * quality };
    table.map(|step| u8::try_from(((u32::from(step) * percent + 50) / 100).clamp(1, 255)).unwrap_or(255))
}

/// Luminance quantisation (T.81, table K.1).
#[rustfmt::skip]
const LUMINANCE: [u8; 64] = [
    16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55,
    14, 13, 16, 24, 40, 57, 69, 56, 14, 17, 22, 29, 51, 87, 80, 62,
    18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81, 104, 113, 92,
    49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99,
];
/// Chrominance quantisation (T.81, table K.2).
#[rustfmt::skip]
const CHROMINANCE: [u8; 64] = [
    17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99,
    24, 26, 56, 99, 99, 99, 99, 99, 47, 66, 99, 99, 99, 99, 99, 99,
    99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
    99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::Frame;
    use crate::picture::tests::two_frames;
    use crate::still;

    /// Waves of colour on a canvas that is not a multiple of the block size.
    fn waves() -> Picture {
        let (width, height) = (45_u8, 37_u8);
        let pixel = |x: u8, y: u8| {
            let wave = |turn: f32| (f32::from(x) / 7.0 + turn * f32::from(y) / 9.0).sin() * 100.0 + 128.0;
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "28 to 228")]
            [wave(0.3) as u8, wave(1.0) as u8, wave(-0.5) as u8, 255]
        };
        let pixels = (0..height).flat_map(|y| (0..width).map(move |x| pixel(x, y))).collect();
        let frames = vec![Frame { pixels, delay: 0 }];
        Picture { width: width.into(), height: height.into(), frames, plays: 1 }
    }

    /// The mean squared difference.
    fn error(one: &Picture, other: &Picture) -> f64 {
        let [one, other] = [one, other].map(|picture| picture.frames[0].pixels.as_flattened());
        assert_eq!(one.len(), other.len());
        let squares = one.iter().zip(other).map(|(one, other)| f64::from(one.abs_diff(*other)).powi(2));
        squares.sum::<f64>() / one.len() as f64
    }

    #[test]
    fn a_higher_quality_is_closer_to_the_original_and_larger() {
        let picture = waves();
        let [low, middle, high] = [10, 60, 95].map(|quality| {
            let file = encode(&picture, quality).unwrap();
            (file.len(), error(&picture, &still::of_jpeg(&file).unwrap()))
        });
        assert!(low.0 < middle.0 && middle.0 < high.0, "{low:?} {middle:?} {high:?}");
        assert!(low.1 > middle.1 && middle.1 > high.1, "{low:?} {middle:?} {high:?}");
        assert!(high.1 < 8.0 && low.1 < 250.0, "{low:?} {middle:?} {high:?}");
    }

    #[test]
    fn animations_and_transparent_pictures_have_no_jpeg() {
        assert_eq!(encode(&two_frames(false), 50), None);
        let mut still = two_frames(true);
        still.frames.truncate(1);
        assert_eq!(encode(&still, 50), None);
    }

    #[test]
    fn zigzag_order_begins_as_in_the_standard() {
        let places: [usize; 64] = std::array::from_fn(|place| place);
        assert_eq!(zigzag(&places)[..10], [0, 1, 8, 16, 9, 2, 3, 10, 17, 24]);
        assert_eq!(zigzag(&places)[60..], [61, 54, 47, 55, 62, 63][2..]);
    }
}
